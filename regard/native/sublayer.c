/* Pre-norm sub-layers of a Transformer in training, z + drop(f(norm(z))) after one another, in one call forwards and one
backwards, so that threads which work side by side meet Python seldom. Products are those of the BLAS that the caller
names. */

#include "attention.h"

/* sgemm of BLAS. Its integers are of 32 or of 64 bits: small ones in 64 bits are read right as either, lowest byte first. */
typedef void blas(
    const char *turn_a, const char *turn_b, const int64_t *m, const int64_t *n, const int64_t *k, const float *alpha,
    const float *a, const int64_t *a_row, const float *b, const int64_t *b_row, const float *beta, float *c,
    const int64_t *c_row);

/* f(x) = W2 m(W1 x + b1) + b2, where m is gelu, or relu (`rectified`), or with heads attention of the queries, keys and
values that stand side by side in W1 x + b1, each by heads. Where there are keys of something else, W1 x + b1 are queries
alone. A bias, the angles that turn queries and keys, the mask of keys and the bytes that say what is dropped (those below
`threshold`) may be NULL. */
typedef struct {
    const float *gain, *shift, *w1, *b1, *w2, *b2;
    const uint8_t *bytes, *mask;
    const float *angles;
    float epsilon, scale;
    int64_t threshold, rows, width, wide, middle; /* wide: numbers of W1 x, middle: of m */
    int64_t heads, head_width, sentences, causal, rectified; /* no heads: an activation */
    float *out, *kept, *normal, *inner; /* normal: x, inner: W1 x */
    float *more, *found;                /* more: pairs, or the slope of gelu; found: m, which activations write over `inner` */
    float *into[7]; /* gradients of z, gain, shift, w1, b1, w2, b2 */
    const float *past_inner; /* a gradient of `inner` that came another way, or NULL */
    const float *keys, *values; /* of something else, or NULL: `count` for each sentence, laid out as `seen` */
    layout seen;
    int64_t count;
    float *into_keys, *into_values; /* gradients, laid out as `into_seen` */
    layout into_seen;
} sublayer;

/* ---------------------------------------------------------------- products, of matrices whose rows follow each other */

/* out = x W^T, for W with e rows of d numbers. */
static void apply(blas *multiply, float *out, const float *x, const float *w, int64_t rows, int64_t d, int64_t e) {
    const float one = 1.0f, zero = 0.0f;
    multiply("T", "N", &e, &rows, &d, &one, w, &d, x, &d, &zero, out, &e);
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
    float *restrict out, float *restrict kept, const float *restrict x, const sublayer *around, int64_t rows,
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

/* x becomes gelu(x + bias), and `slope` the derivative there. */
EVERY_PROCESSOR static void bend(
    float *restrict x, float *restrict slope, const float *restrict bias, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++, x += width, slope += width) {
        if (bias)
            for (int64_t i = 0; i < width; i++) x[i] = gelu_of(x[i] + bias[i], slope + i);
        else
            for (int64_t i = 0; i < width; i++) x[i] = gelu_of(x[i], slope + i);
    }
}

