/* Products. A weight that stays is packed once, and every product with it then reads memory in order. */

#ifndef REGARD_PRODUCT
#define REGARD_PRODUCT

#include "native.h"

#define PANEL 16 /* columns of a weight that lie together, row by row; zeros fill the last panel */

/* W of d rows and e columns, given column by column. */
VISIBLE void pack(float *panels, const float *w, int64_t d, int64_t e);

/* out = max(least, start + x W), or without a `start` max(least, out + x W), for a packed W of d rows and e columns.

`start` is the same for every row, and has a number for every column of the panels. */
VISIBLE void multiply(
    float *out, int64_t out_stride, const float *x, int64_t x_stride, const float *panels, const float *start,
    int64_t rows, int64_t d, int64_t e, float least);

/* c = a b, or for a `beta` of 1 c = c + a b, as BLAS has it, column by column; `alpha` must be 1. */
VISIBLE void sgemm(
    const char *turn_a, const char *turn_b, const int64_t *m, const int64_t *n, const int64_t *k, const float *alpha,
    const float *a, const int64_t *a_row, const float *b, const int64_t *b_row, const float *beta, float *c,
    const int64_t *c_row);

/* Whether this processor is one where `sgemm` is ahead of MKL, which takes AVX-512 on those of Intel alone. */
VISIBLE int sgemm_pays(void);

#endif
