#include "worker/engine/token_distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "common/base/typed_error.h"

namespace kvasir {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> LogsOf(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  logits.reserve(probabilities.size());
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

struct Case {
  const char* name;
  SamplingParameters sampling;
  std::vector<double> softmax;  // at temperature 1
  std::vector<double> want;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class DistributionTest : public ::testing::TestWithParam<Case> {};

TEST_P(DistributionTest, FiltersInTheDocumentedOrder) {
  const Case& c = GetParam();
  const auto got = MakeDistribution(LogsOf(c.softmax), c.sampling);
  ASSERT_TRUE(got.has_value());
  ASSERT_EQ(got->size(), c.want.size());
  for (std::size_t i = 0; i < c.want.size(); ++i) {
    EXPECT_NEAR((*got)[i], c.want[i], 1e-6) << i;
    EXPECT_EQ((*got)[i] == 0, c.want[i] == 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    , DistributionTest,
    ::testing::Values(
        Case{"plain", {.temperature = 1}, {0.1, 0.2, 0.3, 0.4}, {0.1, 0.2, 0.3, 0.4}},
        Case{"hot_takes_the_root", {.temperature = 2}, {0.1, 0.9}, {0.25, 0.75}},
        Case{"cold_squares", {.temperature = 0.5}, {0.25, 0.75}, {0.1, 0.9}},
        Case{"greedy", {.temperature = 0}, {0.3, 0.4, 0.3}, {0, 1, 0}},
        Case{"greedy_tie_takes_the_lowest", {.temperature = 0}, {0.2, 0.4, 0.4}, {0, 1, 0}},
        Case{"greedy_ignores_filters", {.temperature = 0, .top_k = 3, .top_p = 0.1}, {0.4, 0.6}, {0, 1}},
        Case{"top_1", {.temperature = 1, .top_k = 1}, {0.3, 0.4, 0.3}, {0, 1, 0}},
        Case{"top_2", {.temperature = 1, .top_k = 2}, {0.1, 0.3, 0.6}, {0, 1.0 / 3, 2.0 / 3}},
        Case{"top_k_tie_takes_the_lowest",
             {.temperature = 1, .top_k = 2},
             {0.2, 0.2, 0.2, 0.4},
             {1.0 / 3, 0, 0, 2.0 / 3}},
        Case{"top_k_of_the_vocabulary", {.temperature = 1, .top_k = 2}, {0.4, 0.6}, {0.4, 0.6}},
        Case{"top_k_beyond_the_vocabulary", {.temperature = 1, .top_k = kTopKMax}, {0.4, 0.6}, {0.4, 0.6}},
        Case{"top_p_takes_the_token_that_crosses",
             {.temperature = 1, .top_p = 0.5},
             {0.2, 0.4, 0.3, 0.1},
             {0, 4.0 / 7, 3.0 / 7, 0}},
        Case{"top_p_tiny_keeps_one", {.temperature = 1, .top_p = 1e-300}, {0.4, 0.6}, {0, 1}},
        Case{"top_p_tie_takes_the_lowest", {.temperature = 1, .top_p = 0.4}, {0.5, 0.5}, {1, 0}},
        Case{"top_p_of_what_top_k_left",
             {.temperature = 1, .top_k = 2, .top_p = 0.65},
             {0.1, 0.2, 0.3, 0.4},
             // The larger alone has 0.57 of the two: both stay.
             {0, 0, 3.0 / 7, 4.0 / 7}},
        Case{"top_p_is_relative_to_top_k",
             {.temperature = 1, .top_k = 2, .top_p = 0.55},
             {0.1, 0.2, 0.3, 0.4},
             {0, 0, 0, 1}},
        Case{"temperature_comes_before_top_p", {.temperature = 0.5, .top_p = 0.85}, {0.25, 0.75}, {0, 1}}),
    [](const auto& its) { return std::string(its.param.name); });

TEST(DistributionFaultTest, NanAndInfinityAreFaults) {
  const SamplingParameters hot{.temperature = 1, .top_k = 1};
  for (const SamplingParameters& sampling : {SamplingParameters{}, hot}) {
    EXPECT_FALSE(MakeDistribution(std::vector<float>{1, kNan, 2}, sampling).has_value());
    EXPECT_FALSE(MakeDistribution(std::vector<float>{kNan, 1}, sampling).has_value());
    EXPECT_FALSE(MakeDistribution(std::vector<float>{1, kInf}, sampling).has_value());
    EXPECT_FALSE(MakeDistribution(std::vector<float>{-kInf, -kInf}, sampling).has_value());
    EXPECT_FALSE(MakeDistribution({}, sampling).has_value());
  }
  EXPECT_FALSE(LogProbability(std::vector<float>{1, kNan}, 0).has_value());
}

TEST(DistributionFaultTest, MinusInfinityIsATokenThatCannotCome) {
  const auto got = MakeDistribution(std::vector<float>{-kInf, 0, -kInf, 0}, {.temperature = 1});
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(*got, (TokenDistribution{0, 0.5, 0, 0.5}));
}

// Temperatures so low and logits so far apart that everything else underflows are the greedy choice.
TEST(DistributionFaultTest, ExtremesStayFinite) {
  for (const double temperature : {1e-320, 1e-9, 100.0}) {
    const auto got = MakeDistribution(std::vector<float>{-3e38F, 3e38F, 0}, {.temperature = temperature});
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(*got, (TokenDistribution{0, 1, 0}));
  }
}

TEST(SampleTokenTest, WalksTheRunningSum) {
  const std::vector<double> weights = {0, 0.25, 0, 0.5, 0.25, 0};
  struct Draw {
    double draw;
    std::int32_t token;
  };
  for (const Draw& c :
       {Draw{0, 1}, Draw{0.2499, 1}, Draw{0.25, 3}, Draw{0.7499, 3}, Draw{0.75, 4}, Draw{1 - 0x1p-53, 4}}) {
    EXPECT_EQ(SampleToken(weights, c.draw), c.token) << c.draw;
  }
  const std::vector<double> scaled = {0, 4, 0, 8, 4, 0};
  EXPECT_EQ(SampleToken(scaled, 0.3), 3);
  // Tiny sums may round the threshold up to the sum itself.
  const std::vector<double> tiny = {std::numeric_limits<double>::denorm_min(), 0};
  EXPECT_EQ(SampleToken(tiny, 1 - 0x1p-53), 0);
}

TEST(LogProbabilityTest, IsTheLogarithmOfTheSoftmax) {
  const std::vector<float> logits = LogsOf({0.1, 0.2, 0.7});
  for (std::size_t i = 0; i < logits.size(); ++i) {
    EXPECT_NEAR(*LogProbability(logits, static_cast<std::int32_t>(i)), logits[i], 1e-6);
  }
  EXPECT_EQ(*LogProbability(std::vector<float>{5, -kInf}, 0), 0);
  EXPECT_EQ(*LogProbability(std::vector<float>{5, -kInf}, 1), -kInf);
}

TEST(SamplingParametersTest, OutOfRangeNamesTheField) {
  struct Bad {
    SamplingParameters sampling;
    const char* field;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Bad& c :
       {Bad{{.temperature = -0.1}, "sampling.temperature"},
        Bad{{.temperature = 100.5}, "sampling.temperature"},
        Bad{{.temperature = nan}, "sampling.temperature"}, Bad{{.top_k = -1}, "sampling.top_k"},
        Bad{{.top_k = kTopKMax + 1}, "sampling.top_k"}, Bad{{.top_p = 0}, "sampling.top_p"},
        Bad{{.top_p = 1.01}, "sampling.top_p"}, Bad{{.top_p = nan}, "sampling.top_p"},
        Bad{{.verify = static_cast<VerifyMethod>(9)}, "sampling.verify_method"}}) {
    const absl::Status status = CheckSampling(c.sampling);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ErrorOf(status).field, c.field);
  }
  EXPECT_TRUE(CheckSampling({}).ok());
  EXPECT_TRUE(CheckSampling({.temperature = 100, .top_k = kTopKMax, .top_p = 1e-9}).ok());
}

}  // namespace
}  // namespace kvasir
