/* Products with a weight that stays: it is packed once, and every product with it then reads memory in order. */

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

#endif
