#include "worker/service/rank_group.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/checkpoint/mapped_file.h"
#include "worker/comm/tcp_comm.h"
#include "worker/comm/thread_comm.h"
#include "worker/service/preflight.h"

namespace kvasir {
namespace {

bool AllRanksHere(const PrepareSpec& spec) { return spec.ranks.size() == spec.sites.size(); }

MeshOptions MeshOptionsFor(const PrepareSpec& spec, std::int32_t rank, const std::stop_token& stop) {
  MeshOptions options;
  options.deployment = spec.deployment;
  options.epoch = spec.key.epoch;
  options.plan_id = spec.key.plan_id;
  options.rank = rank;
  for (const RankSite& site : spec.sites) options.endpoints.push_back(site.comm);
  options.connect_timeout = spec.comm_timeout;
  options.collective_timeout = spec.comm_timeout;
  options.stop = stop;
  return options;
}

// What must agree beside the facts of the process.
RankFacts FactsOf(const PrepareSpec& spec, const RankFacts& process) {
  RankFacts facts = process;
  facts.push_back({"plan.id", spec.key.plan_id});
  facts.push_back({"plan.epoch", std::to_string(spec.key.epoch.value())});
  facts.push_back({"weights.seed", std::to_string(spec.weight_seed)});
  facts.push_back({"weights.source", spec.target_checkpoint.empty() ? "synthetic" : "checkpoint"});
  facts.push_back(
      {"preflight", spec.preflight.has_value()
                        ? absl::StrFormat("%d replays, %d rows", spec.preflight->replays_per_graph,
                                          spec.preflight->compared_rows)
                        : "no"});
  return facts;
}

// The engine says "BACKEND_UNSUPPORTED_GROUP: ..." where a model has what it cannot run.
absl::Status Typed(const absl::Status& status) {
  if (!absl::IsUnimplemented(status)) return status;
  TypedError error = ErrorOf(status);
  error.code = absl::StatusCode::kFailedPrecondition;
  error.reason = reason::kBackendUnsupportedGroup;
  return MakeError(error);
}

absl::Status GivenUp() {
  return MakeError({.code = absl::StatusCode::kCancelled,
                    .reason = reason::kCallCancelled,
                    .message = "the preparation was given up"});
}

// Weights, unless the preparation is given up: loading may take minutes.
class UntilStopped final : public WeightSource {
 public:
  UntilStopped(const WeightSource& weights, std::stop_token stop)
      : weights_(weights), stop_(std::move(stop)) {}
  [[nodiscard]] absl::StatusOr<std::vector<float>> Read(const WeightSpec& spec,
                                                        const TensorPart& part) const override {
    if (stop_.stop_requested()) return GivenUp();
    return weights_.Read(spec, part);
  }

 private:
  const WeightSource& weights_;
  const std::stop_token stop_;
};

}  // namespace

absl::Status CheckGroupsSupported(const Plan& plan) {
  for (const PlanGroup* group : GroupsOf(plan)) {
    const BehaviourKey& behaviour = group->behaviour;
    const bool target = behaviour.role == Role::kTarget;
    const bool heads = std::any_of(group->layers.begin(), group->layers.end(), [&](const PlanLayer& layer) {
      return layer.layout.kind == LayoutKind::kKeyValue && (layer.layout.sharded || target);
    });
    const bool recurrent = behaviour.mixer == Mixer::kRecurrent;
    if (!heads && !recurrent && behaviour.window == 0) continue;
    // Whether the states are those of a layer that workers run, the model says (worker/engine/role_model.h).
    if (recurrent && target) continue;
    const std::string_view what = recurrent               ? "recurrent state of a draft"
                                  : behaviour.window != 0 ? "windowed attention"
                                  : target                ? "keys and values per head"
                                                          : "keys and values per head, sharded over context";
    return MakeError({.code = absl::StatusCode::kFailedPrecondition,
                      .reason = reason::kBackendUnsupportedGroup,
                      .message = absl::StrFormat(
                          "group %s (%d layers) has %s; the workers of this version run latent "
                          "attention (MLA), in targets Kimi Delta Attention (KDA), and in drafts whole "
                          "caches of keys and values per head",
                          group->name, group->layers.size(), what),
                      .metadata = {{"group", group->name}}});
  }
  return absl::OkStatus();
}

RankGroup::RankGroup(const PrepareSpec& spec, const WorkerResources& resources)
    : spec_(spec), resources_(resources), members_(spec.ranks.size()), threads_(spec.ranks.size()) {
  for (std::size_t i = 0; i < members_.size(); ++i) members_[i].rank = spec.ranks[i];
}

absl::StatusOr<std::unique_ptr<RankGroup>> RankGroup::Create(const PrepareSpec& spec,
                                                             const WorkerResources& resources,
                                                             const std::stop_token& stop) {
  KVASIR_RETURN_IF_ERROR(CheckGroupsSupported(spec.plan));
  std::unique_ptr<RankGroup> group(new RankGroup(spec, resources));
  resources.faults.Reach("prepare.start");
  KVASIR_RETURN_IF_ERROR(group->Meet(stop));
  KVASIR_RETURN_IF_ERROR(group->Agree());
  KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<const CheckpointWeights> checkpoint, group->OpenWeights());
  resources.faults.Reach("prepare.agreed");
  if (spec.preflight.has_value()) {
    KVASIR_RETURN_IF_ERROR(group->Preflight());
  } else {
    KVASIR_RETURN_IF_ERROR(group->Build(checkpoint.get(), stop));
  }
  resources.faults.Reach("prepare.built");
  return group;
}

