/* What decoding does between its matrix products. Each function here makes one pass where torch makes several. */

#include "stack.h"

/* ---------------------------------------------------------------- attention
Entries lie where they were computed: nothing is copied, nothing is hidden. An entry holds a key and, `value_at` numbers
further, its value; heads lie side by side in both, `width` numbers each. */

/* out[h] = sum_j softmax_j(q[h].k_j[h] / sqrt(width)) v_j[h] over `count` entries; `scores` has room for all. */
STATIC_INLINE void attend(
    float *restrict out, const float *restrict q, const float *const *restrict entries, int64_t count, int64_t heads,
    int64_t width, int64_t value_at, float *restrict scores) {
    const float scale = 1.0f / sqrtf((float)width);
    for (int64_t j = 0; j < count; j++) {
        const float *key = entries[j];
        for (int64_t h = 0; h < heads; h++) {
            float sum = 0.0f;
            for (int64_t i = 0; i < width; i++) sum += q[h * width + i] * key[h * width + i];
            scores[h * count + j] = sum * scale;
        }
    }
    for (int64_t h = 0; h < heads; h++) {
        float *row = scores + h * count, most = -3.4e38f, total = 0.0f;
        for (int64_t j = 0; j < count; j++) most = row[j] > most ? row[j] : most;
        for (int64_t j = 0; j < count; j++) {
            row[j] = exponential(row[j] - most);
            total += row[j];
        }
        for (int64_t j = 0; j < count; j++) row[j] /= total;
    }
    for (int64_t i = 0; i < heads * width; i++) out[i] = 0.0f;
    for (int64_t j = 0; j < count; j++) {
        const float *value = entries[j] + value_at;
        for (int64_t h = 0; h < heads; h++) {
            const float weight = scores[h * count + j];
            for (int64_t i = 0; i < width; i++) out[h * width + i] += weight * value[h * width + i];
        }
    }
}

/* Row r of those from `first` on reads, of each of its steps, the entry of the row that it descends from. */
STATIC_INLINE int read_past(
    float *out, const float *q, int64_t q_stride, const past *before, int64_t layer, int64_t first, int64_t rows,
    int64_t stride, int64_t heads, int64_t width) {
    const float *const *steps = before->steps + layer * before->length;
    const float **entries = malloc((size_t)(before->length + 1) * sizeof *entries);
    float *scores = malloc((size_t)(before->length * heads + 1) * sizeof *scores);
    if (entries && scores)
        for (int64_t r = 0; r < rows; r++) {
            const int32_t *origin = before->origin + (first + r) * before->reach;
            const int64_t from = before->begun ? before->begun[first + r] : 0, count = before->length - from;
            for (int64_t i = 0; i < count; i++) entries[i] = steps[from + i] + origin[i] * stride;
            attend(out + r * heads * width, q + r * q_stride, entries, count, heads, width, heads * width, scores);
        }
    int done = entries && scores;
    free(entries);
    free(scores);
    return done;
}

/* Row r reads the entries of its sentence: those that the first counts[sentence] of places[sentence] name. */
STATIC_INLINE int read_memory(
    float *out, const float *q, int64_t q_stride, const float *memory, const int32_t *sentence, const int32_t *places,
    const int32_t *counts, int64_t rows, int64_t most, int64_t stride, int64_t heads, int64_t width) {
    const float **entries = malloc((size_t)(most + 1) * sizeof *entries);
    float *scores = malloc((size_t)(most * heads + 1) * sizeof *scores);
    if (entries && scores)
        for (int64_t r = 0; r < rows; r++) {
            const int64_t mine = sentence[r], count = counts[mine];
            for (int64_t j = 0; j < count; j++) entries[j] = memory + places[mine * most + j] * stride;
            attend(out + r * heads * width, q + r * q_stride, entries, count, heads, width, heads * width, scores);
        }
    int done = entries && scores;
    free(entries);
    free(scores);
    return done;
}

VISIBLE EVERY_PROCESSOR int attend_past(
    float *out, const float *q, int64_t q_stride, const float *const *steps, const int32_t *origin, int64_t rows,
    int64_t length, int64_t stride, int64_t heads, int64_t width) {
    const past before = {steps, origin, NULL, length, length};
    return read_past(out, q, q_stride, &before, 0, 0, rows, stride, heads, width);
}

VISIBLE EVERY_PROCESSOR int attend_memory(
    float *out, const float *q, int64_t q_stride, const float *memory, const int32_t *sentence, const int32_t *places,
    const int32_t *counts, int64_t rows, int64_t most, int64_t stride, int64_t heads, int64_t width) {
    return read_memory(out, q, q_stride, memory, sentence, places, counts, rows, most, stride, heads, width);
}

/* ---------------------------------------------------------------- around the products */

EVERY_PROCESSOR void norm(
    float *out, float *x, const float *bias, const float *gain, const float *offset, int64_t rows, int64_t width,
    float epsilon) {
    add_norm(out, x, bias, gain, offset, rows, width, epsilon);
}

/* ---------------------------------------------------------------- a whole step */

/* The weights of a layer, in the order in which they are met. */
enum { PACKED, PACKED_BIAS, JOINT_1, QUERY = JOINT_1 + JOINT, QUERY_BIAS, JOINT_2, INNER = JOINT_2 + JOINT, INNER_BIAS,
       JOINT_3, WEIGHTS = JOINT_3 + JOINT };

