/* What every file here shares. Plain C99 without Python's headers: any compiler will do, and ctypes calls the functions.

All numbers are float32, all rows follow each other without a gap unless a stride is named, and every call runs on one
thread. */

#ifndef REGARD_NATIVE
#define REGARD_NATIVE

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define VISIBLE __declspec(dllexport)
#define STATIC_INLINE static __forceinline
#else
#define STATIC_INLINE static inline __attribute__((always_inline))
#define VISIBLE __attribute__((visibility("default")))
#endif

#if defined(_MSC_VER)
#define THREAD_LOCAL __declspec(thread)
#else
#define THREAD_LOCAL __thread
#endif

/* One version for each kind of processor, chosen when the library is loaded. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define EVERY_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EVERY_PROCESSOR
#endif

/* e^x to the last bit or two, x cut to where it is a normal number: 2^n e^r, |r| <= log(2)/2, by the series of e^r. */
STATIC_INLINE float exponential(float x) {
    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    float n = floorf(x * 1.44269504f + 0.5f);
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float y = 1.0f / 720;
    y = y * r + 1.0f / 120;
    y = y * r + 1.0f / 24;
    y = y * r + 1.0f / 6;
    y = y * r + 0.5f;
    y = y * r + 1.0f;
    y = y * r + 1.0f;
    int32_t bits = ((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return y * power;
}

/* x F(x) and its derivative F(x) + x f(x), with F and f of the normal distribution: F by the fraction of Abramowitz &
Stegun 1964, 7.1.26, which is right to 1e-7. */
STATIC_INLINE float gelu_of(float x, float *restrict slope) {
    const float bell = exponential(-0.5f * x * x), t = 1.0f / (1.0f + 0.23164189f * fabsf(x));
    float tail = 1.061405429f;
    tail = tail * t - 1.453152027f;
    tail = tail * t + 1.421413741f;
    tail = tail * t - 0.284496736f;
    tail = tail * t + 0.254829592f;
    tail *= 0.5f * t * bell;
    const float below = x > 0.0f ? 1.0f - tail : tail;
    *slope = below + 0.39894228f * x * bell;
    return x * below;
}

/* Each pair of the first `vectors` vectors of a row turned by the angle of its position, the others copied; `out` may be
x. Row r is position r mod `positions`; `sense` is 1, or -1 to turn back. */
STATIC_INLINE void turn_each(
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

/* `turn_each`, compiled for every processor in training.c. */
VISIBLE void turn_rows(
    float *out, const float *x, const float *angles, int64_t rows, int64_t positions, int64_t stride, int64_t vectors,
    int64_t width, float sense);

#endif
