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
STATIC_INLINE int read_past(
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
STATIC_INLINE int read_memory(
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

VISIBLE EVERY_PROCESSOR int attend_past(
    float *out, const float *q, int64_t q_stride, const float *const *steps, const int32_t *origin, int64_t rows,
    int64_t length, int64_t stride, int64_t heads, int64_t width) {
    return read_past(out, q, q_stride, steps, origin, rows, length, stride, heads, width);
}

VISIBLE EVERY_PROCESSOR int attend_memory(
    float *out, const float *q, int64_t q_stride, const float *memory, const int32_t *sentence, const int32_t *places,
    const int32_t *counts, int64_t rows, int64_t most, int64_t stride, int64_t heads, int64_t width) {
    return read_memory(out, q, q_stride, memory, sentence, places, counts, rows, most, stride, heads, width);
}

/* ---------------------------------------------------------------- around the products */

/* x + bias, and of that what is above `least`: 0 for ReLU, -infinity for all. */
STATIC_INLINE void add_bias(float *x, const float *bias, int64_t rows, int64_t width, float least) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < width; i++) {
            const float sum = x[r * width + i] + bias[i];
            x[r * width + i] = sum > least ? sum : least;
        }
}

VISIBLE EVERY_PROCESSOR void shift(float *x, const float *bias, int64_t rows, int64_t width, float least) {
    add_bias(x, bias, rows, width, least);
}

/* x + bias, written over x, and its layer norm; `out` may be x. */
STATIC_INLINE void add_norm(
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

VISIBLE EVERY_PROCESSOR void norm(
    float *out, float *x, const float *bias, const float *gain, const float *offset, int64_t rows, int64_t width,
    float epsilon) {
    add_norm(out, x, bias, gain, offset, rows, width, epsilon);
}

/* ---------------------------------------------------------------- a whole step of few rows
Each weight is read once, whatever is done with it: for few rows that takes all the time, and calls would add to it. */

/* out + x W, written over out, with W of d rows. Four rows of W at a time, so that `out` is seldom read and written. */
STATIC_INLINE void add_product(
    float *restrict out, const float *restrict x, const float *restrict weight, int64_t rows, int64_t d, int64_t e) {
    int64_t i = 0;
    for (; i + 4 <= d; i += 4) {
        const float *w = weight + i * e;
        for (int64_t r = 0; r < rows; r++) {
            const float a = x[r * d + i], b = x[r * d + i + 1], c = x[r * d + i + 2], f = x[r * d + i + 3];
            float *to = out + r * e;
            for (int64_t j = 0; j < e; j++) to[j] += a * w[j] + b * w[e + j] + c * w[2 * e + j] + f * w[3 * e + j];
        }
    }
    for (; i < d; i++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < e; j++) out[r * e + j] += x[r * d + i] * weight[i * e + j];
}

STATIC_INLINE void product(
    float *restrict out, const float *restrict x, const float *restrict weight, const float *restrict bias, int64_t rows,
    int64_t d, int64_t e, float least) {
    memset(out, 0, (size_t)(rows * e) * sizeof *out);
    add_product(out, x, weight, rows, d, e);
    add_bias(out, bias, rows, e, least);
}

/* The weights of a layer, in the order in which they are met. */
enum { PACKED, PACKED_BIAS, JOINT_1, QUERY = JOINT_1 + 4, QUERY_BIAS, JOINT_2, INNER = JOINT_2 + 4, INNER_BIAS, JOINT_3,
       WEIGHTS = JOINT_3 + 4 };

/* The stream x gains found W + bias; y becomes its norm, and so does x where norms end a sub-layer (`post`). */
STATIC_INLINE void join(
    float *x, float *y, const float *found, const float *const *joint, int64_t rows, int64_t e, int64_t d, int post,
    float epsilon) {
    add_product(x, found, joint[0], rows, e, d);
    add_norm(y, x, joint[1], joint[2], joint[3], rows, d, epsilon);
    if (post) memcpy(x, y, (size_t)(rows * d) * sizeof *x);
}

/* One token through all layers: y holds what the first layer reads and receives what the last one gives.

steps[layer, t] are the keys of step t; those of this step, the last, lie in packed[layer], which is filled here. */
VISIBLE EVERY_PROCESSOR int decode(
    float *x, float *y, float *packed, const float *const *weights, const float *const *steps, const int32_t *origin,
    const float *const *memory, const int32_t *sentence, const int32_t *places, const int32_t *counts,
    const float *angles, int64_t layers, int64_t rows, int64_t d, int64_t inner, int64_t heads, int64_t width,
    int64_t length, int64_t most, int32_t post, float epsilon) {
    const int64_t all = heads * width;
    float *found = malloc((size_t)(rows * (2 * all + inner)) * sizeof *found);
    int done = found != NULL;
    for (int64_t l = 0; l < layers && done; l++) {
        const float *const *w = weights + l * WEIGHTS;
        float *own = packed + l * rows * 3 * all, *q = found + rows * all, *hidden = q + rows * all;
        product(own, y, w[PACKED], w[PACKED_BIAS], rows, d, 3 * all, -INFINITY);
        if (angles) turn_each(own, own, angles, rows, 1, 3 * all, 2 * heads, width, 1.0f);
        done = read_past(found, own, 3 * all, steps + l * length, origin, rows, length, 3 * all, heads, width);
        join(x, y, found, w + JOINT_1, rows, all, d, post, epsilon);
        product(q, y, w[QUERY], w[QUERY_BIAS], rows, d, all, -INFINITY);
        done = done &&
               read_memory(found, q, all, memory[l], sentence, places, counts, rows, most, 2 * all, heads, width);
        join(x, y, found, w + JOINT_2, rows, all, d, post, epsilon);
        product(hidden, y, w[INNER], w[INNER_BIAS], rows, d, inner, 0.0f);
        join(x, y, hidden, w + JOINT_3, rows, inner, d, post, epsilon);
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
