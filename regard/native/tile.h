/* One form of `multiply`, for the processors of TARGET: LANE numbers in a register, TALL rows of x at a time.

product.c includes this file once for each form, with these names defined, and what they become called by FORM(name). */

#define LANES (PANEL / LANE)

typedef float FORM(lane) VECTOR;

/* max(least, start + x B) for `tall` rows of x and `depth` rows of a panel: all sums stay in registers. `start` is what
`out` holds, or for every row the same `first`. */
STATIC_INLINE TARGET void FORM(tile)(
    float *out, int64_t out_stride, const float *x, int64_t x_stride, const float *panel, const float *first,
    int64_t depth, float least, const int64_t tall) {
    FORM(lane) sums[TALL][LANES];
    UNROLLED for (int64_t r = 0; r < tall; r++)
        UNROLLED for (int64_t c = 0; c < LANES; c++)
            sums[r][c] = *(const FORM(lane) *)((first ? first : out + r * out_stride) + c * LANE);
    for (int64_t k = 0; k < depth; k++)
        UNROLLED for (int64_t r = 0; r < tall; r++)
            UNROLLED for (int64_t c = 0; c < LANES; c++)
                sums[r][c] += x[r * x_stride + k] * *(const FORM(lane) *)(panel + k * PANEL + c * LANE);
    UNROLLED for (int64_t r = 0; r < tall; r++) {
        UNROLLED for (int64_t c = 0; c < LANES; c++)
            *(FORM(lane) *)(out + r * out_stride + c * LANE) = sums[r][c];
        if (least > -INFINITY)
            for (float *at = out + r * out_stride; at < out + r * out_stride + PANEL; at++) *at = *at > least ? *at : least;
    }
}

/* All rows of x and one panel: whole tiles, smaller ones, single rows. */
static TARGET void FORM(column)(
    float *out, int64_t out_stride, const float *x, int64_t x_stride, const float *panel, const float *first,
    int64_t rows, int64_t depth, float least) {
    int64_t r = 0;
#define TILE(tall) \
    FORM(tile)(out + r * out_stride, out_stride, x + r * x_stride, x_stride, panel, first, depth, least, tall)
    for (; r + TALL <= rows; r += TALL) TILE(TALL);
    for (; r + TALL / 3 <= rows; r += TALL / 3) TILE(TALL / 3);
    for (; r < rows; r++) TILE(1);
#undef TILE
}

static TARGET void FORM(multiply)(
    float *out, int64_t out_stride, const float *x, int64_t x_stride, const float *panels, const float *start,
    int64_t rows, int64_t d, int64_t e, float least) {
    for (int64_t from = 0; from < d; from += DEPTH) {
        const int64_t depth = d - from < DEPTH ? d - from : DEPTH;
        const float floor = from + depth == d ? least : -INFINITY;
        for (int64_t c = 0; c < e; c += PANEL) {
            const float *panel = panels + c * d + from * PANEL, *first = start && from == 0 ? start + c : NULL;
            if (c + PANEL <= e) {
                FORM(column)(out + c, out_stride, x + from, x_stride, panel, first, rows, depth, floor);
                continue;
            }
            for (int64_t r = 0; r < rows; r++) { /* the last columns, row by row, with room for a whole panel */
                float whole[PANEL] = {0}, *to = out + r * out_stride + c;
                memcpy(whole, to, (size_t)(e - c) * sizeof *to);
                FORM(column)(whole, PANEL, x + r * x_stride + from, x_stride, panel, first, 1, depth, floor);
                memcpy(to, whole, (size_t)(e - c) * sizeof *to);
            }
        }
    }
}

#undef LANES
#undef LANE
#undef TALL
#undef TARGET
#undef FORM
