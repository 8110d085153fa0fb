// A step on all ranks: which of several failures is told, and that outcomes must agree.
#include "worker/service/run_step.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "tests/testing/matchers.h"
#include "tests/worker/service/leader_loop_rig.h"

namespace kvasir {
namespace {

using testing::Answer;
using testing::FakePeer;
using testing::kKey;
using testing::kLong;
using testing::Nan;
using testing::StatusIs;
using testing::Unreachable;
using testing::WaitingPeer;

struct StepCase {
  std::string name;
  absl::Status local;
  absl::Status peer;
  absl::StatusCode code;
  std::string reason;
  bool local_first = false;
};
void PrintTo(const StepCase& c, std::ostream* out) { *out << c.name; }

StepPlan DecodeStep() {
  return {.epoch = kKey.epoch,
          .plan_id = kKey.plan_id,
          .step = 5,
          .kind = StepKind::kDecode,
          .zero_parents = {},
          .sequences = {}};
}

class RunStepTest : public ::testing::TestWithParam<StepCase> {};

TEST_P(RunStepTest, TheCauseIsTheOneThatExplainsTheOthers) {
  const StepPlan step = DecodeStep();
  const auto answer = [&](const absl::Status& status) -> absl::StatusOr<StepOutcome> {
    if (!status.ok()) return status;
    return Answer(step);
  };
  std::vector<std::unique_ptr<StepPeer>> peers;
  if (GetParam().local_first) {
    peers.push_back(std::make_unique<WaitingPeer>(GetParam().peer));
  } else {
    peers.push_back(std::make_unique<FakePeer>([&](const StepPlan&) { return answer(GetParam().peer); }));
  }
  const StepRunner local{[&](const StepPlan&) { return answer(GetParam().local); }, [](const std::string&) {},
                         kLong};
  const absl::StatusOr<StepOutcome> outcome = RunStepEverywhere(local, peers, step);
  EXPECT_EQ(outcome.status().code(), GetParam().code) << outcome.status();
  EXPECT_EQ(outcome.ok() ? "" : ErrorOf(outcome.status()).reason, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    Causes, RunStepTest,
    ::testing::Values(StepCase{"AllWell", absl::OkStatus(), absl::OkStatus(), absl::StatusCode::kOk, ""},
                      StepCase{"BothSawNaN", Nan(), Nan(), absl::StatusCode::kDataLoss, reason::kNotANumber},
                      StepCase{"OneSawNaN", absl::OkStatus(), Nan(), absl::StatusCode::kInternal, "INTERNAL"},
                      StepCase{"PeerIsGone", absl::CancelledError("aborted"), Unreachable(),
                               absl::StatusCode::kUnavailable, reason::kRankLost},
                      StepCase{"PeerIsSilent", absl::CancelledError("aborted"),
                               absl::DeadlineExceededError("late"), absl::StatusCode::kUnavailable,
                               reason::kRankLost},
                      StepCase{"PeerRefuses", absl::CancelledError("aborted"),
                               absl::FailedPreconditionError("not running"),
                               absl::StatusCode::kFailedPrecondition, "FAILED_PRECONDITION"},
                      StepCase{"LocalIsBroken", absl::InternalError("bug"), absl::CancelledError("cancelled"),
                               absl::StatusCode::kInternal, "INTERNAL", true},
                      StepCase{"PeerStops", absl::CancelledError("aborted"), absl::CancelledError("stopping"),
                               absl::StatusCode::kUnavailable, reason::kRankLost},
                      StepCase{"LocalNoticesFirst", absl::UnavailableError("rank 1 is gone"), Unreachable(),
                               absl::StatusCode::kUnavailable, reason::kRankLost, true}),
    [](const auto& tested) { return tested.param.name; });

TEST(RunStepTest, OtherTokensOnAPeerAreAnError) {
  StepPlan step = DecodeStep();
  step.sequences.emplace_back();
  std::vector<std::unique_ptr<StepPeer>> peers;
  peers.push_back(std::make_unique<FakePeer>([](const StepPlan& s) {
    StepOutcome outcome = Answer(s);
    outcome.sequences.front().emitted = {77};
    return outcome;
  }));
  const StepRunner local{[](const StepPlan& s) { return Answer(s); }, [](const std::string&) {}, kLong};
  EXPECT_THAT(RunStepEverywhere(local, peers, step),
              StatusIs(absl::StatusCode::kInternal, "another outcome"));
}

}  // namespace
}  // namespace kvasir
