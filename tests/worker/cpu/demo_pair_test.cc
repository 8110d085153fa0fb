// The catalogue's demo pair must decode like models that have learned something: varied output, and drafts
// that are sometimes right and sometimes wrong, whatever the prompt and the seed. So must the same target
// with experts in place of its later MLPs.
#include <gtest/gtest.h>

#include <set>

#include "common/models/catalogue.h"
#include "tests/testing/greedy_loop.h"
#include "tests/testing/matchers.h"
#include "tests/worker/cpu/small_models.h"

namespace kvasir::testing {
namespace {

enum class Experts : std::int8_t { kNone, kSigmoid, kSoftmax };

MlpShape MlpOf(Experts kind) {
  MlpShape mlp{.experts = 16,
               .experts_per_token = 4,
               .shared_experts = 1,
               .expert_intermediate = 64,
               .scoring = ExpertScoring::kSigmoid,
               .correction_bias = true,
               .groups = 4,
               .groups_kept = 2};
  if (kind == Experts::kSigmoid) return mlp;
  mlp.scoring = ExpertScoring::kSoftmax;
  mlp.correction_bias = false;
  mlp.normalise = false;
  return mlp;
}

class DemoPairTest : public ::testing::TestWithParam<Experts> {};
INSTANTIATE_TEST_SUITE_P(Targets, DemoPairTest,
                         ::testing::Values(Experts::kNone, Experts::kSigmoid, Experts::kSoftmax));

TEST_P(DemoPairTest, OutputIsVariedAndDraftsArePartlyAccepted) {
  ModelRanksOptions options;
  const auto target = FindInCatalogue("demo-target");
  const auto draft = FindInCatalogue("demo-dspark");
  KVASIR_ASSERT_OK(target);
  KVASIR_ASSERT_OK(draft);
  options.target = *target;
  for (std::size_t i = 1; GetParam() != Experts::kNone && i < options.target.layers.size(); ++i) {
    options.target.layers[i].mlp = MlpOf(GetParam());
  }
  options.draft = *draft;
  options.blocks = 20;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  for (const std::int64_t seed : {1, 2}) {
    options.seed = seed;
    const auto ranks = ModelRanks::Create(options);
    KVASIR_ASSERT_OK(ranks);
    for (unsigned p = 0; p < 4; ++p) {
      GreedyOptions greedy;
      // Random tokens, printable text, one token repeated, a lone first token.
      greedy.prompt = RandomTokens(p == 3 ? 1 : 8 * p + 4, p == 1 ? 128 : 512, p);
      if (p == 2) greedy.prompt.assign(20, 65);
      greedy.draft_tokens = 4;
      greedy.mask_token = static_cast<std::int32_t>(draft->draft->mask_token);
      greedy.blocks = ShuffledBlocks(8, 1 + p);
      const auto speculative = RunGreedy(**ranks, greedy);
      greedy.draft_tokens = 0;
      const auto plain = RunGreedy(**ranks, greedy);
      KVASIR_ASSERT_OK(speculative);
      KVASIR_ASSERT_OK(plain);
      EXPECT_EQ(speculative->tokens, plain->tokens) << "seed " << seed << ", prompt " << p;
      const std::set<std::int32_t> distinct(plain->tokens.begin(), plain->tokens.end());
      EXPECT_GE(distinct.size(), 16U) << "seed " << seed << ", prompt " << p;
      EXPECT_GT(speculative->accepted, 0) << "seed " << seed << ", prompt " << p;
      EXPECT_LT(speculative->accepted, speculative->drafted) << "seed " << seed << ", prompt " << p;
      drafted += speculative->drafted;
      accepted += speculative->accepted;
    }
  }
  RecordProperty("accepted", static_cast<int>(accepted));
  RecordProperty("drafted", static_cast<int>(drafted));
  EXPECT_GE(10 * accepted, 3 * drafted);
  EXPECT_LE(10 * accepted, 7 * drafted);
}

}  // namespace
}  // namespace kvasir::testing
