// What is solved was planned: one more, one longer, one rank or one byte fewer does not fit.
#include "planner/questions/solve.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "common/models/catalogue.h"
#include "planner/core/capacity.h"
#include "planner/questions/changes.h"
#include "planner/rulesets/make_plan.h"
#include "tests/testing/kimi_question.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using testing::kGiB;
using testing::KimiQuestion;

SolveQuestion Looking(SolveGoal goal) {
  SolveQuestion question;
  question.base = KimiQuestion();
  question.goal = goal;
  question.ranks_max = 16;
  return question;
}

bool Fits(const PlanQuestion& question) {
  return std::holds_alternative<Planned>(MakePlan(RequestOf(question)));
}

TEST(SolveTest, TheMostRequests) {
  SolveQuestion question = Looking(SolveGoal::kRequests);
  const SolveAnswer answer = Solve(question);
  ASSERT_TRUE(answer.solution.has_value());
  EXPECT_EQ(answer.solution->value, answer.solution->requests);
  EXPECT_EQ(answer.solution->context_tokens, 131072);
  PlanQuestion asked = question.base;
  asked.options.min_requests = answer.solution->value;
  EXPECT_TRUE(Fits(asked));
  asked.options.min_requests += 1;
  EXPECT_FALSE(Fits(asked));
}

TEST(SolveTest, TheLongestContext) {
  SolveQuestion question = Looking(SolveGoal::kContext);
  question.base.options.min_requests = 64;
  const SolveAnswer answer = Solve(question);
  ASSERT_TRUE(answer.solution.has_value());
  EXPECT_GE(answer.solution->requests, 64);
  PlanQuestion asked = question.base;
  asked.options.contexts = {answer.solution->value};
  EXPECT_TRUE(Fits(asked));
  asked.options.contexts = {answer.solution->value + 1};
  EXPECT_FALSE(Fits(asked));
}

TEST(SolveTest, TheModelsLimitIsTheLongestThatIsFound) {
  SolveQuestion question = Looking(SolveGoal::kContext);
  const SolveAnswer answer = Solve(question);
  ASSERT_TRUE(answer.solution.has_value());
  EXPECT_EQ(answer.solution->value, question.base.target.context);
}

TEST(SolveTest, TheLeastMemory) {
  SolveQuestion question = Looking(SolveGoal::kMemory);
  question.base.options.min_requests = 64;
  question.base.options.kv_memory_bytes = {1};  // not looked at
  const SolveAnswer answer = Solve(question);
  ASSERT_TRUE(answer.solution.has_value());
  PlanQuestion asked = question.base;
  asked.options.kv_memory_bytes = {answer.solution->value};
  EXPECT_TRUE(Fits(asked));
  asked.options.kv_memory_bytes = {answer.solution->value - 1};
  EXPECT_FALSE(Fits(asked));
}

TEST(SolveTest, TheFewestRanks) {
  SolveQuestion question = Looking(SolveGoal::kRanks);
  question.base.options.min_requests = 64;
  const SolveAnswer answer = Solve(question);
  ASSERT_TRUE(answer.solution.has_value());
  const std::int64_t ranks = answer.solution->value;
  EXPECT_EQ(answer.solution->options.tp, ranks);
  EXPECT_GE(answer.solution->requests, 64);
  for (std::int64_t tp = 1; tp <= ranks; ++tp) {
    for (std::int64_t dcp = 1; dcp <= tp; ++dcp) {
      if (tp % dcp != 0) continue;
      PlanQuestion asked = question.base;
      asked.options.tp = tp;
      asked.options.dcp = dcp;
      const PlanOutcome outcome = MakePlan(RequestOf(asked));
      const auto* planned = std::get_if<Planned>(&outcome);
      if (tp < ranks) {
        EXPECT_EQ(planned, nullptr) << tp << " " << dcp;
      } else if (planned != nullptr) {
        EXPECT_LE(CapacityAt(planned->plan, 131072).requests, answer.solution->requests);
      }
    }
  }
}

