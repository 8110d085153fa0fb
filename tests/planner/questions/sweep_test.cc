// A grid's points are the questions they stand for, its limits hold, its front is what nothing beats.
#include "planner/questions/sweep.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "common/base/typed_error.h"
#include "common/models/catalogue.h"
#include "planner/core/capacity.h"
#include "planner/questions/solve.h"
#include "planner/rulesets/make_plan.h"
#include "tests/testing/kimi_question.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using testing::kGiB;
using testing::KimiQuestion;

TEST(SweepTest, PointsAreTheirQuestions) {
  SweepAxes axes;
  axes.tp = {8, 16};
  axes.dcp = {1, 8, 16};
  axes.contexts = {8192, 131072};
  axes.state_rollbacks = {"snapshots", "replay"};
  const auto count = CountPoints(KimiQuestion(), axes);
  KVASIR_ASSERT_OK(count);
  EXPECT_EQ(*count, 20);  // dcp 16 is no point of tp 8
  const std::vector<SweepPoint> points = Sweep(KimiQuestion(), axes);
  ASSERT_EQ(points.size(), 20U);
  EXPECT_EQ(points[0].options.contexts.front(), 8192);
  EXPECT_EQ(points[1].options.contexts.front(), 131072);
  for (const SweepPoint& point : points) {
    PlanQuestion asked = KimiQuestion();
    asked.options = point.options;
    const PlanOutcome outcome = MakePlan(RequestOf(asked));
    const auto* planned = std::get_if<Planned>(&outcome);
    ASSERT_EQ(point.verdict == SweepVerdict::kFits, planned != nullptr);
    if (planned == nullptr) {
      EXPECT_NE(point.why, "");
      continue;
    }
    EXPECT_EQ(point.plan_id, planned->plan_id);
    EXPECT_EQ(point.requests, CapacityAt(planned->plan, point.context_tokens).requests);
  }
}

TEST(SweepTest, TheFrontIsWhatNothingBeats) {
  SweepAxes axes;
  axes.tp = {4, 8, 16};
  axes.dcp = {1, 2, 4, 8};
  axes.contexts = {8192, 32768, 131072};
  const std::vector<SweepPoint> points = Sweep(KimiQuestion(), axes);
  int front = 0;
  for (const SweepPoint& point : points) {
    bool beaten = point.verdict != SweepVerdict::kFits;
    for (const SweepPoint& other : points) {
      if (other.verdict != SweepVerdict::kFits || other.context_tokens != point.context_tokens) continue;
      const bool no_worse = other.options.tp <= point.options.tp && other.requests >= point.requests;
      const bool better = other.options.tp < point.options.tp || other.requests > point.requests;
      beaten = beaten || (no_worse && better);
    }
    EXPECT_EQ(point.on_front, !beaten);
    front += point.on_front ? 1 : 0;
  }
  EXPECT_GE(front, 3);
}

TEST(SweepTest, EnginesArePlannedBesideOurs) {
  SweepAxes axes;
  axes.rulesets = {"native", "vllm-2026-08", "vllm-2026-11", "vllm-1999-01"};
  const std::vector<SweepPoint> points = Sweep(KimiQuestion(), axes);
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[0].verdict, SweepVerdict::kFits);
  EXPECT_EQ(points[2].verdict, SweepVerdict::kFits);
  EXPECT_GT(points[0].requests, points[2].requests);
  EXPECT_EQ(points[3].verdict, SweepVerdict::kRefused);
  EXPECT_EQ(points[3].why, "RULESET_UNKNOWN");
}

TEST(SweepTest, DevicesSayHowMuchThereIs) {
  SweepAxes axes;
  axes.devices = {*FindGpu("l4"), *FindGpu("b300")};
  axes.tp = {16};
  const std::vector<SweepPoint> points = Sweep(KimiQuestion(), axes);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].verdict, SweepVerdict::kDoesNotFit);
  EXPECT_EQ(points[0].why, "weights fill the device");
  EXPECT_EQ(points[1].device, "b300");
  EXPECT_EQ(points[1].verdict, SweepVerdict::kFits);
}

