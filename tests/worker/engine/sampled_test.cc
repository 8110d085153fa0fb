// Sampling through the engine: the same seed gives the same tokens whatever runs beside it, and sampled
// speculation has the distribution of plain sampling.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/engine_rig.h"
#include "tests/testing/matchers.h"
#include "worker/engine/token_distribution.h"

namespace kvasir::testing {
namespace {

using Requests = std::vector<SequenceRequest>;

struct Output {
  Tokens32 tokens;
  std::vector<float> logprobs;
  friend bool operator==(const Output&, const Output&) = default;
};

// `joins_every` steps lie between two requests; 0: all at once.
std::vector<Output> DecodeRequests(EngineRig& rig, const Requests& requests, std::int64_t joins_every) {
  std::map<SequenceId, std::size_t> place;
  std::vector<Output> outputs(requests.size());
  std::size_t next = 0;
  for (std::int64_t step = 0;; ++step) {
    while (next < requests.size() && (joins_every == 0 || step % joins_every == 0)) {
      const auto id = rig.scheduler().Join(requests[next]);
      EXPECT_THAT(id, IsOk());
      if (!id.ok()) return {};
      place[*id] = next++;
      if (joins_every != 0) break;
    }
    const auto progress = rig.Step();
    EXPECT_THAT(progress, IsOk());
    if (!progress.ok()) return {};
    if (!progress->has_value()) {
      if (next == requests.size()) return outputs;
      continue;
    }
    for (const SequenceProgress& its : **progress) {
      Output& out = outputs[place.at(its.id)];
      out.tokens.insert(out.tokens.end(), its.tokens.begin(), its.tokens.end());
      out.logprobs.insert(out.logprobs.end(), its.logprobs.begin(), its.logprobs.end());
    }
  }
}

// Every way to choose tokens, speculating and not.
Requests MixedRequests() {
  const std::vector<SamplingParameters> ways = {
      {},
      {.temperature = 1, .seed = 1, .verify = VerifyMethod::kStandard},
      {.temperature = 1, .seed = 2, .verify = VerifyMethod::kBlock, .logprobs = true},
      {.temperature = 3, .top_k = 12, .seed = 3},
      {.temperature = 0.6, .top_p = 0.8, .seed = 4, .logprobs = true},
      {.logprobs = true}};
  Requests requests;
  for (std::size_t i = 0; i < 2 * ways.size(); ++i) {
    requests.push_back({.prompt = MakePrompt(3 + static_cast<std::int64_t>(5 * i % 17), 6),
                        .max_tokens = 11,
                        .speculate = i % 2 == 0,
                        .sampling = ways[i / 2]});
  }
  return requests;
}

class SampledTest : public ::testing::TestWithParam<Topology> {
 protected:
  [[nodiscard]] std::unique_ptr<EngineRig> MakeRig(std::int64_t draft_tokens = 3) const {
    auto rig = EngineRig::Create(
        {.plan = MakeEnginePlan(
             {.topology = GetParam(), .draft_tokens = draft_tokens, .parents = 400, .max_requests = 32})});
    EXPECT_THAT(rig, IsOk());
    return *std::move(rig);
  }
};

TEST_P(SampledTest, TheSameSeedGivesTheSameTokensInAnyBatch) {
  const Requests requests = MixedRequests();
  std::vector<Output> alone;
  {
    const auto rig = MakeRig();
    for (const SequenceRequest& request : requests) {
      alone.push_back(DecodeRequests(*rig, {request}, 0).at(0));
      EXPECT_EQ(alone.back().tokens.size(), 11U);
      EXPECT_EQ(alone.back().logprobs.size(), request.sampling.logprobs ? 11U : 0U);
    }
  }
  for (const std::int64_t joins_every : {0, 1, 2}) {
    const auto rig = MakeRig();
    EXPECT_EQ(DecodeRequests(*rig, requests, joins_every), alone) << "a join every " << joins_every;
    EXPECT_GT(rig->accepted(), 0);
    EXPECT_LT(rig->accepted(), rig->drafted());
    EXPECT_EQ(rig->scheduler().free_parents(), rig->plan().parents - 1);
  }
  Requests reversed(requests.rbegin(), requests.rend());
  const auto rig = MakeRig();
  std::vector<Output> got = DecodeRequests(*rig, reversed, 0);
  std::reverse(got.begin(), got.end());
  EXPECT_EQ(got, alone);
}

TEST_P(SampledTest, AnotherSeedGivesOtherTokens) {
  const auto rig = MakeRig();
  Requests requests;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    requests.push_back({.prompt = MakePrompt(5, 1),
                        .max_tokens = 20,
                        .speculate = seed % 2 == 0,
                        .sampling = {.temperature = 2, .seed = seed}});
  }
  const std::vector<Output> outputs = DecodeRequests(*rig, requests, 0);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(outputs[i].tokens, outputs[j].tokens);
  }
}

