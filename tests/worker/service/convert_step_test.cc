// A step is the same step on the other side of the wire.
#include "worker/service/convert_step.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

TEST(ConvertStep, AStepComesBackAsItWent) {
  StepPlan step{.epoch = Epoch(3), .plan_id = std::string(64, 'a'), .step = 7, .kind = StepKind::kSpeculate};
  step.zero_parents = {ParentId(2), ParentId(5)};
  step.move = ParentMove{.pool = PoolId(1), .parent = ParentId(3), .blocks = {{BlockId(6), BlockId(9)}}};
  StepSequence sequence{
      .id = SequenceId(9), .committed = 40, .limit = 64, .tokens = {11}, .pending = 2, .seat = 5};
  sequence.blocks = {{BlockId(4), BlockId(6)}, {}};
  sequence.sampling = {.temperature = 0.5, .top_k = 3, .top_p = 0.75, .seed = 1, .logprobs = true};
  step.sequences.push_back(sequence);
  for (const StepCost& cost :
       {StepCost{}, StepCost{.fixed = 0, .row = 1}, StepCost{.fixed = 900, .row = 40}}) {
    step.cost = cost;
    const auto back = ToStepPlan(FromStepPlan(step));
    KVASIR_ASSERT_OK(back);
    EXPECT_EQ(back->cost, cost);
    EXPECT_EQ(back->epoch, step.epoch);
    EXPECT_EQ(back->plan_id, step.plan_id);
    EXPECT_EQ(back->step, step.step);
    EXPECT_EQ(back->kind, step.kind);
    EXPECT_EQ(back->zero_parents, step.zero_parents);
    EXPECT_EQ(back->move, step.move);
    ASSERT_EQ(back->sequences.size(), 1U);
    const StepSequence& its = back->sequences[0];
    EXPECT_EQ(its.id, sequence.id);
    EXPECT_EQ(its.committed, sequence.committed);
    EXPECT_EQ(its.limit, sequence.limit);
    EXPECT_EQ(its.tokens, sequence.tokens);
    EXPECT_EQ(its.pending, sequence.pending);
    EXPECT_EQ(its.seat, sequence.seat);
    EXPECT_EQ(its.blocks, sequence.blocks);
    EXPECT_EQ(its.sampling, sequence.sampling);
  }
}

}  // namespace
}  // namespace kvasir
