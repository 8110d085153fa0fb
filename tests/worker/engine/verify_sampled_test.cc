// Sampled speculation has the distribution of plain sampling: chi-square tests of whole outputs against their
// exact probabilities, over 200 000 requests each, with fixed seeds. A control shows that a wrong
// verification does not pass them.
#include "worker/engine/verify_sampled.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "worker/engine/random_draw.h"

namespace kvasir {
namespace {

constexpr std::int32_t kVocab = 4;
constexpr int kOutput = 4;  // tokens of one request
constexpr int kCells = 256;
constexpr std::int64_t kRequests = 200'000;

enum class Draft { kGood, kBad, kEqual, kOneHot, kDisjoint };

// A language whose next token depends on the last one.
using Language = std::vector<TokenDistribution>;

TokenDistribution Normalised(TokenDistribution weights) {
  double sum = 0;
  for (const double w : weights) sum += w;
  for (double& w : weights) w /= sum;
  return weights;
}

Language RandomLanguage(std::uint64_t seed, double power) {
  std::mt19937_64 random(seed);
  Language language;
  for (std::int32_t last = 0; last < kVocab; ++last) {
    TokenDistribution weights;
    for (std::int32_t t = 0; t < kVocab; ++t) {
      weights.push_back(std::pow(static_cast<double>(random() % 1000 + 1) / 1000, power));
    }
    language.push_back(Normalised(weights));
  }
  return language;
}

// The target never says token 3 after token 0, as if a filter had cut it.
Language TargetLanguage() {
  Language target = RandomLanguage(1, 2);
  target[0][3] = 0;
  target[0] = Normalised(target[0]);
  return target;
}

Language DraftLanguage(Draft kind) {
  const Language target = TargetLanguage();
  Language draft = RandomLanguage(2, 3);
  for (std::size_t last = 0; last < draft.size(); ++last) {
    TokenDistribution& its = draft[last];
    switch (kind) {
      case Draft::kGood:
        for (std::size_t t = 0; t < its.size(); ++t) its[t] = 0.85 * target[last][t] + 0.15 * its[t];
        break;
      case Draft::kBad:
        break;
      case Draft::kEqual:
        its = target[last];
        break;
      case Draft::kOneHot:
        its = OneHot(static_cast<std::int32_t>((last + 1) % 3), kVocab);
        break;
      case Draft::kDisjoint:  // no token that the target likes
        its = Normalised({0, 0.5, 0, 0.5});
        its[static_cast<std::size_t>(SampleToken(target[last], 0.5))] = 0;
        its = Normalised(its);
        break;
    }
  }
  return draft;
}

struct Setting {
  VerifyMethod method = VerifyMethod::kStandard;
  int drafted = 3;       // N
  bool lies = false;     // the control: says that drafts were drawn from the target's distribution
  bool one_hot = false;  // says that they were picked without chance, though they were drawn
};

struct Totals {
  std::array<std::int64_t, kCells> cells = {};
  std::int64_t accepted = 0;
  std::int64_t steps = 0;
};

// What a request emits after token 0 at position 0, and how many of its drafts were accepted.
void DecodeOne(const Setting& setting, const Language& target, const Language& draft, std::uint64_t seed,
               Totals& totals) {
  std::vector<std::int32_t> text = {0};
  while (text.size() <= kOutput) {
    const auto anchor = static_cast<std::int64_t>(text.size()) - 1;
    std::vector<std::int32_t> drafted;
    std::vector<TokenDistribution> q;
    std::vector<TokenDistribution> p = {target[static_cast<std::size_t>(text.back())]};
    std::int32_t last = text.back();
    for (int k = 0; k < setting.drafted; ++k) {
      q.push_back(draft[static_cast<std::size_t>(last)]);
      last = SampleToken(q.back(), UniformDraw({.seed = seed,
                                                .position = anchor,
                                                .purpose = DrawPurpose::kDraft,
                                                .index = static_cast<std::uint32_t>(k)}));
      drafted.push_back(last);
      if (setting.lies) q.back() = p.back();
      if (setting.one_hot) q.back() = OneHot(last, kVocab);
      p.push_back(target[static_cast<std::size_t>(last)]);
    }
    const DraftVerdict verdict = VerifySampled(setting.method, {.drafted = drafted, .draft = q, .target = p},
                                               {.seed = seed, .anchor = anchor});
    text.insert(text.end(), verdict.emitted.begin(), verdict.emitted.end());
    totals.accepted += verdict.accepted;
    ++totals.steps;
  }
  std::size_t cell = 0;
  for (std::size_t i = 1; i <= kOutput; ++i) cell = cell * kVocab + static_cast<std::size_t>(text[i]);
  ++totals.cells[cell];
}

Totals DecodeMany(const Setting& setting, Draft kind, std::int64_t requests = kRequests) {
  const Language target = TargetLanguage();
  const Language draft = DraftLanguage(kind);
  Totals totals;
  for (std::int64_t seed = 0; seed < requests; ++seed) {
    DecodeOne(setting, target, draft, static_cast<std::uint64_t>(seed), totals);
  }
  return totals;
}

double ProbabilityOfCell(const Language& target, std::size_t cell) {
  std::array<std::size_t, kOutput> text = {};
  for (std::size_t i = kOutput; i > 0; --i) {
    text[i - 1] = cell % kVocab;
    cell /= kVocab;
  }
  double probability = 1;
  std::size_t last = 0;
  for (const std::size_t token : text) {
    probability *= target[last][token];
    last = token;
  }
  return probability;
}

struct ChiSquare {
  double value = 0;
  double degrees = -1;
  // Exceeded by chance about once in 10^6 (Wilson and Hilferty's approximation at 4.75 deviations).
  [[nodiscard]] double limit() const {
    const double v = 2 / (9 * degrees);
    return degrees * std::pow(1 - v + 4.75 * std::sqrt(v), 3);
  }
};

// Cells that expect fewer than 5 are taken together; what cannot be said must not have been said.
ChiSquare Compare(const Totals& totals) {
  const Language target = TargetLanguage();
  ChiSquare result;
  double rare_expected = 0;
  double rare_seen = 0;
  const auto add = [&result](double seen, double expected) {
    result.value += (seen - expected) * (seen - expected) / expected;
    result.degrees += 1;
  };
  for (std::size_t cell = 0; cell < kCells; ++cell) {
    const double expected = static_cast<double>(kRequests) * ProbabilityOfCell(target, cell);
    const auto seen = static_cast<double>(totals.cells[cell]);
    EXPECT_TRUE(expected > 0 || seen == 0) << "cell " << cell;
    if (expected >= 5) {
      add(seen, expected);
    } else {
      rare_expected += expected;
      rare_seen += seen;
    }
  }
  if (rare_expected >= 5) add(rare_seen, rare_expected);
  return result;
}

struct Case {
  const char* name;
  VerifyMethod method;
  Draft draft;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class LosslessSamplingTest : public ::testing::TestWithParam<Case> {};

TEST_P(LosslessSamplingTest, OutputsHaveTheTargetsDistribution) {
  const ChiSquare result = Compare(DecodeMany({.method = GetParam().method}, GetParam().draft));
  EXPECT_GT(result.degrees, 100);
  EXPECT_LT(result.value, result.limit()) << result.degrees << " degrees of freedom";
  RecordProperty("chi_square", std::to_string(result.value));
  RecordProperty("degrees", std::to_string(result.degrees));
}

constexpr VerifyMethod kStandard = VerifyMethod::kStandard;
constexpr VerifyMethod kBlock = VerifyMethod::kBlock;
INSTANTIATE_TEST_SUITE_P(, LosslessSamplingTest,
                         ::testing::Values(Case{"standard_good", kStandard, Draft::kGood},
                                           Case{"standard_bad", kStandard, Draft::kBad},
                                           Case{"standard_equal", kStandard, Draft::kEqual},
                                           Case{"standard_one_hot", kStandard, Draft::kOneHot},
                                           Case{"standard_disjoint", kStandard, Draft::kDisjoint},
                                           Case{"block_good", kBlock, Draft::kGood},
                                           Case{"block_bad", kBlock, Draft::kBad},
                                           Case{"block_equal", kBlock, Draft::kEqual},
                                           Case{"block_one_hot", kBlock, Draft::kOneHot},
                                           Case{"block_disjoint", kBlock, Draft::kDisjoint}),
                         [](const auto& its) { return std::string(its.param.name); });

TEST(LosslessSamplingControlTest, AWrongDraftDistributionIsFound) {
  for (const VerifyMethod method : {kStandard, kBlock}) {
    const ChiSquare result = Compare(DecodeMany({.method = method, .lies = true}, Draft::kBad));
    EXPECT_GT(result.value, 2 * result.limit());
  }
}

// What a token was drawn from may be forgotten: given the token, it is as if it had been picked without
// chance.
TEST(LosslessSamplingControlTest, OneHotIsTrueOfAnyDraft) {
  const ChiSquare result = Compare(DecodeMany({.method = kBlock, .one_hot = true}, Draft::kBad));
  EXPECT_LT(result.value, result.limit()) << result.degrees << " degrees of freedom";
}

// One drafted token is accepted with probability sum of min(p, q), by both methods; of a block, the second
// method accepts at least as many on average, and all where target and draft are equal.
TEST(AcceptanceTest, IsAsTheoryHasIt) {
  for (const Draft kind : {Draft::kGood, Draft::kBad, Draft::kEqual, Draft::kOneHot, Draft::kDisjoint}) {
    const auto rate = [kind](VerifyMethod method, int drafted) {
      const Totals totals = DecodeMany({.method = method, .drafted = drafted}, kind, 20'000);
      return static_cast<double>(totals.accepted) / static_cast<double>(totals.steps);
    };
    EXPECT_NEAR(rate(kStandard, 1), rate(kBlock, 1), 1e-9);
    const double standard = rate(kStandard, 4);
    const double block = rate(kBlock, 4);
    EXPECT_GE(block, standard - 0.02);
    EXPECT_TRUE(kind != Draft::kGood || block > standard + 0.01) << block << " and " << standard;
    EXPECT_TRUE(kind != Draft::kEqual || (block == 4 && standard == 4)) << block << " and " << standard;
  }
  const TokenDistribution p = {0.1, 0.2, 0.3, 0.4};
  const TokenDistribution q = {0.4, 0.1, 0.1, 0.4};
  std::int64_t accepted = 0;
  for (std::uint64_t seed = 0; seed < 100'000; ++seed) {
    const std::vector<std::int32_t> drafted = {
        SampleToken(q, UniformDraw({.seed = seed, .position = 9, .purpose = DrawPurpose::kDraft}))};
    const std::vector<TokenDistribution> draft = {q};
    const std::vector<TokenDistribution> target = {p, p};
    accepted += VerifySampled(kStandard, {drafted, draft, target}, {.seed = seed, .anchor = 9}).accepted;
  }
  EXPECT_NEAR(static_cast<double>(accepted) / 100'000, 0.1 + 0.1 + 0.1 + 0.4, 0.007);
}

TEST(VerifySampledTest, TheLimitIsGreedy) {
  std::mt19937_64 random(3);
  std::int64_t accepted = 0;
  for (std::uint64_t trial = 0; trial < 5000; ++trial) {
    const std::size_t n = trial % 8;
    std::vector<std::int32_t> drafted;
    std::vector<std::int32_t> next;
    std::vector<TokenDistribution> draft;
    std::vector<TokenDistribution> target;
    for (std::size_t i = 0; i <= n; ++i) {
      next.push_back(static_cast<std::int32_t>(random() % kVocab));
      target.push_back(OneHot(next.back(), kVocab));
      if (i == n) break;
      drafted.push_back(random() % 4 != 0 ? next.back() : static_cast<std::int32_t>(random() % kVocab));
      draft.push_back(OneHot(drafted.back(), kVocab));
    }
    const DraftVerdict want = VerifyGreedy(drafted, next);
    for (const VerifyMethod method : {kStandard, kBlock}) {
      const DraftVerdict got = VerifySampled(method, {drafted, draft, target}, {.seed = trial, .anchor = 5});
      EXPECT_EQ(got.accepted, want.accepted);
      EXPECT_EQ(got.emitted, want.emitted);
    }
    accepted += want.accepted;
  }
  EXPECT_GT(accepted, 5000);
}

// Without a draft, the token is the one of plain decoding at that position.
TEST(VerifySampledTest, WithoutADraftItIsPlainSampling) {
  const std::vector<TokenDistribution> target = {{0.25, 0.25, 0.25, 0.25}};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const DraftVerdict got = VerifySampled(kBlock, {{}, {}, target}, {.seed = seed, .anchor = 11});
    const double draw = UniformDraw({.seed = seed, .position = 12, .purpose = DrawPurpose::kToken});
    EXPECT_EQ(got.emitted, (std::vector<std::int32_t>{SampleToken(target[0], draw)}));
  }
}

}  // namespace
}  // namespace kvasir