/* x becomes max(0, x + bias). */
EVERY_PROCESSOR static void rectify(float *restrict x, const float *restrict bias, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++, x += width) {
        if (bias)
            for (int64_t i = 0; i < width; i++) x[i] = x[i] + bias[i] > 0.0f ? x[i] + bias[i] : 0.0f;
        else
            for (int64_t i = 0; i < width; i++) x[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}

/* g stays where x, the result of `rectify`, is above zero; what stays is summed by columns. */
EVERY_PROCESSOR static void rectify_back(
    float *restrict g, float *restrict sums, const float *restrict x, int64_t rows, int64_t width) {
    if (sums) memset(sums, 0, (size_t)width * sizeof *sums);
    for (int64_t r = 0; r < rows; r++, g += width, x += width)
        if (sums)
            for (int64_t i = 0; i < width; i++) {
                g[i] = x[i] > 0.0f ? g[i] : 0.0f;
                sums[i] += g[i];
            }
        else
            for (int64_t i = 0; i < width; i++) g[i] = x[i] > 0.0f ? g[i] : 0.0f;
}

EVERY_PROCESSOR static void times(float *restrict g, const float *restrict slope, int64_t count) {
    for (int64_t i = 0; i < count; i++) g[i] *= slope[i];
}

/* y becomes z + y + bias, without what is dropped of y + bias. */
EVERY_PROCESSOR static void join(float *restrict y, const float *restrict z, const sublayer *around) {
    const int64_t rows = around->rows, width = around->width;
    const uint8_t *restrict bytes = around->bytes;
    const int32_t threshold = (int32_t)around->threshold;
    const float scale = around->scale;
    add_bias(y, around->b2, bytes ? 0 : rows, width);
    for (int64_t r = 0; r < rows; r++, y += width, z += width) {
        if (!bytes)
            for (int64_t i = 0; i < width; i++) y[i] += z[i];
        else if (around->b2) {
            const float *restrict bias = around->b2;
            for (int64_t i = 0; i < width; i++) y[i] = z[i] + (bytes[i] >= threshold ? scale : 0.0f) * (y[i] + bias[i]);
        } else
            for (int64_t i = 0; i < width; i++) y[i] = z[i] + (bytes[i] >= threshold ? scale : 0.0f) * y[i];
        if (bytes) bytes += width;
    }
}

/* The gradient of the y of `join`: g itself, or in `room` what is not dropped of it. sums: of its columns, or NULL. */
EVERY_PROCESSOR static const float *leave(
    float *restrict room, float *restrict sums, const float *restrict g, const sublayer *around) {
    const int64_t rows = around->rows, width = around->width;
    const uint8_t *restrict bytes = around->bytes;
    const int32_t threshold = (int32_t)around->threshold;
    const float scale = around->scale;
    if (!bytes) {
        sum_rows(sums, g, rows, width);
        return g;
    }
    if (sums) memset(sums, 0, (size_t)width * sizeof *sums);
    for (int64_t r = 0; r < rows; r++, g += width, bytes += width) {
        float *restrict to = room + r * width;
        for (int64_t i = 0; i < width; i++) to[i] = g[i] * (bytes[i] >= threshold ? scale : 0.0f);
        for (int64_t i = 0; i < width && sums; i++) sums[i] += to[i];
    }
    return room;
}

/* ---------------------------------------------------------------- one sub-layer */

static void lay_out(layout *places, const sublayer *f) {
    const int64_t t = f->rows / f->sentences;
    for (int i = 0; i < 7; i++) places[i] = (layout){t * f->wide, f->head_width, f->wide};
    places[3] = (layout){t * f->middle, f->head_width, f->middle};
    if (f->keys) places[1] = places[2] = f->seen, places[5] = places[6] = f->into_seen;
}

static int attend(const sublayer *f) {
    const int64_t t = f->rows / f->sentences;
    const float *const q = f->inner, *const k = q + f->middle, *const v = k + f->middle;
    layout places[7];
    lay_out(places, f);
    if (f->keys)
        return attend_forwards(f->found, f->more, q, f->keys, f->values, places, f->mask, 0, f->sentences, f->heads, t,
                               f->count, f->head_width);
    if (f->angles) turn_rows(f->inner, q, f->angles, f->rows, t, f->wide, 2 * f->heads, f->head_width, 1.0f);
    return attend_forwards(
        f->found, f->more, q, k, v, places, f->mask, f->causal, f->sentences, f->heads, t, t, f->head_width);
}

/* dinner: the gradient of `inner`, given that of `found`. */
static int attend_back(float *dinner, const float *dfound, const sublayer *f) {
    const int64_t t = f->rows / f->sentences;
    const float *const q = f->inner, *const k = q + f->middle, *const v = k + f->middle;
    float *const dk = dinner + f->middle, *const dv = dk + f->middle;
    layout places[7];
    lay_out(places, f);
    if (f->keys)
        return attend_backwards(dinner, f->into_keys, f->into_values, dfound, f->more, q, f->keys, f->values, places, 0,
                                f->sentences, f->heads, t, f->count, f->head_width);
    if (!attend_backwards(
            dinner, dk, dv, dfound, f->more, q, k, v, places, f->causal, f->sentences, f->heads, t, t, f->head_width))
        return 0;
    if (f->past_inner)
        for (int64_t i = 0; i < f->rows * f->wide; i++) dinner[i] += f->past_inner[i];
    if (f->angles) turn_rows(dinner, dinner, f->angles, f->rows, t, f->wide, 2 * f->heads, f->head_width, -1.0f);
    return 1;
}

static int forwards(blas *multiply, const float *z, const sublayer *f) {
    normalise(f->normal, f->kept, z, f, f->rows, f->width);
    apply(multiply, f->inner, f->normal, f->w1, f->rows, f->width, f->wide);
    if (f->heads) {
        add_bias(f->inner, f->b1, f->rows, f->wide);
        if (!attend(f)) return 0;
    } else if (f->rectified)
        rectify(f->inner, f->b1, f->rows, f->wide);
    else
        bend(f->inner, f->more, f->b1, f->rows, f->wide);
    apply(multiply, f->out, f->found, f->w2, f->rows, f->middle, f->width);
    join(f->out, z, f);
    return 1;
}

/* room: for rows of 2 * width + wide + middle numbers. */
static int backwards(blas *multiply, float *dz, float *room, const float *g, const float *z, const sublayer *f) {
    const int64_t rows = f->rows;
    float *const dinner = room, *const dx = dinner + rows * f->wide, *const dfound = dx + 2 * rows * f->width;
    const float *const after = leave(dx + rows * f->width, f->into[6], g, f);
    learn(multiply, f->into[5], after, f->found, rows, f->middle, f->width);
    apply_back(multiply, f->heads ? dfound : dinner, after, f->w2, rows, f->middle, f->width);
    if (f->heads) {
        if (!attend_back(dinner, dfound, f)) return 0;
    } else if (f->rectified)
        rectify_back(dinner, f->into[4], f->found, rows, f->wide);
    else
        times(dinner, f->more, rows * f->wide);
    if (f->heads || !f->rectified) sum_rows(f->into[4], dinner, rows, f->wide);
    learn(multiply, f->into[3], dinner, f->normal, rows, f->width, f->wide);
    apply_back(multiply, dx, dinner, f->w1, rows, f->width, f->wide);
    normalise_back(dz, f->into[1], f->into[2], g, dx, z, f->kept, f->gain, rows, f->width);
    return 1;
}

/* ---------------------------------------------------------------- all of them; 0 where there was no memory left */

VISIBLE int chain_forwards(blas *multiply, const float *z, const sublayer *chain, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!forwards(multiply, i ? chain[i - 1].out : z, chain + i)) return 0;
    return 1;
}

/* dz: the gradient of z. room: for rows of 4 * width numbers and the widest `wide` and `middle`. */
VISIBLE int chain_backwards(
    blas *multiply, float *dz, float *room, const float *g, const float *z, const sublayer *chain, int64_t count) {
    const int64_t size = chain->rows * chain->width;
    for (int64_t i = count - 1; i >= 0; i--) {
        float *const to = i ? room + i % 2 * size : dz;
        if (!backwards(multiply, to, room + 2 * size, g, i ? chain[i - 1].out : z, chain + i)) return 0;
        g = to;
    }
    return 1;
}
