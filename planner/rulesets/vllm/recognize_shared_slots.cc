#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/exact.h"
#include "planner/rulesets/vllm/shared_slots.h"
#include "planner/rulesets/vllm/unify_pages.h"

namespace kvasir::vllm {
namespace {

// The one page of some layers; nullopt if there are none or several.
EngineResult<std::optional<std::int64_t>> OnePage(const SpecTable& table, const LayerSpecs& layers) {
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int64_t> pages, PageSizes(table, layers));
  if (pages.size() != 1) return std::optional<std::int64_t>();
  return std::optional<std::int64_t>(pages.front());
}

// Splits the groups by shape: false if some group has none of the three.
bool Sorted(const SpecTable& table, const std::vector<EngineGroup>& groups, SharedSlots& slots,
            bool& has_latent) {
  std::size_t wrappers = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto* const wrapper = std::get_if<UniformTypeSpecs>(&groups[g].spec);
    if (wrapper == nullptr) {
      if (table[std::get<std::int32_t>(groups[g].spec)].kind == SpecKind::kMamba)
        slots.mamba_groups.push_back(g);
      continue;
    }
    ++wrappers;
    const auto all = [&](SpecKind kind) {
      return std::all_of(wrapper->members.begin(), wrapper->members.end(),
                         [&](const auto& member) { return table[member.spec].kind == kind; });
    };
    if (all(SpecKind::kMla)) {
      slots.latent_group = g;
      has_latent = true;
    } else if (all(SpecKind::kKpoolTail)) {
      slots.tail_group = g;
    }
  }
  return wrappers + slots.mamba_groups.size() == groups.size();
}

// The tails must be as many as the indexers and fit their pages.
EngineResult<bool> TailsFit(const SpecTable& table, const EngineGroup& tails, const SharedSlots& slots) {
  std::optional<std::int64_t> page;
  for (const UniformTypeSpecs::Member& member : std::get<UniformTypeSpecs>(tails.spec).members) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t bytes, UnpaddedPageBytes(table[member.spec]));
    if (page.has_value() && *page != bytes) return false;
    page = bytes;
  }
  return page.has_value() && tails.layers.size() == slots.indexer_layers.size() &&
         *page <= slots.indexer_page;
}

}  // namespace

EngineResult<std::optional<SharedSlots>> RecognizeSharedSlots(const SpecTable& table,
                                                              const std::vector<EngineGroup>& groups) {
  const std::optional<SharedSlots> none;
  if (table.version() == EngineVersion::k2026_08) return none;
  SharedSlots slots;
  bool has_latent = false;
  if (!Sorted(table, groups, slots, has_latent) || !has_latent || slots.mamba_groups.empty()) return none;

  const EngineGroup& latent = groups[slots.latent_group];
  LayerSpecs mla;
  LayerSpecs indexers;
  for (const UniformTypeSpecs::Member& member : std::get<UniformTypeSpecs>(latent.spec).members) {
    const EngineSpec& spec = table[member.spec];
    if (spec.page_size_padded.has_value()) return none;
    if (latent.layers.empty()) continue;  // another stage's layers
    if (KeepsEach(spec)) mla.push_back(member);
    if (Compresses(spec)) indexers.push_back(member);
  }
  KVASIR_ASSIGN_OR_RETURN(const std::optional<std::int64_t> mla_page, OnePage(table, mla));
  KVASIR_ASSIGN_OR_RETURN(const std::optional<std::int64_t> indexer_page, OnePage(table, indexers));
  if (!mla_page.has_value() || !indexer_page.has_value()) return none;
  slots.mla_page = *mla_page;
  slots.indexer_page = *indexer_page;
  for (const auto& member : mla) slots.mla_layers.push_back(member.layer);
  for (const auto& member : indexers) slots.indexer_layers.push_back(member.layer);
  for (const std::size_t g : slots.mamba_groups) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(std::get<std::int32_t>(groups[g].spec)));
    if (page != slots.mla_page) return none;
  }
  if (slots.tail_group.has_value()) {
    KVASIR_ASSIGN_OR_RETURN(const bool fit, TailsFit(table, groups[*slots.tail_group], slots));
    if (!fit) return none;
  }
  return std::optional<SharedSlots>(std::move(slots));
}

EngineResult<std::int64_t> SlotBytes(const SharedSlots& slots) {
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t mla,
                          Exact(Wide{slots.mla_page} * static_cast<std::int64_t>(slots.mla_layers.size())));
  KVASIR_ASSIGN_OR_RETURN(
      const std::int64_t indexers,
      Exact(Wide{slots.indexer_page} * static_cast<std::int64_t>(slots.indexer_layers.size())));
  return Exact(Wide{mla} + indexers);
}

}  // namespace kvasir::vllm
