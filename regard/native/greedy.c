/* A whole search that takes the likeliest token at every step. */

#include "stack.h"

#define COLUMNS 256 /* of the output layer at a time: what they give for all rows stays in the cache until it is read */
#define ROWS 256

/* ---------------------------------------------------------------- choosing tokens */

/* What stands in the columns from..from+count-1 of a row, against the largest number so far. */
STATIC_INLINE void compare(float *most, int64_t *place, const float *row, int64_t from, int64_t count) {
    float here = -INFINITY;
    int32_t lost = 0;
    for (int64_t i = 0; i < count; i++) here = row[i] > here ? row[i] : here;
    for (int64_t i = 0; i < count; i++) lost |= row[i] != row[i];
    if (lost) *most = NAN;
    if (!(here > *most)) return;
    int64_t i = 0;
    while (i < count - 1 && row[i] < here) i++;
    *most = here, *place = from + i;
}

/* The largest number of row r of features W + bias, W packed, and the first place of it; the columns `banned` do not
count. A row with a NaN may have any place, and NaN as its number. For the rows first..last-1. */
VISIBLE EVERY_PROCESSOR int largest_of_product(
    float *largest, int64_t *places, const float *features, const float *panels, const float *bias,
    const int64_t *banned, int64_t bans, int64_t d, int64_t width, int64_t first, int64_t last) {
    float *logits = malloc(sizeof *logits * ROWS * COLUMNS);
    for (int64_t r = first; r < last; r++) largest[r] = -INFINITY, places[r] = 0;
    for (; first < last && logits; first += ROWS) {
        const int64_t rows = last - first < ROWS ? last - first : ROWS;
        for (int64_t from = 0; from < width; from += COLUMNS) {
            const int64_t count = width - from < COLUMNS ? width - from : COLUMNS;
            const int64_t whole = (count + PANEL - 1) / PANEL * PANEL;
            multiply(logits, COLUMNS, features + first * d, d, panels + from * d, bias + from, rows, d, whole, -INFINITY);
            for (int64_t r = 0; r < rows; r++) {
                float *row = logits + r * COLUMNS;
                for (int64_t b = 0; b < bans; b++)
                    if (banned[b] >= from && banned[b] < from + count) row[banned[b] - from] = -INFINITY;
                compare(largest + first + r, places + first + r, row, from, count);
            }
        }
    }
    free(logits);
    return logits != NULL;
}

/* ---------------------------------------------------------------- the search */

/* How tokens become vectors, and vectors tokens. `ids` are what the columns of the output layer stand for, if not
themselves; `positions` and `angles` have a row for every step, and there may be no angles, and no norm in front. */
typedef struct {
    const float *table, *positions, *gain, *shift, *angles, *panels, *bias;
    const int64_t *banned, *ids;
    int64_t bans, columns, bos, eos;
    float scale;
} words;

/* The rows that still grow, and what they need. */
typedef struct {
    int64_t count, length;
    int32_t *sentence, *origin, *parent;
    int64_t *token, *place;
    float *x, *y, *largest;
    float **packed;      /* of every step so far */
    int64_t *rows;       /* that each of them had */
    const float **steps; /* as `decode` asks for them */
} growing;

/* One number more for every row: whom it descends from, with itself for this step. */
STATIC_INLINE void descend(growing *g, int32_t *to) {
    for (int64_t r = 0; r < g->count; r++) {
        memcpy(to + r * g->length, g->origin + g->parent[r] * (g->length - 1), (size_t)(g->length - 1) * sizeof *to);
        to[r * g->length + g->length - 1] = (int32_t)r;
    }
}

/* What the first layer reads: the token's vector with its position, perhaps its norm. */
STATIC_INLINE void enter(const stack *s, const words *w, growing *g) {
    const float *position = w->positions + (g->length - 1) * s->d;
    for (int64_t r = 0; r < g->count; r++)
        for (int64_t i = 0; i < s->d; i++) g->x[r * s->d + i] = w->scale * w->table[g->token[r] * s->d + i];
    if (w->gain) {
        norm(g->y, g->x, position, w->gain, w->shift, g->count, s->d, s->epsilon);
        return;
    }
    for (int64_t r = 0; r < g->count; r++)
        for (int64_t i = 0; i < s->d; i++) g->y[r * s->d + i] = g->x[r * s->d + i] += position[i];
}

