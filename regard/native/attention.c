/* Attention in training, over short sequences: softmax(q.k / sqrt(e)) v, forwards and backwards, a head at a time.

A layout says how far apart sentences, heads and places lie; the `width` numbers of one place have no gap. What belongs
to pairs (query, key) stands in rows of `pitch` numbers, a multiple of NARROW: behind the last key they are zero. */

#if defined(__GNUC__) && !defined(__clang__)
#define LOOP _Pragma("GCC unroll 1")     /* else gcc takes the loop apart first and makes small vectors of the pieces */
#define FLAT _Pragma("GCC unroll 6")
#else
#define LOOP
#define FLAT
#endif

#include "attention.h"

#if defined(__SSE__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

#define LANES 8
#define ROWS 6
#define WIDE 32 /* ROWS * WIDE sums fill the registers of AVX-512, ROWS * NARROW those of AVX2 */
#define NARROW 16
#define LINE 64 /* bytes that the processor fetches at once: a vector should not begin inside */

typedef struct {
    const float *at;
    int64_t row, column;
} matrix;

STATIC_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

STATIC_INLINE int64_t padded(int64_t count) { return (count + NARROW - 1) / NARROW * NARROW; }

STATIC_INLINE float *aligned(void *memory) { return (float *)(((uintptr_t)memory + LINE - 1) / LINE * LINE); }

STATIC_INLINE int64_t start(layout x, int64_t n, int64_t h) { return n * x.sentence + h * x.head; }

STATIC_INLINE matrix whole(const float *x, layout places, int64_t n, int64_t h) {
    return (matrix){x + start(places, n, h), places.place, 1};
}

STATIC_INLINE matrix from(matrix x, int64_t row) { return (matrix){x.at + row * x.row, x.row, x.column}; }

/* ---------------------------------------------------------------- products */

/* c = a b, where `rows` and `columns` are known to the compiler, so that all sums stay in registers. */
STATIC_INLINE void tile(
    float *restrict c, int64_t c_row, matrix a, matrix b, int64_t inner, const int rows, const int columns) {
    float sum[ROWS][WIDE];
    FLAT for (int i = 0; i < rows; i++)
        LOOP for (int j = 0; j < columns; j++) sum[i][j] = a.at[i * a.row] * b.at[j];
    for (int64_t k = 1; k < inner; k++)
        FLAT for (int i = 0; i < rows; i++) {
            const float x = a.at[i * a.row + k * a.column];
            LOOP for (int j = 0; j < columns; j++) sum[i][j] += x * b.at[k * b.row + j];
        }
    FLAT for (int i = 0; i < rows; i++)
        LOOP for (int j = 0; j < columns; j++) c[i * c_row + j] = sum[i][j];
}

STATIC_INLINE void strip(
    float *restrict c, int64_t c_row, matrix a, matrix b, int64_t inner, int64_t columns, const int rows,
    const int widest) {
    int64_t j = 0;
    for (; j + widest <= columns; j += widest, b.at += widest) tile(c + j, c_row, a, b, inner, rows, widest);
    for (; j + NARROW <= columns; j += NARROW, b.at += NARROW) tile(c + j, c_row, a, b, inner, rows, NARROW);
    for (; j + LANES <= columns; j += LANES, b.at += LANES) tile(c + j, c_row, a, b, inner, rows, LANES);
    for (; j < columns; j++, b.at++) tile(c + j, c_row, a, b, inner, rows, 1);
}

STATIC_INLINE void any_strip(
    float *restrict c, int64_t c_row, matrix a, matrix b, int64_t rows, int64_t inner, int64_t columns,
    const int widest) {
    switch (rows) {
        case 1: strip(c, c_row, a, b, inner, columns, 1, widest); break;
        case 2: strip(c, c_row, a, b, inner, columns, 2, widest); break;
        case 3: strip(c, c_row, a, b, inner, columns, 3, widest); break;
        case 4: strip(c, c_row, a, b, inner, columns, 4, widest); break;
        case 5: strip(c, c_row, a, b, inner, columns, 5, widest); break;
        case 6: strip(c, c_row, a, b, inner, columns, 6, widest); break;
    }
}

/* c = a b for at most ROWS rows and an inner size of at least 1; the numbers of a row of b have no gap. */
typedef void product(float *c, int64_t c_row, matrix a, matrix b, int64_t rows, int64_t inner, int64_t columns);

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
__attribute__((target("arch=x86-64-v3"))) static void narrow_product(
    float *c, int64_t c_row, matrix a, matrix b, int64_t rows, int64_t inner, int64_t columns) {
    any_strip(c, c_row, a, b, rows, inner, columns, NARROW);
}

