// Llama-4: local attention in chunks; layers without a rotary embedding (every fourth, unless no_rope_layers
// says otherwise) see everything. Experts stand in every interleave_moe_layer_step-th layer, beside one
// shared expert.
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/adapters.h"
#include "common/models/config_fields.h"
#include "common/models/moe_fields.h"

namespace kvasir {
namespace {

constexpr std::int64_t kNoRopeInterval = 4;
constexpr std::int64_t kChunk = 8192;

// 1 where a layer has a rotary embedding, by layer.
std::vector<std::int64_t> ReadRotated(const ConfigObject& config, std::int64_t layers) {
  std::vector<std::int64_t> rotated;
  if (config.Has("no_rope_layers")) rotated = config.IntList("no_rope_layers", {0, 1});
  if (rotated.empty()) {
    const std::int64_t every = config.IntOr("no_rope_layer_interval", {1, kLayersMax}, kNoRopeInterval);
    for (std::int64_t i = 0; i < layers; ++i) rotated.push_back((i + 1) % every != 0 ? 1 : 0);
  }
  if (rotated.size() != static_cast<std::size_t>(layers)) {
    config.Fail(ConfigFault::kContradiction, "no_rope_layers",
                absl::StrFormat("expected num_hidden_layers = %d entries, or none", layers));
    rotated.resize(static_cast<std::size_t>(layers), 1);
  }
  return rotated;
}

}  // namespace

void ReadLlama4(const ConfigObject& config, ModelDescription& model) {
  ReadModelFields(config, {.vocab = 202048}, model);
  model.rope = ReadRope(config);
  AttentionShape attention = ReadAttention(config, model.hidden);
  const std::int64_t chunk = config.IntOr("attention_chunk_size", kTokensRange, kChunk);
  const std::int64_t layers = ReadLayerCount(config);
  const std::int64_t step = config.IntOr("interleave_moe_layer_step", {1, kLayersMax}, 1);
  std::vector<bool> sparse(static_cast<std::size_t>(layers), false);
  for (std::int64_t i = step - 1; i < layers; i += step) sparse[static_cast<std::size_t>(i)] = true;
  const LayerMlps mlps = ReadMlpsOf(config,
                                    {.experts = "num_local_experts",
                                     .shared = "",
                                     .intermediate = "intermediate_size",
                                     .shared_intermediate = "intermediate_size"},
                                    std::move(sparse), "intermediate_size_mlp");
  const std::vector<std::int64_t> rotated = ReadRotated(config, layers);
  for (std::int64_t i = 0; i < layers; ++i) {
    attention.chunk = rotated[static_cast<std::size_t>(i)] == 1 ? chunk : 0;
    AddLayer(attention, mlps.At(i), model.layers);
  }
}

}  // namespace kvasir
