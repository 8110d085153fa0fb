// The bits of a decode or verify row depend on its sequence and the plan alone: not on batch, bucket,
// padding, page ids or q. And replay gives the bits of eager execution, and a second run those of the first.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/engine_rig.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

constexpr std::int64_t kOutput = 14;
constexpr std::size_t kPrompts = 17;

struct Case {
  Topology topology;
  std::optional<StateRollback> rollback = std::nullopt;  // of a hybrid target; nullopt: MLA alone
  bool experts = false;
  bool mtp = false;
};

std::string NameOfCase(const Case& c) {
  return absl::StrFormat("tp%d_dcp%d%s%s%s", c.topology.tp, c.topology.dcp,
                         c.rollback.has_value() ? absl::StrFormat("_%s", StateRollbackName(*c.rollback)) : "",
                         c.experts ? "_experts" : "", c.mtp ? "_mtp" : "");
}
void PrintTo(const Case& c, std::ostream* out) { *out << NameOfCase(c); }

// Long enough for two KV splits on one rank, and short ones beside it.
std::vector<Tokens32> Prompts() {
  std::vector<Tokens32> prompts = {MakePrompt(140, 99)};
  for (std::size_t i = 1; i < kPrompts; ++i) {
    const auto seed = static_cast<std::int64_t>(i);
    prompts.push_back(MakePrompt(1 + seed * 7 % 19, seed));
  }
  return prompts;
}

Plan PlanOf(const Case& c, std::int64_t draft_tokens, std::int64_t max_requests) {
  return MakeEnginePlan({.topology = c.topology,
                         .draft_tokens = draft_tokens,
                         .parents = 300,
                         .max_requests = max_requests,
                         .context_tokens = 200,
                         .hybrid = c.rollback.has_value(),
                         .rollback = c.rollback.value_or(StateRollback::kSnapshots),
                         .experts = c.experts,
                         .mtp = c.mtp});
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// Target logits of rank 0 by (prompt, position), of the rows whose whole input is the sequence's own.
using RowLogits = std::map<std::pair<std::size_t, std::int64_t>, std::vector<float>>;

class RowInvarianceTest : public ::testing::TestWithParam<Case> {
 protected:
  // Each prompt alone, q = 1, bucket 1.
  void SetUp() override {
    prompts_ = Prompts();
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
      whole_.push_back(prompts_[i]);
      EngineRigOptions options{.plan = PlanOf(GetParam(), 0, 1)};
      options.observe_pass = Collector(&alone_, {i});
      auto rig = EngineRig::Create(options);
      KVASIR_ASSERT_OK(rig);
      rig_ = rig->get();
      const auto tokens = DecodeAll(**rig, {prompts_[i]}, kOutput, false);
      KVASIR_ASSERT_OK(tokens);
      whole_[i].insert(whole_[i].end(), (*tokens)[0].begin(), (*tokens)[0].end());
    }
    ASSERT_EQ(alone_.size(), kPrompts * static_cast<std::size_t>(kOutput - 1));
  }

  // Fills `rows` from decode and verify passes. Sequence ids count from 0; sequence s decodes prompt
  // `prompt_of[s]`. While whole_ lacks the output (the reference run) every row counts.
  std::function<void(std::int64_t, const PassMetadata&, std::span<const float>)> Collector(
      RowLogits* rows, std::vector<std::size_t> prompt_of) {
    return [this, rows, prompt_of = std::move(prompt_of)](std::int64_t rank, const PassMetadata& metadata,
                                                          std::span<const float> logits) {
      const PassShape& shape = metadata.shape;
      if (rank != 0 || (shape.pass != Pass::kTargetDecode && shape.pass != Pass::kTargetVerify)) return;
      const StepPlan& step = rig_->last_step();
      for (std::size_t s = 0; s < step.sequences.size(); ++s) {
        const std::size_t prompt = prompt_of[static_cast<std::size_t>(step.sequences[s].id.value())];
        for (std::size_t i = 0; i < static_cast<std::size_t>(shape.query_rows); ++i) {
          const std::size_t row = s * static_cast<std::size_t>(shape.query_rows) + i;
          const std::int64_t position = step.sequences[s].committed + static_cast<std::int64_t>(i);
          const auto at = static_cast<std::size_t>(position);
          if (at < whole_[prompt].size() && metadata.token_ids[row] != whole_[prompt][at]) break;
          if (metadata.positions[row] != position) break;  // padding within q
          const std::span<const float> bits = logits.subspan(row * kSmallVocab, kSmallVocab);
          (*rows)[{prompt, position}] = std::vector<float>(bits.begin(), bits.end());
        }
      }
    };
  }

  void ExpectSameRows(EngineRigOptions options, const std::vector<std::size_t>& prompt_of, bool speculate) {
    RowLogits rows;
    options.observe_pass = Collector(&rows, prompt_of);
    auto rig = EngineRig::Create(options);
    KVASIR_ASSERT_OK(rig);
    rig_ = rig->get();
    std::vector<Tokens32> batch;
    batch.reserve(prompt_of.size());
    for (const std::size_t i : prompt_of) batch.push_back(prompts_[i]);
    KVASIR_ASSERT_OK(DecodeAll(**rig, batch, kOutput, speculate));
    EXPECT_GE(rows.size(), prompt_of.size() * static_cast<std::size_t>(kOutput - 1));
    for (const auto& [key, bits] : rows) {
      const auto want = alone_.find(key);
      // The last output token's own row is computed by a verify only.
      if (want == alone_.end()) continue;
      EXPECT_TRUE(SameBits(bits, want->second)) << "prompt " << key.first << " position " << key.second;
    }
  }

  std::vector<Tokens32> prompts_;
  std::vector<Tokens32> whole_;
  RowLogits alone_;
  EngineRig* rig_ = nullptr;
};

