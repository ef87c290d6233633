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

/* Each pair of the first `vectors` vectors of a row turned by the angle of its position, the others copied; `out` may be
x. Row r is position r mod `positions`; `sense` is 1, or -1 to turn back. */
VISIBLE EVERY_PROCESSOR void turn_rows(
    float *out, const float *x, const float *angles, int64_t rows, int64_t positions, int64_t stride, int64_t vectors,
    int64_t width, float sense) {
    for (int64_t r = 0; r < rows; r++) {
        const float *angle = angles + r % positions * width;
        for (int64_t v = 0; v < vectors; v++) {
            const float *from = x + r * stride + v * width;
            float *to = out + r * stride + v * width;
            for (int64_t i = 0; i + 1 < width; i += 2) {
                const float even = from[i], odd = from[i + 1], sine = sense * angle[i], cosine = angle[i + 1];
                to[i] = even * cosine - odd * sine;
                to[i + 1] = even * sine + odd * cosine;
            }
        }
        if (out != x)
            memcpy(out + r * stride + vectors * width, x + r * stride + vectors * width,
                   (size_t)(stride - vectors * width) * sizeof *x);
    }
}
