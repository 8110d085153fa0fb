// Recurrent groups from the scheduler's bookkeeping to the last check: which copy of a state a pass reads and
// writes, what a replay takes in, and that nothing else of the table is looked at.
#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_format.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/matchers.h"
#include "worker/engine/check_metadata.h"
#include "worker/engine/check_step.h"
#include "worker/engine/scheduler.h"
#include "worker/engine/step_metadata.h"

namespace kvasir {
namespace {

using testing::kSmallVocab;
using testing::MakeEnginePlan;
using testing::StatusIs;
using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t kAbsurd = std::int64_t{1} << 40;
constexpr std::int64_t kFirstState = 40;  // blocks of the sequence's state: 40, 41, ...

// N = 3, three parts a copy; the state's pool is the second.
Plan PlanOf(StateRollback rollback) {
  return MakeEnginePlan({.hybrid = true, .rollback = rollback, .parts = 3});
}

StepSequence SequenceOf(const Plan& plan, std::int64_t committed, std::int64_t pending) {
  StepSequence sequence{.id = SequenceId(1), .committed = committed, .limit = 60, .tokens = {7}};
  sequence.pending = pending;
  sequence.blocks.resize(2);
  const PlanPool& tokens = plan.pools[0];
  for (std::int64_t i = 0; i < 24; ++i) sequence.blocks[0].emplace_back(2 * tokens.blocks_per_parent + i);
  const std::int64_t states = plan.pools[1].lifetime.copies * plan.pools[1].parts;
  for (std::int64_t i = 0; i < states; ++i) sequence.blocks[1].emplace_back(kFirstState + i);
  return sequence;
}

const GroupMetadata& StateGroup(const PassMetadata& metadata) {
  EXPECT_EQ(metadata.groups.size(), 2U);
  EXPECT_EQ(metadata.groups[1].behaviour.mixer, Mixer::kRecurrent);
  return metadata.groups[1];
}

// Copies whose columns hold the sequence's blocks; all other columns must hold the absurd id.
std::vector<std::int64_t> CopiesShown(const GroupMetadata& group, std::int64_t copies) {
  std::vector<std::int64_t> shown;
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    const bool real = group.block_table[static_cast<std::size_t>(3 * copy)] != kAbsurd;
    if (real) shown.push_back(copy);
    for (std::int64_t part = 0; part < 3; ++part) {
      const std::int64_t column = 3 * copy + part;
      EXPECT_EQ(group.block_table[static_cast<std::size_t>(column)], real ? kFirstState + column : kAbsurd);
    }
  }
  return shown;
}

TEST(RecurrentMetadataTest, AVerifyOverSnapshotsKeepsTheStateAfterEachRow) {
  const Plan plan = PlanOf(StateRollback::kSnapshots);
  const StepSequence sequence = SequenceOf(plan, 9, 0);
  const PassMetadata metadata = MetadataBuilder(plan, RankPlace{}, kAbsurd)
                                    .Build({.pass = Pass::kTargetVerify, .requests = 2, .query_rows = 4},
                                           {RowsOfVerify(sequence, std::vector<std::int32_t>{1, 2})});
  KVASIR_EXPECT_OK(CheckMetadata(plan, kSmallVocab, metadata));
  const GroupMetadata& group = StateGroup(metadata);
  EXPECT_EQ(group.reads, (Numbers{9 % 4, -1}));
  EXPECT_EQ(group.replays, (Numbers{0, 0}));
  EXPECT_EQ(group.slots, (Numbers{10 % 4, 11 % 4, 12 % 4, -1, -1, -1, -1, -1}));
  EXPECT_EQ(group.bounds, (Numbers{10, 11, 12, 0, 0, 0, 0, 0}));
  EXPECT_EQ(CopiesShown(group, 4), (Numbers{0, 1, 2, 3}));
  for (std::size_t entry = 12; entry < 24; ++entry) EXPECT_EQ(group.block_table[entry], 0);
}

TEST(RecurrentMetadataTest, ADecodeLooksAtTheHistoryAndTwoCopies) {
  const Plan plan = PlanOf(StateRollback::kSnapshots);
  const StepSequence sequence = SequenceOf(plan, 9, 0);
  const PassMetadata metadata = MetadataBuilder(plan, RankPlace{}, kAbsurd)
                                    .Build({.pass = Pass::kTargetDecode}, {RowsOfDecode(sequence)});
  KVASIR_EXPECT_OK(CheckMetadata(plan, kSmallVocab, metadata));
  EXPECT_EQ(StateGroup(metadata).slots, (Numbers{2}));
  EXPECT_EQ(CopiesShown(StateGroup(metadata), 4), (Numbers{0, 1, 2}));
}

TEST(RecurrentMetadataTest, APrefillStartsFromNothingAndKeepsItsLastState) {
  for (const StateRollback rollback : {StateRollback::kSnapshots, StateRollback::kReplay}) {
    const Plan plan = PlanOf(rollback);
    const std::int64_t copies = plan.pools[1].lifetime.copies;
    StepSequence sequence = SequenceOf(plan, 0, 0);
    sequence.tokens.assign(7, 5);
    const PassShape shape{.pass = Pass::kTargetPrefill, .requests = 1, .query_rows = 7};
    const PassMetadata metadata =
        MetadataBuilder(plan, RankPlace{}, kAbsurd).Build(shape, {RowsOfPrefill(sequence)});
    KVASIR_EXPECT_OK(CheckMetadata(plan, kSmallVocab, metadata));
    const GroupMetadata& group = StateGroup(metadata);
    EXPECT_EQ(group.reads, (Numbers{-1}));
    EXPECT_EQ(group.slots, (Numbers{-1, -1, -1, -1, -1, -1, 7 % copies}));
    EXPECT_EQ(group.bounds, (Numbers{1, 2, 3, 4, 5, 6, 7}));
  }
}

TEST(RecurrentMetadataTest, UnderReplayADecodingPassTakesInWhatIsPendingAndKeepsTheAnchorsState) {
  const Plan plan = PlanOf(StateRollback::kReplay);
  struct Case {
    std::int64_t committed, pending, read, replays;
  };
  // At T = 2 with two pending rows the state would still be empty; a step never has that many (CheckStep).
  for (const Case& c : {Case{9, 3, 0, 3}, Case{9, 0, 0, 0}, Case{2, 1, 0, 1}, Case{2, 2, -1, 2}}) {
    const StepSequence sequence = SequenceOf(plan, c.committed, c.pending);
    const PassMetadata metadata = MetadataBuilder(plan, RankPlace{}, kAbsurd)
                                      .Build({.pass = Pass::kTargetVerify, .requests = 1, .query_rows = 4},
                                             {RowsOfVerify(sequence, std::vector<std::int32_t>{1, 2, 3})});
    KVASIR_EXPECT_OK(CheckMetadata(plan, kSmallVocab, metadata));
    EXPECT_EQ(StateGroup(metadata).reads, (Numbers{c.read}));
    EXPECT_EQ(StateGroup(metadata).replays, (Numbers{c.replays}));
    EXPECT_EQ(StateGroup(metadata).slots, (Numbers{0, -1, -1, -1}));
  }
}

struct SpoiltCase {
  const char* name;
  StateRollback rollback;
  std::function<void(PassMetadata&)> spoil;
  const char* message;
};
void PrintTo(const SpoiltCase& c, std::ostream* out) { *out << c.name; }

class SpoiltStateTest : public ::testing::TestWithParam<SpoiltCase> {};

TEST_P(SpoiltStateTest, NamesPassGroupAndEntry) {
  const bool replay = GetParam().rollback == StateRollback::kReplay;
  const Plan plan = PlanOf(GetParam().rollback);
  const StepSequence sequence = SequenceOf(plan, 9, replay ? 2 : 0);
  PassMetadata metadata = MetadataBuilder(plan, RankPlace{}, kAbsurd)
                              .Build({.pass = Pass::kTargetVerify, .requests = 2, .query_rows = 4},
                                     {RowsOfVerify(sequence, std::vector<std::int32_t>{1})});
  KVASIR_ASSERT_OK(CheckMetadata(plan, kSmallVocab, metadata));
  GetParam().spoil(metadata);
  EXPECT_THAT(CheckMetadata(plan, kSmallVocab, metadata),
              StatusIs(absl::StatusCode::kInvalidArgument, GetParam().message));
}

constexpr StateRollback kS = StateRollback::kSnapshots;
constexpr StateRollback kR = StateRollback::kReplay;
INSTANTIATE_TEST_SUITE_P(
    , SpoiltStateTest,
    ::testing::Values(
        SpoiltCase{"read", kS, [](PassMetadata& m) { m.groups[1].reads[0] = 4; },
                   "target_verify, group target.kda: reads[0] is 4, want -1 .. 3"},
        SpoiltCase{"read_of_padding", kS, [](PassMetadata& m) { m.groups[1].reads[1] = -2; },
                   "reads[1] is -2"},
        SpoiltCase{"read_of_an_absurd_copy", kS,
                   [](PassMetadata& m) { m.groups[1].block_table[4] = kAbsurd; },
                   "block_table[4] is 1099511627776"},
        SpoiltCase{"write", kS, [](PassMetadata& m) { m.groups[1].slots[1] = 4; },
                   "slots[1] is 4, want -1 .. 3"},
        SpoiltCase{"write_replay", kR, [](PassMetadata& m) { m.groups[1].slots[1] = 1; },
                   "slots[1] is 1, want -1 .. 0"},
        SpoiltCase{"history", kS, [](PassMetadata& m) { m.groups[1].block_table[0] = 0; },
                   "block_table[0] is 0"},
        SpoiltCase{"null_state", kR, [](PassMetadata& m) { m.groups[1].block_table[2] = 1; },
                   "block_table[2] is 1"},
        SpoiltCase{"padding_made_live", kS, [](PassMetadata& m) { m.groups[1].bounds[7] = 3; },
                   "block_table[12] is 0"},
        SpoiltCase{"bound", kS, [](PassMetadata& m) { m.groups[1].bounds[0] = 97; }, "bounds[0] is 97"},
        SpoiltCase{"replays_without_a_ring", kS, [](PassMetadata& m) { m.groups[1].replays[0] = 1; },
                   "replays[0] is 1, want 0 .. 0"},
        SpoiltCase{"replays", kR, [](PassMetadata& m) { m.groups[1].replays[0] = 5; },
                   "replays[0] is 5, want 0 .. 3"},
        SpoiltCase{"replays_before_the_first_token", kR,
                   [](PassMetadata& m) {
                     m.groups[1].replays[0] = 3;
                     m.groups[1].bounds[0] = 3;
                   },
                   "replays[0] is 3, want fewer than 3"},
        SpoiltCase{"reads_missing", kS, [](PassMetadata& m) { m.groups[1].reads.pop_back(); }, "1 reads"}),
    [](const auto& its) { return std::string(its.param.name); });

TEST(RecurrentMetadataTest, MoreRowsThanTheRingHoldsAreRefused) {
  const Plan plan = PlanOf(kR);
  const StepSequence sequence = SequenceOf(plan, 9, 0);
  const PassMetadata metadata = MetadataBuilder(plan, RankPlace{}, kAbsurd)
                                    .Build({.pass = Pass::kTargetVerify, .requests = 1, .query_rows = 5},
                                           {RowsOfVerify(sequence, std::vector<std::int32_t>{1, 2, 3, 4})});
  EXPECT_THAT(CheckMetadata(plan, kSmallVocab, metadata),
              StatusIs(absl::StatusCode::kInvalidArgument, "at most 4, the anchor and the rows of the ring"));
}

// The outcome of a step in which every sequence had `accepted` drafts.
StepOutcome OutcomeOf(const StepPlan& step, std::int64_t accepted) {
  StepOutcome outcome{.step = step.step};
  for (const StepSequence& part : step.sequences) {
    SequenceOutcome its{.id = part.id};
    if (step.kind == StepKind::kSpeculate) {
      its.drafted = 3;
      its.accepted = accepted;
    }
    const bool samples = step.kind != StepKind::kPrefill || part.last_chunk;
    if (samples) its.emitted.assign(static_cast<std::size_t>(its.accepted + 1), 4);
    outcome.sequences.push_back(its);
  }
  return outcome;
}

// What the last step left for the next to take in, of a sequence that speculates and of one that does not.
TEST(RecurrentMetadataTest, TheSchedulerCountsPendingRowsUnderReplayOnly) {
  for (const StateRollback rollback : {kS, kR}) {
    const Plan plan = PlanOf(rollback);
    for (const bool speculate : {true, false}) {
      SCOPED_TRACE(absl::StrFormat("%s speculate=%d", StateRollbackName(rollback), speculate ? 1 : 0));
      const auto scheduler = *Scheduler::Create(plan, "plan", Epoch(1), kSmallVocab);
      KVASIR_ASSERT_OK(scheduler->Join(
          {.prompt = std::vector<std::int32_t>(12, 3), .max_tokens = 30, .speculate = speculate}));
      Numbers pending;
      for (const std::int64_t accepted : {0, 0, 2, 0, 3, 1, 0}) {
        const StepPlan step = *scheduler->NextStep();
        KVASIR_EXPECT_OK(CheckStep(plan, kSmallVocab, step));
        pending.push_back(step.sequences[0].pending);
        KVASIR_ASSERT_OK(scheduler->Apply(OutcomeOf(step, accepted)));
      }
      const Numbers drafts = speculate ? Numbers{0, 0, 0, 2, 0, 3, 1} : Numbers(7, 0);
      EXPECT_EQ(pending, rollback == kR ? drafts : Numbers(7, 0));
    }
  }
}

TEST(RecurrentMetadataTest, AStepMayNotAskForMorePendingRowsThanThereAre) {
  struct Case {
    StateRollback rollback;
    std::int64_t committed, pending;
    const char* message;
  };
  for (const Case& c :
       {Case{kR, 9, 5, "sequences[0].pending: 5, want 0 .. 3"}, Case{kR, 2, 3, "pending: 3, want 0 .. 1"},
        Case{kR, 9, -1, "pending: -1"}, Case{kS, 9, 1, "pending: 1, want 0 .. 0"}}) {
    const Plan plan = PlanOf(c.rollback);
    StepPlan step{.epoch = Epoch(1), .kind = StepKind::kSpeculate};
    step.sequences = {SequenceOf(plan, c.committed, 0)};
    step.sequences[0].blocks[0].resize(15);  // columns of 60 tokens
    KVASIR_EXPECT_OK(CheckStep(plan, kSmallVocab, step));
    step.sequences[0].pending = c.pending;
    EXPECT_THAT(CheckStep(plan, kSmallVocab, step), StatusIs(absl::StatusCode::kInvalidArgument, c.message));
  }
}

}  // namespace
}  // namespace kvasir
