/* What follows the gradients of a batch, for many tensors in one call: their sums, and one step of AdamW. */

#include "native.h"

enum { BLOCK = 4096 }; /* squares that are summed up as floats */

/* Two gradients of one tensor; the second may be missing. */
typedef struct {
    float *to;
    const float *of;
    int64_t count;
} pair;

/* Adds `count` numbers and returns the sum of the squares of what is there then. */
STATIC_INLINE float add(float *restrict to, const float *restrict of, int64_t count) {
    float squares = 0;
    if (of)
        for (int64_t i = 0; i < count; i++) to[i] += of[i];
    for (int64_t i = 0; i < count; i++) squares += to[i] * to[i];
    return squares;
}

/* to <- to + of for all of them; the sum of the squares of all that is there then. */
VISIBLE EVERY_PROCESSOR double gather(const pair *all, int64_t tensors) {
    double squares = 0;
    for (int64_t t = 0; t < tensors; t++)
        for (int64_t i = 0; i < all[t].count; i += BLOCK) {
            const int64_t count = all[t].count - i < BLOCK ? all[t].count - i : BLOCK;
            squares += add(all[t].to + i, all[t].of ? all[t].of + i : NULL, count);
        }
    return squares;
}

/* A tensor that learns: its numbers, their gradient, its mean and the mean of its square, how many they are, what decay
leaves of them, and what both means lack because they began with zero. */
typedef struct {
    float *weights, *mean, *square;
    const float *gradient;
    int64_t count;
    float left, mean_known, square_known;
} learner;

/* w <- left w - rate (m / mean_known) / (sqrt(s / square_known) + epsilon), where m and s have moved on towards g and g^2
for g = scale * gradient. Loshchilov & Hutter 2019, algorithm 2. */
VISIBLE EVERY_PROCESSOR void adamw(
    const learner *all, int64_t tensors, float scale, float rate, float beta1, float beta2, float epsilon) {
    for (int64_t t = 0; t < tensors; t++) {
        const learner l = all[t];
        float *restrict w = l.weights, *restrict m = l.mean, *restrict s = l.square;
        const float *restrict gradient = l.gradient;
        const float step = rate / l.mean_known, root = 1.0f / sqrtf(l.square_known);
        for (int64_t i = 0; i < l.count; i++) {
            const float g = scale * gradient[i];
            m[i] += (g - m[i]) * (1.0f - beta1);
            s[i] = beta2 * s[i] + (1.0f - beta2) * g * g;
            w[i] = l.left * w[i] - step * m[i] / (sqrtf(s[i]) * root + epsilon);
        }
    }
}
