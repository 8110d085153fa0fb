#include "worker/engine/step_cost.h"

#include <gtest/gtest.h>

#include <limits>

#include "worker/engine/choose_verify_rows.h"

namespace kvasir {
namespace {

constexpr StepCost kAllRows = {.fixed = 1, .row = 0};
constexpr StepCost kNoRows = {.fixed = 0, .row = 1};

TEST(StepCostEstimate, MeasuresBothEndsFirst) {
  StepCostEstimate estimate;
  EXPECT_EQ(estimate.Next(4), kAllRows);
  estimate.Add(4, 7, 1000 + 50 * 32);
  EXPECT_EQ(estimate.Next(4), kNoRows);
  EXPECT_EQ(ChooseVerifyRows(std::vector<std::vector<float>>(4, {1, 1, 1}), kNoRows), 0);
  estimate.Add(4, 0, 1000 + 50 * 4);
  EXPECT_EQ(estimate.Next(4), (StepCost{.fixed = 1000, .row = 50}));
  EXPECT_EQ(estimate.Next(3), kAllRows) << "another number of requests has a line of its own";
}

TEST(StepCostEstimate, FollowsAChange) {
  StepCostEstimate estimate;
  const auto run = [&](std::int64_t fixed, std::int64_t row) {
    StepCost last;
    for (int step = 0; step < 1000; ++step) {
      const StepCost cost = estimate.Next(2);
      const std::int64_t drafted = cost == kAllRows ? 7 : cost == kNoRows ? 0 : step % 8;
      if (cost != kAllRows && cost != kNoRows) last = cost;
      estimate.Add(2, drafted, fixed + row * 2 * (1 + drafted));
    }
    return last;
  };
  const StepCost first = run(1'000'000, 2'000);
  EXPECT_NEAR(static_cast<double>(first.row), 2'000, 2);
  const StepCost second = run(500'000, 9'000);
  EXPECT_NEAR(static_cast<double>(second.row), 9'000, 9);
  EXPECT_NEAR(static_cast<double>(second.fixed), 500'000, 500);
}

TEST(StepCostEstimate, RowsThatSeemToCostNothingAreFree) {
  StepCostEstimate estimate;
  (void)estimate.Next(1);
  estimate.Add(1, 7, 1000);
  (void)estimate.Next(1);
  estimate.Add(1, 0, 5000);
  EXPECT_EQ(estimate.Next(1), kAllRows);
}

TEST(StepCostEstimate, StaysInBoundsWhateverTheClockSays) {
  StepCostEstimate estimate;
  for (const std::int64_t time :
       {std::numeric_limits<std::int64_t>::max(), std::int64_t{0}, std::int64_t{-5}}) {
    for (int i = 0; i < 40; ++i) {
      const StepCost cost = estimate.Next(1 + i % 2);
      EXPECT_GE(cost.fixed, 0);
      EXPECT_LE(cost.fixed, kStepCostMax);
      EXPECT_GE(cost.row, 0);
      EXPECT_LE(cost.row, kStepCostMax);
      estimate.Add(1 + i % 2, i % 8, time);
    }
  }
}

}  // namespace
}  // namespace kvasir
