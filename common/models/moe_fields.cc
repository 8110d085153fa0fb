#include "common/models/moe_fields.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/models/config_fields.h"

namespace kvasir {

MlpShape ReadDense(const ConfigObject& config, std::string_view field) {
  MlpShape mlp;
  mlp.intermediate = config.Int(field, kDimRange);
  return mlp;
}

MlpShape ReadExperts(const ConfigObject& config, const ExpertFields& fields) {
  const auto optional = [&config](std::string_view field) {
    return field.empty() ? 0 : config.IntOr(field, kDimOrNoneRange, 0);
  };
  MlpShape mlp;
  mlp.experts = config.Int(fields.experts, kDimRange);
  mlp.experts_per_token = config.Int(fields.per_token, {1, mlp.experts});
  mlp.shared_experts = optional(fields.shared);
  mlp.expert_intermediate = config.Int(fields.intermediate, kDimRange);
  const std::int64_t together = optional(fields.shared_intermediate);
  if (together > 0 && mlp.shared_experts == 0) mlp.shared_experts = 1;
  if (together != mlp.shared_experts * mlp.expert_intermediate) mlp.shared_intermediate = together;
  mlp.latent = optional(fields.latent);
  return mlp;
}

ExpertScoring ScoringOf(std::string_view word) {
  if (word == "softmax") return ExpertScoring::kSoftmax;
  return word == "sigmoid" ? ExpertScoring::kSigmoid : ExpertScoring::kUnstated;
}

bool HasExperts(const ConfigObject& config, const ExpertFields& fields) {
  return config.IntOr(fields.experts, kDimOrNoneRange, 0) > 0;
}

LayerMlps ReadMlpsOf(const ConfigObject& config, const ExpertFields& fields, std::vector<bool> sparse,
                     std::string_view dense_field) {
  LayerMlps mlps;
  const auto count = std::count(sparse.begin(), sparse.end(), true);
  if (count > 0) mlps.experts = ReadExperts(config, fields);
  if (static_cast<std::size_t>(count) < sparse.size()) mlps.dense = ReadDense(config, dense_field);
  mlps.sparse = std::move(sparse);
  return mlps;
}

LayerMlps ReadMlps(const ConfigObject& config, const ExpertFields& fields, std::int64_t layers,
                   std::string_view dense_field) {
  std::vector<bool> sparse(static_cast<std::size_t>(layers), false);
  if (!HasExperts(config, fields)) return ReadMlpsOf(config, fields, std::move(sparse), dense_field);
  if (config.IsList("moe_layer_freq")) {
    const std::vector<std::int64_t> freq = config.IntList("moe_layer_freq", {0, 1});
    if (freq.size() != sparse.size()) {
      config.Fail(ConfigFault::kContradiction, "moe_layer_freq",
                  absl::StrFormat("expected num_hidden_layers = %d entries", layers));
    }
    for (std::size_t i = 0; i < std::min(freq.size(), sparse.size()); ++i) sparse[i] = freq[i] == 1;
    return ReadMlpsOf(config, fields, std::move(sparse), dense_field);
  }
  const std::int64_t first = config.IntOr("first_k_dense_replace", {0, kLayersMax}, 0);
  const std::int64_t every = config.IntOr("moe_layer_freq", {1, kLayersMax}, 1);
  for (std::int64_t i = first; i < layers; ++i) sparse[static_cast<std::size_t>(i)] = i % every == 0;
  return ReadMlpsOf(config, fields, std::move(sparse), dense_field);
}

}  // namespace kvasir
