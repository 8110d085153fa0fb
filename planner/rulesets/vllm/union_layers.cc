#include "planner/rulesets/vllm/union_layers.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace kvasir::vllm {
namespace {

std::int64_t ExtraRetainedTokens(EngineVersion version, const EngineConfig& config) {
  if (version == EngineVersion::k2026_11 && config.num_prefill_lookahead_tokens.has_value()) {
    return std::max<std::int64_t>(0, *config.num_prefill_lookahead_tokens - 1);
  }
  if (!config.speculative.has_value() || config.speculative->method != "mtp") return 0;
  const EngineSpeculative& speculative = *config.speculative;
  const bool several_modules =
      std::min(speculative.num_nextn_predict_layers, speculative.num_speculative_tokens) > 1;
  return several_modules ? speculative.num_speculative_tokens - 1 : 0;
}

}  // namespace

EngineResult<std::vector<std::int32_t>> InternSpecs(SpecTable& table, const EngineCase& engine_case) {
  std::vector<std::int32_t> ids;
  ids.reserve(engine_case.specs.size());
  for (const EngineSpec& spec : engine_case.specs) {
    KVASIR_ASSIGN_OR_RETURN(EngineSpec constructed, Constructed(table.version(), spec));
    ids.push_back(table.Intern(std::move(constructed)));
  }
  return ids;
}

std::vector<LayerSpecs> LayersOfWorkers(const EngineCase& engine_case,
                                        const std::vector<std::int32_t>& specs) {
  std::vector<LayerSpecs> workers;
  workers.reserve(engine_case.workers.size());
  for (const EngineWorker& worker : engine_case.workers) {
    std::vector<std::int32_t> spec_of;  // by layer, as this worker sees it
    spec_of.reserve(engine_case.layers.size());
    for (const EngineLayer& layer : engine_case.layers) spec_of.push_back(layer.spec);
    for (const EngineOverride& change : worker.overrides) {
      spec_of[static_cast<std::size_t>(change.layer)] = change.spec;
    }
    LayerSpecs layers;
    const auto add = [&](std::int32_t layer) {
      const auto spec = static_cast<std::size_t>(spec_of[static_cast<std::size_t>(layer)]);
      layers.push_back({layer, specs[spec]});
    };
    if (worker.layers.has_value()) {
      for (const std::int32_t layer : *worker.layers) add(layer);
    } else {
      for (std::size_t i = 0; i < spec_of.size(); ++i) add(static_cast<std::int32_t>(i));
    }
    workers.push_back(std::move(layers));
  }
  return workers;
}

UnionLayers UnionOfWorkers(const EngineCase& engine_case, const std::vector<LayerSpecs>& worker_layers) {
  std::vector<std::int32_t> spec_of(engine_case.layers.size(), -1);
  UnionLayers all;
  all.layers.reserve(engine_case.layers.size());
  for (const LayerSpecs& layers : worker_layers) {
    for (const UniformTypeSpecs::Member& member : layers) {
      std::int32_t& spec = spec_of[static_cast<std::size_t>(member.layer)];
      if (spec < 0) {
        spec = member.spec;
        all.layers.push_back(member);
      } else if (spec != member.spec && !all.conflict.has_value()) {
        all.conflict = PlanFailure(
            EngineErrorKind::kAssertionError,
            absl::StrFormat("workers give layer %s different specs; give every rank of a stage the same",
                            engine_case.layers[static_cast<std::size_t>(member.layer)].name));
      }
    }
  }
  return all;
}

std::optional<EngineFailure> PrepareForGrouping(SpecTable& table, const EngineCase& engine_case,
                                                LayerSpecs& layers) {
  for (const UniformTypeSpecs::Member& member : layers) {
    if (table[member.spec].kind != SpecKind::kEncoderOnly) continue;
    return PlanFailure(
        EngineErrorKind::kValueError,
        absl::StrFormat("layer %s: %s is not registered with the planner; an encoder-only layer has no cache",
                        engine_case.layers[static_cast<std::size_t>(member.layer)].name,
                        SpecClassName(SpecKind::kEncoderOnly)));
  }
  const std::int64_t extra = ExtraRetainedTokens(table.version(), engine_case.config);
  std::vector<std::int32_t> retained;  // by spec id; -1: not yet made
  for (UniformTypeSpecs::Member& member : layers) {
    if (!IsSlidingKind(table[member.spec].kind)) continue;
    const auto id = static_cast<std::size_t>(member.spec);
    if (id >= retained.size()) retained.resize(id + 1, -1);
    if (retained[id] < 0) {
      EngineSpec spec = table[member.spec];
      spec.extra_retained_tokens = extra;
      EngineResult<EngineSpec> constructed = Constructed(table.version(), std::move(spec));
      if (!constructed.ok()) return std::move(constructed).failure();
      retained[id] = table.Intern(*std::move(constructed));
    }
    member.spec = retained[id];
  }
  return std::nullopt;
}

}  // namespace kvasir::vllm
