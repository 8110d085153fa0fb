#include "planner/rulesets/vllm/unify_pages.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/exact.h"

namespace kvasir::vllm {
namespace {

bool MayPad(EngineVersion version, const EngineSpec& spec) {
  if (version == EngineVersion::k2026_08) return spec.indexes_kv_by_block_stride;
  return !IsMlaKind(spec.kind);
}

// The spec whose page is `largest`.
EngineResult<std::int32_t> Raised(SpecTable& table, std::int32_t id, std::int64_t largest,
                                  const std::string& name) {
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(id));
  if (page == largest) return id;
  if (table[id].kind == SpecKind::kMamba) return table.WithPaddedPage(id, largest);
  if (page == 0) {
    return PlanFailure(EngineErrorKind::kZeroDivisionError,
                       absl::StrFormat("layer %s has a page of 0 bytes; its block holds no state", name));
  }
  std::int32_t raised = id;
  if (largest % page == 0) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t tokens, Exact(Wide{table[id].block_size} * (largest / page)));
    KVASIR_ASSIGN_OR_RETURN(raised, table.WithBlockSize(id, tokens));
  } else if (MayPad(table.version(), table[id])) {
    KVASIR_ASSIGN_OR_RETURN(raised, table.WithPaddedPage(id, largest));
  } else {
    return PlanFailure(
        EngineErrorKind::kNotImplementedError,
        absl::StrFormat("layer %s has a page of %d bytes, which neither divides the largest of %d nor may be "
                        "padded; choose block sizes whose pages divide each other",
                        name, page, largest));
  }
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t reached, table.Page(raised));
  if (reached != largest) {
    return PlanFailure(EngineErrorKind::kAssertionError,
                       absl::StrFormat("layer %s reaches a page of %d bytes, not the largest of %d", name,
                                       reached, largest));
  }
  return raised;
}

}  // namespace

EngineResult<std::vector<std::int64_t>> PageSizes(const SpecTable& table, const LayerSpecs& layers) {
  std::vector<std::int64_t> sizes;
  for (const std::int32_t id : DistinctSpecs(layers)) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(id));
    sizes.push_back(page);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

EngineResult<LayerSpecs> UnifyPages(SpecTable& table, const LayerSpecs& layers,
                                    const std::vector<EngineLayer>& names) {
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int64_t> sizes, PageSizes(table, layers));
  if (sizes.size() <= 1) return layers;
  LayerSpecs unified;
  unified.reserve(layers.size());
  for (const UniformTypeSpecs::Member& member : layers) {
    // Layers of one spec lie in runs; each run asks once.
    if (!unified.empty() && layers[unified.size() - 1].spec == member.spec) {
      unified.push_back({member.layer, unified.back().spec});
      continue;
    }
    KVASIR_ASSIGN_OR_RETURN(
        const std::int32_t raised,
        Raised(table, member.spec, sizes.back(), names[static_cast<std::size_t>(member.layer)].name));
    unified.push_back({member.layer, raised});
  }
  return unified;
}

}  // namespace kvasir::vllm
