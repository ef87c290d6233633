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

VISIBLE EVERY_PROCESSOR void turn_rows(
    float *out, const float *x, const float *angles, int64_t rows, int64_t positions, int64_t stride, int64_t vectors,
    int64_t width, float sense) {
    turn_each(out, x, angles, rows, positions, stride, vectors, width, sense);
}

#define LANES 16

/* Logits become the gradients softmax - (1 - smoothing) onehot(target) - smoothing / width of the smoothed
cross-entropy, whose sum over the rows is the result. A row stays in the cache while it is gone through. */
VISIBLE EVERY_PROCESSOR double cross_entropy(
    float *x, const int64_t *targets, int64_t rows, int64_t width, float smoothing) {
    double loss = 0.0;
    for (int64_t r = 0; r < rows; r++) {
        float *row = x + r * width, lane[LANES], most = -INFINITY, sum = 0.0f, total = 0.0f;
        for (int l = 0; l < LANES; l++) lane[l] = -INFINITY;
        int64_t i = 0;
        for (; i + LANES <= width; i += LANES)
            for (int l = 0; l < LANES; l++) lane[l] = row[i + l] > lane[l] ? row[i + l] : lane[l];
        for (; i < width; i++) most = row[i] > most ? row[i] : most;
        for (int l = 0; l < LANES; l++) most = lane[l] > most ? lane[l] : most;
        const float hit = row[targets[r]] - most;
        for (i = 0; i < width; i++) {
            const float below = row[i] - most;
            row[i] = exponential(below);
            sum += below;
            total += row[i];
        }
        const float scale = 1.0f / total, share = smoothing / (float)width;
        for (i = 0; i < width; i++) row[i] = row[i] * scale - share;
        row[targets[r]] -= 1.0f - smoothing;
        loss += logf(total) - (1.0f - smoothing) * hit - share * sum;
    }
    return loss;
}
