/* One form of `multiply`, for the processors of TARGET: LANE numbers in a register, up to TALL rows of x at a time.

product.c includes this file once for each form, with these names defined, and what they become called by FORM(name).
WIDE panels are met together, and LOW_WIDE where rows are few: sums enough that none waits for the one before it, and no
more than there are registers. */

#define LANES (PANEL / LANE)
#define LOW (TALL / 2) /* fewer rows are few */

typedef float FORM(lane) VECTOR;

/* max(least, start + x B) for `tall` rows of x and `depth` rows of `wide` panels, which lie `apart`: all sums stay in
registers. `start` is what `out` holds, or for every row the same `first`. Numbers of a row of x are `x_step` apart. */
STATIC_INLINE TARGET void FORM(tile)(
    float *out, int64_t out_stride, const float *x, int64_t x_stride, const int64_t x_step, const float *panel,
    int64_t apart, const float *first, int64_t depth, float least, const int64_t tall, const int64_t wide) {
    FORM(lane) sums[TALL][WIDE > LOW_WIDE ? WIDE * LANES : LOW_WIDE * LANES];
    UNROLLED for (int64_t r = 0; r < tall; r++)
        UNROLLED for (int64_t c = 0; c < wide * LANES; c++)
            sums[r][c] = *(const FORM(lane) *)((first ? first : out + r * out_stride) + c * LANE);
    BY_FOUR for (int64_t k = 0; k < depth; k++)
        UNROLLED for (int64_t r = 0; r < tall; r++)
            UNROLLED for (int64_t c = 0; c < wide * LANES; c++)
                sums[r][c] += x[r * x_stride + k * x_step] *
                              *(const FORM(lane) *)(panel + c / LANES * apart + k * PANEL + c % LANES * LANE);
    UNROLLED for (int64_t r = 0; r < tall; r++) {
        float *to = out + r * out_stride;
        UNROLLED for (int64_t c = 0; c < wide * LANES; c++) *(FORM(lane) *)(to + c * LANE) = sums[r][c];
        if (least > -INFINITY)
            for (float *at = to; at < to + wide * PANEL; at++) *at = *at > least ? *at : least;
    }
}

/* All rows of x and `wide` panels: as few tiles as they need, and all about equally tall. Where they are many, each asks for
a part of the next panels, so that these are there when it is their turn; few are done before those could come. */
STATIC_INLINE TARGET void FORM(columns)(
    float *out, int64_t out_stride, const float *x, int64_t x_stride, const int64_t x_step, const float *panel,
    int64_t apart, const float *first, int64_t rows, int64_t depth, float least, const int64_t wide) {
    const int64_t tiles = (rows + TALL - 1) / TALL;
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t r = rows * t / tiles, tall = rows * (t + 1) / tiles - r;
        float *to = out + r * out_stride;
        const float *from = x + r * x_stride;
        if (rows >= MANY)
            for (int64_t k = depth * t / tiles; k < depth * (t + 1) / tiles; k++)
                for (int64_t p = wide; p < 2 * wide; p++) ASK_FOR(panel + p * apart + k * PANEL);
#define TILE(height) \
    case height: \
        FORM(tile)(to, out_stride, from, x_stride, x_step, panel, apart, first, depth, least, height, wide); \
        break
        if (wide == LOW_WIDE && wide != WIDE) switch (tall) {
#if LOW > 2
            TILE(3);
#endif
#if LOW > 1
            TILE(2);
#endif
            TILE(1);
        }
        else switch (tall) {
#if TALL > 6
            TILE(8); TILE(7);
#endif
#if TALL > 3
            TILE(6); TILE(5); TILE(4);
#endif
            TILE(3); TILE(2); TILE(1);
        }
#undef TILE
    }
}

STATIC_INLINE TARGET void FORM(meet)(
    float *out, int64_t out_stride, const float *x, int64_t x_stride, const int64_t x_step, const float *panels,
    const float *start, int64_t rows, int64_t d, int64_t e, float least) {
    for (int64_t from = 0; from < d; from += DEPTH) {
        const int64_t depth = d - from < DEPTH ? d - from : DEPTH, apart = d * PANEL;
        const float floor = from + depth == d ? least : -INFINITY;
        int64_t c = 0;
#define COLUMNS(to, to_stride, x, count, wide) \
    FORM(columns)(to, to_stride, x, x_stride, x_step, panels + c * d + from * PANEL, apart, \
                  start && from == 0 ? start + c : NULL, count, depth, floor, wide)
        for (; rows < LOW && c + LOW_WIDE * PANEL <= e; c += LOW_WIDE * PANEL)
            COLUMNS(out + c, out_stride, x + from * x_step, rows, LOW_WIDE);
        for (; rows >= LOW && c + WIDE * PANEL <= e; c += WIDE * PANEL)
            COLUMNS(out + c, out_stride, x + from * x_step, rows, WIDE);
        for (; c + PANEL <= e; c += PANEL) COLUMNS(out + c, out_stride, x + from * x_step, rows, 1);
        for (int64_t r = 0; r < rows && c < e; r += TALL) { /* the last columns, with room for a whole panel */
            float whole[TALL * PANEL] = {0};
            const int64_t some = rows - r < TALL ? rows - r : TALL, size = (e - c) * (int64_t)sizeof *out;
            for (int64_t i = 0; i < some; i++) memcpy(whole + i * PANEL, out + (r + i) * out_stride + c, (size_t)size);
            COLUMNS(whole, PANEL, x + r * x_stride + from * x_step, some, 1);
            for (int64_t i = 0; i < some; i++) memcpy(out + (r + i) * out_stride + c, whole + i * PANEL, (size_t)size);
        }
#undef COLUMNS
    }
}

VISIBLE TARGET void FORM(multiply)( /* visible, so that each form can be tested */
    float *out, int64_t out_stride, const float *x, int64_t x_stride, const float *panels, const float *start,
    int64_t rows, int64_t d, int64_t e, float least) {
    FORM(meet)(out, out_stride, x, x_stride, 1, panels, start, rows, d, e, least);
}

/* The same for an x that is given column by column, `x_step` numbers for each. */
static TARGET void FORM(multiply_turned)(
    float *out, int64_t out_stride, const float *x, int64_t x_step, const float *panels, const float *start,
    int64_t rows, int64_t d, int64_t e, float least) {
    FORM(meet)(out, out_stride, x, 1, x_step, panels, start, rows, d, e, least);
}

#undef LANES
#undef LOW
#undef LANE
#undef TALL
#undef WIDE
#undef LOW_WIDE
#undef TARGET
#undef FORM
