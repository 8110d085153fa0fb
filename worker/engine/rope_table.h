// Rotary frequencies and the constants that come with them, from a model's Rope description.
//
// Plain RoPE: inv_freq[i] = theta^(-2i/dim). YaRN (arXiv 2309.00071, in the form of DeepSeek-V2's published
// modelling code): lanes that turn often within the original context keep their frequency, lanes that turn
// rarely are slowed by `factor`, with a linear ramp between; cosine and sine are scaled by
// m(mscale) / m(mscale_all_dim) and the softmax scale by m(mscale_all_dim)^2, m(s) = 0.1 s ln(factor) + 1.
#ifndef KVASIR_WORKER_ENGINE_ROPE_TABLE_H_
#define KVASIR_WORKER_ENGINE_ROPE_TABLE_H_

#include <cstdint>
#include <vector>

#include "common/models/model_description.h"

namespace kvasir {

// [dim / 2], for `dim` rotary lanes.
[[nodiscard]] std::vector<float> RopeFrequencies(const Rope& rope, std::int64_t dim);

// Scale of cosine and sine; 1 without YaRN.
[[nodiscard]] float RopeMagnitude(const Rope& rope);

// 1 / sqrt(nope_dim + rope_dim), times YaRN's factor where the layer rotates.
[[nodiscard]] float SoftmaxScale(const MlaShape& mla, const Rope& rope);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_ROPE_TABLE_H_
