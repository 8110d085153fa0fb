// StepPlans as a peer may send them: every malformed one gets InvalidArgument naming the field, nothing
// crashes.
#include "worker/engine/check_step.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "common/base/typed_error.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/matchers.h"
#include "worker/engine/scheduler.h"

namespace kvasir {
namespace {

using testing::kSmallVocab;
using testing::MakeEnginePlan;
using testing::StatusIs;

Plan ThePlan() { return MakeEnginePlan({.topology = {.tp = 2, .dcp = 2}, .parents = 20, .one_pool = false}); }

// A step of the scheduler's own making: prefill of a first chunk, or the first speculative step of two
// sequences.
StepPlan GoodStep(StepKind kind) {
  auto scheduler = *Scheduler::Create(ThePlan(), "plan", Epoch(1), kSmallVocab);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(scheduler->Join({.prompt = std::vector<std::int32_t>(12, 3), .max_tokens = 10}),
                testing::IsOk());
  }
  for (;;) {
    StepPlan step = *scheduler->NextStep();
    const bool prefill = step.kind == StepKind::kPrefill;
    if (step.kind == kind && (prefill || step.sequences.size() == 2)) return step;
    StepOutcome outcome{.step = step.step, .sequences = {{.id = step.sequences[0].id}}};
    if (!prefill) outcome.sequences[0].drafted = 3;
    if (!prefill || step.sequences[0].last_chunk) outcome.sequences[0].emitted = {4};
    EXPECT_THAT(scheduler->Apply(outcome), testing::IsOk());
  }
}

ParentMove Move(std::int32_t pool, std::int64_t parent, const std::vector<std::pair<int, int>>& blocks) {
  ParentMove move{.pool = PoolId(pool), .parent = ParentId(parent)};
  for (const auto& [from, to] : blocks) move.blocks.push_back({BlockId(from), BlockId(to)});
  return move;
}

struct Case {
  const char* name;
  StepKind kind;
  std::function<void(StepPlan&)> spoil;
  const char* message;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> Cases() {
  constexpr StepKind kP = StepKind::kPrefill;
  constexpr StepKind kS = StepKind::kSpeculate;
  using Step = StepPlan;
  return {
      {"kind_unknown", kS, [](Step& s) { s.kind = static_cast<StepKind>(9); }, "kind: 9"},
      {"no_sequences", kS, [](Step& s) { s.sequences.clear(); }, "sequences: 0, want 1 .. 4"},
      {"prefill_of_two", kS, [](Step& s) { s.kind = StepKind::kPrefill; },
       "sequences: 2, want 1 in a prefill"},
      {"too_many", kS, [](Step& s) { s.sequences.resize(5, s.sequences[0]); }, "sequences: 5, want 1 .. 4"},
      {"twice", kS, [](Step& s) { s.sequences[1].id = s.sequences[0].id; }, "id 0 stands there twice"},
      {"seat_twice", kS, [](Step& s) { s.sequences[1].seat = s.sequences[0].seat; },
       "seat 0 stands there twice"},
      {"seat_negative", kS, [](Step& s) { s.sequences[1].seat = -1; }, "sequences[1].seat: -1, want 0 .. 3"},
      {"seat_past_requests", kS, [](Step& s) { s.sequences[1].seat = 4; },
       "sequences[1].seat: 4, want 0 .. 3"},
      {"id_negative", kS, [](Step& s) { s.sequences[1].id = SequenceId(-4); }, "sequences[1].id: -4"},
      {"limit_zero", kS, [](Step& s) { s.sequences[1].limit = 0; }, "sequences[1].limit: 0, want 1 .. 96"},
      {"limit_huge", kS, [](Step& s) { s.sequences[1].limit = INT64_MAX; }, "limit: 9223372036854775807"},
      {"committed_negative", kS, [](Step& s) { s.sequences[0].committed = -1; },
       "committed: -1, want 0 .. 21"},
      {"committed_at_limit", kS, [](Step& s) { s.sequences[0].committed = 22; },
       "committed: 22, want 0 .. 21"},
      {"committed_huge", kS, [](Step& s) { s.sequences[0].committed = INT64_MAX; },
       "committed: 9223372036854775807"},
      {"no_anchor", kS, [](Step& s) { s.sequences[0].tokens.clear(); },
       "sequences[0].tokens: 0, want 1 token"},
      {"two_anchors", kS, [](Step& s) { s.sequences[0].tokens = {1, 2}; },
       "sequences[0].tokens: 2, want 1 token"},
      {"last_chunk", kS, [](Step& s) { s.sequences[0].last_chunk = true; }, "last_chunk: 1"},
      {"token_negative", kS, [](Step& s) { s.sequences[1].tokens = {-1}; }, "sequences[1].tokens[0]: -1"},
      {"token_past_vocab", kS, [](Step& s) { s.sequences[1].tokens = {96}; }, "tokens[0]: 96, want 0 .. 95"},
      {"temperature_nan", kS,
       [](Step& s) { s.sequences[1].sampling.temperature = std::numeric_limits<double>::quiet_NaN(); },
       "sampling.temperature: nan, want 0 (greedy) to 100"},
      {"top_k_negative", kP, [](Step& s) { s.sequences[0].sampling.top_k = -1; }, "sampling.top_k: -1"},
      {"top_p_zero", kS, [](Step& s) { s.sequences[0].sampling.top_p = 0; }, "sampling.top_p: 0"},
      {"verify_method", kS, [](Step& s) { s.sequences[0].sampling.verify = static_cast<VerifyMethod>(7); },
       "sampling.verify_method: 7"},
      {"no_pools", kS, [](Step& s) { s.sequences[0].blocks.clear(); },
       "sequences[0].blocks: 0, want one list for each of 2"},
      {"extra_pool", kS, [](Step& s) { s.sequences[0].blocks.resize(3); }, "sequences[0].blocks: 3"},
      {"column_missing", kS, [](Step& s) { s.sequences[0].blocks[1].pop_back(); },
       "blocks[draft]: 2, want 3 columns"},
      {"column_extra", kS, [](Step& s) { s.sequences[0].blocks[0].emplace_back(50); },
       "blocks[target]: 4, want 3"},
      {"null_block", kS, [](Step& s) { s.sequences[0].blocks[0][1] = BlockId(0); },
       "blocks[target][1]: 0, want a block 3 .. 59"},
      {"null_parent", kS, [](Step& s) { s.sequences[0].blocks[0][1] = BlockId(2); }, "blocks[target][1]: 2"},
      {"past_arena", kS, [](Step& s) { s.sequences[0].blocks[1][2] = BlockId(60); }, "blocks[draft][2]: 60"},
      {"negative_block", kS, [](Step& s) { s.sequences[0].blocks[1][2] = BlockId(-7); },
       "blocks[draft][2]: -7"},
      {"huge_block", kS, [](Step& s) { s.sequences[0].blocks[1][2] = BlockId(INT64_MAX); },
       "blocks[draft][2]: 922"},
      {"shared_block", kS, [](Step& s) { s.sequences[1].blocks[0][0] = s.sequences[0].blocks[0][0]; },
       "block 3 of pool target is given to sequence 0 and to sequence 1"},
      {"block_in_two_columns", kS, [](Step& s) { s.sequences[0].blocks[0][2] = s.sequences[0].blocks[0][1]; },
       "block 4 of pool target is given to sequence 0 and to sequence 0"},
      {"parent_of_two_pools", kS,
       [](Step& s) { s.sequences[0].blocks[1][0] = BlockId(s.sequences[0].blocks[0][0].value()); },
       "parent 1 holds block 5 of pool target and block 3 of pool draft"},
      {"zero_null_parent", kS, [](Step& s) { s.zero_parents = {ParentId(0)}; },
       "zero_parents[0]: 0, want 1 .. 19"},
      {"zero_past_arena", kS, [](Step& s) { s.zero_parents = {ParentId(20)}; }, "zero_parents[0]: 20"},
      {"zero_negative", kS, [](Step& s) { s.zero_parents = {ParentId(-3)}; }, "zero_parents[0]: -3"},
      {"zero_twice", kS, [](Step& s) { s.zero_parents = {ParentId(9), ParentId(9)}; },
       "zero_parents[1]: 9, want ascending"},
      {"zero_live", kS, [](Step& s) { s.zero_parents = {ParentId(1)}; }, "holds tokens of sequence 0"},
      {"move_pool", kS, [](Step& s) { s.move = Move(2, 10, {{30, 3}}); }, "move.pool: 2, want 0 .. 1"},
      {"move_null_parent", kS, [](Step& s) { s.move = Move(0, 0, {{1, 3}}); },
       "move.parent: 0, want 1 .. 19"},
      {"move_nothing", kS, [](Step& s) { s.move = Move(0, 10, {}); }, "move.blocks: 0, want at least one"},
      {"move_elsewhere", kS, [](Step& s) { s.move = Move(0, 10, {{33, 3}}); },
       "move.blocks[0].from: 33, want ascending blocks of parent 10"},
      {"move_descending", kS, [](Step& s) { s.move = Move(0, 10, {{31, 3}, {30, 4}}); },
       "move.blocks[1].from: 30, want ascending"},
      {"move_inside", kS, [](Step& s) { s.move = Move(0, 10, {{30, 31}}); },
       "move.blocks[0].to: 31, want a block 3 .. 59 outside parent 10"},
      {"move_past_arena", kS, [](Step& s) { s.move = Move(0, 10, {{30, 60}}); }, "move.blocks[0].to: 60"},
      {"move_to_null", kS, [](Step& s) { s.move = Move(0, 10, {{30, 2}}); }, "move.blocks[0].to: 2"},
      {"move_twice", kS, [](Step& s) { s.move = Move(0, 10, {{30, 3}, {31, 3}}); },
       "move.blocks: 3, want distinct targets"},
      {"move_of_used", kS, [](Step& s) { s.move = Move(0, 1, {{3, 40}}); },
       "move.parent: 1, want a parent that no sequence uses after the move, as sequence 0 does"},
      {"move_of_zeroed", kS,
       [](Step& s) {
         s.move = Move(0, 10, {{30, 3}});
         s.zero_parents = {ParentId(10)};
       },
       "zero_parents[0]: 10, want no parent that holds tokens of sequence 0"},
      {"chunk_offset", kP, [](Step& s) { s.sequences[0].committed = 3; },
       "committed: 3, want a multiple of prefill_chunk 8"},
      {"chunk_empty", kP, [](Step& s) { s.sequences[0].tokens.clear(); }, "sequences[0].tokens: 0, want 8"},
      {"chunk_short", kP, [](Step& s) { s.sequences[0].tokens.pop_back(); },
       "sequences[0].tokens: 7, want 8"},
      {"chunk_long", kP, [](Step& s) { s.sequences[0].tokens.resize(9); }, "sequences[0].tokens: 9, want 8"},
      {"chunk_past_limit", kP, [](Step& s) { s.sequences[0].limit = 8; },
       "sequences[0].tokens: 8, want fewer than limit - committed = 8"},
      {"chunk_token", kP, [](Step& s) { s.sequences[0].tokens[7] = 1 << 30; },
       "sequences[0].tokens[7]: 1073741824"},
  };
}

class SpoiltStepTest : public ::testing::TestWithParam<Case> {};

TEST_P(SpoiltStepTest, NamesWhatIsWrong) {
  const Plan plan = ThePlan();
  StepPlan step = GoodStep(GetParam().kind);
  KVASIR_ASSERT_OK(CheckStep(plan, kSmallVocab, step));
  GetParam().spoil(step);
  const absl::Status status = CheckStep(plan, kSmallVocab, step);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, GetParam().message));
  EXPECT_FALSE(ErrorOf(status).field.empty());
}

