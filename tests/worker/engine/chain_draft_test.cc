// A chain draft (MTP) through the engine against an independent forward, whatever was accepted before: what
// it drafts depends on the committed tokens alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/testing/cacheless_model.h"
#include "tests/testing/engine_plan.h"
#include "tests/testing/engine_rig.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

constexpr std::int64_t kDraftTokens = 3;
constexpr std::int64_t kRequests = 3;

struct Case {
  Topology topology;
  bool hybrid = false;
  bool experts = false;
};
std::string NameOfCase(const Case& c) {
  return absl::StrFormat("tp%d_dcp%d%s%s", c.topology.tp, c.topology.dcp, c.hybrid ? "_hybrid" : "",
                         c.experts ? "_experts" : "");
}
void PrintTo(const Case& c, std::ostream* out) { *out << NameOfCase(c); }

class ChainDraftTest : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] static Plan PlanOfCase() {
    return MakeEnginePlan({.topology = GetParam().topology,
                           .draft_tokens = kDraftTokens,
                           .parents = 200,
                           .max_requests = kRequests + 1,
                           .dtype = DType::kF32,
                           .hybrid = GetParam().hybrid,
                           .experts = GetParam().experts,
                           .mtp = true});
  }
};

// The logits of sequence `i` of the step's draft_block against those of the oracle, in parts of the largest.
double Difference(std::span<const float> got, std::size_t first_row, const CachelessDraft& want,
                  std::size_t rows) {
  double worst = 0;
  double largest = 0;
  for (std::size_t at = 0; at < rows * kSmallVocab; ++at) {
    const double value = want.logits[at];
    largest = std::max(largest, std::fabs(value));
    worst = std::max(worst, std::fabs(static_cast<double>(got[first_row * kSmallVocab + at]) - value));
  }
  return worst / largest;
}

TEST_P(ChainDraftTest, DraftsWhatTheFormulasDraft) {
  const Plan plan = PlanOfCase();
  std::vector<float> logits;
  EngineRigOptions options{.plan = plan};
  options.observe_pass = [&logits](std::int64_t rank, const PassMetadata& metadata,
                                   std::span<const float> values) {
    if (rank == 0 && metadata.shape.pass == Pass::kDraftBlock) logits.assign(values.begin(), values.end());
  };
  auto rig = EngineRig::Create(options);
  KVASIR_ASSERT_OK(rig);
  const auto oracle = CachelessModel::Create({.target = TargetOf(plan),
                                              .draft = DraftOf(plan),
                                              .seed = options.weight_seed,
                                              .cache_dtype = DType::kF32});
  KVASIR_ASSERT_OK(oracle);
  std::map<SequenceId, Tokens32> tokens;
  for (std::int64_t i = 0; i < kRequests; ++i) {
    // One of them is longer than a chunk, one a single token.
    const Tokens32 prompt = MakePrompt(i == 0 ? 13 : i == 1 ? 1 : 8, i);
    const auto id = (*rig)->scheduler().Join({.prompt = prompt, .max_tokens = 14 + i});
    KVASIR_ASSERT_OK(id);
    tokens[*id] = prompt;
  }
  int compared = 0;
  for (;;) {
    const auto progress = (*rig)->Step();
    KVASIR_ASSERT_OK(progress);
    if (!progress->has_value()) break;
    const StepPlan& step = (*rig)->last_step();
    for (std::size_t i = 0; step.kind == StepKind::kSpeculate && i < step.sequences.size(); ++i) {
      const StepSequence& sequence = step.sequences[i];
      const std::span<const std::int32_t> committed =
          std::span(tokens[sequence.id]).first(static_cast<std::size_t>(sequence.committed));
      const auto rows = static_cast<std::size_t>(DraftedTokens(sequence, kDraftTokens));
      const CachelessDraft want =
          (*oracle)->DraftChain(committed, (*oracle)->Target(committed).taps, sequence.tokens.front(),
                                static_cast<std::int64_t>(rows));
      if (rows == 0) continue;
      EXPECT_LE(Difference(logits, i * kDraftTokens, want, rows), 2e-5)
          << "sequence " << sequence.id.value() << " at " << sequence.committed;
      ++compared;
    }
    for (const SequenceProgress& its : **progress) {
      Tokens32& so_far = tokens[its.id];
      so_far.insert(so_far.end(), its.tokens.begin(), its.tokens.end());
    }
  }
  EXPECT_GE(compared, 10);
  EXPECT_GT((*rig)->accepted(), 0);
  EXPECT_LT((*rig)->accepted(), (*rig)->drafted());
}

INSTANTIATE_TEST_SUITE_P(, ChainDraftTest,
                         ::testing::Values(Case{{}}, Case{{.tp = 2, .dcp = 2}}, Case{{.tp = 4, .dcp = 2}},
                                           Case{.topology = {}, .hybrid = true},
                                           Case{.topology = {.tp = 2, .dcp = 1}, .experts = true}),
                         [](const auto& its) { return NameOfCase(its.param); });

}  // namespace
}  // namespace kvasir::testing
