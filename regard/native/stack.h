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

#define TOGETHER 96 /* rows of a decoder that go through all layers together: what they become stays in the second cache */
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

/* What rows have seen before: steps[layer, t] are the keys of the rows of step t, and row r descends from the rows
origin[r, i] of its own steps, which are the last `length` ones, or with `begun` those from begun[r] on. */
typedef struct {
    const float *const *steps;
    const int32_t *origin, *begun;
    int64_t length, reach; /* reach: numbers in a row of `origin` */
} past;

/* One token of the rows first..last-1 through all layers of a decoder: y holds what the first layer reads and receives
what the last one gives; the stream x is written over.

The keys of this step, the last of `before`, lie in packed[layer, n], which is filled here. sentence[r] is what row r
translates; `angles` are those of its position, in one row for all or, with `scattered`, in a row for each. */
VISIBLE int decode(
    const stack *s, const sources *read, const past *before, float *x, float *y, float *packed, const int32_t *sentence,
    const float *angles, int64_t scattered, int64_t n, int64_t first, int64_t last);

/* x + bias, written over x, and its layer norm; `out` may be x. */
VISIBLE void norm(
    float *out, float *x, const float *bias, const float *gain, const float *offset, int64_t rows, int64_t width,
    float epsilon);

#endif
