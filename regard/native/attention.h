/* Attention over short sequences, a head at a time. */

#ifndef REGARD_ATTENTION
#define REGARD_ATTENTION

#include "native.h"

#define NARROW 16 /* keys: rows of pairs are as long as a multiple of it */

/* How far apart sentences, heads and places lie; the `width` numbers of one place have no gap. */
typedef struct {
    int64_t sentence, head, place;
} layout;

/* softmax(q.k / sqrt(width)) v. Output (n, t, h, e) and weights (n, h, t, pitch), `keys` rounded up to a multiple of
NARROW. places: of q, k, v. `mask` (n, s) or none: 0 hides a key. Returns 0 where memory is lacking. */
VISIBLE int attend_forwards(
    float *out, float *weights, const float *q, const float *k, const float *v, const layout *places,
    const uint8_t *mask, int64_t causal, int64_t sentences, int64_t heads, int64_t queries, int64_t keys,
    int64_t width);

/* Gradients of q, k, v. places: of q, k, v, of the output's gradient g, and of the results dq, dk, dv. */
VISIBLE int attend_backwards(
    float *dq, float *dk, float *dv, const float *g, const float *weights, const float *q, const float *k,
    const float *v, const layout *places, int64_t causal, int64_t sentences, int64_t heads, int64_t queries,
    int64_t keys, int64_t width);

#endif
