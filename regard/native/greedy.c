/* A whole search that takes the likeliest token at every step. */

#include "stack.h"

#define COLUMNS 256 /* of the output layer at a time: what they give for all rows stays in the cache until it is read */
#define ROWS 256

/* ---------------------------------------------------------------- choosing tokens */

/* What stands in the columns from..from+count-1 of a row, against the largest number so far. */
STATIC_INLINE void compare(float *most, int64_t *place, const float *row, int64_t from, int64_t count) {
    float here = -INFINITY;
    int32_t lost = 0;
    for (int64_t i = 0; i < count; i++) {
        here = row[i] > here ? row[i] : here;
        lost |= row[i] != row[i];
    }
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

/* The rows that still grow, and what they need. A row begins at a step of its own: as soon as one ends, the next sentence
takes its place, so that products have as many rows as they can for as long as there are sentences. */
typedef struct {
    int64_t count, most;  /* rows, and how many there is room for */
    int64_t step, oldest; /* this one, and the first that some row still reads */
    int64_t next, last, longest; /* the next sentence, the end of them all, the most tokens of one */
    int32_t *sentence, *origin, *begun, *since; /* since: `begun`, counted from `oldest` */
    int64_t *token, *place;
    float *x, *y, *largest, *angles;
    float **packed, **spare; /* of the steps that are read, step t at t mod longest; room that is free again */
    int64_t spares;
    const float **steps; /* as `decode` asks for them */
} growing;

/* New rows for sentences that wait, as many as there is room for. */
static void begin(const words *w, growing *g) {
    for (; g->count < g->most && g->next < g->last; g->count++) {
        g->sentence[g->count] = (int32_t)g->next++;
        g->begun[g->count] = (int32_t)g->step;
        g->token[g->count] = w->bos;
    }
}

/* What the first layer reads: the token's vector with its position, perhaps its norm. */
STATIC_INLINE void enter(const stack *s, const words *w, growing *g) {
    for (int64_t r = 0; r < g->count; r++) {
        const int64_t at = g->step - g->begun[r];
        const float *position = w->positions + at * s->d, *vector = w->table + g->token[r] * s->d;
        float *x = g->x + r * s->d, *y = g->y + r * s->d;
        g->origin[r * g->longest + at] = (int32_t)r;
        if (w->angles) memcpy(g->angles + r * s->width, w->angles + at * s->width, (size_t)s->width * sizeof *x);
        for (int64_t i = 0; i < s->d; i++) x[i] = w->scale * vector[i];
        if (w->gain)
            norm(y, x, position, w->gain, w->shift, 1, s->d, s->epsilon);
        else
            for (int64_t i = 0; i < s->d; i++) y[i] = x[i] += position[i];
    }
}

/* Room for the keys of this step, and an end to that of steps which no row reads any more. */
static float *remember(const stack *s, growing *g) {
    int64_t oldest = g->step;
    for (int64_t r = 0; r < g->count; r++) oldest = g->begun[r] < oldest ? g->begun[r] : oldest;
    for (; g->oldest < oldest; g->oldest++) {
        float **const read = g->packed + g->oldest % g->longest;
        g->spare[g->spares++] = *read;
        *read = NULL;
    }
    for (int64_t r = 0; r < g->count; r++) g->since[r] = (int32_t)(g->begun[r] - oldest);
    const int64_t all = s->heads * s->width, length = g->step - oldest + 1;
    float *mine = g->spares ? g->spare[--g->spares] : malloc((size_t)(s->layers * g->most * 3 * all) * sizeof *mine);
    g->packed[g->step % g->longest] = mine;
    for (int64_t l = 0; l < s->layers && mine; l++)
        for (int64_t t = 0; t < length; t++)
            g->steps[l * length + t] = g->packed[(oldest + t) % g->longest] + (l * g->most * 3 + 1) * all;
    return mine;
}

/* All layers, and the likeliest column of every row. */
static int look(const stack *s, const sources *read, const words *w, growing *g) {
    float *packed = remember(s, g);
    const past before = {g->steps, g->origin, g->since, g->step - g->oldest + 1, g->longest};
    return packed &&
           decode(s, read, &before, g->x, g->y, packed, g->sentence, w->angles ? g->angles : NULL, 1, g->most, 0, g->count) &&
           largest_of_product(g->largest, g->place, g->y, w->panels, w->bias, w->banned, w->bans, s->d, w->columns, 0,
                              g->count);
}

/* Takes over the tokens; rows that end, or have met their limit, leave. A sentence without a finite number leaves with -1
tokens. */
static void take(const words *w, growing *g, int64_t *written, int64_t *lengths, const int64_t *limits) {
    int64_t left = 0;
    for (int64_t r = 0; r < g->count; r++) {
        const int64_t mine = g->sentence[r], token = w->ids ? w->ids[g->place[r]] : g->place[r];
        const int64_t length = g->step - g->begun[r] + 1;
        const int finite = isfinite(g->largest[r]);
        written[mine * g->longest + length - 1] = token;
        if (!finite || token == w->eos || length == limits[mine]) {
            lengths[mine] = finite ? length : -1;
            continue;
        }
        g->sentence[left] = (int32_t)mine, g->token[left] = token, g->begun[left] = g->begun[r];
        memmove(g->origin + left++ * g->longest, g->origin + r * g->longest, (size_t)length * sizeof *g->origin);
    }
    g->count = left;
    g->step++;
}

/* For the sentences first..last-1 the likeliest token after those before it, until the end token or limits[sentence]
tokens: written[sentence, longest], of which lengths[sentence] are written. */
VISIBLE int greedy(
    const stack *s, const sources *read, const words *w, int64_t *written, int64_t *lengths, const int64_t *limits,
    int64_t longest, int64_t first, int64_t last) {
    const size_t all = (size_t)longest + 1, d = (size_t)s->d;
    growing g = {.most = last - first < TOGETHER ? last - first : TOGETHER, .next = first, .last = last, .longest = longest,
                 .sentence = malloc(TOGETHER * sizeof(int32_t)),
                 .origin = malloc(TOGETHER * all * sizeof(int32_t)),
                 .begun = malloc(TOGETHER * sizeof(int32_t)),
                 .since = malloc(TOGETHER * sizeof(int32_t)),
                 .token = malloc(TOGETHER * sizeof(int64_t)),
                 .place = malloc(TOGETHER * sizeof(int64_t)),
                 .x = malloc(TOGETHER * d * sizeof(float)),
                 .y = malloc(TOGETHER * d * sizeof(float)),
                 .largest = malloc(TOGETHER * sizeof(float)),
                 .angles = malloc(TOGETHER * (size_t)s->width * sizeof(float)),
                 .packed = calloc(all, sizeof(float *)),
                 .spare = calloc(all, sizeof(float *)),
                 .steps = malloc(all * (size_t)s->layers * sizeof(float *))};
    int done = g.sentence && g.origin && g.begun && g.since && g.token && g.place && g.x && g.y && g.largest && g.angles &&
               g.packed && g.spare && g.steps;
    while (done) {
        begin(w, &g);
        if (!g.count) break;
        enter(s, w, &g);
        done = look(s, read, w, &g);
        if (done) take(w, &g, written, lengths, limits);
    }
    for (int64_t t = 0; t < longest && g.packed; t++) free(g.packed[t]);
    while (g.spares) free(g.spare[--g.spares]);
    void *const taken[] = {g.sentence, g.origin, g.begun, g.since, g.token, g.place, g.x, g.y, g.largest, g.angles,
                           g.packed, g.spare, g.steps};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) free(taken[i]);
    return done;
}
