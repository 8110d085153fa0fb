// Faults of merging two caches' specs in vLLM: control flow by assertion, and flags that cross from draft to
// target. Here a merge is a total function: a spec, or a refusal that names rule, field, layers and values,
// the same in every build. Behaviour is never merged at all by the native ruleset.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "planner/request/engine_case_json.h"
#include "planner/rulesets/vllm/engine_plan_text.h"
#include "planner/rulesets/vllm/merge_layers.h"
#include "planner/rulesets/vllm/merge_specs.h"
#include "planner/rulesets/vllm/plan_engine.h"
#include "planner/rulesets/vllm/spec_fields.h"
#include "tests/testing/engine_cases.h"
#include "tests/testing/native_plan.h"
#include "tests/testing/shared_data.h"

namespace kvasir {
namespace {

using testing::CaseBuilder;
using testing::GroupSizes;
using testing::KimiK3Dspark;
using testing::MlaSpec;
using testing::SpecOfGroup;
using vllm::EngineCase;
using vllm::EnginePlan;
using vllm::EngineSpec;
using vllm::EngineVersion;

EngineSpec DraftMla() {
  EngineSpec draft = MlaSpec();
  draft.non_causal_multi_token_decode = true;
  return draft;
}

// The groups as a set: numbers of layers and all fields of their specs, whatever the order of registration.
std::vector<std::string> GroupsOf(const EnginePlan& plan) {
  std::vector<std::string> groups;
  for (const vllm::EngineGroup& group : plan.groups) {
    std::vector<std::string> specs;
    for (const std::int32_t id : vllm::SpecsOf(group)) {
      vllm::AppendFields(plan.specs[static_cast<std::size_t>(id)], specs.emplace_back());
    }
    std::sort(specs.begin(), specs.end());
    std::string text = std::to_string(group.layers.size());
    for (const std::string& spec : specs) text += spec;
    groups.push_back(text);
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

// https://github.com/vllm-project/vllm/issues/54649: under optimised Python a set of two flags was popped.
TEST(Issue54649, TheMergedFlagDependsOnNoOrder) {
  std::vector<EngineSpec> specs = {MlaSpec(), MlaSpec(), DraftMla()};
  for (const EngineVersion version : testing::kBothVersions) {
    for (std::size_t first = 0; first < specs.size(); ++first) {
      std::rotate(specs.begin(), specs.begin() + 1, specs.end());
      CaseBuilder builder;
      for (const EngineSpec& spec : specs) builder.Layers("l", spec, 1);
      builder.config().dcp = 8;
      const EnginePlan plan = PlanEngine(builder.engine_case(), version);
      ASSERT_FALSE(plan.failure.has_value());
      ASSERT_EQ(GroupSizes(plan), (std::vector<std::size_t>{3}));
      EXPECT_TRUE(SpecOfGroup(plan, 0).non_causal_multi_token_decode);
    }
  }
}

// https://github.com/vllm-project/vllm/pull/56952: one flag for both; whoever asks is told which layers
// inherit it.
TEST(Pull56952, CausalLayersThatInheritTheDraftsFlagAreNamed) {
  for (const EngineVersion version : testing::kBothVersions) {
    CaseBuilder mixed;
    mixed.Layers("target", MlaSpec(), 24);
    mixed.Layers("draft", DraftMla(), 5);
    const EnginePlan plan = PlanEngine(mixed.engine_case(), version);
    const auto warned = std::count_if(plan.warnings.begin(), plan.warnings.end(), [](const auto& warning) {
      return warning.message.find("24 causal layers (target.0") != std::string::npos &&
             warning.message.find("5 non-causal ones (draft.24") != std::string::npos;
    });
    EXPECT_EQ(warned, 1);
    CaseBuilder alone;
    alone.Layers("target", MlaSpec(), 24);
    EXPECT_TRUE(PlanEngine(alone.engine_case(), version).warnings.empty());
  }
}

// https://github.com/vllm-project/vllm/issues/54649 on the recorded cases of the changed merge rule.
TEST(Issue54649, RecordedCasesDoNotDependOnTheOrder) {
  KVASIR_SHARED_DATA_OR_SKIP(data);
  const auto text = testing::ReadFile(data + "/vllm_cases/variant_C_pr54277.json");
  ASSERT_TRUE(text.has_value());
  const nlohmann::json records = nlohmann::json::parse(*text);
  ASSERT_GE(records.size(), 10U);
  for (const nlohmann::json& record : records) {
    auto engine_case = ReadEngineCase(record["case"]);
    ASSERT_TRUE(engine_case.ok()) << record["id"];
    for (const EngineVersion version : testing::kBothVersions) {
      const EnginePlan forward = PlanEngine(*engine_case, version);
      std::reverse(engine_case->layers.begin(), engine_case->layers.end());
      const EnginePlan backward = PlanEngine(*engine_case, version);
      EXPECT_EQ(GroupsOf(forward), GroupsOf(backward)) << record["id"];
      EXPECT_EQ(forward.max_concurrency, backward.max_concurrency) << record["id"];
    }
  }
}

// https://github.com/vllm-project/vllm/pull/55234: the flag is a capability of the group.
TEST(Pull55234, TargetAndDraftShareAGroupThatSaysSo) {
  const EnginePlan plan = PlanEngine(KimiK3Dspark(), EngineVersion::k2026_11);
  ASSERT_EQ(GroupSizes(plan), (std::vector<std::size_t>{23, 23, 23, 29}));
  EXPECT_TRUE(SpecOfGroup(plan, 3).non_causal_multi_token_decode);
  EXPECT_TRUE(plan.groups[3].eagle);
}

// https://github.com/vllm-project/vllm/pull/55187: a refused merge names the field instead of asserting.
TEST(Pull55187, ARefusalNamesFieldAndValuesForEveryRule) {
  EngineSpec rswa = testing::FullSpec();
  rswa.kind = vllm::SpecKind::kRswa;
  rswa.rswa_window = 256;
  EngineSpec other_rswa = rswa;
  other_rswa.rswa_window = 512;
  EngineSpec sink = testing::FullSpec();
  sink.kind = vllm::SpecKind::kSinkFull;
  EngineSpec other_sink = sink;
  other_sink.head_size = 64;
  EngineSpec replayed = testing::SlidingMlaSpec();
  replayed.bounded_replay = true;
  const std::vector<std::pair<std::vector<EngineSpec>, std::string>> rows = {
      {{testing::FullSpec(8), testing::FullSpec(4)}, "num_kv_heads"},
      {{MlaSpec(576), MlaSpec(512)}, "head_size"},
      {{rswa, other_rswa}, "rswa_window"},
      {{sink, other_sink}, "head_size"},
      {{testing::SlidingMlaSpec(), replayed}, "bounded_replay"},
      {{testing::SlidingSpec(512), testing::SlidingSpec(1024)}, "sliding_window"}};
  for (const auto& [specs, field] : rows) {
    vllm::SpecTable table(EngineVersion::k2026_11);
    const auto result = MergeSpecs(table, {table.Intern(specs[0]), table.Intern(specs[1])});
    ASSERT_TRUE(std::holds_alternative<vllm::CannotMerge>(result)) << field;
    EXPECT_EQ(std::get<vllm::CannotMerge>(result).field, field);
  }
}

// https://github.com/vllm-project/vllm/pull/54277: asking for equal flags would make the five draft layers
// the size of a group. That rule is in neither version: 4 groups, where a spec that may not merge makes 20.
TEST(Pull54277, TheDraftDoesNotBecomeTheGroupSize) {
  for (const EngineVersion version : testing::kBothVersions) {
    EXPECT_EQ(PlanEngine(KimiK3Dspark(), version).groups.size(), 4U);
    EngineCase apart = KimiK3Dspark();
    for (EngineSpec& spec : apart.specs) {
      if (spec.non_causal_multi_token_decode) spec.model_version = "draft";
    }
    const EnginePlan plan = PlanEngine(apart, version);
    EXPECT_EQ(plan.groups.size(), 20U);
    EXPECT_EQ(GroupSizes(plan).back(), 5U);
  }
  // The native ruleset keeps target and draft apart in behaviour and together in memory.
  const Plan native = testing::NativePlan({{69, testing::NativeState()}, {24, testing::NativeLatent()}},
                                          {{5, testing::NativeLatent()}});
  EXPECT_EQ(native.pools.size(), 2U);
  EXPECT_LT(testing::WorstPaddingBasisPoints(native), 100);
}

// https://github.com/vllm-project/vllm/pull/56952: the draft's flag must not reach a causal target that asks
// to be kept apart.
TEST(Pull56952, AnotherModelVersionKeepsTheDraftApart) {
  EngineSpec draft = DraftMla();
  draft.model_version = "draft";
  CaseBuilder builder;
  builder.Layers("t", MlaSpec(), 6).Layers("k", testing::MambaSpec(), 6).Layers("d", draft, 5);
  for (const EngineVersion version : testing::kBothVersions) {
    const EnginePlan plan = PlanEngine(builder.engine_case(), version);
    ASSERT_FALSE(plan.failure.has_value());
    for (std::size_t g = 0; g < plan.groups.size(); ++g) {
      const bool has_draft = plan.groups[g].layers.back() >= 12;
      const bool has_target = plan.groups[g].layers.front() < 12;
      EXPECT_FALSE(has_draft && has_target);
      EXPECT_EQ(SpecOfGroup(plan, g).non_causal_multi_token_decode, has_draft);
    }
  }
}

// https://github.com/vllm-project/vllm/pull/51705: a cache that is sharded over context and one that is
// replicated need block tables of their own.
TEST(Pull51705, ShardedTargetAndReplicatedDraftDoNotShare) {
  EngineSpec draft = MlaSpec();
  draft.dcp_sharded = false;
  CaseBuilder builder;
  builder.Layers("t", MlaSpec(), 6).Layers("d", draft, 5);
  builder.config().dcp = 4;
  const EnginePlan plan = PlanEngine(builder.engine_case(), EngineVersion::k2026_11);
  ASSERT_FALSE(plan.failure.has_value());
  ASSERT_EQ(plan.groups.size(), 2U);
  EXPECT_TRUE(SpecOfGroup(plan, 0).dcp_sharded);
  EXPECT_FALSE(SpecOfGroup(plan, 1).dcp_sharded);
}

}  // namespace
}  // namespace kvasir