// The device's budget shrinks with the weights of each rank, so fewer ranks have less for caches, or nothing.
TEST(SolveTest, ADeviceSaysWhatEachNumberOfRanksHas) {
  SolveQuestion question = Looking(SolveGoal::kRanks);
  question.device = *FindGpu("b300");
  question.base.options.min_requests = 32;
  const SolveAnswer answer = Solve(question);
  ASSERT_TRUE(answer.solution.has_value());
  PlanQuestion asked = question.base;
  asked.options.tp = answer.solution->options.tp;
  asked.options.dcp = answer.solution->options.dcp;
  KVASIR_ASSERT_OK(SetMemoryOf(*question.device, MemoryEnd::kLeast, asked));
  EXPECT_EQ(asked.options.kv_memory_bytes.front(), answer.solution->planned.plan.arena_bytes.value());
  // At best fewer ranks do.
  ASSERT_TRUE(answer.at_best.has_value());
  EXPECT_LT(answer.at_best->value, answer.solution->value);
  question.ranks_max = 4;  // the weights alone take more than four devices
  const SolveAnswer none = Solve(question);
  EXPECT_FALSE(none.solution.has_value());
  EXPECT_FALSE(none.at_best.has_value());
  EXPECT_NE(none.why_not.device, "");
}

SolveQuestion RequestsOn(const char* device, const char* model, std::int64_t context) {
  SolveQuestion question;
  question.goal = SolveGoal::kRequests;
  question.device = *FindGpu(device);
  question.base.target = *FindInCatalogue(model);
  question.base.options.contexts = {context};
  return question;
}

// A larger batch leaves less for caches: all that are found run together, and one more would not.
TEST(SolveTest, AllRequestsOfADeviceRunAsOneBatch) {
  SolveQuestion question = RequestsOn("h200", "llama-3.1-8b", 8192);
  const SolveAnswer answer = Solve(question);
  ASSERT_TRUE(answer.solution.has_value());
  EXPECT_EQ(answer.solution->options.max_requests, answer.solution->value);
  EXPECT_GE(answer.solution->requests, answer.solution->value);
  const auto admits = [&question](std::int64_t batch) {
    PlanQuestion asked = question.base;
    asked.options.max_requests = batch;
    asked.options.min_requests = batch;
    return SetMemoryOf(*question.device, MemoryEnd::kLeast, asked).ok() && Fits(asked);
  };
  EXPECT_TRUE(admits(answer.solution->value));
  EXPECT_FALSE(admits(answer.solution->value + 1));
  // A batch that is said stays, and leaves more for those that wait.
  question.batch_is_said = true;
  const SolveAnswer said = Solve(question);
  ASSERT_TRUE(said.solution.has_value());
  EXPECT_EQ(said.solution->options.max_requests, 16);
  EXPECT_GT(said.solution->value, answer.solution->value);
}

// More requests than the tokens of a usual step are no reason to refuse: the step grows with them.
TEST(SolveTest, ABatchMayBeLargerThanTheEnginesUsualStep) {
  SolveQuestion question = RequestsOn("l4", "qwen3-4b", 64);
  const SolveAnswer answer = Solve(question);
  ASSERT_TRUE(answer.solution.has_value()) << answer.why_not.device;
  EXPECT_EQ(answer.solution->options.max_requests, answer.solution->value);
  question.base.options.max_requests = 3000;
  question.batch_is_said = true;
  const SolveAnswer large = Solve(question);
  EXPECT_TRUE(large.why_not.refusals.empty());
  EXPECT_TRUE(large.at_best.has_value()) << large.why_not.device;
}

