// Input order never matters: 10,000 random orders of layers, groups and ranks, in five parts that run side by
// side, give one plan_id. Seeds are fixed; a failure prints the one it came from.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <variant>

#include "common/plan/plan_text.h"
#include "planner/core/assembled.h"
#include "planner/core/graphed.h"
#include "planner/rulesets/make_plan.h"
#include "planner/rulesets/native/native.h"
#include "tests/testing/k3_request.h"
#include "tests/testing/window_request.h"

namespace kvasir {
namespace {

constexpr std::uint32_t kOrdersPerPart = 2000;

// The standard's shuffles may differ between libraries; this one is the same everywhere.
template <class T>
void Shuffle(std::vector<T>& values, std::mt19937& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

void ShuffleLists(PlanRequest& request, std::mt19937& random) {
  Shuffle(request.layers, random);
  Shuffle(request.ranks, random);
  Shuffle(request.backends, random);
  if (request.draft.has_value()) Shuffle(request.draft->target_taps, random);
  for (BackendFacts& facts : request.backends) {
    Shuffle(facts.page_tokens, random);
    Shuffle(facts.cache_dtypes, random);
  }
}

void ShuffleGroups(Grouped& grouped, std::mt19937& random) {
  Shuffle(grouped.pools, random);
  for (GroupedPool& pool : grouped.pools) Shuffle(pool.groups, random);
}

// The pipeline by hand, so that groups can be shuffled between two stages.
std::string ShuffledText(PlanRequest request, std::uint32_t seed) {
  std::mt19937 random(seed);
  ShuffleLists(request, random);
  Grouped grouped = native::GroupLayers(std::get<Validated>(Validate(Canonicalize(std::move(request)))));
  ShuffleGroups(grouped, random);
  Sized sized = std::get<Sized>(native::SizeArena(native::PackBlocks(std::move(grouped))));
  return PlanToText(Assemble(AddGraphs(std::move(sized)), native::NativeRuleset().version));
}

PlanRequest UnevenK3() {
  PlanRequest request = testing::K3Request();
  // Ranks that differ, so that their order could show.
  for (std::size_t i = 0; i < request.ranks.size(); ++i) {
    request.ranks[i].kv_memory += Bytes(static_cast<std::int64_t>(i) * 1000003);
  }
  return request;
}

class PlanPermutation : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(PlanPermutation, OfKimiK3KeepsThePlanId) {
  const PlanRequest request = UnevenK3();
  const Planned planned = std::get<Planned>(MakePlan(request));
  for (std::uint32_t i = 0; i < kOrdersPerPart; ++i) {
    const std::uint32_t seed = GetParam() * kOrdersPerPart + i;
    const std::string text = ShuffledText(request, seed);
    ASSERT_EQ(text, planned.text) << "seed " << seed;
    // Hashing each equal text again would only test the hash.
    if (i % 100 == 0) {
      ASSERT_EQ(PlanId(text), planned.plan_id);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, PlanPermutation, ::testing::Values(0U, 1U, 2U, 3U, 4U));

TEST(PlanPermutationOthers, KeepTheText) {
  for (const PlanRequest& request : {testing::WindowRequest(), testing::WindowRequest({.draft_tokens = 0}),
                                     testing::K3Request({.rollback = RollbackChoice::kSnapshots}),
                                     testing::K3Request({.draft_tokens = 0})}) {
    const std::string text = std::get<Planned>(MakePlan(request)).text;
    for (std::uint32_t seed = 0; seed < 200; ++seed)
      ASSERT_EQ(ShuffledText(request, seed), text) << "seed " << seed;
  }
}

// Through the front door, trace included.
TEST(PlanPermutationOthers, KeepTheTrace) {
  const auto traced = [](const PlanRequest& request) {
    std::string trace;
    (void)MakePlan(request, [&](std::string_view stage, std::string_view text) {
      trace += std::string(stage) + "\n" + std::string(text);
    });
    return trace;
  };
  PlanRequest request = UnevenK3();
  const std::string want = traced(request);
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    ShuffleLists(request, random);
    ASSERT_EQ(traced(request), want);
  }
}

TEST(PlanPermutationOthers, RegistrationOrderNeverReachesANativePlan) {
  PlanRequest request = testing::K3Request();
  const std::string id = std::get<Planned>(MakePlan(request)).plan_id;
  for (LayerSpec& layer : request.layers) layer.registration_index = 1000 - layer.registration_index;
  EXPECT_EQ(std::get<Planned>(MakePlan(request)).plan_id, id);
}

}  // namespace
}  // namespace kvasir
