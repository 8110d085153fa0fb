// The text of an engine plan, and that it depends on the plan alone.
#include "planner/rulesets/vllm/engine_plan_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/rulesets/vllm/plan_engine.h"
#include "tests/testing/engine_cases.h"
#include "tests/testing/golden.h"

namespace kvasir::vllm {
namespace {

using testing::CaseBuilder;

TEST(EnginePlanText, OfKimiK3AndItsDraft) {
  const EngineCase engine_case = testing::KimiK3Dspark();
  for (const EngineVersion version : testing::kBothVersions) {
    const std::string text = ToText(engine_case, PlanEngine(engine_case, version));
    EXPECT_LE(text.size(), std::size_t{16} << 10);
    testing::ExpectGolden(version == EngineVersion::k2026_08 ? "engine_plan/kimi_k3_dspark_2026_08.txt"
                                                             : "engine_plan/kimi_k3_dspark_2026_11.txt",
                          text);
  }
}

TEST(EnginePlanText, OfStagesWrappersAndFailures) {
  CaseBuilder stages;
  stages.Layers("f", testing::FullSpec(8), 2).Layers("g", testing::FullSpec(4), 2);
  stages.Stages({0, 3, 4}, {testing::kGib, testing::kGib});
  testing::ExpectGolden(
      "engine_plan/stages_of_a_wrapper.txt",
      ToText(stages.engine_case(), PlanEngine(stages.engine_case(), EngineVersion::k2026_11)));
  CaseBuilder failing(8192, 1);
  failing.Layers("f", testing::FullSpec(8), 2);
  testing::ExpectGolden(
      "engine_plan/no_memory.txt",
      ToText(failing.engine_case(), PlanEngine(failing.engine_case(), EngineVersion::k2026_08)));
}

// Specs may stand in any order and more than once; equal workers may be many.
TEST(EnginePlanText, DoesNotDependOnTheOrderOfSpecs) {
  const EngineCase engine_case = testing::KimiK3Dspark();
  EngineCase shuffled = engine_case;
  std::reverse(shuffled.specs.begin(), shuffled.specs.end());
  const auto last = static_cast<std::int32_t>(shuffled.specs.size()) - 1;
  for (EngineLayer& layer : shuffled.layers) layer.spec = last - layer.spec;
  shuffled.specs.push_back(testing::FullSpec());                                                // nobody's
  shuffled.specs.push_back(shuffled.specs[static_cast<std::size_t>(shuffled.layers[0].spec)]);  // again
  shuffled.layers[0].spec = static_cast<std::int32_t>(shuffled.specs.size()) - 1;
  for (const EngineVersion version : testing::kBothVersions) {
    EXPECT_EQ(ToText(shuffled, PlanEngine(shuffled, version)),
              ToText(engine_case, PlanEngine(engine_case, version)));
  }
}

TEST(EnginePlanText, IdIsItsHash) {
  EXPECT_EQ(EnginePlanId(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace kvasir::vllm
