/* A pre-norm sub-layer of a Transformer in training, z + drop(f(norm(z))), in one call forwards and one backwards, so
that threads which work side by side meet Python seldom. Products are those of the BLAS that the caller names. */

#include "attention.h"

/* sgemm of BLAS. Its integers are of 32 or of 64 bits: small ones in 64 bits are read right as either, lowest byte first. */
typedef void blas(
    const char *turn_a, const char *turn_b, const int64_t *m, const int64_t *n, const int64_t *k, const float *alpha,
    const float *a, const int64_t *a_row, const float *b, const int64_t *b_row, const float *beta, float *c,
    const int64_t *c_row);

/* What surrounds f: the norm's weights, and what is dropped from f where the byte is below `threshold`, if any are. */
typedef struct {
    const float *gain, *shift;
    const uint8_t *bytes;
    float epsilon, scale;
    int32_t threshold;
} surroundings;

/* ---------------------------------------------------------------- products, of matrices whose rows follow each other */

/* out = out * more + x W^T, for W with e rows of d numbers. */
static void apply(
    blas *multiply, float *out, const float *x, const float *w, float more, int64_t rows, int64_t d, int64_t e) {
    const float one = 1.0f;
    multiply("T", "N", &e, &rows, &d, &one, w, &d, x, &d, &more, out, &e);
}

/* dx = g W */
static void apply_back(blas *multiply, float *dx, const float *g, const float *w, int64_t rows, int64_t d, int64_t e) {
    const float one = 1.0f, zero = 0.0f;
    multiply("N", "N", &d, &rows, &e, &one, w, &d, g, &e, &zero, dx, &d);
}

/* dW = g^T x */
static void learn(blas *multiply, float *dw, const float *g, const float *x, int64_t rows, int64_t d, int64_t e) {
    const float one = 1.0f, zero = 0.0f;
    multiply("N", "T", &d, &e, &rows, &one, x, &d, g, &e, &zero, dw, &d);
}

/* ---------------------------------------------------------------- the norm */

/* out = gain (x - mean) / sqrt(variance + epsilon) + shift, row by row. kept: the mean and the factor of each row. */
EVERY_PROCESSOR static void normalise(
    float *restrict out, float *restrict kept, const float *restrict x, const surroundings *around, int64_t rows,
    int64_t width) {
    const float *restrict gain = around->gain, *restrict shift = around->shift;
    for (int64_t r = 0; r < rows; r++, x += width, out += width) {
        float sum = 0.0f, squares = 0.0f;
        for (int64_t i = 0; i < width; i++) sum += x[i];
        const float mean = sum / (float)width;
        for (int64_t i = 0; i < width; i++) squares += (x[i] - mean) * (x[i] - mean);
        const float factor = 1.0f / sqrtf(squares / (float)width + around->epsilon);
        for (int64_t i = 0; i < width; i++) out[i] = gain[i] * (x[i] - mean) * factor + shift[i];
        kept[2 * r] = mean;
        kept[2 * r + 1] = factor;
    }
}

/* Gradients of `normalise`, given that of its result, g: dx = past + factor (h - mean(h) - u mean(h u)), with h = gain g
and u the normal numbers before gain and shift; those of gain and shift are sum(g u) and sum(g). */
EVERY_PROCESSOR static void normalise_back(
    float *restrict dx, float *restrict dgain, float *restrict dshift, const float *restrict past,
    const float *restrict g, const float *restrict x, const float *restrict kept, const float *restrict gain,
    int64_t rows, int64_t width) {
    memset(dgain, 0, (size_t)width * sizeof *dgain);
    memset(dshift, 0, (size_t)width * sizeof *dshift);
    for (int64_t r = 0; r < rows; r++, x += width, g += width, past += width, dx += width) {
        const float mean = kept[2 * r], factor = kept[2 * r + 1];
        float sum = 0.0f, along = 0.0f;
        for (int64_t i = 0; i < width; i++) {
            const float u = (x[i] - mean) * factor, h = gain[i] * g[i];
            sum += h;
            along += h * u;
            dgain[i] += g[i] * u;
            dshift[i] += g[i];
        }
        sum /= (float)width;
        along /= (float)width;
        for (int64_t i = 0; i < width; i++)
            dx[i] = past[i] + factor * (gain[i] * g[i] - sum - (x[i] - mean) * factor * along);
    }
}

