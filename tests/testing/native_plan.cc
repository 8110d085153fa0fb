#include "tests/testing/native_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "planner/request/build_request.h"
#include "planner/request/explicit_layers.h"
#include "planner/rulesets/make_plan.h"

namespace kvasir::testing {
namespace {

ModelInput Model(Role role, const std::vector<NativeLayers>& lists) {
  std::vector<CacheLayer> layers;
  std::int32_t index = 0;
  for (const NativeLayers& list : lists) {
    for (int i = 0; i < list.count; ++i) {
      CacheLayer& layer = layers.emplace_back();
      layer.id = {.role = role, .index = index++, .cache = 0};
      layer.cache = list.cache;
    }
  }
  return ExplicitInput(role, "", std::move(layers), 131072);
}

}  // namespace

PlanOutcome NativeOutcome(const std::vector<NativeLayers>& target, const std::vector<NativeLayers>& draft) {
  PlanOptions options;
  options.kv_memory_bytes = {std::int64_t{64} << 30};
  options.contexts = {8192};
  std::optional<ModelInput> drafting;
  if (!draft.empty()) drafting = Model(Role::kDraft, draft);
  return MakePlan(BuildRequest(Model(Role::kTarget, target), drafting, options));
}

Plan NativePlan(const std::vector<NativeLayers>& target, const std::vector<NativeLayers>& draft) {
  PlanOutcome outcome = NativeOutcome(target, draft);
  if (auto* const planned = std::get_if<Planned>(&outcome)) return std::move(planned->plan);
  const auto* const refusals = std::get_if<Refusals>(&outcome);
  ADD_FAILURE() << (refusals != nullptr ? RefusalText(refusals->refusals.front()) : "does not fit");
  return {};
}

std::int64_t WorstPaddingBasisPoints(const Plan& plan) {
  std::int64_t worst = 0;
  for (const PlanPool& pool : plan.pools) {
    std::int64_t pages = 0;
    for (const PlanGroup& group : pool.groups) {
      for (const PlanLayer& layer : group.layers) pages += layer.page_bytes;
    }
    const std::int64_t blocks = pool.parts * pool.stride_bytes;
    worst = std::max(worst, (blocks - pages) * 10000 / blocks);
  }
  return worst;
}

KeyValueCache NativeFull() {
  return {.heads = 32, .kv_heads = 8, .key_dim = 128, .value_dim = 128, .window = 0};
}

KeyValueCache NativeSliding(std::int64_t window) {
  KeyValueCache cache = NativeFull();
  cache.window = window;
  return cache;
}

LatentCache NativeLatent() { return {.heads = 64, .latent_dim = 512, .rope_dim = 64, .window = 0}; }

StateCache NativeState(std::int64_t heads) {
  StateCache cache;
  cache.heads = heads;
  cache.states = {{"recurrent", heads * 128 * 128, DType::kF32}};
  return cache;
}

}  // namespace kvasir::testing
