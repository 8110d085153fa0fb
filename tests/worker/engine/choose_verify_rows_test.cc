#include "worker/engine/choose_verify_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace kvasir {
namespace {

using Confidences = std::vector<std::vector<float>>;

constexpr StepCost kFree = {.fixed = 100, .row = 0};
constexpr StepCost kLinear = {.fixed = 8, .row = 1};
constexpr StepCost kDear = {.fixed = 0, .row = 1};

TEST(ChooseVerifyRowsTest, VerifiesEverythingWorthAnythingWhereRowsAreFree) {
  EXPECT_EQ(ChooseVerifyRows(Confidences{{0.1F, 0.1F}, {0.9F}, {}}, kFree), 2);
  EXPECT_EQ(ChooseVerifyRows(Confidences{{0.5F, 0, 0.9F}}, kFree), 1);
}

TEST(ChooseVerifyRowsTest, VerifiesNothingWhereRowsAreAllThatCosts) {
  EXPECT_EQ(ChooseVerifyRows(Confidences{{1, 1, 1}, {1}}, kDear), 0);
  EXPECT_EQ(ChooseVerifyRows(Confidences{{0.9F}}, {.fixed = 0, .row = 0}), 0) << "no time at all";
}

TEST(ChooseVerifyRowsTest, StopsWhereAColumnPaysNoLonger) {
  // One request, 8 + rows: 1/9, then (1 + 0.5)/10, (1.5 + 0.25)/11, (1.75 + 0.125)/12 < 1.75/11.
  EXPECT_EQ(ChooseVerifyRows(Confidences{{0.5F, 0.5F, 0.5F, 0.5F}}, kLinear), 2);
  // A confident neighbour pays for a column, a request without drafted tokens for none.
  EXPECT_EQ(ChooseVerifyRows(Confidences{{0.5F, 0.5F, 0.5F, 0.5F}, {1, 1, 1, 1}}, kLinear), 4);
  EXPECT_EQ(ChooseVerifyRows(Confidences{{0.5F, 0.5F, 0.5F, 0.5F}, {}, {}, {}}, kLinear), 0);
}

TEST(ChooseVerifyRowsTest, NoRequestsAndBadConfidencesAreHarmless) {
  EXPECT_EQ(ChooseVerifyRows({}, kFree), 0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(ChooseVerifyRows(Confidences{{nan, 1}, {-3}, {7, 0.5F}}, kFree), 2);
  EXPECT_EQ(ChooseVerifyRows(Confidences{{nan, 1}, {-3}}, kFree), 0);
}

// Whatever the confidences from column j on say, whether columns before j are verified stays the same.
TEST(ChooseVerifyRowsTest, NeverLooksAtWhatItDecidesAbout) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> uniform(0, 1);
  int cut = 0;
  for (std::size_t trial = 0; trial < 2000; ++trial) {
    Confidences confidences(1 + trial % 5);
    for (std::vector<float>& its : confidences) {
      for (int j = 0; j < 7; ++j) its.push_back(std::sqrt(uniform(random)));
    }
    const std::int64_t before = ChooseVerifyRows(confidences, kLinear);
    const std::size_t from = random() % 7;
    for (std::vector<float>& its : confidences) {
      for (std::size_t j = from; j < 7; ++j) its[j] = uniform(random);
    }
    const std::int64_t after = ChooseVerifyRows(confidences, kLinear);
    const auto known = static_cast<std::int64_t>(from);
    EXPECT_EQ(std::min(before, known), std::min(after, known));
    cut += before < 7 && before > 0 ? 1 : 0;
  }
  EXPECT_GT(cut, 500) << "the cases decide nothing";
}

// Dearer rows never verify more.
TEST(ChooseVerifyRowsTest, FallsWithThePriceOfARow) {
  std::mt19937_64 random(6);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (int trial = 0; trial < 500; ++trial) {
    Confidences confidences(3);
    for (std::vector<float>& its : confidences) {
      for (int j = 0; j < 7; ++j) its.push_back(std::sqrt(uniform(random)));
    }
    std::int64_t last = 7;
    for (const std::int64_t row : {0, 1, 2, 4, 8, 16, 64}) {
      const std::int64_t chosen = ChooseVerifyRows(confidences, {.fixed = 64, .row = row});
      EXPECT_LE(chosen, last);
      last = chosen;
    }
  }
}

}  // namespace
}  // namespace kvasir