std::vector<std::size_t> FirstPrompts(std::size_t count) {
  std::vector<std::size_t> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

TEST_P(RowInvarianceTest, OverBatchesBucketsAndPadding) {
  for (const std::size_t batch : {2U, 5U, 8U, 17U}) {
    SCOPED_TRACE(batch);
    ExpectSameRows({.plan = PlanOf(GetParam(), 0, 32)}, FirstPrompts(batch), false);
  }
}

TEST_P(RowInvarianceTest, OverTheOrderOfABatch) {
  ExpectSameRows({.plan = PlanOf(GetParam(), 0, 8)}, {3, 0, 2, 1}, false);
}

TEST_P(RowInvarianceTest, OverQ) {
  for (const std::int64_t draft_tokens : {1, 2, 4, 7}) {
    SCOPED_TRACE(draft_tokens);
    ExpectSameRows({.plan = PlanOf(GetParam(), draft_tokens, 8)}, FirstPrompts(3), true);
  }
}

TEST_P(RowInvarianceTest, OverPageIds) {
  for (const std::int64_t seed : {1, 2}) {
    SCOPED_TRACE(seed);
    ExpectSameRows({.plan = PlanOf(GetParam(), 3, 8), .shuffle_seed = seed}, FirstPrompts(4), true);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , RowInvarianceTest,
    ::testing::Values(Case{{1, 1, 1}}, Case{{2, 1, 1}}, Case{{2, 2, 1}},
                      Case{{1, 1, 1}, StateRollback::kSnapshots}, Case{{1, 1, 1}, StateRollback::kReplay},
                      Case{{2, 2, 1}, StateRollback::kReplay}, Case{{1, 1, 1}, std::nullopt, true},
                      Case{{2, 2, 1}, std::nullopt, true}, Case{.topology = {2, 2, 1}, .mtp = true}),
    [](const auto& its) { return NameOfCase(its.param); });

// Everything that a run computes: logits of every pass on every rank, and the arenas after each step.
struct Trace {
  std::vector<std::vector<std::vector<float>>> logits;  // [rank][pass]
  std::vector<std::vector<std::byte>> arenas;           // [step * ranks + rank]
  std::map<SequenceId, Tokens32> tokens;
};

// 8 sequences run until 3 steps after their prompts, all but one leave, 7 join: batches of 8, 1 and 8.
void RunEightOneEight(const Plan& plan, bool use_graphs, Trace* trace) {
  trace->logits.resize(static_cast<std::size_t>(plan.topology.tp));
  EngineRigOptions options{.plan = plan, .use_graphs = use_graphs};
  options.observe_pass = [trace](std::int64_t rank, const PassMetadata&, std::span<const float> logits) {
    trace->logits[static_cast<std::size_t>(rank)].emplace_back(logits.begin(), logits.end());
  };
  auto rig = EngineRig::Create(options);
  KVASIR_ASSERT_OK(rig);
  EXPECT_EQ((*rig)->engine(0).measurement().graphs,
            use_graphs ? static_cast<std::int64_t>(plan.graphs.size()) : 0);
  const auto join = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      KVASIR_ASSERT_OK((*rig)->scheduler().Join({.prompt = MakePrompt(1 + i % 9, i), .max_tokens = 64}));
    }
  };
  const auto step = [&](std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      KVASIR_ASSERT_OK((*rig)->Step());
      for (std::int64_t rank = 0; rank < plan.topology.tp; ++rank) {
        const std::span<std::byte> arena = (*rig)->engine(rank).arena();
        trace->arenas.emplace_back(arena.begin(), arena.end());
      }
    }
  };
  // Prompts are taken in between decode steps.
  const auto step_with_eight = [&] {
    for (int i = 0; i < 32 && (i == 0 || (*rig)->last_step().sequences.size() != 8); ++i) {
      ASSERT_NO_FATAL_FAILURE(step(1));
    }
    ASSERT_NO_FATAL_FAILURE(step(2));
  };
  ASSERT_NO_FATAL_FAILURE(join(0, 8));
  ASSERT_NO_FATAL_FAILURE(step_with_eight());
  ASSERT_EQ((*rig)->last_step().sequences.size(), 8U);
  for (std::int64_t id = 0; id < 7; ++id) KVASIR_ASSERT_OK((*rig)->scheduler().Cancel(SequenceId(id)));
  ASSERT_NO_FATAL_FAILURE(step(2));
  ASSERT_EQ((*rig)->last_step().sequences.size(), 1U);
  ASSERT_NO_FATAL_FAILURE(join(8, 15));
  ASSERT_NO_FATAL_FAILURE(step_with_eight());
  ASSERT_EQ((*rig)->last_step().sequences.size(), 8U);
  KVASIR_ASSERT_OK((*rig)->Drain());
  trace->tokens = (*rig)->tokens();
}