// Where the weights are known as a range, so is the answer; and it is the one that solve gives.
TEST(SweepTest, ADevicesAnswerIsARange) {
  SweepAxes axes;
  axes.devices = {*FindGpu("h200")};
  axes.tp = {16};
  axes.dcp = {3, 16};
  axes.contexts = {131072};
  const std::vector<SweepPoint> points = Sweep(KimiQuestion(), axes);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(CountLeftOut(KimiQuestion(), axes), 1);
  EXPECT_EQ(points[0].verdict, SweepVerdict::kMayFit);
  EXPECT_EQ(points[0].requests, 0);
  SolveQuestion question{.base = KimiQuestion(), .goal = SolveGoal::kRequests, .device = axes.devices[0]};
  question.batch_is_said = true;  // as of every point of a grid
  question.base.options.tp = 16;
  question.base.options.dcp = 16;
  question.base.options.contexts = {131072};
  const SolveAnswer answer = Solve(question);
  ASSERT_TRUE(answer.at_best.has_value());
  EXPECT_EQ(points[0].requests_most, answer.at_best->value);
}

// An engine's kernels are judged where the device is named.
TEST(SweepTest, ADevicesKernelsAreJudged) {
  SweepAxes axes;
  axes.devices = {*FindGpu("h200")};
  axes.tp = {16};
  axes.dcp = {16};
  axes.rulesets = {"native", "vllm-2026-11"};
  const std::vector<SweepPoint> points = Sweep(KimiQuestion(), axes);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_NE(points[0].verdict, SweepVerdict::kRefused);
  EXPECT_EQ(points[1].verdict, SweepVerdict::kRefused);
  EXPECT_NE(points[1].why.find("attention_backend"), std::string::npos) << points[1].why;
}

TEST(SweepTest, ARuleIsNamedWhateverTheDevice) {
  SweepAxes axes;
  axes.devices = {*FindGpu("b300")};
  axes.tp = {3};
  axes.dcp = {1};
  const std::vector<SweepPoint> points = Sweep(KimiQuestion(), axes);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].verdict, SweepVerdict::kRefused);
  EXPECT_EQ(points[0].why, "HEADS_NOT_DIVISIBLE_BY_TP");
}

TEST(SweepTest, RefusesWhatNobodyCouldWaitFor) {
  SweepAxes axes;
  for (std::int64_t i = 1; i <= 400; ++i) {
    axes.tp.push_back(i);
    axes.dcp.push_back(i);
  }
  EXPECT_EQ(ErrorOf(CountPoints(KimiQuestion(), axes).status()).reason, "VALUE_OUT_OF_RANGE");
  EXPECT_TRUE(Sweep(KimiQuestion(), axes).empty());
  SweepAxes twice;
  twice.tp = {8, 4, 8};
  EXPECT_EQ(ErrorOf(CountPoints(KimiQuestion(), twice).status()).reason, "DUPLICATE_ITEM");
  SweepAxes one_device;
  one_device.devices = {*FindGpu("h200"), *FindGpu("H200")};
  EXPECT_EQ(ErrorOf(CountPoints(KimiQuestion(), one_device).status()).field, "device");
  SweepAxes indivisible;
  indivisible.tp = {8, 16};
  indivisible.dcp = {3, 5};
  EXPECT_EQ(ErrorOf(CountPoints(KimiQuestion(), indivisible).status()).field, "dcp");
}

TEST(SweepTest, EndsEarlyWhenItIsTold) {
  SweepAxes axes;
  axes.contexts = {8192, 16384, 32768, 65536};
  std::vector<std::int64_t> seen;
  const std::vector<SweepPoint> points =
      Sweep(KimiQuestion(), axes, [&seen](const SweepPoint&, const SweepProgress& at) {
        EXPECT_EQ(at.points, 4);
        seen.push_back(at.done);
        return at.done < 2;
      });
  EXPECT_EQ(seen, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(points.size(), 2U);
}

TEST(SweepTest, HostileValuesAreRefusedPointByPoint) {
  SweepAxes axes;
  axes.tp = {0, -3, std::int64_t{1} << 62, 8};
  axes.dcp = {0, -1, 1};
  axes.contexts = {-5, std::int64_t{1} << 62};
  axes.rulesets = {"native", "vllm-2026-11"};
  for (const SweepPoint& point : Sweep(KimiQuestion(), axes)) {
    EXPECT_NE(point.verdict, SweepVerdict::kFits);
    EXPECT_NE(point.why, "");
  }
}

}  // namespace
}  // namespace kvasir
