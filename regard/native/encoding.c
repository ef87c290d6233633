/* An encoder for inference: the tokens of all sentences in one row of rows, without padding. */

#include "attention.h"
#include "stack.h"

#define BLOCK 256 /* rows, about, that go through all layers together */

/* The weights of a layer, in the order in which they are met. */
enum { PACKED, PACKED_BIAS, JOINT_1, INNER = JOINT_1 + JOINT, INNER_BIAS, JOINT_2, WEIGHTS = JOINT_2 + JOINT };

/* Every sentence attends to itself: `from` to `to`, whose tokens are the rows starts[i]..starts[i+1]-1. */
static int look_around(
    const stack *s, float *found, const float *packed, float *weights, const int64_t *starts, int64_t from, int64_t to) {
    const int64_t all = s->heads * s->width, stride = 3 * all;
    int done = 1;
    for (int64_t i = from; i < to && done; i++) {
        const int64_t count = starts[i + 1] - starts[i], row = starts[i] - starts[from];
        const layout place = {0, s->width, stride}, places[] = {place, place, place};
        const float *q = packed + row * stride;
        if (count)
            done = attend_forwards(found + row * all, weights, q, q + all, q + 2 * all, places, NULL, 0, 1, s->heads,
                                   count, count, s->width);
    }
    return done;
}

/* The sentences first..last-1 through all layers: y holds what the first layer reads and receives what the last one
gives; the stream x is written over. Row r has the angles of its position, if there are any. */
VISIBLE EVERY_PROCESSOR int encode(
    const stack *s, float *x, float *y, const float *angles, const int64_t *starts, int64_t first, int64_t last) {
    const int64_t d = s->d, all = s->heads * s->width, apart = s->inner + PANEL;
    int64_t most = BLOCK, longest = 0;
    for (int64_t i = first; i < last; i++) {
        const int64_t count = starts[i + 1] - starts[i];
        longest = count > longest ? count : longest;
    }
    most += longest;
    float *found = malloc((size_t)(most * (all + 3 * all + apart)) * sizeof *found);
    float *weights = malloc((size_t)(s->heads * longest * (longest + NARROW) + 1) * sizeof *weights);
    int done = found && weights;
    float *packed = found + most * all, *hidden = packed + most * 3 * all;
    while (first < last && done) {
        int64_t next = first + 1;
        while (next < last && starts[next + 1] - starts[first] <= BLOCK) next++;
        const int64_t rows = starts[next] - starts[first];
        float *stream = x + starts[first] * d, *normed = y + starts[first] * d;
        for (int64_t l = 0; l < s->layers && done; l++) {
            const float *const *w = s->weights + l * WEIGHTS;
            multiply(packed, 3 * all, normed, d, w[PACKED], w[PACKED_BIAS], rows, d, 3 * all, -INFINITY);
            if (angles)
                turn_each(packed, packed, angles + starts[first] * s->width, rows, rows, 3 * all, 2 * s->heads, s->width,
                          1.0f);
            done = look_around(s, found, packed, weights, starts, first, next);
            join(s, stream, normed, found, all, w + JOINT_1, rows, all);
            multiply(hidden, apart, normed, d, w[INNER], w[INNER_BIAS], rows, d, s->inner, 0.0f);
            join(s, stream, normed, hidden, apart, w + JOINT_2, rows, s->inner);
        }
        first = next;
    }
    free(found);
    free(weights);
    return done;
}
