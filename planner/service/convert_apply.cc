#include "planner/service/convert_apply.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/models/model_text.h"
#include "common/plan/plan_text.h"
#include "common/plan/verify.h"
#include "common/rpc/address.h"
#include "planner/service/check_field.h"

namespace kvasir {
namespace {

constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int64_t kRequestIdBytesMax = 64;
constexpr std::int64_t kDirectoryBytesMax = 4096;
constexpr DurationRange kPrepareRange{.min_ms = 1'000, .max_ms = kHourMs, .default_ms = 600'000};
constexpr DurationRange kCommitRange{.min_ms = 100, .max_ms = 300'000, .default_ms = 10'000};
constexpr DurationRange kDrainRange{.min_ms = 0, .max_ms = kHourMs, .default_ms = 30'000};
constexpr DurationRange kCommRange{.min_ms = 100, .max_ms = 600'000, .default_ms = 10'000};

absl::StatusOr<Plan> PlanFromRequest(const planner::v1::ApplyPlanRequest& wire) {
  if (wire.plan_text().empty()) {
    return MissingField("plan_text", "the canonical text of a plan");
  }
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("plan_text", wire.plan_text(), kPlanTextBytesMax));
  const std::string id = PlanId(wire.plan_text());
  if (!wire.plan_id().empty() && wire.plan_id() != id) {
    return MakeError(
        {.code = absl::StatusCode::kInvalidArgument,
         .reason = reason::kPlanHashMismatch,
         .message = absl::StrFormat("plan_id is %s and the text's SHA-256 is %s; send the text unchanged",
                                    wire.plan_id().substr(0, 64), id),
         .field = "plan_id",
         .metadata = {{"plan_id", wire.plan_id().substr(0, 64)}, {"text_id", id}}});
  }
  absl::StatusOr<Plan> plan = PlanFromText(wire.plan_text());
  if (!plan.ok()) {
    return WithReason(reason::kPlanTextInvalid, "plan_text", plan.status());
  }
  KVASIR_RETURN_IF_ERROR(WithReason(reason::kPlanInvalid, "plan_text", VerifyPlan(*plan)));
  return plan;
}

absl::Status CheckModel(std::string_view field, const std::string& text, const ModelRef& ref) {
  if (ref.digest.empty() && text.empty()) {
    return absl::OkStatus();
  }
  if (text.empty()) {
    return MissingField(field, absl::StrFormat("the canonical text of %s", ref.name));
  }
  KVASIR_RETURN_IF_ERROR(CheckTextBytes(field, text, kPlanTextBytesMax));
  if (ref.digest.empty()) {
    return FieldError(reason::kConflictingFields, field,
                      absl::StrFormat("%s is given and the plan has no such model; leave it empty", field));
  }
  const absl::StatusOr<ModelDescription> model = ModelFromText(text);
  if (!model.ok()) {
    return WithReason(reason::kModelTextInvalid, field, model.status());
  }
  const std::string digest = ModelDigest(*model);
  if (digest == ref.digest) {
    return absl::OkStatus();
  }
  return MakeError({.code = absl::StatusCode::kInvalidArgument,
                    .reason = reason::kModelDigestMismatch,
                    .message = absl::StrFormat("the plan was made for %s with digest %s; this text has %s",
                                               ref.name, ref.digest, digest),
                    .field = std::string(field),
                    .metadata = {{"plan_digest", ref.digest}, {"text_digest", digest}}});
}

absl::StatusOr<std::vector<WorkerTarget>> WorkersFromProto(const planner::v1::ApplyPlanRequest& wire,
                                                           std::int64_t rank_count) {
  KVASIR_RETURN_IF_ERROR(CheckCount("workers", wire.workers_size(), kRanksMax));
  std::vector<WorkerTarget> workers;
  for (int i = 0; i < wire.workers_size(); ++i) {
    const planner::v1::WorkerAssignment& worker = wire.workers(i);
    const std::string path = absl::StrFormat("workers[%d]", i);
    KVASIR_RETURN_IF_ERROR(CheckCount(path + ".ranks", worker.ranks_size(), kRanksMax));
    const absl::StatusOr<Address> address = ParseAddress(worker.address());
    if (!address.ok()) {
      return WithinField(path + ".address", address.status());
    }
    workers.push_back({AddressText(*address), {worker.ranks().begin(), worker.ranks().end()}});
  }
  KVASIR_RETURN_IF_ERROR(ArrangeWorkers(workers, rank_count));
  return workers;
}

absl::StatusOr<ApplyTimes> TimesFromProto(const planner::v1::ApplyPlanRequest& wire) {
  ApplyTimes times;
  KVASIR_ASSIGN_OR_RETURN(times.prepare_ms, DurationMs("prepare_timeout", wire.has_prepare_timeout(),
                                                       wire.prepare_timeout(), kPrepareRange));
  KVASIR_ASSIGN_OR_RETURN(times.commit_ms, DurationMs("commit_timeout", wire.has_commit_timeout(),
                                                      wire.commit_timeout(), kCommitRange));
  KVASIR_ASSIGN_OR_RETURN(times.drain_ms, DurationMs("drain_timeout", wire.has_drain_timeout(),
                                                     wire.drain_timeout(), kDrainRange));
  KVASIR_ASSIGN_OR_RETURN(
      times.comm_ms, DurationMs("comm_timeout", wire.has_comm_timeout(), wire.comm_timeout(), kCommRange));
  return times;
}

absl::StatusOr<ApplyMode> ModeFromProto(planner::v1::DeploymentMode mode) {
  switch (mode) {
    case planner::v1::DEPLOYMENT_MODE_UNSPECIFIED:
    case planner::v1::DEPLOYMENT_MODE_SIDE_BY_SIDE:
      return ApplyMode::kSideBySide;
    case planner::v1::DEPLOYMENT_MODE_REPLACE:
      return ApplyMode::kReplace;
    default:
      return FieldError(
          reason::kUnknownValue, "mode",
          absl::StrFormat("mode is %d; give DEPLOYMENT_MODE_SIDE_BY_SIDE or DEPLOYMENT_MODE_REPLACE",
                          static_cast<int>(mode)));
  }
}

absl::StatusOr<std::optional<PreflightSettings>> PreflightFromProto(
    const planner::v1::ApplyPlanRequest& wire) {
  if (!wire.has_preflight()) {
    return std::optional<PreflightSettings>();
  }
  const planner::v1::PreflightKnobs& knobs = wire.preflight();
  KVASIR_RETURN_IF_ERROR(CheckRange("preflight.replays_per_graph", knobs.replays_per_graph(), 0, 1000));
  KVASIR_RETURN_IF_ERROR(CheckRange("preflight.compared_rows", knobs.compared_rows(), 0, 64));
  return std::optional(PreflightSettings{knobs.replays_per_graph(), knobs.compared_rows()});
}

planner::v1::DeploymentState StateToProto(const DeploymentView& view) {
  switch (view.phase) {
    case ApplyPhase::kQuerying:
    case ApplyPhase::kReleasing:
    case ApplyPhase::kPreparing:
    case ApplyPhase::kRenewing:
      return planner::v1::DEPLOYMENT_STATE_PREPARING;
    case ApplyPhase::kCommitting:
    case ApplyPhase::kCleaning:
      return planner::v1::DEPLOYMENT_STATE_COMMITTING;
    case ApplyPhase::kAborting:
      return planner::v1::DEPLOYMENT_STATE_ABORTING;
    case ApplyPhase::kRetiring:
      return planner::v1::DEPLOYMENT_STATE_RETIRING;
    case ApplyPhase::kIdle:
    case ApplyPhase::kFinished:
      break;
  }
  return view.record.serving.has_value() ? planner::v1::DEPLOYMENT_STATE_ACTIVE
                                         : planner::v1::DEPLOYMENT_STATE_FAILED;
}

void SetElapsed(std::int64_t ms, google::protobuf::Duration& wire) {
  wire.set_seconds(ms / 1000);
  wire.set_nanos(static_cast<std::int32_t>(ms % 1000) * 1'000'000);
}

void SetWorkers(const ApplySpec& spec, planner::v1::Deployment& wire) {
  for (const WorkerTarget& worker : spec.workers) {
    planner::v1::WorkerAssignment* out = wire.add_workers();
    out->set_address(worker.address);
    out->mutable_ranks()->Add(worker.ranks.begin(), worker.ranks.end());
  }
}

// Whether the draft is the target's own module of multi-token prediction, which lies in the target's
// checkpoint.
bool IsOfTheTarget(const std::string& draft_model_text) {
  if (draft_model_text.empty()) return false;
  const absl::StatusOr<ModelDescription> draft = ModelFromText(draft_model_text);
  return draft.ok() && draft->draft.has_value() && draft->draft->method == DraftMethod::kMtp;
}

// The directories as they are; each worker resolves them on its own machine.
absl::Status CheckpointFromProto(const planner::v1::ApplyPlanRequest& wire, const Plan& plan,
                                 ApplySpec& spec) {
  if (!wire.has_checkpoint()) return absl::OkStatus();
  const planner::v1::CheckpointDirectories& checkpoint = wire.checkpoint();
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("checkpoint.target", checkpoint.target(), kDirectoryBytesMax));
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("checkpoint.draft", checkpoint.draft(), kDirectoryBytesMax));
  if (wire.weight_seed() != 0) {
    return FieldError(
        reason::kConflictingFields, "weight_seed",
        absl::StrFormat("weight_seed is %d and checkpoint is given; give one of them", wire.weight_seed()));
  }
  if (checkpoint.target().empty()) {
    return FieldError(reason::kMissingField, "checkpoint.target",
                      "checkpoint.target is empty; name the target's directory");
  }
  spec.target_checkpoint = checkpoint.target();
  spec.draft_checkpoint = checkpoint.draft();
  const bool drafts = !plan.draft.name.empty();
  if (spec.draft_checkpoint.empty() && IsOfTheTarget(wire.draft_model_text())) {
    spec.draft_checkpoint = spec.target_checkpoint;
  }
  if (drafts == spec.draft_checkpoint.empty()) {
    return FieldError(drafts ? reason::kMissingField : reason::kConflictingFields, "checkpoint.draft",
                      drafts ? "checkpoint.draft is empty; name the draft's directory"
                             : "checkpoint.draft is given and the plan has no draft; leave it empty");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ApplyTask> ApplyFromProto(const planner::v1::ApplyPlanRequest& wire) {
  KVASIR_RETURN_IF_ERROR(CheckDeploymentName("deployment", wire.deployment()));
  KVASIR_ASSIGN_OR_RETURN(const Plan plan, PlanFromRequest(wire));
  KVASIR_RETURN_IF_ERROR(CheckModel("target_model_text", wire.target_model_text(), plan.target));
  KVASIR_RETURN_IF_ERROR(CheckModel("draft_model_text", wire.draft_model_text(), plan.draft));
  KVASIR_RETURN_IF_ERROR(CheckRange("weight_seed", wire.weight_seed(), 0, INT64_MAX));
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("request_id", wire.request_id(), kRequestIdBytesMax));
  ApplyTask task;
  ApplySpec& spec = task.start.spec;
  KVASIR_ASSIGN_OR_RETURN(spec.workers, WorkersFromProto(wire, plan.topology.tp));
  KVASIR_ASSIGN_OR_RETURN(spec.times, TimesFromProto(wire));
  KVASIR_ASSIGN_OR_RETURN(task.start.mode, ModeFromProto(wire.mode()));
  KVASIR_ASSIGN_OR_RETURN(task.preflight, PreflightFromProto(wire));
  task.deployment = wire.deployment();
  task.start.preflight = task.preflight.has_value();
  task.start.request_id = wire.request_id();
  task.planned_graphs = static_cast<std::int64_t>(plan.graphs.size());
  spec.plan_id = PlanId(wire.plan_text());
  spec.plan_text = wire.plan_text();
  spec.target_model_text = wire.target_model_text();
  spec.draft_model_text = wire.draft_model_text();
  spec.weight_seed = wire.weight_seed();
  KVASIR_RETURN_IF_ERROR(CheckpointFromProto(wire, plan, spec));
  return task;
}

planner::v1::Deployment DeploymentToProto(const DeploymentView& view) {
  const DeploymentRecord& record = view.record;
  planner::v1::Deployment wire;
  wire.set_name(record.name);
  wire.set_state(StateToProto(view));
  if (record.serving.has_value()) {
    wire.set_epoch(record.serving->epoch.value());
    wire.set_plan_id(record.serving->spec.plan_id);
    wire.set_leader_address(record.serving->spec.workers.front().address);
    SetWorkers(record.serving->spec, wire);
  }
  if (record.pending.has_value()) {
    wire.set_pending_epoch(record.pending->epoch.value());
    wire.set_pending_plan_id(record.pending->spec.plan_id);
    if (!record.serving.has_value()) {
      SetWorkers(record.pending->spec, wire);
    }
  }
  if (record.last_error.code != 0) {
    wire.mutable_last_error()->set_code(record.last_error.code);
    wire.mutable_last_error()->set_reason(record.last_error.reason);
    wire.mutable_last_error()->set_message(record.last_error.message);
  }
  wire.mutable_update_time()->set_seconds(record.update_wall_ms / 1000);
  wire.mutable_update_time()->set_nanos(static_cast<std::int32_t>(record.update_wall_ms % 1000) * 1'000'000);
  return wire;
}

planner::v1::ApplyPlanResponse ProgressToProto(const ApplyProgress& progress, std::int64_t planned_graphs) {
  planner::v1::ApplyPlanResponse wire;
  SetElapsed(progress.elapsed_ms, *wire.mutable_elapsed());
  wire.set_epoch(progress.epoch.value());
  switch (progress.kind) {
    case ReportKind::kPhase:
      wire.set_phase(StateToProto({DeploymentRecord(), progress.phase}));
      break;
    case ReportKind::kPrepared:
      *wire.mutable_prepared() = progress.prepared;
      wire.mutable_prepared()->set_worker_address(progress.worker_address);
      for (plan::v1::RankMeasurement& rank : *wire.mutable_prepared()->mutable_measurements()) {
        rank.set_planned_graph_count(static_cast<std::int32_t>(planned_graphs));
      }
      break;
    case ReportKind::kCommitted:
      wire.mutable_committed()->set_worker_address(progress.worker_address);
      break;
  }
  return wire;
}

planner::v1::ApplyPlanResponse DoneToProto(const ApplyEnd& end) {
  planner::v1::ApplyPlanResponse wire;
  SetElapsed(end.elapsed_ms, *wire.mutable_elapsed());
  if (end.view.record.serving.has_value()) {
    wire.set_epoch(end.view.record.serving->epoch.value());
  }
  *wire.mutable_done()->mutable_deployment() = DeploymentToProto(end.view);
  return wire;
}

}  // namespace kvasir