__attribute__((target("arch=x86-64-v4"))) static void wide_product(
    float *c, int64_t c_row, matrix a, matrix b, int64_t rows, int64_t inner, int64_t columns) {
    any_strip(c, c_row, a, b, rows, inner, columns, WIDE);
}
#endif

static void plain_product(
    float *c, int64_t c_row, matrix a, matrix b, int64_t rows, int64_t inner, int64_t columns) {
    any_strip(c, c_row, a, b, rows, inner, columns, LANES);
}

static product *best_product(void) {
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
    if (__builtin_cpu_supports("x86-64-v4")) return wide_product;
    if (__builtin_cpu_supports("x86-64-v3")) return narrow_product;
#endif
    return plain_product;
}

/* Whether products have large registers here. Without them torch's kernel, which brings its own, is as fast. */
VISIBLE int attention_pays(void) { return best_product() != plain_product; }

/* The transpose of `rows` vectors: `width` rows of `pitch` numbers, of which those behind the last vector repeat it. */
STATIC_INLINE void transpose(
    float *restrict to, const float *restrict x, int64_t x_row, int64_t rows, int64_t width, int64_t pitch) {
    const int64_t last = rows - 1;
    int64_t i = 0;
#if defined(__SSE__) || defined(_M_X64)
    for (; i + 4 <= width; i += 4)
        for (int64_t j = 0; j < pitch; j += 4) {
            __m128 a = _mm_loadu_ps(x + least(j, last) * x_row + i);
            __m128 b = _mm_loadu_ps(x + least(j + 1, last) * x_row + i);
            __m128 c = _mm_loadu_ps(x + least(j + 2, last) * x_row + i);
            __m128 d = _mm_loadu_ps(x + least(j + 3, last) * x_row + i);
            _MM_TRANSPOSE4_PS(a, b, c, d);
            _mm_storeu_ps(to + i * pitch + j, a);
            _mm_storeu_ps(to + (i + 1) * pitch + j, b);
            _mm_storeu_ps(to + (i + 2) * pitch + j, c);
            _mm_storeu_ps(to + (i + 3) * pitch + j, d);
        }
#endif
    for (; i < width; i++)
        for (int64_t j = 0; j < pitch; j++) to[i * pitch + j] = x[least(j, last) * x_row + i];
}

/* ---------------------------------------------------------------- who sees whom */

/* The first query that sees each key: one beyond all queries where the key is hidden or none. */
STATIC_INLINE void find_first(
    int32_t *first, const uint8_t *mask, int64_t causal, int64_t queries, int64_t keys, int64_t pitch) {
    for (int64_t j = 0; j < pitch; j++) {
        const int hidden = j >= keys || (mask && !mask[j]);
        first[j] = (int32_t)(hidden ? queries : causal ? j - (keys - queries) : 0);
    }
}

/* How many keys query i can see at most: all, or those up to its own place. At least one, for the sake of products. */
STATIC_INLINE int64_t reach(int64_t i, int64_t causal, int64_t queries, int64_t keys) {
    const int64_t own = causal ? i + 1 + keys - queries : keys;
    return own < 1 ? 1 : own;
}

/* ---------------------------------------------------------------- forwards */

/* w = softmax(scale x) over the keys that query i sees, zeros elsewhere. Rows of ordinary size need no maximum. */
STATIC_INLINE void soften(
    float *restrict w, const float *restrict x, const int32_t *restrict first, int32_t i, int64_t count, float scale) {
    float total = 0.0f;
    for (int64_t j = 0; j < count; j++) {
        w[j] = first[j] <= i ? exponential(scale * x[j]) : 0.0f;
        total += w[j];
    }
    if (!(total > 1e-20f && total < 1e30f)) {
        float most = -INFINITY;
        for (int64_t j = 0; j < count; j++) most = first[j] <= i && scale * x[j] > most ? scale * x[j] : most;
        total = 0.0f;
        for (int64_t j = 0; j < count; j++) {
            w[j] = first[j] <= i ? exponential(scale * x[j] - most) : 0.0f;
            total += w[j];
        }
    }
    const float factor = total == 0.0f ? 0.0f : 1.0f / total;
    for (int64_t j = 0; j < count; j++) w[j] *= factor;
}