EVERY_PROCESSOR int decode(
    const stack *s, const sources *read, const past *before, float *x, float *y, float *packed, const int32_t *sentence,
    const float *angles, int64_t scattered, int64_t n, int64_t first, int64_t last) {
    const int64_t all = s->heads * s->width, d = s->d;
    const int64_t apart = s->inner + PANEL; /* rows a power of two apart would meet in the cache */
    float *found = malloc((size_t)(TOGETHER * (2 * all + apart)) * sizeof *found);
    float *q = found + TOGETHER * all, *hidden = q + TOGETHER * all;
    int done = found != NULL;
    for (; first < last && done; first += TOGETHER) {
        const int64_t rows = last - first < TOGETHER ? last - first : TOGETHER;
        const int32_t *whose = sentence + first;
        const float *turns = scattered ? angles + first * s->width : angles;
        float *stream = x + first * d, *normed = y + first * d;
        for (int64_t l = 0; l < s->layers && done; l++) {
            const float *const *w = s->weights + l * WEIGHTS;
            float *own = packed + (l * n + first) * 3 * all;
            multiply(own, 3 * all, normed, d, w[PACKED], w[PACKED_BIAS], rows, d, 3 * all, -INFINITY);
            if (angles)
                turn_each(own, own, turns, rows, scattered ? rows : 1, 3 * all, 2 * s->heads, s->width, 1.0f);
            done = read_past(found, own, 3 * all, before, l, first, rows, 3 * all, s->heads, s->width);
            join(s, stream, normed, found, all, w + JOINT_1, rows, all);
            multiply(q, all, normed, d, w[QUERY], w[QUERY_BIAS], rows, d, all, -INFINITY);
            done = done && read_memory(found, q, all, read->memory[l], whose, read->places, read->counts, rows,
                                       read->most, 2 * all, s->heads, s->width);
            join(s, stream, normed, found, all, w + JOINT_2, rows, all);
            multiply(hidden, apart, normed, d, w[INNER], w[INNER_BIAS], rows, d, s->inner, 0.0f);
            join(s, stream, normed, hidden, apart, w + JOINT_3, rows, s->inner);
        }
    }
    free(found);
    return done;
}

/* ---------------------------------------------------------------- choosing tokens */

#define STRETCH 64
#define SMALL 1e-30f /* a sum of exponentials between these has lost nothing */
#define LARGE 1e30f

/* log sum exp x. Rows of ordinary size need no maximum taken off before the exponential. */
STATIC_INLINE float log_sum_exp(const float *x, int64_t count) {
    float total = 0.0f;
    for (int64_t i = 0; i < count; i++) total += exponential(x[i]);
    if (total > SMALL && total < LARGE) return logf(total);
    float most = -INFINITY;
    for (int64_t i = 0; i < count; i++) most = x[i] > most ? x[i] : most;
    total = 0.0f;
    for (int64_t i = 0; i < count; i++) total += exponential(x[i] - most);
    return most + logf(total);
}

/* For each sentence the k largest of start[w] + log softmax(x[w])[i] over its `beams` rows, largest first, of equals the
first: the sums, the second terms alone, and the places w * width + i. The columns `banned` are not chosen, and x keeps
-infinity there. Where fewer are greater than -infinity, place -1 follows. Most stretches of a row have nothing to add. */
STATIC_INLINE void find_best(
    float *sums, float *steps, int64_t *places, float *x, const float *start, const int64_t *banned, int64_t bans,
    int64_t sentences, int64_t beams, int64_t width, int64_t k) {
    for (int64_t s = 0; s < sentences; s++) {
        float *sum = sums + s * k, *step = steps + s * k;
        int64_t *place = places + s * k;
        for (int64_t j = 0; j < k; j++) sum[j] = step[j] = -INFINITY, place[j] = -1;
        for (int64_t w = 0; w < beams; w++) {
            float *row = x + (s * beams + w) * width;
            const float before = start[s * beams + w], log_total = log_sum_exp(row, width);
            for (int64_t b = 0; b < bans; b++) row[banned[b]] = -INFINITY;
            for (int64_t from = 0; from < width; from += STRETCH) {
                const int64_t to = from + STRETCH < width ? from + STRETCH : width;
                const float bar = sum[k - 1];
                int32_t any = 0;
                for (int64_t i = from; i < to; i++) any |= row[i] - log_total + before > bar;
                if (!any) continue;
                for (int64_t i = from; i < to; i++) {
                    const float own = row[i] - log_total, value = own + before;
                    if (!(value > sum[k - 1])) continue;
                    int64_t j = k - 1;
                    for (; j > 0 && value > sum[j - 1]; j--)
                        sum[j] = sum[j - 1], step[j] = step[j - 1], place[j] = place[j - 1];
                    sum[j] = value, step[j] = own, place[j] = w * width + i;
                }
            }
        }
    }
}

#define AT_A_TIME 80 /* rows through the output layer: what they give stays in the cache until it is read */

/* `find_best` of features W + bias, W packed, for the sentences first..last-1. The last column of row r is `more[r]` more, if
there is a `more`. */
VISIBLE EVERY_PROCESSOR int best_of_product(
    float *sums, float *steps, int64_t *places, const float *features, const float *panels, const float *bias,
    const float *more, const float *start, const int64_t *banned, int64_t bans, int64_t beams, int64_t d, int64_t width,
    int64_t k, int64_t first, int64_t last) {
    const int64_t count = beams < AT_A_TIME ? AT_A_TIME / beams : 1;
    float *logits = malloc((size_t)(count * beams * width) * sizeof *logits);
    for (int64_t s = first; s < last && logits; s += count) {
        const int64_t some = last - s < count ? last - s : count, row = s * beams;
        multiply(logits, width, features + row * d, d, panels, bias, some * beams, d, width, -INFINITY);
        for (int64_t r = 0; r < some * beams && more; r++) logits[r * width + width - 1] += more[row + r];
        find_best(
            sums + s * k, steps + s * k, places + s * k, logits, start + row, banned, bans, some, beams, width, k);
    }
    free(logits);
    return logits != NULL;
}
