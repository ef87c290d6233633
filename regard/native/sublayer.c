/* What a sub-layer of a Transformer does around its products while training: the norm before it, the bias and the
activation inside, the bias and the sum after it; forwards and backwards, in one pass each. */

#include "native.h"

/* out = gain (x - mean) / sqrt(variance + epsilon) + shift, row by row. kept: the mean and the factor of each row. */
VISIBLE EVERY_PROCESSOR void normalise(
    float *restrict out, float *restrict kept, const float *restrict x, const float *restrict gain,
    const float *restrict shift, int64_t rows, int64_t width, float epsilon) {
    for (int64_t r = 0; r < rows; r++, x += width, out += width) {
        float sum = 0.0f, squares = 0.0f;
        for (int64_t i = 0; i < width; i++) sum += x[i];
        const float mean = sum / (float)width;
        for (int64_t i = 0; i < width; i++) squares += (x[i] - mean) * (x[i] - mean);
        const float factor = 1.0f / sqrtf(squares / (float)width + epsilon);
        for (int64_t i = 0; i < width; i++) out[i] = gain[i] * (x[i] - mean) * factor + shift[i];
        kept[2 * r] = mean;
        kept[2 * r + 1] = factor;
    }
}

/* Gradients of `normalise`, given that of its result, g: dx = past + factor (h - mean(h) - u mean(h u)), with h = gain g
and u the normal numbers before gain and shift; those of gain and shift, sum(g u) and sum(g), are added to theirs. */
VISIBLE EVERY_PROCESSOR void normalise_back(
    float *restrict dx, float *restrict dgain, float *restrict dshift, const float *restrict past,
    const float *restrict g, const float *restrict x, const float *restrict kept, const float *restrict gain,
    int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++, x += width, g += width, past += width, dx += width) {
        const float mean = kept[2 * r], factor = kept[2 * r + 1];
        float sum = 0.0f, along = 0.0f;
        for (int64_t i = 0; i < width; i++) {
            const float u = (x[i] - mean) * factor, h = gain[i] * g[i];
            sum += h;
            along += h * u;
            dgain[i] += g[i] * u;
            dshift[i] += g[i];
        }
        sum /= (float)width;
        along /= (float)width;
        for (int64_t i = 0; i < width; i++)
            dx[i] = past[i] + factor * (gain[i] * g[i] - sum - (x[i] - mean) * factor * along);
    }
}

/* x becomes gelu(x + bias), and `slope` the derivative there. */
VISIBLE EVERY_PROCESSOR void bend(
    float *restrict x, float *restrict slope, const float *restrict bias, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++, x += width, slope += width) {
        if (bias)
            for (int64_t i = 0; i < width; i++) x[i] = gelu_of(x[i] + bias[i], slope + i);
        else
            for (int64_t i = 0; i < width; i++) x[i] = gelu_of(x[i], slope + i);
    }
}

/* g becomes g * slope; its sum over the rows is added to `sums`. */
VISIBLE EVERY_PROCESSOR void bend_back(
    float *restrict g, float *restrict sums, const float *restrict slope, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++, g += width, slope += width)
        for (int64_t i = 0; i < width; i++) {
            g[i] *= slope[i];
            sums[i] += g[i];
        }
}

/* y becomes z + (y + bias) * scale where the byte is at least `threshold`, z elsewhere; all are kept without bytes. */
VISIBLE EVERY_PROCESSOR void join(
    float *restrict y, const float *restrict z, const float *restrict bias, const uint8_t *restrict bytes, int64_t rows,
    int64_t width, int32_t threshold, float scale) {
    for (int64_t r = 0; r < rows; r++, y += width, z += width) {
        if (bias)
            for (int64_t i = 0; i < width; i++) y[i] += bias[i];
        if (bytes)
            for (int64_t i = 0; i < width; i++) y[i] *= bytes[r * width + i] >= threshold ? scale : 0.0f;
        for (int64_t i = 0; i < width; i++) y[i] += z[i];
    }
}

/* The sum of x over its rows is added to `sums`. */
VISIBLE EVERY_PROCESSOR void sum_rows(float *restrict sums, const float *restrict x, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++, x += width)
        for (int64_t i = 0; i < width; i++) sums[i] += x[i];
}