/* ---------------------------------------------------------------- biases, activation, sum */

EVERY_PROCESSOR static void add_bias(float *restrict x, const float *restrict bias, int64_t rows, int64_t width) {
    if (bias)
        for (int64_t r = 0; r < rows; r++, x += width)
            for (int64_t i = 0; i < width; i++) x[i] += bias[i];
}

EVERY_PROCESSOR static void sum_rows(float *restrict sums, const float *restrict x, int64_t rows, int64_t width) {
    if (!sums) return;
    memset(sums, 0, (size_t)width * sizeof *sums);
    for (int64_t r = 0; r < rows; r++, x += width)
        for (int64_t i = 0; i < width; i++) sums[i] += x[i];
}

/* x becomes gelu(x), and `slope` the derivative there. */
EVERY_PROCESSOR static void bend(float *restrict x, float *restrict slope, int64_t count) {
    for (int64_t i = 0; i < count; i++) x[i] = gelu_of(x[i], slope + i);
}

EVERY_PROCESSOR static void times(float *restrict g, const float *restrict slope, int64_t count) {
    for (int64_t i = 0; i < count; i++) g[i] *= slope[i];
}

/* y becomes z + y, without what is dropped of y. */
EVERY_PROCESSOR static void join(
    float *restrict y, const float *restrict z, const surroundings *around, int64_t count) {
    const uint8_t *restrict bytes = around->bytes;
    if (bytes)
        for (int64_t i = 0; i < count; i++) y[i] = z[i] + y[i] * (bytes[i] >= around->threshold ? around->scale : 0.0f);
    else
        for (int64_t i = 0; i < count; i++) y[i] += z[i];
}

/* The gradient of the y of `join`: g itself, or in `room` what is not dropped of it. */
EVERY_PROCESSOR static const float *leave(
    float *restrict room, const float *restrict g, const surroundings *around, int64_t count) {
    const uint8_t *restrict bytes = around->bytes;
    if (!bytes) return g;
    for (int64_t i = 0; i < count; i++) room[i] = g[i] * (bytes[i] >= around->threshold ? around->scale : 0.0f);
    return room;
}

/* ---------------------------------------------------------------- feed-forward: W2 gelu(W1 x + b1) + b2 */

typedef struct {
    const float *w1, *b1, *w2, *b2;
} network;

/* kept: two numbers for each row; normal: x; inner, slope: gelu and its derivative. */
VISIBLE void feed_forwards(
    blas *multiply, float *out, float *kept, float *normal, float *inner, float *slope, const float *z,
    const surroundings *around, const network *f, int64_t rows, int64_t width, int64_t wide) {
    normalise(normal, kept, z, around, rows, width);
    apply(multiply, inner, normal, f->w1, 0.0f, rows, width, wide);
    add_bias(inner, f->b1, rows, wide);
    bend(inner, slope, rows * wide);
    apply(multiply, out, inner, f->w2, 0.0f, rows, wide, width);
    add_bias(out, f->b2, rows, width);
    join(out, z, around, rows * width);
}

/* into: where the gradients of z, gain, shift, w1, b1, w2, b2 go; those of a bias that is none are NULL.
room: for rows of 2 * width + wide numbers. */
VISIBLE void feed_backwards(
    blas *multiply, float *const *into, float *room, const float *g, const float *z, const float *kept,
    const float *normal, const float *inner, const float *slope, const surroundings *around, const network *f,
    int64_t rows, int64_t width, int64_t wide) {
    float *const bent = room, *const dx = bent + rows * wide;
    const float *const after = leave(dx + rows * width, g, around, rows * width);
    sum_rows(into[6], after, rows, width);
    learn(multiply, into[5], after, inner, rows, wide, width);
    apply_back(multiply, bent, after, f->w2, rows, wide, width);
    times(bent, slope, rows * wide);
    sum_rows(into[4], bent, rows, wide);
    learn(multiply, into[3], bent, normal, rows, width, wide);
    apply_back(multiply, dx, bent, f->w1, rows, width, wide);
    normalise_back(into[0], into[1], into[2], g, dx, z, kept, around->gain, rows, width);
}

