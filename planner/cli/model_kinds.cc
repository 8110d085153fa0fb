#include "planner/cli/model_kinds.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "planner/cli/quantity.h"

namespace kvasir::cli {
namespace {

absl::Status Add(const MixerShape& shape, std::int32_t layer, const ModelDescription& model, std::int64_t tp,
                 ModelKinds& out) {
  const auto same = std::find_if(out.kinds.begin(), out.kinds.end(),
                                 [&](const LayerKind& kind) { return kind.shape == shape; });
  if (same != out.kinds.end()) {
    same->layers.push_back(layer);
    return absl::OkStatus();
  }
  absl::StatusOr<CacheFacts> facts = CacheFactsOf(shape, model.dtype, tp);
  if (!facts.ok()) {
    return absl::InvalidArgumentError(absl::StrFormat("--tp: layer %d (%s): %s", layer, MixerKind(shape),
                                                      std::string(facts.status().message())));
  }
  out.kinds.push_back({shape, {layer}, *std::move(facts)});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelKinds> KindsOf(const ModelDescription& model, std::int64_t tp) {
  ModelKinds out;
  for (const ModelLayer& layer : model.layers) {
    if (absl::Status status = Add(layer.mixer, layer.index, model, tp, out); !status.ok()) return status;
    for (const MixerShape& extra : layer.extra) {
      if (absl::Status status = Add(extra, layer.index, model, tp, out); !status.ok()) return status;
    }
  }
  for (const LayerKind& kind : out.kinds) {
    if (kind.facts.grows()) out.token_stride = std::lcm(out.token_stride, kind.facts.tokens_per_row);
  }
  for (const LayerKind& kind : out.kinds) {
    const auto count = static_cast<std::int64_t>(kind.layers.size());
    if (kind.facts.grows()) {
      out.bytes_per_stride += count * kind.facts.row_bytes * (out.token_stride / kind.facts.tokens_per_row);
    } else {
      out.bytes_per_sequence += count * kind.facts.fixed_bytes();
    }
  }
  return out;
}

std::string BytesPerToken(const ModelKinds& kinds) {
  const std::int64_t whole = kinds.bytes_per_stride / kinds.token_stride;
  const std::int64_t rest = kinds.bytes_per_stride % kinds.token_stride;
  if (rest == 0) return Thousands(whole);
  return absl::StrFormat("%s + %d/%d", Thousands(whole), rest, kinds.token_stride);
}

}  // namespace kvasir::cli