/* Output (n, t, h, e) and weights (n, h, t, pitch). places: of q, k, v. `mask` (n, s) or none: 0 hides a key. */
VISIBLE EVERY_PROCESSOR int attend_forwards(
    float *out, float *weights, const float *q, const float *k, const float *v, const layout *places,
    const uint8_t *mask, int64_t causal, int64_t sentences, int64_t heads, int64_t queries, int64_t keys,
    int64_t width) {
    const int64_t pitch = padded(keys);
    const float scale = 1.0f / sqrtf((float)width);
    product *const multiply = best_product();
    void *const memory = malloc((size_t)((width + ROWS + 1) * pitch) * sizeof(float) + LINE);
    if (!memory) return 0;
    float *const turned = aligned(memory), *const scores = turned + width * pitch;
    int32_t *const first = (int32_t *)(scores + ROWS * pitch);
    for (int64_t n = 0; n < sentences; n++) {
        find_first(first, mask ? mask + n * keys : NULL, causal, queries, keys, pitch);
        for (int64_t h = 0; h < heads; h++) {
            const matrix k_turned = {turned, pitch, 1}, all_v = whole(v, places[2], n, h);
            transpose(turned, whole(k, places[1], n, h).at, places[1].place, keys, width, pitch);
            for (int64_t i = 0; i < queries; i += ROWS) {
                const int64_t rows = least(ROWS, queries - i), seen = reach(i + rows - 1, causal, queries, keys);
                float *const own = weights + ((n * heads + h) * queries + i) * pitch;
                multiply(scores, pitch, from(whole(q, places[0], n, h), i), k_turned, rows, width, padded(seen));
                for (int64_t r = 0; r < rows; r++) {
                    soften(own + r * pitch, scores + r * pitch, first, (int32_t)(i + r), padded(seen), scale);
                    for (int64_t j = padded(seen); j < pitch; j++) own[r * pitch + j] = 0.0f;
                }
                float *const to = out + ((n * queries + i) * heads + h) * width;
                multiply(to, heads * width, (matrix){own, pitch, 1}, all_v, rows, seen, width);
            }
        }
    }
    free(memory);
    return 1;
}

/* ---------------------------------------------------------------- backwards */

/* The gradient of x, given that of w = softmax(scale x), in place: scale w (g - sum w g). */
STATIC_INLINE void descend(float *restrict g, const float *restrict w, int64_t count, float scale) {
    float mean = 0.0f;
    for (int64_t j = 0; j < count; j++) mean += w[j] * g[j];
    for (int64_t j = 0; j < count; j++) g[j] = scale * w[j] * (g[j] - mean);
}

/* Gradients of q, k, v. places: of q, k, v, of the output's gradient g, and of the results dq, dk, dv. */
VISIBLE EVERY_PROCESSOR int attend_backwards(
    float *dq, float *dk, float *dv, const float *g, const float *weights, const float *q, const float *k,
    const float *v, const layout *places, int64_t causal, int64_t sentences, int64_t heads, int64_t queries,
    int64_t keys, int64_t width) {
    const int64_t pitch = padded(keys), q_row = places[4].place, k_row = places[5].place, v_row = places[6].place;
    const float scale = 1.0f / sqrtf((float)width);
    product *const multiply = best_product();
    void *const memory = malloc((size_t)((width + queries) * pitch) * sizeof(float) + LINE);
    if (!memory) return 0;
    float *const turned = aligned(memory), *const scores = turned + width * pitch;
    for (int64_t n = 0; n < sentences; n++)
        for (int64_t h = 0; h < heads; h++) {
            const float *const own = weights + (n * heads + h) * queries * pitch;
            const matrix all_q = whole(q, places[0], n, h), all_k = whole(k, places[1], n, h);
            const matrix all_g = whole(g, places[3], n, h), v_turned = {turned, pitch, 1};
            transpose(turned, whole(v, places[2], n, h).at, places[2].place, keys, width, pitch);
            for (int64_t i = 0; i < queries; i += ROWS) {
                const int64_t rows = least(ROWS, queries - i), seen = reach(i + rows - 1, causal, queries, keys);
                float *const score = scores + i * pitch;
                multiply(score, pitch, from(all_g, i), v_turned, rows, width, padded(seen));
                for (int64_t r = 0; r < rows; r++) {
                    descend(score + r * pitch, own + (i + r) * pitch, padded(seen), scale);
                    for (int64_t j = padded(seen); j < pitch; j++) score[r * pitch + j] = 0.0f;
                }
                float *const to = dq + start(places[4], n, h) + i * q_row;
                multiply(to, q_row, (matrix){score, pitch, 1}, all_k, rows, seen, width);
            }
            float *const to_k = dk + start(places[5], n, h), *const to_v = dv + start(places[6], n, h);
            for (int64_t j = 0; j < keys; j += ROWS) {
                const int64_t rows = least(ROWS, keys - j), ahead = causal ? j - (keys - queries) : 0;
                const int64_t i = ahead < 0 ? 0 : ahead; /* the first query that sees one of these keys */
                const matrix scores_of = {scores + i * pitch + j, 1, pitch};
                const matrix weights_of = {own + i * pitch + j, 1, pitch};
                multiply(to_k + j * k_row, k_row, scores_of, from(all_q, i), rows, queries - i, width);
                multiply(to_v + j * v_row, v_row, weights_of, from(all_g, i), rows, queries - i, width);
            }
        }
    free(memory);
    return 1;
}
