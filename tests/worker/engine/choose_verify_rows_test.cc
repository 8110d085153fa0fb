#include "worker/engine/choose_verify_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace kvasir {
namespace {

using Confidences = std::vector<std::vector<double>>;
using Rows = std::vector<std::int64_t>;

double Free(std::int64_t /*rows*/) { return 100; }
// A step costs 8 rows' worth of fixed time.
double Linear(std::int64_t rows) { return 1000.0 / static_cast<double>(8 + rows); }

TEST(ChooseVerifyRowsTest, VerifiesEverythingWorthAnythingWhereRowsAreFree) {
  EXPECT_EQ(ChooseVerifyRows(Confidences{{0.1, 0.1}, {0.9}, {}}, Free), (Rows{2, 1, 0}));
  EXPECT_EQ(ChooseVerifyRows(Confidences{{0.5, 0, 0.9}}, Free), (Rows{1}));
}

TEST(ChooseVerifyRowsTest, VerifiesNothingWhereEveryRowCostsAStep) {
  const auto dear = [](std::int64_t rows) { return 1.0 / static_cast<double>(rows * rows); };
  EXPECT_EQ(ChooseVerifyRows(Confidences{{1, 1, 1}, {1}}, dear), (Rows{0, 0}));
}

TEST(ChooseVerifyRowsTest, PrefersTheConfidentRequest) {
  // From 2 tokens in 10 rows' time, a row must add more than its share: 0.2 falling to rate.
  EXPECT_EQ(ChooseVerifyRows(Confidences{{0.95, 0.95, 0.95}, {0.1, 0.9, 0.9}}, Linear), (Rows{3, 0}));
}

TEST(ChooseVerifyRowsTest, NoRequestsAndBadConfidencesAreHarmless) {
  EXPECT_EQ(ChooseVerifyRows({}, Free), Rows{});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ChooseVerifyRows(Confidences{{nan, 1}, {-3}, {7, 0.5}}, Free), (Rows{0, 0, 2}));
}

// Whatever the confidences from row j on say, whether rows before j are verified stays the same.
TEST(ChooseVerifyRowsTest, NeverLooksAtWhatItDecidesAbout) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::int64_t cut = 0;
  for (std::size_t trial = 0; trial < 2000; ++trial) {
    Confidences confidences(1 + trial % 5);
    for (std::vector<double>& its : confidences) {
      for (int j = 0; j < 7; ++j) its.push_back(std::sqrt(uniform(random)));
    }
    const Rows before = ChooseVerifyRows(confidences, Linear);
    const std::size_t request = trial % confidences.size();
    const std::size_t from = random() % 7;
    for (std::size_t j = from; j < 7; ++j) confidences[request][j] = uniform(random);
    const Rows after = ChooseVerifyRows(confidences, Linear);
    const auto known = static_cast<std::int64_t>(from);
    EXPECT_EQ(std::min(before[request], known), std::min(after[request], known));
    cut += before[request] < 7 && before[request] > 0 ? 1 : 0;
  }
  EXPECT_GT(cut, 500);
}

}  // namespace
}  // namespace kvasir
