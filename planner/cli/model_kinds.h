// The layers of a model by kind: how many have each shape of cache, and what that costs on one rank.
#ifndef KVASIR_PLANNER_CLI_MODEL_KINDS_H_
#define KVASIR_PLANNER_CLI_MODEL_KINDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/cache_facts.h"
#include "common/models/model_description.h"

namespace kvasir::cli {

struct LayerKind {
  MixerShape shape;
  std::vector<std::int32_t> layers;  // that have it, in order; a layer may have it twice
  CacheFacts facts;                  // of one of them
};

struct ModelKinds {
  std::vector<LayerKind> kinds;  // in the order of their first layer
  // Of all layers. A token's bytes are a fraction where a row stands for several tokens: over `token_stride`
  // tokens they are a whole number.
  std::int64_t bytes_per_stride = 0;
  std::int64_t token_stride = 1;
  std::int64_t bytes_per_sequence = 0;  // states, and windows once they are full
};

// InvalidArgument, with layer and kind, where `tp` ranks cannot share the heads.
[[nodiscard]] absl::StatusOr<ModelKinds> KindsOf(const ModelDescription& model, std::int64_t tp);

// "1152", "1010.5": bytes of one token.
[[nodiscard]] std::string BytesPerToken(const ModelKinds& kinds);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_MODEL_KINDS_H_
