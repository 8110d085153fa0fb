// The pair of tests/data/pair, from its files to its logits: configurations are read, a plan is made, tensors
// are checked and read, and the engine decodes through its paged caches. What it computes is held against the
// plain torch code of tools/pair/golden.py: the target's logits at every position, in one prefill and token
// by token, and the drafted blocks of several anchors.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/checkpoint/safetensors_header.h"
#include "common/models/read_config.h"
#include "planner/core/outcome.h"
#include "planner/request/build_request.h"
#include "planner/rulesets/make_plan.h"
#include "tests/testing/matchers.h"
#include "worker/cpu/cpu_backend.h"
#include "worker/engine/rank_engine.h"
#include "worker/engine/sequence_tables.h"
#include "worker/weights/checkpoint_weights.h"

namespace kvasir::testing {
namespace {

using Values = std::vector<float>;

// A golden's tensors by name; all are F32.
std::map<std::string, Values> ReadGolden(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const auto header = ReadSafetensorsHeader(bytes, path);
  EXPECT_THAT(header, IsOk());
  std::map<std::string, Values> golden;
  if (!header.ok()) return golden;
  for (const TensorEntry& entry : header->tensors) {
    Values values(static_cast<std::size_t>(entry.end - entry.begin) / sizeof(float));
    std::memcpy(values.data(), bytes.data() + entry.begin, values.size() * sizeof(float));
    golden.emplace(entry.name, std::move(values));
  }
  return golden;
}

// The largest difference as a share of the largest value.
double Difference(std::span<const float> got, std::span<const float> want) {
  EXPECT_EQ(got.size(), want.size());
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])));
    largest = std::max(largest, std::abs(static_cast<double>(want[i])));
  }
  return difference / largest;
}

struct PairCase {
  std::string folder;
  StateRollback rollback = StateRollback::kSnapshots;
};
void PrintTo(const PairCase& c, std::ostream* out) {
  *out << c.folder << " " << StateRollbackName(c.rollback);
}

class PairGoldenTest : public ::testing::TestWithParam<PairCase> {
 protected:
  static constexpr std::int64_t kDraftTokens = 5;

  void SetUp() override {
    const std::string folder = std::string(KVASIR_TEST_DATA_DIR) + "/" + GetParam().folder;
    golden_ = ReadGolden(folder + "/golden.safetensors");
    ASSERT_TRUE(golden_.contains("logits"));
    for (const float token : golden_["tokens"]) tokens_.push_back(static_cast<std::int32_t>(token));
    auto target = ReadConfigPath(folder + "/target/config.json");
    auto draft = ReadConfigPath(folder + "/draft/config.json");
    KVASIR_ASSERT_OK(target);
    KVASIR_ASSERT_OK(draft);
    target->dtype = draft->dtype = DType::kF32;  // of caches, as the golden's; the stored weights keep theirs
    KVASIR_ASSERT_OK(MakeEngine(*target, *draft, folder));
  }

  absl::Status MakeEngine(const ModelDescription& target, const ModelDescription& draft,
                          const std::string& folder) {
    PlanOptions options;
    options.kv_memory_bytes = {std::int64_t{64} << 20};
    options.contexts = {256};
    options.max_requests = 2;
    options.draft_tokens = kDraftTokens;
    options.state_rollback = std::string(StateRollbackName(GetParam().rollback));
    const PlanOutcome outcome = MakePlan(BuildRequest(target, draft, options));
    const auto* planned = std::get_if<Planned>(&outcome);
    if (planned == nullptr) return absl::InternalError("there is no plan");
    plan_ = planned->plan;
    auto weights =
        CheckpointWeights::Open({&target, folder + "/target"}, ModelDirectory{&draft, folder + "/draft"});
    if (!weights.ok()) return weights.status();
    RankEngineOptions engine;
    engine.plan = plan_;
    engine.plan_id = "pair";
    engine.epoch = Epoch(1);
    engine.target = target;
    engine.draft = draft;
    engine.weights = weights->get();
    engine.observe_pass = [this](const PassMetadata& metadata, std::span<const float> logits) {
      seen_[metadata.shape.pass].assign(logits.begin(), logits.end());
    };
    engine.observe_confidences = [this](std::span<const float> confidences) {
      confidences_.assign(confidences.begin(), confidences.end());
    };
    auto tables = SequenceTables::Create(plan_);
    if (!tables.ok()) return tables.status();
    tables_ = std::make_unique<SequenceTables>(*std::move(tables));
    auto made = RankEngine::Create(*backend_, std::move(engine));
    if (!made.ok()) return made.status();
    engine_ = *std::move(made);
    return absl::OkStatus();
  }

  // One step of one sequence, whose first token stands at `committed`.
  absl::StatusOr<StepOutcome> Step(StepKind kind, const SequenceTable& table, std::int64_t committed,
                                   std::vector<std::int32_t> tokens, std::int64_t pending = 0) {
    StepPlan step{.epoch = Epoch(1), .plan_id = "pair", .step = steps_++, .kind = kind};
    step.zero_parents = tables_->TakeParentsToZero();
    StepSequence sequence{.id = SequenceId(0), .committed = committed, .limit = table.limit};
    sequence.tokens = std::move(tokens);
    sequence.last_chunk = kind == StepKind::kPrefill;
    sequence.pending = GetParam().rollback == StateRollback::kReplay ? pending : 0;
    sequence.blocks = table.columns;
    step.sequences.push_back(std::move(sequence));
    return engine_->Execute(step);
  }