RankGroup::~RankGroup() {
  Abort("the plan was freed");
  // On the ranks' own threads, and before the communicators that the backends borrow.
  (void)threads_.Run([this](std::size_t i) {
    members_[i].engine.reset();
    members_[i].backend.reset();
    return absl::OkStatus();
  });
}

absl::Status RankGroup::OnAll(const std::function<absl::Status(std::size_t, Member&)>& body) {
  const absl::Status status = FirstCause(threads_.Run([&](std::size_t i) { return body(i, members_[i]); }));
  if (!status.ok()) Abort("a rank of the worker failed to prepare");
  return status;
}

absl::Status RankGroup::Meet(const std::stop_token& stop) {
  if (AllRanksHere(spec_)) {
    std::vector<RankComms> comms =
        MakeThreadComms(spec_.plan.topology.tp, spec_.plan.topology.dcp, spec_.comm_timeout);
    for (std::size_t i = 0; i < members_.size(); ++i) members_[i].comms = std::move(comms[i]);
    return absl::OkStatus();
  }
  // One rank's failure ends the waiting of the others.
  std::stop_source give_up;
  const std::stop_callback forward(stop, [&give_up] { give_up.request_stop(); });
  return OnAll([&](std::size_t, Member& member) {
    const MeshOptions options = MeshOptionsFor(spec_, member.rank, give_up.get_token());
    absl::StatusOr<RankComms> comms = MakeTcpComms(*resources_.listener, options, spec_.plan.topology.dcp);
    if (!comms.ok()) {
      give_up.request_stop();
      return comms.status();
    }
    member.comms = *std::move(comms);
    return absl::OkStatus();
  });
}

absl::Status RankGroup::Agree() {
  const RankFacts facts = FactsOf(spec_, resources_.facts);
  return OnAll([&](std::size_t, Member& member) { return AgreeOnFacts(*member.comms.tensor, facts); });
}

absl::StatusOr<std::unique_ptr<const CheckpointWeights>> RankGroup::OpenWeights() {
  if (spec_.target_checkpoint.empty()) return nullptr;
  const auto locate = [this](std::string_view field, const ModelDescription& model,
                             const std::string& directory) -> absl::StatusOr<ModelDirectory> {
    const absl::StatusOr<ResolvedDirectory> place = ResolveBelow(resources_.checkpoint_root, directory);
    if (!place.ok()) return WithinField(field, place.status());
    return ModelDirectory{&model, place->directory, place->root};
  };
  KVASIR_ASSIGN_OR_RETURN(const ModelDirectory target, locate("weights.checkpoint.target_directory",
                                                              spec_.target, spec_.target_checkpoint));
  std::optional<ModelDirectory> draft;
  if (spec_.draft.has_value()) {
    KVASIR_ASSIGN_OR_RETURN(
        draft, locate("weights.checkpoint.draft_directory", *spec_.draft, spec_.draft_checkpoint));
  }
  KVASIR_ASSIGN_OR_RETURN(std::unique_ptr<const CheckpointWeights> checkpoint,
                          CheckpointWeights::Open(target, draft));
  KVASIR_ASSIGN_OR_RETURN(const std::string digest, checkpoint->Digest());
  KVASIR_RETURN_IF_ERROR(OnAll([&](std::size_t, Member& member) {
    return AgreeOnFacts(*member.comms.tensor, {{"weights.checkpoint", digest}});
  }));
  return checkpoint;
}