/* ---------------------------------------------------------------- attention: W^O attend(q, k, v) + b^O */

/* q, k and v stand side by side in W x + b, each by heads; `angles` (t, e) turn the first two, if they are there. */
typedef struct {
    const float *w, *b, *wo, *bo, *angles;
    const uint8_t *mask;
    int64_t sentences, places, width, heads, head_width, causal;
} attending;

static void lay_out(layout *places, const attending *f) {
    const int64_t whole = f->heads * f->head_width;
    for (int i = 0; i < 7; i++) places[i] = (layout){3 * f->places * whole, f->head_width, 3 * whole};
    places[3] = (layout){f->places * whole, f->head_width, whole};
}

/* kept: two numbers for each row; normal: x; packed: q, k, v; weights: of pairs; found: attend(q, k, v). */
VISIBLE int look_forwards(
    blas *multiply, float *out, float *kept, float *normal, float *packed, float *weights, float *found, const float *z,
    const surroundings *around, const attending *f) {
    const int64_t rows = f->sentences * f->places, whole = f->heads * f->head_width;
    layout places[7];
    lay_out(places, f);
    normalise(normal, kept, z, around, rows, f->width);
    apply(multiply, packed, normal, f->w, 0.0f, rows, f->width, 3 * whole);
    add_bias(packed, f->b, rows, 3 * whole);
    if (f->angles) turn_rows(packed, packed, f->angles, rows, f->places, 3 * whole, 2 * f->heads, f->head_width, 1.0f);
    if (!attend_forwards(
            found, weights, packed, packed + whole, packed + 2 * whole, places, f->mask, f->causal, f->sentences, f->heads,
            f->places, f->places, f->head_width))
        return 0;
    apply(multiply, out, found, f->wo, 0.0f, rows, whole, f->width);
    add_bias(out, f->bo, rows, f->width);
    join(out, z, around, rows * f->width);
    return 1;
}

/* into: where the gradients of z, gain, shift, w, b, wo, bo go; those of a bias that is none are NULL. g_packed: a
gradient of q, k, v that came another way, or NULL. room: for rows of 2 * width + 4 * heads * head_width numbers. */
VISIBLE int look_backwards(
    blas *multiply, float *const *into, float *room, const float *g, const float *g_packed, const float *z,
    const float *kept, const float *normal, const float *packed, const float *weights, const float *found,
    const surroundings *around, const attending *f) {
    const int64_t rows = f->sentences * f->places, whole = f->heads * f->head_width;
    float *const inner = room, *const came = inner + 3 * rows * whole, *const dx = came + rows * whole;
    const float *const after = leave(dx + rows * f->width, g, around, rows * f->width);
    layout places[7];
    lay_out(places, f);
    sum_rows(into[6], after, rows, f->width);
    learn(multiply, into[5], after, found, rows, whole, f->width);
    apply_back(multiply, came, after, f->wo, rows, whole, f->width);
    if (!attend_backwards(
            inner, inner + whole, inner + 2 * whole, came, weights, packed, packed + whole, packed + 2 * whole, places,
            f->causal, f->sentences, f->heads, f->places, f->places, f->head_width))
        return 0;
    if (g_packed)
        for (int64_t i = 0; i < 3 * rows * whole; i++) inner[i] += g_packed[i];
    if (f->angles) turn_rows(inner, inner, f->angles, rows, f->places, 3 * whole, 2 * f->heads, f->head_width, -1.0f);
    sum_rows(into[4], inner, rows, 3 * whole);
    learn(multiply, into[3], inner, normal, rows, f->width, 3 * whole);
    apply_back(multiply, dx, inner, f->w, rows, f->width, 3 * whole);
    normalise_back(into[0], into[1], into[2], g, dx, z, kept, around->gain, rows, f->width);
    return 1;
}
