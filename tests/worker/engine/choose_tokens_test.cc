#include "worker/engine/choose_tokens.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "worker/engine/random_draw.h"

namespace kvasir {
namespace {

using Tokens = std::vector<std::int32_t>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(ChooseTokensTest, GreedyTakesTheDevicesIdsAndNeedsNoLogits) {
  SequenceOutcome outcome;
  const Tokens drafted = {4, 5, 6};
  const Tokens next = {4, 5, 9, 1};
  ASSERT_TRUE(ChooseTokens({}, 10, {.next_ids = next, .logits = {}}, {.tokens = drafted, .distributions = {}},
                           outcome));
  EXPECT_EQ(outcome.drafted, 3);
  EXPECT_EQ(outcome.accepted, 2);
  EXPECT_EQ(outcome.emitted, (Tokens{4, 5, 9}));
  EXPECT_TRUE(outcome.logprobs.empty());
}

// The target's own distribution: before temperature and filters, one for each emitted token.
TEST(ChooseTokensTest, ReportsLogProbabilitiesOfTheTarget) {
  const std::vector<float> logits = {0, 1, 2, 3, 1, 0};  // two rows of three tokens
  const Tokens next = {2, 0};
  for (const double temperature : {0.0, 0.3}) {
    SequenceOutcome outcome;
    const SamplingParameters sampling{.temperature = temperature, .top_k = 1, .logprobs = true};
    const std::vector<TokenDistribution> distributions = {OneHot(2, 3)};
    const Tokens drafted = {2};
    ASSERT_TRUE(ChooseTokens(sampling, 3, {next, logits}, {drafted, distributions}, outcome));
    EXPECT_EQ(outcome.emitted, (Tokens{2, 0}));
    ASSERT_EQ(outcome.logprobs.size(), 2U);
    EXPECT_NEAR(outcome.logprobs[0], 2 - std::log(1 + std::exp(1.0) + std::exp(2.0)), 1e-6);
    EXPECT_NEAR(outcome.logprobs[1], 3 - std::log(1 + std::exp(1.0) + std::exp(3.0)), 1e-6);
  }
}

TEST(ChooseTokensTest, SamplesPlainlyByPositionAndSeed) {
  const std::vector<float> logits = {0, 0, 0, 0};
  const Tokens next = {0};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SequenceOutcome outcome;
    ASSERT_TRUE(ChooseTokens({.temperature = 1, .seed = seed}, 41, {next, logits}, {}, outcome));
    const double draw = UniformDraw({.seed = seed, .position = 42, .purpose = DrawPurpose::kToken});
    EXPECT_EQ(outcome.emitted, Tokens{static_cast<std::int32_t>(draw * 4)});
  }
}

TEST(ChooseTokensTest, LogitsThatAreNoDistributionAreAFault) {
  const Tokens next = {0};
  const std::vector<float> logits = {0, kNan, 1};
  SequenceOutcome outcome;
  EXPECT_FALSE(ChooseTokens({.temperature = 1}, 0, {next, logits}, {}, outcome));
  EXPECT_FALSE(ChooseTokens({.logprobs = true}, 0, {next, logits}, {}, outcome));
  EXPECT_TRUE(DraftDistributions(logits, 1, 1).empty());
  EXPECT_EQ(DraftDistributions(std::vector<float>{0, 0, 1, 1}, 2, 1),
            (std::vector<TokenDistribution>{{0.5, 0.5}, {0.5, 0.5}}));
}

}  // namespace
}  // namespace kvasir
