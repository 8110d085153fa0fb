#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/exact.h"
#include "planner/rulesets/vllm/layer_tuples.h"
#include "planner/rulesets/vllm/merge_specs.h"
#include "planner/rulesets/vllm/same_type.h"
#include "planner/rulesets/vllm/shared_slots.h"
#include "planner/rulesets/vllm/stage_layers.h"
#include "planner/rulesets/vllm/unify_pages.h"

namespace kvasir::vllm {
namespace {

using MaybeGroups = std::optional<std::vector<EngineGroup>>;

struct Parts {
  LayerSpecs mamba = {};
  LayerSpecs tails = {};
  LayerSpecs latent = {};  // everything else
};

Parts PartsOf(const SpecTable& table, const LayerSpecs& layers) {
  Parts parts;
  for (const UniformTypeSpecs::Member& member : layers) {
    const SpecKind kind = table[member.spec].kind;
    LayerSpecs& part = kind == SpecKind::kMamba       ? parts.mamba
                       : kind == SpecKind::kKpoolTail ? parts.tails
                                                      : parts.latent;
    part.push_back(member);
  }
  return parts;
}

template <class Keep>
LayerSpecs Filtered(const SpecTable& table, const LayerSpecs& layers, Keep keep) {
  LayerSpecs kept;
  for (const UniformTypeSpecs::Member& member : layers) {
    if (keep(table[member.spec])) kept.push_back(member);
  }
  return kept;
}

EngineFailure Shape(std::string message) {
  return PlanFailure(EngineErrorKind::kAssertionError, std::move(message));
}

// How many groups the mamba layers need so that on each stage they fit the mla layers' slots.
EngineResult<std::int64_t> MambaGroups(const LayerSpecs& mamba, const LayerSpecs& mla,
                                       const EngineConfig& config, const std::vector<EngineLayer>& names) {
  auto groups = CeilDiv(static_cast<std::int64_t>(mamba.size()), static_cast<std::int64_t>(mla.size()));
  if (config.pp == 1) return groups;
  const auto indices = [&](const LayerSpecs& layers) -> EngineResult<std::vector<std::int64_t>> {
    std::vector<std::int64_t> found;
    for (const UniformTypeSpecs::Member& member : layers) {
      KVASIR_ASSIGN_OR_RETURN(const std::int64_t index,
                              LayerIndexOfName(names[static_cast<std::size_t>(member.layer)].name));
      found.push_back(index);
    }
    return found;
  };
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int64_t> mamba_at, indices(mamba));
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int64_t> mla_at, indices(mla));
  const std::int64_t last = std::max(*std::max_element(mamba_at.begin(), mamba_at.end()),
                                     *std::max_element(mla_at.begin(), mla_at.end()));
  const std::int64_t total = config.total_num_hidden_layers.value_or(last + 1);
  for (std::int64_t stage = 0; stage < config.pp; ++stage) {
    const StageRange range = LayersOfStage(total, stage, config.pp);
    const auto inside = [&](std::int64_t index) { return range.begin <= index && index < range.end; };
    const std::int64_t num_mamba = std::count_if(mamba_at.begin(), mamba_at.end(), inside);
    const std::int64_t num_mla = std::count_if(mla_at.begin(), mla_at.end(), inside);
    if (num_mamba == 0) continue;
    if (num_mla == 0) {
      return PlanFailure(
          EngineErrorKind::kValueError,
          absl::StrFormat("pipeline stage %d has mamba layers but no mla layer whose slots they "
                          "could use; move the stage boundaries",
                          stage));
    }
    groups = std::max(groups, CeilDiv(num_mamba, num_mla));
  }
  return groups;
}

EngineResult<EngineGroup> TailGroup(SpecTable& table, LayerSpecs tails, std::int64_t indexer_page) {
  for (UniformTypeSpecs::Member& member : tails) {
    KVASIR_ASSIGN_OR_RETURN(member.spec, table.WithPaddedPage(member.spec, indexer_page));
  }
  KVASIR_ASSIGN_OR_RETURN(std::optional<UniformTypeSpecs> wrapper, WrapSameType(table, tails));
  if (!wrapper.has_value()) return Shape("the tails are not of one type");
  EngineGroup group;
  for (const UniformTypeSpecs::Member& member : tails) group.layers.push_back(member.layer);
  group.spec = *std::move(wrapper);
  return group;
}

}  // namespace

EngineResult<MaybeGroups> GroupSharedSlots(SpecTable& table, const LayerSpecs& layers,
                                           const EngineConfig& config,
                                           const std::vector<EngineLayer>& names) {
  Parts parts = PartsOf(table, layers);
  if (parts.mamba.empty() || !std::all_of(parts.latent.begin(), parts.latent.end(), [&](const auto& member) {
        return table[member.spec].kind == SpecKind::kMla;
      })) {
    return MaybeGroups();
  }
  const LayerSpecs indexers = Filtered(table, parts.latent, Compresses);
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int64_t> indexer_pages, PageSizes(table, indexers));
  if (indexer_pages.empty()) return MaybeGroups();
  for (const UniformTypeSpecs::Member& member : parts.latent) {
    if (table[member.spec].page_size_padded.has_value()) return Shape("an mla page is padded");
  }
  if (indexer_pages.size() != 1) return Shape("the indexers' pages differ");
  const LayerSpecs mla = Filtered(table, parts.latent, KeepsEach);
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int64_t> mla_pages, PageSizes(table, mla));
  if (mla_pages.size() != 1) return Shape("the mla pages are missing or differ");

  KVASIR_ASSIGN_OR_RETURN(std::optional<UniformTypeSpecs> latent, WrapSameType(table, parts.latent));
  if (!latent.has_value()) return Shape("the mla layers and the indexers are not of one type");
  std::vector<EngineGroup> groups(1);
  for (const UniformTypeSpecs::Member& member : parts.latent) groups[0].layers.push_back(member.layer);
  groups[0].spec = *std::move(latent);
  if (!parts.tails.empty()) {
    KVASIR_ASSIGN_OR_RETURN(EngineGroup tails, TailGroup(table, parts.tails, indexer_pages.front()));
    groups.push_back(std::move(tails));
  }

  const std::int32_t state = parts.mamba.front().spec;
  if (DistinctSpecs(parts.mamba).size() != 1) return Shape("the mamba layers differ");
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t state_bytes, UnpaddedPageBytes(table[state]));
  if (state_bytes > mla_pages.front()) {
    return PlanFailure(
        EngineErrorKind::kValueError,
        absl::StrFormat("the mamba state of %d bytes does not fit the mla page of %d; raise tensor "
                        "parallelism or widen the cache's dtype",
                        state_bytes, mla_pages.front()));
  }
  KVASIR_ASSIGN_OR_RETURN(const std::int32_t padded, table.WithPaddedPage(state, mla_pages.front()));
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t count, MambaGroups(parts.mamba, mla, config, names));
  const std::size_t first = groups.size();
  groups.resize(first + static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < parts.mamba.size(); ++i) {
    EngineGroup& group = groups[first + i % static_cast<std::size_t>(count)];
    group.layers.push_back(parts.mamba[i].layer);
    group.spec = padded;
  }
  return MaybeGroups(std::move(groups));
}

}  // namespace kvasir::vllm
