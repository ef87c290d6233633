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
