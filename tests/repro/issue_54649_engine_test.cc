// vllm#54649, the engine's part: a causal target and a non-causal draft of equal cache layout share a pool.
// There the group's causality was taken from one element of a set, and later OR-ed over the group; a graph
// then replayed with the wrong metadata. Here each pass must carry its own group's flag, in both orders of
// the groups, eager and replayed; and each of those wrong ways to choose the flag must show in the output,
// not only in the flag.
//
//   ctest -R issue_54649_engine
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "absl/strings/str_format.h"
#include "common/plan/verify.h"
#include "tests/testing/cacheless_model.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/engine_rig.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

constexpr std::int64_t kOutput = 16;

struct Case {
  bool draft_first = false;
  bool use_graphs = false;
  Topology topology;
};

std::string NameOfCase(const Case& c) {
  return absl::StrFormat("%s_%s_dcp%d", c.draft_first ? "draft_first" : "target_first",
                         c.use_graphs ? "replayed" : "eager", c.topology.dcp);
}
void PrintTo(const Case& c, std::ostream* out) { *out << NameOfCase(c); }

std::vector<Tokens32> Prompts() { return {MakePrompt(7, 1), MakePrompt(12, 2)}; }

// Both groups of the plan get the flags that a wrong choice would give them.
Plan WithFlags(Plan plan, bool target_causal, bool draft_causal) {
  for (PlanPool& pool : plan.pools) {
    for (PlanGroup& group : pool.groups) {
      group.behaviour.causal = group.behaviour.role == Role::kTarget ? target_causal : draft_causal;
    }
  }
  return plan;
}

class Issue54649Test : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    plan_ = MakeEnginePlan(
        {.topology = GetParam().topology, .dtype = DType::kF32, .draft_first = GetParam().draft_first});
    // The fault's setting: one pool, equal layouts, other behaviour.
    ASSERT_EQ(plan_.pools.size(), 1U);
    const std::vector<PlanGroup>& groups = plan_.pools[0].groups;
    ASSERT_EQ(groups.size(), 2U);
    ASSERT_EQ(groups[0].layers[0].layout, groups[1].layers[0].layout);
    ASSERT_NE(groups[0].behaviour, groups[1].behaviour);
    ASSERT_EQ(groups[0].behaviour.role == Role::kDraft, GetParam().draft_first);
    auto rig = EngineRig::Create(
        {.plan = MakeEnginePlan({.topology = GetParam().topology, .draft_tokens = 0, .dtype = DType::kF32})});
    KVASIR_ASSERT_OK(rig);
    auto plain = DecodeAll(**rig, Prompts(), kOutput, false);
    KVASIR_ASSERT_OK(plain);
    plain_ = *std::move(plain);
    auto oracle = CachelessModel::Create(
        {.target = SmallTarget(), .draft = SmallDraft(), .seed = 1, .cache_dtype = DType::kF32});
    KVASIR_ASSERT_OK(oracle);
    oracle_ = *std::move(oracle);
  }

  struct Verdict {
    bool tokens_right = false;    // of speculation, against plain decoding without a draft
    double draft_error = 0;       // largest difference of a first block's logits from the cacheless draft
    std::set<Pass> passes = {};   // that ran
    std::string wrong_flag = {};  // the first pass whose groups or bounds do not have the given flags
  };

  // Speculative decoding with the flags of `plan`.
  Verdict Decode(const Plan& plan) {
    Verdict verdict;
    std::mutex mutex;
    // The first drafted block of each sequence, by where it begins: after its prompt, whose length is its
    // own.
    std::map<std::int64_t, std::vector<float>> blocks;
    EngineRigOptions options{.plan = plan, .use_graphs = GetParam().use_graphs};
    options.observe_pass = [&](std::int64_t rank, const PassMetadata& metadata,
                               std::span<const float> logits) {
      const std::lock_guard lock(mutex);
      const Pass pass = metadata.shape.pass;
      verdict.passes.insert(pass);
      if (verdict.wrong_flag.empty()) verdict.wrong_flag = WrongFlag(metadata);
      if (rank != 0 || pass != Pass::kDraftBlock) return;
      const std::size_t each = logits.size() / static_cast<std::size_t>(metadata.shape.requests);
      for (std::size_t i = 0; i < static_cast<std::size_t>(metadata.shape.requests); ++i) {
        const auto its = logits.subspan(i * each, each);
        blocks.try_emplace(metadata.positions[i * static_cast<std::size_t>(metadata.shape.query_rows)],
                           its.begin(), its.end());
      }
    };
    auto rig = EngineRig::Create(options);
    EXPECT_THAT(rig, IsOk());
    const auto tokens = DecodeAll(**rig, Prompts(), kOutput, true);
    EXPECT_THAT(tokens, IsOk());
    verdict.tokens_right = tokens.ok() && *tokens == plain_;
    for (std::size_t i = 0; i < plain_.size(); ++i) {
      const CachelessTarget target = oracle_->Target(Prompts()[i]);
      const CachelessDraft want = oracle_->Draft(target.taps, plain_[i][0], plan.draft_tokens);
      const std::vector<float>& block = blocks[static_cast<std::int64_t>(Prompts()[i].size())];
      EXPECT_GE(block.size(), want.logits.size());
      for (std::size_t k = 0; k < std::min(want.logits.size(), block.size()); ++k) {
        const double got = static_cast<double>(block[k]);
        verdict.draft_error = std::max(verdict.draft_error, std::abs(got - want.logits[k]));
      }
    }
    return verdict;
  }

  // Empty if every group of the pass is of the pass's role and has the right flag, and its bounds are those
  // of the flag: of rows that one rank sees whole, rising by one if causal, else equal.
  [[nodiscard]] std::string WrongFlag(const PassMetadata& metadata) const {
    const Role role = RoleOf(metadata.shape.pass);
    const bool causal = role == Role::kTarget;
    for (const GroupMetadata& group : metadata.groups) {
      std::string where = absl::StrFormat("%s group %d", PassName(metadata.shape.pass), group.group.value());
      if (group.behaviour.role != role || group.behaviour.causal != causal) return where;
      if (metadata.shape.pass == Pass::kDraftContext || GetParam().topology.dcp > 1) continue;
      for (std::size_t row = 1; row < static_cast<std::size_t>(metadata.shape.query_rows); ++row) {
        if (group.bounds[row] == 0) continue;  // padding
        if (group.bounds[row] != group.bounds[row - 1] + (causal ? 1 : 0)) return where + " bounds";
      }
    }
    return metadata.groups.size() == 1 ? "" : "groups of other roles";
  }

  Plan plan_;
  std::vector<Tokens32> plain_;
  std::unique_ptr<CachelessModel> oracle_;
};

