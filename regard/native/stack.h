/* What the layers of encoder and decoder share. Weights are packed, see product.h, and biases filled with zeros to the
width of the panels. */

#ifndef REGARD_STACK
#define REGARD_STACK

#include "product.h"

/* The layers of an encoder or a decoder; `inner` is the width of feed-forward layers, `width` that of a head. */
typedef struct {
    const float *const *weights;
    int64_t layers, d, inner, heads, width;
    int32_t post; /* whether norms end a sub-layer */
    float epsilon;
} stack;

/* What a decoder reads: keys and values of all real tokens in each layer's view, and which of them a sentence has: the
first counts[i] of places[i, most]. */
typedef struct {
    const float *const *memory;
    const int32_t *places, *counts;
    int64_t most;
} sources;

#define JOINT 4 /* weights of a joint: the last product of a sub-layer with its bias, gain and shift of the norm behind */

/* x + bias, written over x, and its layer norm; `out` may be x. */
STATIC_INLINE void add_norm(
    float *out, float *x, const float *bias, const float *gain, const float *offset, int64_t rows, int64_t width,
    float epsilon) {
    for (int64_t r = 0; r < rows; r++) {
        float *row = x + r * width, *to = out + r * width, mean = 0.0f, square = 0.0f;
        for (int64_t i = 0; i < width; i++) {
            row[i] += bias[i];
            mean += row[i];
        }
        mean /= (float)width;
        for (int64_t i = 0; i < width; i++) square += (row[i] - mean) * (row[i] - mean);
        const float scale = 1.0f / sqrtf(square / (float)width + epsilon);
        for (int64_t i = 0; i < width; i++) to[i] = (row[i] - mean) * scale * gain[i] + offset[i];
    }
}

/* The stream x gains found W + bias; y becomes its norm, and so does x where norms end a sub-layer. */
STATIC_INLINE void join(
    const stack *s, float *x, float *y, const float *found, int64_t stride, const float *const *joint, int64_t rows,
    int64_t e) {
    multiply(x, s->d, found, stride, joint[0], NULL, rows, e, s->d, -INFINITY);
    add_norm(y, x, joint[1], joint[2], joint[3], rows, s->d, s->epsilon);
    if (s->post) memcpy(x, y, (size_t)(rows * s->d) * sizeof *x);
}

/* One token of the rows first..last-1 of n through all layers of a decoder: y holds what the first layer reads and
receives what the last one gives; the stream x is written over.

steps[layer, t] are the keys of step t; those of this step, the last, lie in packed[layer], which is filled here. Of step
t, row r descends from row origin[r, t]; sentence[r] is what it translates, `angles` are those of its position. */
VISIBLE int decode(
    const stack *s, const sources *read, float *x, float *y, float *packed, const float *const *steps,
    const int32_t *origin, const int32_t *sentence, const float *angles, int64_t n, int64_t length, int64_t first,
    int64_t last);

/* x + bias, written over x, and its layer norm; `out` may be x. */
VISIBLE void norm(
    float *out, float *x, const float *bias, const float *gain, const float *offset, int64_t rows, int64_t width,
    float epsilon);

#endif
