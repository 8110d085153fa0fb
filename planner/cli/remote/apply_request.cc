#include "planner/cli/remote/apply_request.h"

#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/models/model_text.h"
#include "common/rpc/address.h"
#include "planner/cli/plan_question.h"
#include "planner/cli/plan_store.h"

namespace kvasir::cli {
namespace {

constexpr std::array kFlags = {
    Flag{"workers", "LIST", "host:port of every worker, by ascending rank; ranks are divided evenly"},
    Flag{"seed", "N", "seed of the synthetic weights (1)"},
    Flag{"target-checkpoint", "DIR", "the target's published weights, below each worker's --checkpoint-root"},
    Flag{"draft-checkpoint", "DIR",
         "the draft's published weights, the same; of --draft mtp they are the target's"},
    Flag{"target", "MODEL", "the plan's target, where its description is not stored"},
    Flag{"draft", "MODEL", "the plan's draft, where its description is not stored"},
    Flag{"mode", "MODE", "side_by_side or replace: how a running plan makes room (side_by_side)"},
    Flag{"prepare-timeout", "TIME", "how long a worker may prepare (10m)"},
    Flag{"commit-timeout", "TIME", "how long a worker may commit (10s)"},
    Flag{"drain-timeout", "TIME", "how long sequences of the old plan may go on (30s)"},
    Flag{"comm-timeout", "TIME", "how long a collective waits for its peers (10s)"},
};

void SetDuration(std::chrono::milliseconds time, google::protobuf::Duration* out) {
  out->set_seconds(time.count() / 1000);
  out->set_nanos(static_cast<int>(time.count() % 1000) * 1'000'000);
}

// Canonical text of the model with this digest, from the flag where it is given, else from the store.
absl::StatusOr<std::string> ModelText(const Console& console, const CommandLine& line, std::string_view flag,
                                      const ModelRef& ref) {
  if (!line.Has(flag)) return LoadModelText(console, ref.digest);
  KVASIR_ASSIGN_OR_RETURN(const ModelDescription model, ReadModel(line.ValueOr(flag, "")));
  if (ModelDigest(model) != ref.digest) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--%s: the plan was made for another description of %s", flag, ref.name));
  }
  return ModelToText(model);
}

absl::Status SetMode(const CommandLine& line, planner::v1::ApplyPlanRequest& request) {
  const std::string mode = line.ValueOr("mode", "side_by_side");
  if (mode != "side_by_side" && mode != "replace") {
    return absl::InvalidArgumentError(absl::StrFormat("--mode %s: expected side_by_side or replace", mode));
  }
  request.set_mode(mode == "replace" ? planner::v1::DEPLOYMENT_MODE_REPLACE
                                     : planner::v1::DEPLOYMENT_MODE_SIDE_BY_SIDE);
  return absl::OkStatus();
}

absl::Status SetWeights(const CommandLine& line, planner::v1::ApplyPlanRequest& request) {
  const bool published = line.Has("target-checkpoint") || line.Has("draft-checkpoint");
  if (!published) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t seed, line.IntOr("seed", 1));
    request.set_weight_seed(seed);
    return absl::OkStatus();
  }
  if (line.Has("seed")) {
    return absl::InvalidArgumentError("--seed makes weights and --target-checkpoint reads them; give one");
  }
  request.mutable_checkpoint()->set_target(line.ValueOr("target-checkpoint", ""));
  request.mutable_checkpoint()->set_draft(line.ValueOr("draft-checkpoint", ""));
  return absl::OkStatus();
}

absl::Status SetTimes(const CommandLine& line, planner::v1::ApplyPlanRequest& request) {
  using std::chrono::milliseconds;
  KVASIR_ASSIGN_OR_RETURN(const milliseconds prepare,
                          DurationOr(line, "prepare-timeout", milliseconds(600'000)));
  KVASIR_ASSIGN_OR_RETURN(const milliseconds commit,
                          DurationOr(line, "commit-timeout", milliseconds(10'000)));
  KVASIR_ASSIGN_OR_RETURN(const milliseconds drain, DurationOr(line, "drain-timeout", milliseconds(30'000)));
  KVASIR_ASSIGN_OR_RETURN(const milliseconds comm, DurationOr(line, "comm-timeout", milliseconds(10'000)));
  SetDuration(prepare, request.mutable_prepare_timeout());
  SetDuration(commit, request.mutable_commit_timeout());
  SetDuration(drain, request.mutable_drain_timeout());
  SetDuration(comm, request.mutable_comm_timeout());
  return absl::OkStatus();
}

}  // namespace

std::span<const Flag> ApplyFlags() { return kFlags; }

absl::StatusOr<std::vector<planner::v1::WorkerAssignment>> AssignRanks(std::string_view workers,
                                                                       std::int64_t ranks) {
  std::vector<planner::v1::WorkerAssignment> out;
  std::set<std::string> seen;
  while (!workers.empty()) {
    const std::size_t comma = workers.find(',');
    KVASIR_ASSIGN_OR_RETURN(const Address address, ParseAddress(workers.substr(0, comma)));
    const std::string text = AddressText(address);
    if (!seen.insert(text).second) {
      return absl::InvalidArgumentError(absl::StrFormat("--workers: %s is there twice", text));
    }
    out.emplace_back().set_address(text);
    workers.remove_prefix(comma == std::string_view::npos ? workers.size() : comma + 1);
  }
  const auto count = static_cast<std::int64_t>(out.size());
  if (count == 0 || count > ranks) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--workers: %d workers for %d ranks; expected 1 to %d", count, ranks, ranks));
  }
  std::int64_t rank = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t share = ranks / count + (i < ranks % count ? 1 : 0);
    for (std::int64_t k = 0; k < share; ++k, ++rank) {
      out[static_cast<std::size_t>(i)].add_ranks(static_cast<std::int32_t>(rank));
    }
  }
  return out;
}

absl::StatusOr<planner::v1::ApplyPlanRequest> MakeApplyRequest(const Console& console, const Session& session,
                                                               const CommandLine& line) {
  planner::v1::ApplyPlanRequest request;
  request.set_deployment(session.deployment);
  KVASIR_ASSIGN_OR_RETURN(const StoredPlan stored, LoadPlan(console, line.words()[0]));
  request.set_plan_text(stored.text);
  request.set_plan_id(stored.plan_id);
  KVASIR_ASSIGN_OR_RETURN(const std::string target, ModelText(console, line, "target", stored.plan.target));
  request.set_target_model_text(target);
  if (!stored.plan.draft.name.empty()) {
    KVASIR_ASSIGN_OR_RETURN(const std::string draft, ModelText(console, line, "draft", stored.plan.draft));
    request.set_draft_model_text(draft);
  }
  KVASIR_RETURN_IF_ERROR(SetWeights(line, request));
  KVASIR_ASSIGN_OR_RETURN(const std::vector<planner::v1::WorkerAssignment> workers,
                          AssignRanks(line.ValueOr("workers", ""), stored.plan.topology.tp));
  for (const planner::v1::WorkerAssignment& worker : workers) *request.add_workers() = worker;
  KVASIR_RETURN_IF_ERROR(SetMode(line, request));
  KVASIR_RETURN_IF_ERROR(SetTimes(line, request));
  return request;
}

}  // namespace kvasir::cli