// https://github.com/vllm-project/vllm/issues/54649: a graph replayed with the other role's metadata. Here
// every pass runs with the flag of its own groups, and decodes what a target without a draft does.
TEST_P(Issue54649Test, EveryPassHasItsOwnGroupsFlag) {
  const Verdict verdict = Decode(plan_);
  EXPECT_EQ(verdict.passes, (std::set<Pass>{Pass::kTargetPrefill, Pass::kTargetVerify, Pass::kDraftContext,
                                            Pass::kDraftBlock}));
  EXPECT_EQ(verdict.wrong_flag, "");
  EXPECT_TRUE(verdict.tokens_right);
  EXPECT_LT(verdict.draft_error, 1e-4);
}

// The planted faults.
TEST_P(Issue54649Test, SwappedFlagsShowInTheOutput) {
  const Verdict verdict = Decode(WithFlags(plan_, false, true));
  EXPECT_FALSE(verdict.tokens_right);
  EXPECT_GT(verdict.draft_error, 1e-2);
}

TEST_P(Issue54649Test, AllTakenFromTheDraftShowsInTheOutput) {
  EXPECT_FALSE(Decode(WithFlags(plan_, false, false)).tokens_right);
}

TEST_P(Issue54649Test, AllTakenFromTheTargetShowsInTheDraftsLogits) {
  const Verdict verdict = Decode(WithFlags(plan_, true, true));
  EXPECT_TRUE(verdict.tokens_right);  // a worse draft, and still lossless: the logits tell
  EXPECT_GT(verdict.draft_error, 1e-2);
}

TEST_P(Issue54649Test, AWorkerWouldNotAcceptSuchAPlan) {
  KVASIR_EXPECT_OK(VerifyPlan(plan_));
  EXPECT_THAT(VerifyPlan(WithFlags(plan_, false, true)),
              StatusIs(absl::StatusCode::kInvalidArgument, "a target verifies causally"));
}

INSTANTIATE_TEST_SUITE_P(, Issue54649Test,
                         ::testing::Values(Case{false, false, {}}, Case{false, true, {}},
                                           Case{true, false, {}}, Case{true, true, {}},
                                           Case{false, true, {.tp = 2, .dcp = 2}},
                                           Case{true, true, {.tp = 2, .dcp = 2}}),
                         [](const auto& its) { return NameOfCase(its.param); });

}  // namespace
}  // namespace kvasir::testing