  [[nodiscard]] std::size_t vocab() { return golden_["logits"].size() / tokens_.size(); }
  [[nodiscard]] std::span<const float> LogitsAt(std::int64_t position) {
    return std::span(golden_["logits"]).subspan(static_cast<std::size_t>(position) * vocab(), vocab());
  }

  std::map<std::string, Values> golden_;
  std::vector<std::int32_t> tokens_;
  Plan plan_;
  std::unique_ptr<Backend> backend_ = MakeCpuBackend({});
  std::unique_ptr<SequenceTables> tables_;
  std::map<Pass, Values> seen_;  // the logits of each pass when it last ran
  Values confidences_;             // of the last drafted block
  std::unique_ptr<RankEngine> engine_;
  std::int64_t steps_ = 0;
};

INSTANTIATE_TEST_SUITE_P(, PairGoldenTest,
                         ::testing::Values(PairCase{"pair/tiny"},
                                           PairCase{"pair/tiny", StateRollback::kReplay}, PairCase{"pair"},
                                           PairCase{"pair", StateRollback::kReplay}));

TEST_P(PairGoldenTest, OnePrefillGivesTheLogitsOfEveryPosition) {
  auto table = tables_->Reserve(static_cast<std::int64_t>(tokens_.size()) + 1);
  KVASIR_ASSERT_OK(table);
  tables_->Place(*table, 0, static_cast<std::int64_t>(tokens_.size()));
  KVASIR_ASSERT_OK(Step(StepKind::kPrefill, *table, 0, tokens_));
  const Values& logits = seen_[Pass::kTargetPrefill];
  ASSERT_GE(logits.size(), golden_["logits"].size());
  EXPECT_LE(Difference(std::span(logits).first(golden_["logits"].size()), golden_["logits"]), 1e-4);
}

TEST_P(PairGoldenTest, DecodingTokenByTokenGivesThemToo) {
  auto table = tables_->Reserve(static_cast<std::int64_t>(tokens_.size()) + 1);
  KVASIR_ASSERT_OK(table);
  tables_->Place(*table, 0, static_cast<std::int64_t>(tokens_.size()));
  KVASIR_ASSERT_OK(Step(StepKind::kPrefill, *table, 0, {tokens_[0]}));
  for (std::int64_t at = 1; at < static_cast<std::int64_t>(tokens_.size()); ++at) {
    KVASIR_ASSERT_OK(
        Step(StepKind::kDecode, *table, at, {tokens_[static_cast<std::size_t>(at)]}, at > 1 ? 1 : 0));
    const Values& logits = seen_[Pass::kTargetDecode];
    ASSERT_GE(logits.size(), vocab());
    ASSERT_LE(Difference(std::span(logits).first(vocab()), LogitsAt(at)), 1e-4) << at;
  }
}

// The context of each anchor is prefilled, so that the draft has seen the target's states of all tokens
// before it.
TEST_P(PairGoldenTest, DraftedBlocksAreTheReferences) {
  const Values& positions = golden_["block.positions"];
  const std::size_t block = static_cast<std::size_t>(kDraftTokens) * vocab();
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const auto at = static_cast<std::int64_t>(positions[i]);
    auto table = tables_->Reserve(at + 16);
    KVASIR_ASSERT_OK(table);
    tables_->Place(*table, 0, at);
    KVASIR_ASSERT_OK(Step(StepKind::kPrefill, *table, 0,
                          std::vector<std::int32_t>(tokens_.begin(), tokens_.begin() + at)));
    tables_->Place(*table, at, kDraftTokens + 1);
    const auto outcome = Step(StepKind::kSpeculate, *table, at, {tokens_[static_cast<std::size_t>(at)]});
    KVASIR_ASSERT_OK(outcome);
    EXPECT_EQ(outcome->sequences[0].drafted, kDraftTokens);
    const Values& drafted = seen_[Pass::kDraftBlock];
    ASSERT_GE(drafted.size(), block);
    EXPECT_LE(Difference(std::span(drafted).first(block),
                         std::span(golden_["block.logits"]).subspan(i * block, block)),
              1e-4)
        << "anchor at " << at;
    ASSERT_GE(confidences_.size(), static_cast<std::size_t>(kDraftTokens));
    EXPECT_LE(Difference(std::span(confidences_).first(kDraftTokens),
                         std::span(golden_["block.confidence"]).subspan(i * kDraftTokens, kDraftTokens)),
              1e-4)
        << "anchor at " << at;
    // The first row verified is the anchor's.
    EXPECT_LE(Difference(std::span(seen_[Pass::kTargetVerify]).first(vocab()), LogitsAt(at)), 1e-4) << at;
    tables_->Release(*table);
  }
}

}  // namespace
}  // namespace kvasir::testing
