#include "tests/worker/weights/golden_engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/safetensors_header.h"
#include "planner/core/outcome.h"
#include "planner/request/build_request.h"
#include "planner/rulesets/make_plan.h"
#include "worker/cpu/cpu_backend.h"
#include "worker/weights/checkpoint_weights.h"

namespace kvasir::testing {
namespace {

constexpr const char* kPlanId = "golden";

absl::StatusOr<Plan> PlanOf(const GoldenOptions& options) {
  PlanOptions planned;
  planned.kv_memory_bytes = {std::int64_t{64} << 20};
  planned.contexts = {options.context};
  planned.max_requests = 2;
  planned.draft_tokens = options.draft_tokens;
  planned.state_rollback = options.rollback;
  planned.block_tokens = options.block_tokens;
  planned.prefill_chunk = options.prefill_chunk;
  std::optional<ModelDescription> draft;
  if (options.draft.has_value()) draft = options.draft->model;
  const PlanOutcome outcome = MakePlan(BuildRequest(options.target.model, draft, planned));
  if (const auto* made = std::get_if<Planned>(&outcome)) return made->plan;
  const auto* refused = std::get_if<Refusals>(&outcome);
  if (refused == nullptr) return absl::InternalError("the plan does not fit");
  return absl::InternalError(refused->refusals.front().field + ": " +
                             refused->refusals.front().remedies.front());
}

absl::StatusOr<std::unique_ptr<CheckpointWeights>> WeightsOf(const GoldenOptions& options) {
  std::optional<ModelDirectory> draft;
  if (options.draft.has_value()) draft = {&options.draft->model, options.draft->directory};
  return CheckpointWeights::Open({&options.target.model, options.target.directory}, draft);
}

}  // namespace

std::map<std::string, std::vector<float>> ReadGolden(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const auto header = ReadSafetensorsHeader(bytes, path);
  KVASIR_CHECK(header.ok());
  std::map<std::string, std::vector<float>> golden;
  for (const TensorEntry& entry : header->tensors) {
    std::vector<float>& values = golden[entry.name];
    for (std::int64_t at = entry.begin; at < entry.end; at += 4) {
      float real = 0;
      std::int32_t integer = 0;
      std::memcpy(&real, bytes.data() + at, 4);
      std::memcpy(&integer, bytes.data() + at, 4);
      values.push_back(entry.type == StoredType::kF32 ? real : static_cast<float>(integer));
    }
  }
  return golden;
}

double GoldenDifference(std::span<const float> got, std::span<const float> want) {
  if (got.size() != want.size() || want.empty()) return std::numeric_limits<double>::infinity();
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!std::isfinite(got[i])) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])));
    largest = std::max(largest, std::abs(static_cast<double>(want[i])));
  }
  return difference / largest;
}

absl::StatusOr<std::unique_ptr<GoldenEngine>> GoldenEngine::Create(const GoldenOptions& options) {
  std::unique_ptr<GoldenEngine> golden(new GoldenEngine());
  KVASIR_ASSIGN_OR_RETURN(golden->plan_, PlanOf(options));
  KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointWeights> weights, WeightsOf(options));
  RankEngineOptions engine;
  engine.plan = golden->plan_;
  engine.plan_id = kPlanId;
  engine.epoch = Epoch(1);
  engine.target = options.target.model;
  if (options.draft.has_value()) engine.draft = options.draft->model;
  engine.weights = weights.get();
  engine.observe_pass = [seen = &golden->seen_](const PassMetadata& metadata, std::span<const float> logits) {
    (*seen)[metadata.shape.pass].assign(logits.begin(), logits.end());
  };
  engine.observe_confidences = [confidences = &golden->confidences_](std::span<const float> values) {
    confidences->assign(values.begin(), values.end());
  };
  KVASIR_ASSIGN_OR_RETURN(SequenceTables tables, SequenceTables::Create(golden->plan_));
  golden->tables_ = std::make_unique<SequenceTables>(std::move(tables));
  golden->vocab_ = options.target.model.vocab;
  golden->backend_ = MakeCpuBackend({});
  KVASIR_ASSIGN_OR_RETURN(golden->engine_, RankEngine::Create(*golden->backend_, std::move(engine)));
  return golden;
}

absl::StatusOr<StepOutcome> GoldenEngine::Step(StepKind kind, const SequenceTable& table,
                                               std::int64_t committed, std::vector<std::int32_t> tokens) {
  StepPlan step{.epoch = Epoch(1), .plan_id = kPlanId, .step = steps_++, .kind = kind};
  step.zero_parents = tables_->TakeParentsToZero();
  StepSequence sequence{.id = SequenceId(0), .committed = committed, .limit = table.limit};
  sequence.tokens = std::move(tokens);
  sequence.last_chunk = kind == StepKind::kPrefill;
  sequence.blocks = table.columns;
  step.sequences.push_back(std::move(sequence));
  return engine_->Execute(step);
}

absl::StatusOr<std::vector<float>> GoldenEngine::LogitsOf(const std::vector<std::int32_t>& tokens,
                                                          std::int64_t chunk) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  KVASIR_ASSIGN_OR_RETURN(SequenceTable table, tables_->Reserve(count + 1));
  std::vector<float> logits;
  for (std::int64_t at = 0; at < count;) {
    // A sequence begins with a prefill.
    const StepKind kind = chunk == 1 && at > 0 ? StepKind::kDecode : StepKind::kPrefill;
    const std::int64_t rows = std::min(chunk, count - at);
    tables_->Place(table, at, rows);
    const auto first = tokens.begin() + at;
    KVASIR_RETURN_IF_ERROR(Step(kind, table, at, std::vector<std::int32_t>(first, first + rows)).status());
    const std::vector<float>& pass =
        seen_[kind == StepKind::kDecode ? Pass::kTargetDecode : Pass::kTargetPrefill];
    if (static_cast<std::int64_t>(pass.size()) < rows * vocab_) return absl::InternalError("no logits");
    // Rows of padding follow.
    logits.insert(logits.end(), pass.begin(), pass.begin() + rows * vocab_);
    at += rows;
  }
  tables_->Release(table);
  return logits;
}

}  // namespace kvasir::testing
