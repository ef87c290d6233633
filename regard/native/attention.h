/* Attention of attention.c, for the sub-layers around it. */

#include "native.h"

/* How far apart sentences, heads and places lie; the numbers of one place have no gap. */
typedef struct {
    int64_t sentence, head, place;
} layout;

VISIBLE int attend_forwards(
    float *out, float *weights, const float *q, const float *k, const float *v, const layout *places,
    const uint8_t *mask, int64_t causal, int64_t sentences, int64_t heads, int64_t queries, int64_t keys,
    int64_t width);

VISIBLE int attend_backwards(
    float *dq, float *dk, float *dv, const float *g, const float *weights, const float *q, const float *k,
    const float *v, const layout *places, int64_t causal, int64_t sentences, int64_t heads, int64_t queries,
    int64_t keys, int64_t width);
