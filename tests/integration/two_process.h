// A planner and two workers, one rank each, and the demo pair planned for them.
#ifndef KVASIR_TESTS_INTEGRATION_TWO_PROCESS_H_
#define KVASIR_TESTS_INTEGRATION_TWO_PROCESS_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/integration/cluster.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {

inline std::vector<std::int32_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }

inline std::vector<std::vector<std::int32_t>> Prompts() {
  return {Bytes("12 + 30 ="), Bytes("The raven flew over"), Bytes("kvasir"), Bytes("To be, or"), Bytes("x")};
}

class TwoProcessTest : public ::testing::Test {
 protected:
  void StartAll(const std::vector<std::string>& leader_flags = {},
                const std::vector<std::string>& follower_flags = {}) {
    planner_ = StartPlanner(state_.path());
    leader_ = StartWorker(leader_flags);
    follower_ = StartWorker(follower_flags);
    auto planned = PlanDemoPair(*planner_.stub);
    ASSERT_TRUE(planned.ok()) << planned.status();
    plan_ = *std::move(planned);
  }

  ApplyOutcome ApplyToBoth() { return Apply(*planner_.stub, plan_, {leader_.address, follower_.address}); }

  // The proof that everything works again.
  void ExpectApplyAndDecodeSucceed() {
    const ApplyOutcome applied = ApplyToBoth();
    ASSERT_THAT(applied.status, IsOk()) << Logs();
    const StreamOutcome decoded = DecodePrompts(*leader_.stub, Prompts(), 8, true);
    KVASIR_EXPECT_OK(decoded.status);
    EXPECT_EQ(decoded.finished.size(), Prompts().size()) << Logs();
  }

  [[nodiscard]] std::string Logs() const {
    return "\nplanner:\n" + planner_.process->output() + "\nleader:\n" + leader_.process->output() +
           "\nfollower:\n" + follower_.process->output();
  }

  TempDir state_;
  PlannerServer planner_;
  WorkerServer leader_;
  WorkerServer follower_;
  planner::v1::ApplyPlanRequest plan_;
};

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_INTEGRATION_TWO_PROCESS_H_
