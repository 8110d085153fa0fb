#include "planner/rulesets/vllm/promote_local.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/exact.h"
#include "planner/rulesets/vllm/merge_layers.h"
#include "planner/rulesets/vllm/same_type.h"

namespace kvasir::vllm {
namespace {

constexpr char kOneTypeLine[] =
    "Hybrid KV cache manager is disabled for this hybrid model: local attention keeps its cache for all "
    "tokens";
constexpr char kFallbackLine[] =
    "KV cache page sizes cannot be unified; sliding-window layers are allocated as full attention";

EngineResult<bool> IsUniformOrSameType(const SpecTable& table, const LayerSpecs& layers,
                                       GroupingNotes& notes) {
  KVASIR_ASSIGN_OR_RETURN(const bool uniform, IsSpecUniform(table, layers, &notes));
  if (uniform) return true;
  return IsSameType(table, layers);
}

template <class Test>
bool AnyKind(const SpecTable& table, const LayerSpecs& layers, Test test) {
  return std::any_of(layers.begin(), layers.end(),
                     [&](const auto& member) { return test(table[member.spec].kind); });
}

// The full layers' block size if they share one.
std::optional<std::int64_t> FullBlockSize(const SpecTable& table, const LayerSpecs& layers) {
  std::optional<std::int64_t> size;
  for (const UniformTypeSpecs::Member& member : layers) {
    const EngineSpec& spec = table[member.spec];
    if (!IsFullKind(spec.kind)) continue;
    if (size.has_value() && *size != spec.block_size) return std::nullopt;
    size = spec.block_size;
  }
  return size;
}

// The old padding, or the page scaled to the new block if that is larger.
EngineResult<std::optional<std::int64_t>> PromotedPadding(const EngineSpec& spec, std::int64_t block_size) {
  if (!spec.page_size_padded.has_value()) return std::optional<std::int64_t>();
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, UnpaddedPageBytes(spec));
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t scaled, Exact(Wide{page} * block_size / spec.block_size));
  return std::optional<std::int64_t>(std::max(*spec.page_size_padded, scaled));
}

// Every field that the target class has is copied; a sliding latent spec becomes a latent one.
EngineSpec Rebuilt(EngineSpec spec) {
  spec.kind = spec.kind == SpecKind::kSlidingMla ? SpecKind::kMla : SpecKind::kFull;
  spec.extra_retained_tokens = 0;
  spec.bounded_replay = false;
  return spec;
}

EngineResult<std::int32_t> Promoted(SpecTable& table, std::int32_t id,
                                    std::optional<std::int64_t> full_block) {
  const EngineSpec& spec = table[id];
  if (!IsSlidingKind(spec.kind) && spec.kind != SpecKind::kChunkedLocal) return id;
  const std::int64_t block_size = full_block.value_or(spec.block_size);
  KVASIR_ASSIGN_OR_RETURN(const std::optional<std::int64_t> padding, PromotedPadding(spec, block_size));
  const bool defect = table.version() == EngineVersion::k2026_11 && !table.repaired();
  if (defect && spec.kind == SpecKind::kSlidingMla) {
    return PlanFailure(
        EngineErrorKind::kTypeError,
        "a sliding_mla spec cannot become mla: mla has no bounded_replay; leave the hybrid manager on");
  }
  EngineSpec promoted = Rebuilt(spec);
  promoted.block_size = block_size;
  promoted.page_size_padded = padding;
  KVASIR_ASSIGN_OR_RETURN(promoted, Constructed(table.version(), std::move(promoted)));
  return table.Intern(std::move(promoted));
}

}  // namespace

EngineResult<LayerSpecs> PromoteLocal(SpecTable& table, const LayerSpecs& layers, GroupingNotes& notes) {
  KVASIR_ASSIGN_OR_RETURN(const bool already, IsUniformOrSameType(table, layers, notes));
  if (already) return layers;
  LayerSpecs promoted = layers;
  const bool local = AnyKind(
      table, layers, [](SpecKind kind) { return IsSlidingKind(kind) || kind == SpecKind::kChunkedLocal; });
  if (local && AnyKind(table, layers, IsFullKind)) {
    const std::optional<std::int64_t> full_block = FullBlockSize(table, layers);
    for (UniformTypeSpecs::Member& member : promoted) {
      KVASIR_ASSIGN_OR_RETURN(member.spec, Promoted(table, member.spec, full_block));
    }
  }
  KVASIR_ASSIGN_OR_RETURN(const bool one_type, IsUniformOrSameType(table, promoted, notes));
  if (!one_type) {
    return PlanFailure(EngineErrorKind::kValueError,
                       "the layers cannot be planned as one type of cache; leave the hybrid manager on");
  }
  return promoted;
}

EngineResult<LayerSpecs> PromoteToOneType(SpecTable& table, const LayerSpecs& layers, GroupingNotes& notes) {
  if (layers.empty()) return layers;
  if (table.version() == EngineVersion::k2026_08) {
    KVASIR_ASSIGN_OR_RETURN(const bool already, IsUniformOrSameType(table, layers, notes));
    if (already) return layers;
    notes.log.emplace_back(kOneTypeLine);
    return PromoteLocal(table, layers, notes);
  }
  const auto replicated = [&](std::int32_t spec) {
    return IsAttentionKind(table[spec].kind) && !table[spec].dcp_sharded;
  };
  const bool first = replicated(layers.front().spec);
  LayerSpecs result = layers;
  for (const bool side : {first, !first}) {  // in order of first appearance
    LayerSpecs part;
    for (const UniformTypeSpecs::Member& member : layers) {
      if (replicated(member.spec) == side) part.push_back(member);
    }
    if (part.empty()) continue;
    KVASIR_ASSIGN_OR_RETURN(const LayerSpecs promoted, PromoteLocal(table, part, notes));
    if (promoted == part) continue;
    notes.log.emplace_back(kOneTypeLine);
    auto next = promoted.begin();
    for (UniformTypeSpecs::Member& member : result) {
      if (next != promoted.end() && next->layer == member.layer) member.spec = (next++)->spec;
    }
  }
  return result;
}

EngineResult<std::optional<std::vector<EngineGroup>>> FullAllocationGroups(SpecTable& table,
                                                                           const LayerSpecs& layers,
                                                                           GroupingNotes& notes) {
  const std::optional<std::vector<EngineGroup>> none;
  const bool excluded = AnyKind(table, layers, [](SpecKind kind) {
    return kind == SpecKind::kHiddenState || kind == SpecKind::kSlidingMla || kind == SpecKind::kChunkedLocal;
  });
  if (excluded || !AnyKind(table, layers, IsMlaKind) || !AnyKind(table, layers, IsSlidingKind)) return none;
  EngineResult<LayerSpecs> promoted = PromoteLocal(table, layers, notes);
  if (!promoted.ok()) {
    if (promoted.failure().kind == EngineErrorKind::kValueError) return none;
    return std::move(promoted).failure();
  }
  KVASIR_ASSIGN_OR_RETURN(std::optional<UniformTypeSpecs> wrapper, WrapSameType(table, *promoted));
  if (!wrapper.has_value()) return none;
  notes.log.emplace_back(kFallbackLine);
  std::vector<EngineGroup> groups(1);
  for (const UniformTypeSpecs::Member& member : *promoted) groups[0].layers.push_back(member.layer);
  groups[0].spec = *std::move(wrapper);
  return std::optional<std::vector<EngineGroup>>(std::move(groups));
}

}  // namespace kvasir::vllm