// A temperature near 0 leaves no choice: both methods then say what greedy decoding says.
TEST_P(SampledTest, TheLimitIsGreedy) {
  const auto decode = [this](const SamplingParameters& sampling, bool speculate) {
    const auto rig = MakeRig();
    Requests requests;
    for (std::int64_t i = 0; i < 4; ++i) {
      requests.push_back({.prompt = MakePrompt(4 + 3 * i, i),
                          .max_tokens = 16,
                          .speculate = speculate,
                          .sampling = sampling});
    }
    return DecodeRequests(*rig, requests, 0);
  };
  const std::vector<Output> greedy = decode({.logprobs = true}, false);
  EXPECT_EQ(decode({.logprobs = true}, true), greedy);
  for (const VerifyMethod method : {VerifyMethod::kStandard, VerifyMethod::kBlock}) {
    const SamplingParameters cold{.temperature = 1e-6, .seed = 9, .verify = method, .logprobs = true};
    EXPECT_EQ(decode(cold, true), greedy);
    EXPECT_EQ(decode(cold, false), greedy);
  }
}

INSTANTIATE_TEST_SUITE_P(, SampledTest, ::testing::Values(Topology{}, Topology{.tp = 2, .dcp = 2}),
                         [](const auto& its) {
                           return absl::StrFormat("tp%d_dcp%d", its.param.tp, its.param.dcp);
                         });

// The log-probability reported is that of the logits which the target's pass left.
TEST(SampledLogprobTest, IsTheTargets) {
  std::vector<float> logits;
  EngineRigOptions options{.plan = MakeEnginePlan({.draft_tokens = 3})};
  options.observe_pass = [&](std::int64_t, const PassMetadata& metadata, std::span<const float> values) {
    if (metadata.shape.pass == Pass::kTargetVerify) logits.assign(values.begin(), values.end());
  };
  auto rig = EngineRig::Create(options);
  KVASIR_ASSERT_OK(rig);
  KVASIR_ASSERT_OK((*rig)->scheduler().Join({.prompt = MakePrompt(6, 1),
                                             .max_tokens = 20,
                                             .sampling = {.temperature = 1.5, .seed = 5, .logprobs = true}}));
  int compared = 0;
  for (;;) {
    const auto progress = (*rig)->Step();
    KVASIR_ASSERT_OK(progress);
    if (!progress->has_value()) break;
    if ((*rig)->last_step().kind != StepKind::kSpeculate) continue;
    const SequenceProgress& its = (**progress)[0];
    ASSERT_EQ(its.logprobs.size(), its.tokens.size());
    for (std::size_t i = 0; i < its.tokens.size(); ++i, ++compared) {
      const auto row = std::span(logits).subspan(i * kSmallVocab, kSmallVocab);
      EXPECT_EQ(its.logprobs[i], LogProbability(row, its.tokens[i]));
    }
  }
  EXPECT_EQ(compared, 19);
}