INSTANTIATE_TEST_SUITE_P(, SpoiltStepTest, ::testing::ValuesIn(Cases()),
                         [](const auto& its) { return std::string(its.param.name); });

TEST(CheckStepTest, SpeculationNeedsADraft) {
  const StepPlan step = GoodStep(StepKind::kSpeculate);
  EXPECT_THAT(CheckStep(MakeEnginePlan({.draft_tokens = 0}), kSmallVocab, step),
              StatusIs(absl::StatusCode::kInvalidArgument, "the plan has no draft; use decode"));
}

TEST(CheckStepTest, ANewParentMayBeZeroed) {
  const Plan plan = ThePlan();
  StepPlan step = GoodStep(StepKind::kPrefill);
  step.zero_parents = {ParentId(1), ParentId(15)};  // parent 1 is the sequence's, and holds no token yet
  KVASIR_EXPECT_OK(CheckStep(plan, kSmallVocab, step));
}

// Tokens that move into a parent after its zeroing are not lost.
TEST(CheckStepTest, ATargetMayLieInAParentThatIsZeroed) {
  const Plan plan = ThePlan();
  StepPlan step = GoodStep(StepKind::kSpeculate);
  step.move = Move(0, 10, {{30, 3}, {31, 4}});
  step.zero_parents = {ParentId(1)};
  KVASIR_EXPECT_OK(CheckStep(plan, kSmallVocab, step));
  step.move = Move(0, 10, {{30, 3}});  // block 4 stays where it is
  EXPECT_THAT(CheckStep(plan, kSmallVocab, step),
              StatusIs(absl::StatusCode::kInvalidArgument, "holds tokens of sequence 0"));
}

}  // namespace
}  // namespace kvasir
