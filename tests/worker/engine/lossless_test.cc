// Speculative greedy output equals plain greedy output, token for token, whatever the ranks, the drafted
// length, the batch and the block edges; and for sequences that join and leave while others run.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/engine_rig.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

constexpr std::int64_t kBatchMax = 17;

struct Case {
  Topology topology;
  std::int64_t block_tokens = 4;
  bool one_pool = true;
  std::optional<StateRollback> rollback = std::nullopt;  // of a hybrid target; nullopt: MLA alone
  std::int64_t parts = 1;                                // of its state
  bool experts = false;
  MarkovHead markov_head = MarkovHead::kVanilla;
  bool dflash = false;
  bool mtp = false;
  bool draft_replicated = false;
};

std::string NameOfCase(const Case& c) {
  return absl::StrFormat(
      "tp%d_dcp%d_i%d_b%d%s%s%s%s%s%s%s", c.topology.tp, c.topology.dcp, c.topology.interleave,
      c.block_tokens, c.one_pool ? "" : "_two_pools",
      c.rollback.has_value() ? absl::StrFormat("_%s_parts%d", StateRollbackName(*c.rollback), c.parts) : "",
      c.experts ? "_experts" : "",
      c.markov_head == MarkovHead::kVanilla ? ""
      : c.markov_head == MarkovHead::kGated ? "_gated"
                                            : "_rnn",
      c.dflash ? "_dflash" : "", c.mtp ? "_mtp" : "", c.draft_replicated ? "_replicated" : "");
}
void PrintTo(const Case& c, std::ostream* out) { *out << NameOfCase(c); }

Plan PlanOf(const Case& c, std::int64_t draft_tokens) {
  return MakeEnginePlan({.topology = c.topology,
                         .draft_tokens = draft_tokens,
                         .block_tokens = c.block_tokens,
                         .parents = 400,
                         .max_requests = 32,
                         .one_pool = c.one_pool,
                         .hybrid = c.rollback.has_value(),
                         .rollback = c.rollback.value_or(StateRollback::kSnapshots),
                         .parts = c.parts,
                         .experts = c.experts,
                         .dflash = c.dflash,
                         .markov_head = c.markov_head,
                         .mtp = c.mtp,
                         .draft_replicated = c.draft_replicated});
}

// Prompts whose lengths lie on and next to every edge that a plan of the case has: block columns and chunks.
std::vector<SequenceRequest> EdgeRequests(const Case& c) {
  const std::int64_t column = c.block_tokens * c.topology.dcp;
  std::vector<std::int64_t> lengths = {1, 2, 3};
  for (const std::int64_t edge : {column, 2 * column, std::int64_t{8}, std::int64_t{24}}) {
    for (const std::int64_t length : {edge - 1, edge, edge + 1}) lengths.push_back(length);
  }
  lengths.insert(lengths.end(), {5, 11});
  std::vector<SequenceRequest> requests;
  requests.reserve(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    // The output's length moves prompt + max_tokens across the same edges.
    requests.push_back(SequenceRequest{.prompt = MakePrompt(lengths[i], static_cast<std::int64_t>(i)),
                                       .max_tokens = 9 + static_cast<std::int64_t>(i % 4)});
  }
  return requests;
}

absl::StatusOr<std::vector<Tokens32>> Decode(EngineRig& rig, const std::vector<SequenceRequest>& requests,
                                             bool speculate) {
  std::vector<SequenceId> ids;
  for (SequenceRequest request : requests) {
    request.speculate = speculate;
    const absl::StatusOr<SequenceId> id = rig.scheduler().Join(request);
    if (!id.ok()) return id.status();
    ids.push_back(*id);
  }
  const auto tokens = rig.Drain();
  if (!tokens.ok()) return tokens.status();
  std::vector<Tokens32> all;
  all.reserve(ids.size());
  for (const SequenceId id : ids) all.push_back(tokens->at(id));
  return all;
}

class LosslessTest : public ::testing::TestWithParam<Case> {
 protected:
  // What plain decoding says on a plan without any draft, all requests at once.
  void SetUp() override {
    requests_ = EdgeRequests(GetParam());
    ASSERT_EQ(requests_.size(), static_cast<std::size_t>(kBatchMax));
    auto rig = EngineRig::Create({.plan = PlanOf(GetParam(), 0)});
    KVASIR_ASSERT_OK(rig);
    auto plain = Decode(**rig, requests_, false);
    KVASIR_ASSERT_OK(plain);
    plain_ = *std::move(plain);
    for (std::size_t i = 0; i < plain_.size(); ++i) {
      ASSERT_EQ(static_cast<std::int64_t>(plain_[i].size()), requests_[i].max_tokens);
    }
  }