/* All layers, and the likeliest column of every row. */
static int look(const stack *s, const sources *read, const words *w, growing *g) {
    const int64_t all = s->heads * s->width, length = g->length;
    float *packed = g->packed[length - 1] = malloc((size_t)(s->layers * g->count * 3 * all) * sizeof *packed);
    g->rows[length - 1] = g->count;
    for (int64_t l = 0; l < s->layers; l++)
        for (int64_t t = 0; t < length; t++) g->steps[l * length + t] = g->packed[t] + (l * g->rows[t] * 3 + 1) * all;
    const float *angles = w->angles ? w->angles + (length - 1) * s->width : NULL;
    return packed &&
           decode(s, read, g->x, g->y, packed, g->steps, g->origin, g->sentence, angles, g->count, length, 0, g->count) &&
           largest_of_product(g->largest, g->place, g->y, w->panels, w->bias, w->banned, w->bans, s->d, w->columns, 0,
                              g->count);
}

/* Takes over the tokens; rows that end, or have met their limit, leave. A sentence without a finite number leaves with -1
tokens. */
static void take(const words *w, growing *g, int64_t *written, int64_t *lengths, const int64_t *limits, int64_t longest) {
    int64_t left = 0;
    for (int64_t r = 0; r < g->count; r++) {
        const int64_t mine = g->sentence[r], token = w->ids ? w->ids[g->place[r]] : g->place[r];
        const int finite = isfinite(g->largest[r]);
        written[mine * longest + g->length - 1] = token;
        if (!finite || token == w->eos || g->length == limits[mine]) {
            lengths[mine] = finite ? g->length : -1;
            continue;
        }
        g->sentence[left] = (int32_t)mine, g->token[left] = token, g->parent[left++] = (int32_t)r;
    }
    g->count = left;
}

/* For the sentences first..last-1 the likeliest token after those before it, until the end token or limits[sentence]
tokens: written[sentence, longest], of which lengths[sentence] are written. */
VISIBLE int greedy(
    const stack *s, const sources *read, const words *w, int64_t *written, int64_t *lengths, const int64_t *limits,
    int64_t longest, int64_t first, int64_t last) {
    const size_t rows = (size_t)(last - first), all = (size_t)longest;
    growing g = {.count = last - first,
                 .sentence = malloc((rows + 1) * sizeof(int32_t)),
                 .parent = malloc((rows + 1) * sizeof(int32_t)),
                 .token = malloc((rows + 1) * sizeof(int64_t)),
                 .place = malloc((rows + 1) * sizeof(int64_t)),
                 .x = malloc((rows + 1) * (size_t)s->d * sizeof(float)),
                 .y = malloc((rows + 1) * (size_t)s->d * sizeof(float)),
                 .largest = malloc((rows + 1) * sizeof(float)),
                 .packed = calloc(all, sizeof(float *)),
                 .rows = malloc(all * sizeof(int64_t)),
                 .steps = malloc(all * (size_t)s->layers * sizeof(float *))};
    int done = g.sentence && g.parent && g.token && g.place && g.x && g.y && g.largest && g.packed && g.rows && g.steps;
    for (int64_t r = 0; r < g.count && done; r++)
        g.sentence[r] = (int32_t)(first + r), g.parent[r] = (int32_t)r, g.token[r] = w->bos;
    while (done && g.count) {
        g.length++;
        int32_t *origin = malloc((size_t)(g.count * g.length) * sizeof *origin);
        done = origin != NULL;
        if (done) descend(&g, origin);
        free(g.origin);
        g.origin = origin;
        if (done) enter(s, w, &g);
        done = done && look(s, read, w, &g);
        if (done) take(w, &g, written, lengths, limits, longest);
    }
    for (int64_t t = 0; t < g.length && g.packed; t++) free(g.packed[t]);
    void *const taken[] = {g.sentence, g.origin, g.parent, g.token, g.place, g.x, g.y, g.largest, g.packed, g.rows, g.steps};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) free(taken[i]);
    return done;
}