void ExpectSameTrace(const Trace& a, const Trace& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  ASSERT_EQ(a.logits.size(), b.logits.size());
  for (std::size_t rank = 0; rank < a.logits.size(); ++rank) {
    ASSERT_EQ(a.logits[rank].size(), b.logits[rank].size());
    for (std::size_t pass = 0; pass < a.logits[rank].size(); ++pass) {
      EXPECT_TRUE(SameBits(a.logits[rank][pass], b.logits[rank][pass]))
          << "rank " << rank << " pass " << pass;
    }
  }
  EXPECT_TRUE(a.arenas == b.arenas);
}

// Hybrid targets take a parent for two states of a sequence.
Plan ReplayPlan(const Case& c) {
  return MakeEnginePlan({.topology = c.topology,
                         .parents = 72,
                         .max_requests = 8,
                         .hybrid = c.rollback.has_value(),
                         .rollback = c.rollback.value_or(StateRollback::kSnapshots),
                         .experts = c.experts});
}

class ReplayTest : public ::testing::TestWithParam<Case> {};

TEST_P(ReplayTest, EqualsEagerBitForBitOverBatchesOf8And1And8) {
  const Plan plan = ReplayPlan(GetParam());
  Trace eager;
  Trace replayed;
  ASSERT_NO_FATAL_FAILURE(RunEightOneEight(plan, false, &eager));
  ASSERT_NO_FATAL_FAILURE(RunEightOneEight(plan, true, &replayed));
  ExpectSameTrace(eager, replayed);
}

TEST_P(ReplayTest, TwoRunsGiveTheSameBits) {
  const Plan plan = ReplayPlan(GetParam());
  Trace first;
  Trace second;
  ASSERT_NO_FATAL_FAILURE(RunEightOneEight(plan, true, &first));
  ASSERT_NO_FATAL_FAILURE(RunEightOneEight(plan, true, &second));
  ExpectSameTrace(first, second);
}

INSTANTIATE_TEST_SUITE_P(, ReplayTest,
                         ::testing::Values(Case{{1, 1, 1}}, Case{{2, 2, 1}}, Case{{4, 2, 1}},
                                           Case{{1, 1, 1}, StateRollback::kSnapshots},
                                           Case{{2, 2, 1}, StateRollback::kReplay},
                                           Case{{1, 1, 1}, std::nullopt, true},
                                           Case{{4, 2, 1}, std::nullopt, true},
                                           Case{.topology = {2, 2, 1}, .mtp = true}),
                         [](const auto& its) { return NameOfCase(its.param); });

}  // namespace
}  // namespace kvasir::testing