// A dcp that is said is not left, but what another would do is told.
TEST(SolveTest, RanksOfOneDcpNameABetterOne) {
  SolveQuestion question = Looking(SolveGoal::kRanks);
  question.base.options.min_requests = 64;
  const SolveAnswer free = Solve(question);
  ASSERT_TRUE(free.solution.has_value());
  question.base.options.dcp = 1;
  question.dcp_is_said = true;
  const SolveAnswer said = Solve(question);
  ASSERT_FALSE(said.instead.empty());
  EXPECT_EQ(said.instead.front().flags, "--dcp " + std::to_string(free.solution->options.dcp));
  EXPECT_EQ(said.instead.front().value, free.solution->value);
  if (said.solution.has_value()) {
    EXPECT_GT(said.solution->value, free.solution->value);
  } else {
    EXPECT_EQ(said.why_not.dcp, 1);
    EXPECT_GE(said.why_not.tp, 1);
  }
}

// Every change that is offered gives what it says when it is made.
TEST(SolveTest, ChangesGiveWhatTheyPromise) {
  for (const SolveGoal goal : {SolveGoal::kRequests, SolveGoal::kMemory}) {
    SCOPED_TRACE(SolveGoalName(goal));
    SolveQuestion question = Looking(goal);
    question.base.options.dcp = 4;
    question.base.options.state_rollback = "snapshots";
    const SolveAnswer answer = Solve(question);
    ASSERT_TRUE(answer.solution.has_value());
    ASSERT_GE(answer.instead.size(), 3U);
    for (const ChangedSolution& better : answer.instead) {
      SCOPED_TRACE(better.flags);
      for (const Change& change : ChangesOf(question.base)) {
        if (change.flags != better.flags) continue;
        SolveQuestion changed = question;
        change.apply(changed.base);
        const SolveAnswer again = Solve(changed);
        ASSERT_TRUE(again.solution.has_value());
        EXPECT_EQ(again.solution->value, better.value);
      }
      if (goal == SolveGoal::kRequests) {
        EXPECT_GT(better.value, answer.solution->value);
      } else {
        EXPECT_LT(better.value, answer.solution->value);
      }
    }
  }
}

TEST(SolveTest, WhatRulesForbidIsToldAsRefusals) {
  SolveQuestion question = Looking(SolveGoal::kRequests);
  question.base.options.dcp = 3;  // does not divide 8
  const SolveAnswer answer = Solve(question);
  EXPECT_FALSE(answer.solution.has_value());
  ASSERT_FALSE(answer.why_not.refusals.empty());
  ASSERT_FALSE(answer.instead.empty());
  EXPECT_EQ(answer.instead.front().flags.substr(0, 6), "--dcp ");
}

TEST(SolveTest, WhatIsTooSmallForOneRequestSaysWhatIsMissing) {
  SolveQuestion question = Looking(SolveGoal::kRequests);
  question.base.options.kv_memory_bytes = {kGiB / 16};
  const SolveAnswer answer = Solve(question);
  EXPECT_FALSE(answer.solution.has_value());
  ASSERT_TRUE(answer.why_not.misfit.has_value());
  EXPECT_EQ(answer.why_not.misfit->min_requests, 1);
}

TEST(SolveTest, EndsEarlyWhenItIsTold) {
  SolveQuestion question = Looking(SolveGoal::kRanks);
  question.base.options.min_requests = 64;
  int calls = 0;
  const SolveAnswer answer = Solve(question, [&calls] { return ++calls < 3; });
  EXPECT_FALSE(answer.solution.has_value());
  EXPECT_LE(calls, 4);
}

TEST(SolveTest, GoalsHaveWords) {
  for (const SolveGoal goal :
       {SolveGoal::kContext, SolveGoal::kRequests, SolveGoal::kRanks, SolveGoal::kMemory}) {
    EXPECT_EQ(ParseSolveGoal(SolveGoalName(goal)), goal);
  }
  EXPECT_EQ(ParseSolveGoal("speed"), std::nullopt);
}

}  // namespace
}  // namespace kvasir
