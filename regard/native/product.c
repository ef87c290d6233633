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

static void multiply_rows(
    float *out, int64_t out_stride, const float *x, int64_t x_stride, const float *panels, const float *start,
    int64_t rows, int64_t d, int64_t e, float least) {
#if defined(CHOICE)
    if (__builtin_cpu_supports("avx512vl"))
        multiply_v4(out, out_stride, x, x_stride, panels, start, rows, d, e, least);
    else if (__builtin_cpu_supports("avx2"))
        multiply_v3(out, out_stride, x, x_stride, panels, start, rows, d, e, least);
    else
#endif
        multiply_any(out, out_stride, x, x_stride, panels, start, rows, d, e, least);
}

void multiply(
    float *out, int64_t out_stride, const float *x, int64_t x_stride, const float *panels, const float *start,
    int64_t rows, int64_t d, int64_t e, float least) {
    const int64_t parts = (rows + MOST - 1) / MOST;
    for (int64_t p = 0; p < parts; p++) {
        const int64_t r = rows * p / parts, next = rows * (p + 1) / parts;
        multiply_rows(out + r * out_stride, out_stride, x + r * x_stride, x_stride, panels, start, next - r, d, e, least);
    }
}

EVERY_PROCESSOR void pack(float *panels, const float *w, int64_t d, int64_t e) {
    for (int64_t from = 0; from < e; from += PANEL, panels += d * PANEL)
        for (int64_t c = 0; c < PANEL; c++) {
            const float *column = w + (from + c) * d;
            for (int64_t k = 0; k < d; k++) panels[k * PANEL + c] = from + c < e ? column[k] : 0.0f;
        }
}