absl::Status RankGroup::Build(const CheckpointWeights* checkpoint, const std::stop_token& stop) {
  const SyntheticWeights synthetic(spec_.weight_seed);
  // One rank's failure ends the loading of the others.
  std::stop_source give_up;
  const std::stop_callback forward(stop, [&give_up] { give_up.request_stop(); });
  const UntilStopped weights(
      checkpoint != nullptr ? static_cast<const WeightSource&>(*checkpoint) : synthetic, give_up.get_token());
  KVASIR_RETURN_IF_ERROR(OnAll([&](std::size_t i, Member& member) {
    if (give_up.stop_requested()) return GivenUp();
    absl::Status built = MakeBackend(i, member);
    if (built.ok()) built = BuildEngine(member, weights);
    if (!built.ok()) give_up.request_stop();
    return built;
  }));
  for (const Member& member : members_) {
    report_.measurements.push_back({member.rank, member.engine->measurement()});
  }
  return absl::OkStatus();
}

absl::Status RankGroup::MakeBackend(std::size_t i, Member& member) {
  absl::StatusOr<std::unique_ptr<Backend>> backend =
      resources_.make_backend(member.comms, /*reference=*/false);
  if (!backend.ok()) return Typed(backend.status());
  member.backend = WithinBudget(*std::move(backend), resources_.places[i]);
  return absl::OkStatus();
}

absl::Status RankGroup::BuildEngine(Member& member, const WeightSource& weights) {
  RankEngineOptions options;
  options.plan = spec_.plan;
  options.plan_id = spec_.key.plan_id;
  options.epoch = spec_.key.epoch;
  options.place = {member.rank, spec_.plan.topology};
  options.target = spec_.target;
  options.draft = spec_.draft;
  options.weight_seed = spec_.weight_seed;
  options.weights = &weights;
  options.communicator = member.comms.tensor.get();
  options.context_communicator = member.comms.context.get();
  absl::StatusOr<std::unique_ptr<RankEngine>> engine =
      RankEngine::Create(*member.backend, std::move(options));
  if (!engine.ok()) return Typed(engine.status());
  member.engine = *std::move(engine);
  return absl::OkStatus();
}

absl::Status RankGroup::Preflight() {
  std::vector<RankPreflight> results(members_.size());
  KVASIR_RETURN_IF_ERROR(OnAll([&](std::size_t i, Member& member) {
    if (absl::Status made = MakeBackend(i, member); !made.ok()) return made;
    absl::StatusOr<std::unique_ptr<Backend>> reference =
        resources_.make_backend(member.comms, /*reference=*/true);
    if (!reference.ok()) return Typed(reference.status());
    const PreflightBackends backends{std::move(member.backend), *std::move(reference)};
    absl::StatusOr<RankPreflight> result = RunPreflight(spec_, member.rank, *member.comms.tensor, backends);
    if (!result.ok()) return Typed(result.status());
    results[i] = *std::move(result);
    return absl::OkStatus();
  }));
  PreflightReport report;
  for (RankPreflight& result : results) {
    report_.measurements.push_back(result.measured);
    report.graphs.insert(report.graphs.end(), result.graphs.begin(), result.graphs.end());
    report.comparisons.insert(report.comparisons.end(), result.comparisons.begin(), result.comparisons.end());
    report.collective_bytes = result.collective_bytes;
  }
  report_.preflight = std::move(report);
  return absl::OkStatus();
}

absl::StatusOr<StepOutcome> RankGroup::Execute(const StepPlan& step) {
  const std::unique_lock lock(step_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return MakeError({.code = absl::StatusCode::kFailedPrecondition,
                      .reason = reason::kStepOutOfOrder,
                      .message = absl::StrFormat("step %d came while another one runs", step.step)});
  }
  resources_.faults.Reach("step.start");
  absl::Status status = FirstCause(threads_.Run([&](std::size_t i) {
    members_[i].outcome = members_[i].engine->Execute(step);
    return members_[i].outcome.status();
  }));
  if (!status.ok()) return status;
  return members_.front().outcome;  // the engines have compared theirs
}

void RankGroup::Abort(const std::string& reason) {
  for (Member& member : members_) {
    if (member.comms.tensor != nullptr) member.comms.tensor->Abort(reason);
  }
}

absl::Status RankGroup::CheckPeers() {
  for (Member& member : members_) {
    if (member.comms.mesh != nullptr) KVASIR_RETURN_IF_ERROR(member.comms.mesh->CheckPeers());
  }
  return absl::OkStatus();
}

}  // namespace kvasir
