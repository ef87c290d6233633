/* What training does between its matrix products, forwards and backwards, in one pass each. */

#include "native.h"

/* out = z + y * scale where the byte is at least `threshold`, z elsewhere. */
VISIBLE EVERY_PROCESSOR void drop_add(
    float *restrict out, const float *restrict z, const float *restrict y, const uint8_t *restrict bytes, int64_t count,
    int32_t threshold, float scale) {
    for (int64_t i = 0; i < count; i++) out[i] = z[i] + y[i] * (bytes[i] >= threshold ? scale : 0.0f);
}

/* out = y * scale where the byte is at least `threshold`, 0 elsewhere. */
VISIBLE EVERY_PROCESSOR void drop(
    float *restrict out, const float *restrict y, const uint8_t *restrict bytes, int64_t count, int32_t threshold,
    float scale) {
    for (int64_t i = 0; i < count; i++) out[i] = y[i] * (bytes[i] >= threshold ? scale : 0.0f);
}

/* y = x F(x) and its derivative, with F of the normal distribution. */
VISIBLE EVERY_PROCESSOR void gelu(
    float *restrict y, float *restrict slope, const float *restrict x, int64_t count) {
    for (int64_t i = 0; i < count; i++) y[i] = gelu_of(x[i], slope + i);
}

VISIBLE EVERY_PROCESSOR void turn_rows(
    float *out, const float *x, const float *angles, int64_t rows, int64_t positions, int64_t stride, int64_t vectors,
    int64_t width, float sense) {
    turn_each(out, x, angles, rows, positions, stride, vectors, width, sense);
}

#define LANES 16

static inline __attribute__((always_inline)) float largest(const float *row, int64_t width) {
    float lane[LANES], most = -INFINITY;
    for (int l = 0; l < LANES; l++) lane[l] = -INFINITY;
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] = row[i + l] > lane[l] ? row[i + l] : lane[l];
    for (; i < width; i++) most = row[i] > most ? row[i] : most;
    for (int l = 0; l < LANES; l++) most = lane[l] > most ? lane[l] : most;
    return most;
}

/* Logits become the gradients softmax - (1 - smoothing) onehot(target) - smoothing / width of the smoothed
cross-entropy, whose sum over the rows is the result. A row stays in the cache while it is gone through. */
VISIBLE EVERY_PROCESSOR double cross_entropy(
    float *x, const int64_t *targets, int64_t rows, int64_t width, float smoothing) {
    double loss = 0.0;
    for (int64_t r = 0; r < rows; r++) {
        float *row = x + r * width, sum = 0.0f, total = 0.0f;
        const float most = largest(row, width), hit = row[targets[r]] - most;
        for (int64_t i = 0; i < width; i++) {
            const float below = row[i] - most;
            row[i] = exponential(below);
            sum += below;
            total += row[i];
        }
        const float scale = 1.0f / total, share = smoothing / (float)width;
        for (int64_t i = 0; i < width; i++) row[i] = row[i] * scale - share;
        row[targets[r]] -= 1.0f - smoothing;
        loss += logf(total) - (1.0f - smoothing) * hit - share * sum;
    }
    return loss;
}

/* Rows of logits of two passes, x and y, become the gradients of half of both smoothed cross-entropies and
pull * (KL(p | q) + KL(q | p)), with p and q their softmax. found: that half, and the sum of the divergences.
apart: room for one row. With u = log p - log q, the gradient of the second part by x is
pull * (p (u - KL(p | q)) + p - q). */
VISIBLE EVERY_PROCESSOR void consistency(
    double *found, float *x, float *y, float *restrict apart, const int64_t *targets, int64_t rows, int64_t width,
    float smoothing, float pull) {
    const float share = smoothing / (float)width;
    found[0] = found[1] = 0.0;
    for (int64_t r = 0; r < rows; r++) {
        float *restrict p = x + r * width, *restrict q = y + r * width;
        const float most_p = largest(p, width), most_q = largest(q, width);
        const float hit = p[targets[r]] - most_p + q[targets[r]] - most_q;
        float sum = 0.0f, total_p = 0.0f, total_q = 0.0f, mean_p = 0.0f, mean_q = 0.0f;
        for (int64_t i = 0; i < width; i++) {
            const float below_p = p[i] - most_p, below_q = q[i] - most_q, difference = below_p - below_q;
            const float e_p = exponential(below_p), e_q = exponential(below_q);
            sum += below_p + below_q;
            total_p += e_p;
            total_q += e_q;
            mean_p += e_p * difference;
            mean_q += e_q * difference;
            p[i] = e_p;
            q[i] = e_q;
            apart[i] = difference;
        }
        const float log_p = logf(total_p), log_q = logf(total_q), shift = log_p - log_q;
        const float scale_p = 1.0f / total_p, scale_q = 1.0f / total_q;
        const float kl_p = mean_p * scale_p - shift, kl_q = shift - mean_q * scale_q;
        const float base_p = 0.5f + pull * (1.0f - kl_p - shift), base_q = 0.5f + pull * (1.0f - kl_q + shift);
        for (int64_t i = 0; i < width; i++) {
            const float a = p[i] * scale_p, b = q[i] * scale_q, u = pull * apart[i];
            p[i] = a * (base_p + u) - pull * b - 0.5f * share;
            q[i] = b * (base_q - u) - pull * a - 0.5f * share;
        }
        p[targets[r]] -= 0.5f * (1.0f - smoothing);
        q[targets[r]] -= 0.5f * (1.0f - smoothing);
        found[0] += 0.5f * (log_p + log_q - (1.0f - smoothing) * hit - share * sum);
        found[1] += kl_p + kl_q;
    }
}