struct Case {
  const char* name;
  SamplingParameters sampling;
  bool scripted = false;  // drafts count as picked without chance
  MarkovHead markov_head = MarkovHead::kVanilla;
  bool dflash = false;
  bool mtp = false;
  std::vector<StepCost> costs = {};  // not empty: rows are left out of the verify pass
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr std::int64_t kDraws = 3000;
constexpr std::int64_t kBatch = 30;

// How often each pair of second and third tokens came. The first comes from the prompt in every mode alike.
using Counts = std::map<std::pair<std::int32_t, std::int32_t>, double>;

class SampledDistributionTest : public ::testing::TestWithParam<Case> {
 protected:
  // Seeds first, first + 1, ...
  void Count(std::uint64_t first, bool speculate, Counts& counts) {
    EngineRigOptions options{.plan = MakeEnginePlan({.draft_tokens = 2,
                                                     .parents = 200,
                                                     .max_requests = kBatch,
                                                     .dflash = GetParam().dflash,
                                                     .markov_head = GetParam().markov_head,
                                                     .mtp = GetParam().mtp}),
                             .costs = GetParam().costs};
    if (GetParam().scripted) {
      options.draft_override = [](const StepPlan&, std::span<std::int32_t>) {};
    }
    auto rig = EngineRig::Create(options);
    KVASIR_ASSERT_OK(rig);
    for (std::int64_t batch = 0; batch < kDraws / kBatch; ++batch) {
      Requests requests;
      for (std::int64_t i = 0; i < kBatch; ++i) {
        SequenceRequest request{.prompt = MakePrompt(4, 2),
                                .max_tokens = 3,
                                .speculate = speculate,
                                .sampling = GetParam().sampling};
        request.sampling.seed = first + static_cast<std::uint64_t>(batch * kBatch + i);
        requests.push_back(std::move(request));
      }
      for (const Output& out : DecodeRequests(**rig, requests, 0)) {
        ++counts[{out.tokens.at(1), out.tokens.at(2)}];
      }
    }
    if (!speculate) return;
    EXPECT_GT((*rig)->accepted(), kDraws / 30);
    EXPECT_LT((*rig)->accepted(), (*rig)->drafted() - kDraws / 10);
  }
};

TEST_P(SampledDistributionTest, SpeculationEqualsPlainSampling) {
  Counts plain;
  Counts speculative;
  ASSERT_NO_FATAL_FAILURE(Count(0, false, plain));
  ASSERT_NO_FATAL_FAILURE(Count(1'000'000, true, speculative));
  Counts both = plain;
  for (const auto& [pair, count] : speculative) both[pair] += count;
  double chi_square = 0;
  double degrees = -1;
  double rare_plain = 0;
  double rare_speculative = 0;
  const auto add = [&](double a, double b) {
    chi_square += (a - b) * (a - b) / (a + b);
    ++degrees;
  };
  for (const auto& [pair, count] : both) {
    if (count >= 20) {
      add(plain[pair], speculative[pair]);
    } else {
      rare_plain += plain[pair];
      rare_speculative += speculative[pair];
    }
  }
  if (rare_plain + rare_speculative >= 20) add(rare_plain, rare_speculative);
  // Exceeded by chance about once in 10^6 (Wilson and Hilferty's approximation at 4.75 deviations).
  const double v = 2 / (9 * degrees);
  EXPECT_GE(degrees, 8);
  EXPECT_LT(chi_square, degrees * std::pow(1 - v + 4.75 * std::sqrt(v), 3)) << degrees << " degrees";
}

INSTANTIATE_TEST_SUITE_P(
    , SampledDistributionTest,
    ::testing::Values(
        Case{"standard", {.temperature = 3, .top_k = 6, .verify = VerifyMethod::kStandard}},
        Case{"block", {.temperature = 3, .top_k = 6, .verify = VerifyMethod::kBlock}},
        Case{"block_filtered", {.temperature = 3, .top_k = 8, .top_p = 0.8, .verify = VerifyMethod::kBlock}},
        Case{"scripted", {.temperature = 2.5, .top_k = 6, .verify = VerifyMethod::kBlock}, true},
        Case{.name = "standard_adaptive",
             .sampling = {.temperature = 3, .top_k = 6, .verify = VerifyMethod::kStandard},
             .costs = {{.fixed = 30, .row = 1}, {.fixed = 60, .row = 1}, {.fixed = 120, .row = 1}}},
        Case{.name = "block_gated_adaptive",
             .sampling = {.temperature = 3, .top_k = 6, .verify = VerifyMethod::kBlock},
             .markov_head = MarkovHead::kGated,
             .costs = {{.fixed = 30, .row = 1}, {.fixed = 60, .row = 1}, {.fixed = 120, .row = 1}}},
        Case{.name = "block_dflash",
             .sampling = {.temperature = 3, .top_k = 6, .verify = VerifyMethod::kBlock},
             .dflash = true},
        Case{.name = "standard_mtp",
             .sampling = {.temperature = 3, .top_k = 6, .verify = VerifyMethod::kStandard},
             .mtp = true},
        Case{.name = "block_mtp",
             .sampling = {.temperature = 3, .top_k = 6, .verify = VerifyMethod::kBlock},
             .mtp = true},
        Case{.name = "block_rnn",
             .sampling = {.temperature = 3, .top_k = 6, .verify = VerifyMethod::kBlock},
             .markov_head = MarkovHead::kRnn}),
    [](const auto& its) { return std::string(its.param.name); });

}  // namespace
}  // namespace kvasir::testing
