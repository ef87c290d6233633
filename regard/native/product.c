#include "product.h"

#define DEPTH 256 /* rows of a panel at a time: they stay in the first cache, or next to it, while all rows of x meet them */

#define MANY 80  /* rows */
#define MOST 320 /* rows that stay in the second cache while all panels pass by */

#if defined(__GNUC__)
#define UNROLLED _Pragma("GCC unroll 16")
#define BY_FOUR _Pragma("GCC unroll 4")
#define VECTOR __attribute__((vector_size(4 * LANE), aligned(4)))
#define ASK_FOR(x) __builtin_prefetch(x, 0, 2) /* into the second cache; behind the end of everything nothing happens */
#else
#define UNROLLED
#define BY_FOUR
#define ASK_FOR(x)
#define VECTOR
#endif

/* ---------------------------------------------------------------- a form for each kind of processor */
#define FORM(name) name##_any
#define TARGET
#define TALL 3
#define WIDE 1
#define LOW_WIDE 1
#if defined(__GNUC__)
#define LANE 4
#else
#define LANE 1
#endif
#include "tile.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define CHOICE

#define FORM(name) name##_v3
#define TARGET __attribute__((target("arch=x86-64-v3")))
#define TALL 6
#define WIDE 1
#define LOW_WIDE 2
#define LANE 8
#include "tile.h"

#define FORM(name) name##_v4
#define TARGET __attribute__((target("arch=x86-64-v4")))
#define TALL 8
#define WIDE 3
#define LOW_WIDE 4
#define LANE 16
#include "tile.h"
#endif

#if defined(CHOICE)
#define IN_THE_FORM_OF_THIS_PROCESSOR(name, ...) \
    if (__builtin_cpu_supports("avx512vl")) name##_v4(__VA_ARGS__); \
    else if (__builtin_cpu_supports("avx2")) name##_v3(__VA_ARGS__); \
    else name##_any(__VA_ARGS__)
#else
#define IN_THE_FORM_OF_THIS_PROCESSOR(name, ...) name##_any(__VA_ARGS__)
#endif

void multiply(
    float *out, int64_t out_stride, const float *x, int64_t x_stride, const float *panels, const float *start,
    int64_t rows, int64_t d, int64_t e, float least) {
    const int64_t parts = (rows + MOST - 1) / MOST;
    for (int64_t p = 0; p < parts; p++) {
        const int64_t r = rows * p / parts, count = rows * (p + 1) / parts - r;
        float *to = out + r * out_stride;
        const float *from = x + r * x_stride;
        IN_THE_FORM_OF_THIS_PROCESSOR(multiply, to, out_stride, from, x_stride, panels, start, count, d, e, least);
    }
}

EVERY_PROCESSOR void pack(float *panels, const float *w, int64_t d, int64_t e) {
    for (int64_t from = 0; from < e; from += PANEL, panels += d * PANEL)
        for (int64_t c = 0; c < PANEL; c++) {
            const float *column = w + (from + c) * d;
            for (int64_t k = 0; k < d; k++) panels[k * PANEL + c] = from + c < e ? column[k] : 0.0f;
        }
}

/* ---------------------------------------------------------------- products of two matrices that both change */

#define BLOCK 240 /* columns that are packed at a time: DEPTH rows of them stay in the second cache */

/* `columns` columns of a W of `depth` rows, given row by row. */
static void pack_rows(float *panels, const float *w, int64_t w_row, int64_t depth, int64_t columns) {
    for (int64_t c = 0; c < columns; c += PANEL, panels += depth * PANEL) {
        const int64_t some = columns - c < PANEL ? columns - c : PANEL;
        for (int64_t k = 0; k < depth; k++)
            for (int64_t i = 0; i < PANEL; i++) panels[k * PANEL + i] = i < some ? w[k * w_row + c + i] : 0.0f;
    }
}

/* The same, given column by column. */
static void pack_columns(float *panels, const float *w, int64_t w_column, int64_t depth, int64_t columns) {
    for (int64_t c = 0; c < columns; c++)
        for (int64_t k = 0; k < depth; k++) panels[(c / PANEL * depth + k) * PANEL + c % PANEL] = w[c * w_column + k];
    for (int64_t c = columns; c % PANEL; c++)
        for (int64_t k = 0; k < depth; k++) panels[(c / PANEL * depth + k) * PANEL + c % PANEL] = 0.0f;
}

static void meet(
    float *out, int64_t out_stride, const float *x, int64_t x_stride, int64_t x_step, const float *panels,
    const float *start, int64_t rows, int64_t depth, int64_t columns) {
    if (x_step == 1) {
        multiply(out, out_stride, x, x_stride, panels, start, rows, depth, columns, -INFINITY);
        return;
    }
    for (int64_t r = 0; r < rows; r += MOST) {
        const int64_t some = rows - r < MOST ? rows - r : MOST;
        float *to = out + r * out_stride;
        IN_THE_FORM_OF_THIS_PROCESSOR(
            multiply_turned, to, out_stride, x + r, x_step, panels, start, some, depth, columns, -INFINITY);
    }
}

void sgemm(
    const char *turn_a, const char *turn_b, const int64_t *m, const int64_t *n, const int64_t *k, const float *alpha,
    const float *a, const int64_t *a_row, const float *b, const int64_t *b_row, const float *beta, float *c,
    const int64_t *c_row) {
    static THREAD_LOCAL float panels[DEPTH * BLOCK];
    static const float zeros[BLOCK] = {0};
    const int turned_a = *turn_a == 'T', turned_b = *turn_b == 'T';
    (void)alpha; /* 1 */
    if (*k == 0 && *beta == 0.0f)
        for (int64_t r = 0; r < *n; r++) memset(c + r * *c_row, 0, (size_t)*m * sizeof *c);
    for (int64_t from = 0; from < *m; from += BLOCK)
        for (int64_t deep = 0; deep < *k; deep += DEPTH) {
            const int64_t columns = *m - from < BLOCK ? *m - from : BLOCK, depth = *k - deep < DEPTH ? *k - deep : DEPTH;
            if (turned_a) pack_columns(panels, a + from * *a_row + deep, *a_row, depth, columns);
            else pack_rows(panels, a + deep * *a_row + from, *a_row, depth, columns);
            meet(c + from, *c_row, b + deep * (turned_b ? *b_row : 1), turned_b ? 1 : *b_row, turned_b ? *b_row : 1, panels,
                 deep == 0 && *beta == 0.0f ? zeros : NULL, *n, depth, columns);
        }
}

int sgemm_pays(void) {
#if defined(CHOICE)
    return __builtin_cpu_supports("avx512vl") && !__builtin_cpu_is("intel");
#else
    return 0;
#endif
}