  void ExpectLossless(std::int64_t draft_tokens, std::int64_t batch, bool speculate = true,
                      const std::vector<StepCost>& costs = {}) {
    auto rig = EngineRig::Create({.plan = PlanOf(GetParam(), draft_tokens), .costs = costs});
    KVASIR_ASSERT_OK(rig);
    const std::vector<SequenceRequest> some(requests_.end() - batch, requests_.end());
    const auto got = Decode(**rig, some, speculate);
    KVASIR_ASSERT_OK(got);
    EXPECT_EQ(*got, std::vector<Tokens32>(plain_.end() - batch, plain_.end()));
    if (draft_tokens > 0 && speculate) {
      EXPECT_GT((*rig)->drafted(), 0);
      drafted_ += (*rig)->drafted();
      accepted_ += (*rig)->accepted();
      rejected_ += (*rig)->drafted() - (*rig)->accepted();
    }
    EXPECT_EQ((*rig)->scheduler().free_parents(), (*rig)->plan().parents - 1);
  }

  std::vector<SequenceRequest> requests_;
  std::vector<Tokens32> plain_;
  std::int64_t drafted_ = 0;
  std::int64_t accepted_ = 0;
  std::int64_t rejected_ = 0;
};

TEST_P(LosslessTest, EveryDraftedLength) {
  for (std::int64_t draft_tokens = 0; draft_tokens <= 7; ++draft_tokens) {
    SCOPED_TRACE(absl::StrFormat("N=%d", draft_tokens));
    ASSERT_NO_FATAL_FAILURE(ExpectLossless(draft_tokens, 5));
  }
  EXPECT_GT(accepted_, 0);
  EXPECT_GT(rejected_, 0);
}

TEST_P(LosslessTest, EveryBatch) {
  // Four ranks as threads take their time on a small machine: every other batch must do there.
  const std::int64_t stride = GetParam().topology.tp == 4 ? 2 : 1;
  for (std::int64_t batch = 1; batch <= kBatchMax; batch += stride) {
    SCOPED_TRACE(absl::StrFormat("batch=%d", batch));
    ASSERT_NO_FATAL_FAILURE(ExpectLossless(1 + batch % 7, batch));
  }
}

// Whatever the confidence head and the costs of rows leave out of the verify pass.
TEST_P(LosslessTest, AdaptiveVerification) {
  const std::vector<StepCost> costs = {{.fixed = 0, .row = 1},
                                       {.fixed = 3, .row = 1},
                                       {.fixed = 30, .row = 2},
                                       {.fixed = 1, .row = 0},
                                       {.fixed = 500, .row = 1}};
  ASSERT_NO_FATAL_FAILURE(ExpectLossless(7, 5));
  const std::int64_t all = std::exchange(drafted_, 0);
  for (const std::int64_t batch : {1, 5, 16}) {
    SCOPED_TRACE(absl::StrFormat("batch=%d", batch));
    ASSERT_NO_FATAL_FAILURE(ExpectLossless(7, batch, /*speculate=*/true, costs));
    const std::int64_t some = std::exchange(drafted_, 0);
    if (batch == 5 && !GetParam().dflash && !GetParam().mtp) {  // which have no confidence head
      EXPECT_LT(some, all) << "nothing was left out";
    }
  }
}

TEST_P(LosslessTest, PlainSequencesInAPlanWithADraft) {
  ASSERT_NO_FATAL_FAILURE(ExpectLossless(3, kBatchMax, /*speculate=*/false));
}

