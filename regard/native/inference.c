/* What decoding does between its matrix products. Each function here makes one pass where torch makes several. */

#include "native.h"

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

/* Row r reads, of every step, the entry of the row that it descends from: steps[t] + origin[r, t] * stride. */
VISIBLE EVERY_PROCESSOR int attend_past(
    float *out, const float *q, int64_t q_stride, const float *const *steps, const int32_t *origin, int64_t rows,
    int64_t length, int64_t stride, int64_t heads, int64_t width) {
    const float **entries = malloc((size_t)(length + 1) * sizeof *entries);
    float *scores = malloc((size_t)(length * heads + 1) * sizeof *scores);
    if (entries && scores)
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t t = 0; t < length; t++) entries[t] = steps[t] + origin[r * length + t] * stride;
            attend(out + r * heads * width, q + r * q_stride, entries, length, heads, width, heads * width, scores);
        }
    int done = entries && scores;
    free(entries);
    free(scores);
    return done;
}

/* Row r reads the entries of its sentence: the first counts[sentence] of the places[sentence]. */
VISIBLE EVERY_PROCESSOR int attend_memory(
    float *out, const float *q, int64_t q_stride, const float *memory, const int32_t *sentence, const int32_t *places,
    const int32_t *counts, int64_t rows, int64_t most, int64_t stride, int64_t heads, int64_t width) {
    const float **entries = malloc((size_t)(most + 1) * sizeof *entries);
    float *scores = malloc((size_t)(most * heads + 1) * sizeof *scores);
    if (entries && scores)
        for (int64_t r = 0; r < rows; r++) {
            const int64_t mine = sentence[r], count = counts[mine];
            for (int64_t j = 0; j < count; j++) entries[j] = memory + (mine * most + places[mine * most + j]) * stride;
            attend(out + r * heads * width, q + r * q_stride, entries, count, heads, width, heads * width, scores);
        }
    int done = entries && scores;
    free(entries);
    free(scores);
    return done;
}

/* ---------------------------------------------------------------- around the products */

/* x + bias, and of that what is above `least`: 0 for ReLU, -infinity for all. */
VISIBLE EVERY_PROCESSOR void shift(float *x, const float *bias, int64_t rows, int64_t width, float least) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < width; i++) {
            const float sum = x[r * width + i] + bias[i];
            x[r * width + i] = sum > least ? sum : least;
        }
}

/* x + bias, written over x, and its layer norm; `out` may be x. */
VISIBLE EVERY_PROCESSOR void norm(
    float *out, float *x, const float *bias, const float *gain, const float *offset, int64_t rows, int64_t width,
    float epsilon) {
    for (int64_t r = 0; r < rows; r++) {
        float *row = x + r * width, *to = out + r * width, mean = 0.0f, square = 0.0f;
        for (int64_t i = 0; i < width; i++) {
            row[i] += bias[i];
            mean += row[i];
        }
        mean /= (float)width;
        for (int64_t i = 0; i < width; i++) square += (row[i] - mean) * (row[i] - mean);
        const float scale = 1.0f / sqrtf(square / (float)width + epsilon);
        for (int64_t i = 0; i < width; i++) to[i] = (row[i] - mean) * scale * gain[i] + offset[i];
    }
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
VISIBLE EVERY_PROCESSOR void best(
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
