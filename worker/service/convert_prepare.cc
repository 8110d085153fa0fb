#include "worker/service/convert_prepare.h"

#include <algorithm>
#include <string>
#include <string_view>
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
#include "worker/service/convert_fields.h"

namespace kvasir {
namespace {

using worker::v1::PreparePlanRequest;

constexpr std::int64_t kSeedMax = std::int64_t{1} << 62;
constexpr std::int64_t kDirectoryBytesMax = 4096;
constexpr std::int64_t kReplaysMax = 1000;
constexpr std::int64_t kComparedRowsMax = 64;
constexpr DurationRange kLease{std::chrono::seconds(1), std::chrono::hours(1)};
constexpr DurationRange kCommTimeout{std::chrono::milliseconds(100), std::chrono::minutes(10)};

absl::Status CheckText(std::string_view field, const std::string& text) {
  if (text.empty()) {
    return FieldError(reason::kMissingField, field,
                      absl::StrFormat("%s is empty; send the canonical text", field));
  }
  if (static_cast<std::int64_t>(text.size()) <= kPlanTextBytesMax) return absl::OkStatus();
  return FieldError(reason::kValueOutOfRange, field,
                    absl::StrFormat("%s has %d bytes; at most %d", field, text.size(), kPlanTextBytesMax));
}

absl::StatusOr<Plan> ToPlan(const PreparePlanRequest& request) {
  KVASIR_RETURN_IF_ERROR(CheckPlanId("plan_id", request.plan_id()));
  KVASIR_RETURN_IF_ERROR(CheckText("plan_text", request.plan_text()));
  const std::string id = PlanId(request.plan_text());
  if (id != request.plan_id()) {
    return MakeError(
        {.code = absl::StatusCode::kInvalidArgument,
         .reason = reason::kPlanHashMismatch,
         .message = absl::StrFormat("plan_id is %s, and plan_text has the SHA-256 %s; send the text "
                                    "exactly as the planner wrote it",
                                    request.plan_id(), id),
         .field = "plan_id",
         .metadata = {{"plan_id", request.plan_id()}, {"text_sha256", id}}});
  }
  absl::StatusOr<Plan> plan = PlanFromText(request.plan_text());
  if (!plan.ok()) return WithReason(reason::kPlanTextInvalid, "plan_text", plan.status());
  if (const absl::Status sound = VerifyPlan(*plan); !sound.ok()) {
    return WithReason(reason::kPlanInvalid, "plan_text", sound);
  }
  return plan;
}

absl::StatusOr<ModelDescription> ToModel(std::string_view field, const std::string& text,
                                         const ModelRef& planned) {
  KVASIR_RETURN_IF_ERROR(CheckText(field, text));
  absl::StatusOr<ModelDescription> model = ModelFromText(text);
  if (!model.ok()) return WithReason(reason::kModelTextInvalid, field, model.status());
  const std::string digest = ModelDigest(*model);
  if (digest == planned.digest) return model;
  return MakeError(
      {.code = absl::StatusCode::kInvalidArgument,
       .reason = reason::kModelDigestMismatch,
       .message = absl::StrFormat("%s describes %s with digest %s; the plan was made for %s with digest "
                                  "%s; plan again, or send that description",
                                  field, model->name, digest, planned.name, planned.digest),
       .field = std::string(field),
       .metadata = {{"digest", digest}, {"planned_digest", planned.digest}}});
}

absl::Status ToModels(const PreparePlanRequest& request, PrepareSpec& spec) {
  KVASIR_ASSIGN_OR_RETURN(spec.target,
                          ToModel("target_model_text", request.target_model_text(), spec.plan.target));
  if (spec.plan.draft_tokens == 0) {
    if (request.draft_model_text().empty()) return absl::OkStatus();
    return FieldError(reason::kConflictingFields, "draft_model_text",
                      "draft_model_text is given and the plan has no draft; leave it empty");
  }
  KVASIR_ASSIGN_OR_RETURN(spec.draft,
                          ToModel("draft_model_text", request.draft_model_text(), spec.plan.draft));
  if (spec.draft->draft.has_value()) return absl::OkStatus();
  return FieldError(reason::kConflictingFields, "draft_model_text",
                    absl::StrFormat("draft_model_text describes %s, which is no draft", spec.draft->name));
}

absl::StatusOr<RankSite> ToSite(const worker::v1::RankEndpoint& endpoint) {
  RankSite site;
  const absl::StatusOr<Address> address = ParseAddress(endpoint.worker_address());
  if (!address.ok()) return WithinField("worker_address", address.status());
  site.worker_address = AddressText(*address);
  const Address comm{endpoint.comm_endpoint().host(), endpoint.comm_endpoint().port()};
  const absl::StatusOr<Address> parsed = ParseAddress(AddressText(comm));
  if (!parsed.ok()) return WithinField("comm_endpoint", parsed.status());
  site.comm = {parsed->host, parsed->port};
  return site;
}

absl::Status RanksIncomplete(std::string_view field, const std::string& what) {
  return FieldError(reason::kRanksIncomplete, field, absl::StrFormat("%s %s", field, what));
}

absl::Status ToSites(const PreparePlanRequest& request, PrepareSpec& spec) {
  KVASIR_RETURN_IF_ERROR(CheckCount("rank_map", request.rank_map_size(), kRanksMax));
  const std::int64_t ranks = spec.plan.topology.tp;
  if (request.rank_map_size() != ranks) {
    return RanksIncomplete("rank_map",
                           absl::StrFormat("has %d ranks; the plan has %d", request.rank_map_size(), ranks));
  }
  for (int i = 0; i < request.rank_map_size(); ++i) {
    const std::string field = absl::StrFormat("rank_map[%d]", i);
    if (request.rank_map(i).rank() != i) {
      return RanksIncomplete(field + ".rank", absl::StrFormat("is %d; list each rank once, ascending from 0",
                                                              request.rank_map(i).rank()));
    }
    absl::StatusOr<RankSite> site = ToSite(request.rank_map(i));
    if (!site.ok()) return WithinField(field, site.status());
    spec.sites.push_back(*std::move(site));
  }
  return absl::OkStatus();
}

absl::Status ToRanks(const PreparePlanRequest& request, std::size_t places, PrepareSpec& spec) {
  if (request.ranks().empty()) {
    return FieldError(reason::kMissingField, "ranks", "ranks is empty; name the ranks of this worker");
  }
  KVASIR_RETURN_IF_ERROR(CheckCount("ranks", request.ranks_size(), spec.plan.topology.tp));
  std::int32_t last = -1;
  for (int i = 0; i < request.ranks_size(); ++i) {
    const std::string field = absl::StrFormat("ranks[%d]", i);
    KVASIR_RETURN_IF_ERROR(CheckRange(field, request.ranks(i), {0, spec.plan.topology.tp - 1}));
    if (request.ranks(i) <= last) {
      return FieldError(reason::kDuplicateItem, field,
                        absl::StrFormat("%s is %d after %d; ranks ascend without repetition", field,
                                        request.ranks(i), last));
    }
    last = request.ranks(i);
    spec.ranks.push_back(last);
  }
  // One worker has one address, and no other worker's ranks are here.
  const std::string& here = spec.sites[static_cast<std::size_t>(spec.ranks.front())].worker_address;
  for (std::size_t rank = 0; rank < spec.sites.size(); ++rank) {
    const bool mine =
        std::binary_search(spec.ranks.begin(), spec.ranks.end(), static_cast<std::int32_t>(rank));
    if (mine != (spec.sites[rank].worker_address == here)) {
      return FieldError(reason::kConflictingFields, absl::StrFormat("rank_map[%d].worker_address", rank),
                        absl::StrFormat("rank %d is at %s, and ranks %s it; this worker is %s", rank,
                                        spec.sites[rank].worker_address, mine ? "lists" : "lacks", here));
    }
  }
  if (spec.ranks.size() <= places) return absl::OkStatus();
  return MakeError(
      {.code = absl::StatusCode::kFailedPrecondition,
       .reason = reason::kRankCapacity,
       .message = absl::StrFormat("%d ranks are asked for and this worker hosts %d; spread them over more "
                                  "workers, or start it with --ranks %d",
                                  spec.ranks.size(), places, spec.ranks.size()),
       .metadata = {{"ranks", std::to_string(spec.ranks.size())},
                    {"rank_count_max", std::to_string(places)}}});
}

// A path as a request may carry it; whether it leads where it may is found when it is opened.
absl::Status CheckDirectory(std::string_view field, const std::string& path) {
  if (path.empty()) {
    return FieldError(reason::kMissingField, field, absl::StrFormat("%s is empty; name a directory", field));
  }
  if (static_cast<std::int64_t>(path.size()) <= kDirectoryBytesMax && path.find('\0') == std::string::npos)
    return absl::OkStatus();
  return FieldError(reason::kBadName, field,
                    absl::StrFormat("%s has %d bytes; a path has at most %d and no NUL", field, path.size(),
                                    kDirectoryBytesMax));
}

absl::Status ToWeights(const worker::v1::WeightSource& weights, PrepareSpec& spec) {
  if (weights.source_case() == worker::v1::WeightSource::kSyntheticSeed) {
    KVASIR_RETURN_IF_ERROR(CheckRange("weights.synthetic_seed", weights.synthetic_seed(), {0, kSeedMax}));
    spec.weight_seed = weights.synthetic_seed();
    return absl::OkStatus();
  }
  if (weights.source_case() != worker::v1::WeightSource::kCheckpoint) {
    return FieldError(reason::kMissingField, "weights.source",
                      "weights.source is absent; give synthetic_seed or checkpoint");
  }
  const worker::v1::CheckpointSource& checkpoint = weights.checkpoint();
  KVASIR_RETURN_IF_ERROR(
      CheckDirectory("weights.checkpoint.target_directory", checkpoint.target_directory()));
  spec.target_checkpoint = checkpoint.target_directory();
  if (!spec.draft.has_value() && checkpoint.draft_directory().empty()) return absl::OkStatus();
  if (!spec.draft.has_value()) {
    return FieldError(
        reason::kConflictingFields, "weights.checkpoint.draft_directory",
        "weights.checkpoint.draft_directory is given and the plan has no draft; leave it empty");
  }
  KVASIR_RETURN_IF_ERROR(CheckDirectory("weights.checkpoint.draft_directory", checkpoint.draft_directory()));
  spec.draft_checkpoint = checkpoint.draft_directory();
  return absl::OkStatus();
}

absl::Status ToSettings(const PreparePlanRequest& request, PrepareSpec& spec) {
  KVASIR_RETURN_IF_ERROR(ToWeights(request.weights(), spec));
  KVASIR_ASSIGN_OR_RETURN(spec.lease, ToMilliseconds("lease", request.has_lease(), request.lease(), kLease));
  KVASIR_ASSIGN_OR_RETURN(spec.comm_timeout, ToMilliseconds("comm_timeout", request.has_comm_timeout(),
                                                            request.comm_timeout(), kCommTimeout));
  if (!worker::v1::ApplyMode_IsValid(request.mode())) {
    return FieldError(reason::kUnknownValue, "mode",
                      absl::StrFormat("mode is %d, which is no ApplyMode", request.mode()));
  }
  if (!request.has_preflight()) return absl::OkStatus();
  const worker::v1::PreflightOptions& preflight = request.preflight();
  KVASIR_RETURN_IF_ERROR(
      CheckRange("preflight.replays_per_graph", preflight.replays_per_graph(), {0, kReplaysMax}));
  KVASIR_RETURN_IF_ERROR(
      CheckRange("preflight.compared_rows", preflight.compared_rows(), {0, kComparedRowsMax}));
  PreflightSettings settings;
  if (preflight.replays_per_graph() > 0) settings.replays_per_graph = preflight.replays_per_graph();
  if (preflight.compared_rows() > 0) settings.compared_rows = preflight.compared_rows();
  spec.preflight = settings;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PrepareSpec> ToPrepareSpec(const PreparePlanRequest& request, std::size_t places) {
  PrepareSpec spec;
  KVASIR_RETURN_IF_ERROR(CheckDeployment(request.deployment()));
  spec.deployment = request.deployment();
  KVASIR_ASSIGN_OR_RETURN(spec.key.epoch, ToEpoch("epoch", request.epoch()));
  KVASIR_ASSIGN_OR_RETURN(spec.plan, ToPlan(request));
  spec.key.plan_id = request.plan_id();
  KVASIR_RETURN_IF_ERROR(ToModels(request, spec));
  KVASIR_RETURN_IF_ERROR(ToSites(request, spec));
  KVASIR_RETURN_IF_ERROR(ToRanks(request, places, spec));
  KVASIR_RETURN_IF_ERROR(ToSettings(request, spec));
  return spec;
}

worker::v1::PreparePlanResponse FromPrepareReport(const PrepareSpec& spec, const PrepareReport& report,
                                                  const RankFacts& facts) {
  worker::v1::PreparePlanResponse response;
  for (const MeasuredRank& measured : report.measurements) {
    auto& out = *response.add_measurements();
    out.set_rank(measured.rank);
    out.set_planned_arena_bytes(spec.plan.arena_bytes.value());
    out.set_arena_bytes(measured.measurement.arena_bytes.value());
    out.set_weight_bytes(measured.measurement.weight_bytes.value());
    out.set_scratch_bytes(measured.measurement.scratch_bytes.value());
    out.set_graph_count(static_cast<std::int32_t>(measured.measurement.graphs));
  }
  for (const RankFact& fact : facts) {
    auto& out = *response.add_facts();
    out.set_name(fact.name);
    out.set_value(fact.value);
  }
  if (!report.preflight.has_value()) return response;
  auto& preflight = *response.mutable_preflight();
  for (const TimedGraph& graph : report.preflight->graphs) {
    auto& out = *preflight.add_graphs();
    out.set_rank(graph.rank);
    out.set_pass(std::string(PassName(graph.pass)));
    out.set_query_rows(static_cast<std::int32_t>(graph.query_rows));
    out.set_bucket(static_cast<std::int32_t>(graph.bucket));
    out.set_replay_count(static_cast<std::int32_t>(graph.replays));
    *out.mutable_shortest() = FromNanoseconds(graph.shortest);
    *out.mutable_median() = FromNanoseconds(graph.median);
  }
  for (const ComparedRows& compared : report.preflight->comparisons) {
    auto& out = *preflight.add_comparisons();
    out.set_rank(compared.rank);
    out.set_pass(std::string(PassName(compared.pass)));
    out.set_row_count(static_cast<std::int32_t>(compared.rows));
    out.set_error_parts_per_billion(compared.error_ppb);
    out.set_tolerance_parts_per_billion(compared.tolerance_ppb);
    out.set_replay_equals_eager(compared.replay_equals_eager);
  }
  preflight.set_collective_bytes(report.preflight->collective_bytes);
  return response;
}

}  // namespace kvasir