// A seeded schedule: at each step a request may join or a running one may leave; some requests speculate,
// some do not. Whatever was emitted is a prefix of plain decoding, and all of it for those that stayed.
TEST_P(LosslessTest, JoinAndLeaveMidRun) {
  auto rig = EngineRig::Create({.plan = PlanOf(GetParam(), 3)});
  KVASIR_ASSERT_OK(rig);
  std::uint64_t state = 7;
  const auto draw = [&state](std::uint64_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33U) % below;
  };
  std::map<SequenceId, std::size_t> request_of;
  std::vector<SequenceId> left;
  std::size_t next = 0;
  for (;;) {
    if (next < 2 * requests_.size() && draw(2) == 0) {
      SequenceRequest request = requests_[next % requests_.size()];
      request.speculate = draw(4) != 0;
      const auto id = (*rig)->scheduler().Join(request);
      KVASIR_ASSERT_OK(id);
      request_of[*id] = next++ % requests_.size();
    }
    if (draw(12) == 0 && !request_of.empty()) {
      auto victim = request_of.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(draw(request_of.size())));
      if ((*rig)->scheduler().Cancel(victim->first).ok()) left.push_back(victim->first);
    }
    const auto progress = (*rig)->Step();
    KVASIR_ASSERT_OK(progress);
    if (!progress->has_value() && next == 2 * requests_.size()) break;
  }
  EXPECT_GE(left.size(), 3U);
  for (const auto& [id, request] : request_of) {
    const auto found = (*rig)->tokens().find(id);
    const Tokens32 got = found != (*rig)->tokens().end() ? found->second : Tokens32();
    const Tokens32& want = plain_[request];
    ASSERT_LE(got.size(), want.size());
    EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin())) << "sequence " << id.value();
    if (std::find(left.begin(), left.end(), id) == left.end()) {
      EXPECT_EQ(got.size(), want.size()) << "sequence " << id.value();
    }
  }
  EXPECT_EQ((*rig)->scheduler().free_parents(), (*rig)->plan().parents - 1);
}

INSTANTIATE_TEST_SUITE_P(
    , LosslessTest,
    ::testing::Values(
        Case{{.tp = 1, .dcp = 1}}, Case{{.tp = 1, .dcp = 1}, 16, false}, Case{{.tp = 2, .dcp = 1}},
        Case{{.tp = 2, .dcp = 2}}, Case{{.tp = 2, .dcp = 2, .interleave = 4}, 4, false},
        Case{{.tp = 4, .dcp = 2}}, Case{.topology = {}, .rollback = StateRollback::kSnapshots},
        Case{.topology = {},
             .block_tokens = 16,
             .one_pool = false,
             .rollback = StateRollback::kReplay,
             .parts = 3},
        Case{.topology = {.tp = 2, .dcp = 2}, .rollback = StateRollback::kReplay},
        Case{.topology = {.tp = 2, .dcp = 1}, .rollback = StateRollback::kSnapshots, .parts = 3},
        Case{.topology = {.tp = 4, .dcp = 2}, .rollback = StateRollback::kReplay},
        Case{{.tp = 4, .dcp = 4, .interleave = 2}, 2}, Case{.topology = {}, .experts = true},
        Case{.topology = {.tp = 2, .dcp = 2}, .experts = true},
        Case{.topology = {.tp = 4, .dcp = 2}, .rollback = StateRollback::kReplay, .experts = true},
        Case{.topology = {.tp = 4, .dcp = 2}, .experts = true},
        Case{.topology = {}, .markov_head = MarkovHead::kGated},
        Case{.topology = {.tp = 2, .dcp = 2}, .markov_head = MarkovHead::kRnn},
        Case{.topology = {}, .dflash = true}, Case{.topology = {.tp = 2, .dcp = 1}, .dflash = true},
        Case{.topology = {.tp = 4, .dcp = 1}, .block_tokens = 16, .dflash = true},
        Case{.topology = {}, .mtp = true},
        Case{.topology = {}, .block_tokens = 16, .one_pool = false, .mtp = true},
        Case{.topology = {.tp = 2, .dcp = 2}, .experts = true, .mtp = true},
        Case{.topology = {.tp = 4, .dcp = 2}, .mtp = true},
        Case{.topology = {.tp = 2, .dcp = 2}, .rollback = StateRollback::kReplay, .mtp = true},
        Case{.topology = {.tp = 2, .dcp = 2}, .draft_replicated = true},
        Case{.topology = {.tp = 4, .dcp = 4, .interleave = 2},
             .rollback = StateRollback::kReplay,
             .draft_replicated = true},
        Case{.topology = {.tp = 4, .dcp = 2}, .dflash = true, .draft_replicated = true},
        Case{.topology = {.tp = 2, .dcp = 2}, .mtp = true, .draft_replicated = true}),
    [](const auto& its) { return NameOfCase(its.param); });

}  // namespace
}  // namespace kvasir::testing
