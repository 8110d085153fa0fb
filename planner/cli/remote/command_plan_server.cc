// kvasir plan --server: the same question, answered by a planner service; the answer is checked and shown as
// if it had been planned here.
#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/models/model_text.h"
#include "common/plan/plan_text.h"
#include "common/plan/verify.h"
#include "common/rpc/channel.h"
#include "kvasir/planner/v1/planner_service.grpc.pb.h"
#include "planner/cli/engine_ask.h"
#include "planner/cli/find_alternatives.h"
#include "planner/cli/keep_plan.h"
#include "planner/cli/launch_models.h"
#include "planner/cli/plan_json.h"
#include "planner/cli/plan_question.h"
#include "planner/cli/quantity.h"
#include "planner/cli/remote/engine_view.h"
#include "planner/cli/remote/remote_commands.h"
#include "planner/cli/remote/session.h"
#include "planner/cli/show_plan.h"
#include "planner/cli/show_refusals.h"
#include "planner/core/capacity.h"
#include "planner/request/check_options.h"
#include "planner/request/engine_case_json.h"
#include "planner/request/launch_split.h"
#include "planner/rulesets/make_plan.h"
#include "planner/wire/options_to_proto.h"

namespace kvasir::cli {
namespace {

std::vector<Flag> FlagsOfPlan() {
  std::vector<Flag> flags(PlanFlags().begin(), PlanFlags().end());
  for (const Flag& flag : WithSessionFlags({})) {
    const bool own =
        std::any_of(flags.begin(), flags.end(), [&flag](const Flag& f) { return f.name == flag.name; });
    if (!own) flags.push_back(flag);
  }
  flags.push_back({"no-save", "", "do not store the plan"});
  flags.push_back({"specs", "FILE", "layer specs as the engine would dump them, for a vllm ruleset"});
  return flags;
}

planner::v1::CreatePlanRequest MakeRequest(const PlanQuestion& question) {
  planner::v1::CreatePlanRequest request;
  request.mutable_target()->set_model_text(ModelToText(question.target));
  if (question.draft.has_value()) request.mutable_draft()->set_model_text(ModelToText(*question.draft));
  *request.mutable_options() = OptionsToProto(question.options);
  return request;
}

// The plan as its text says, whatever the message beside it claims.
absl::StatusOr<Planned> ToPlanned(const planner::v1::PlannedPlan& wire) {
  Planned planned;
  planned.text = wire.canonical_text();
  KVASIR_ASSIGN_OR_RETURN(planned.plan, PlanFromText(planned.text));
  KVASIR_RETURN_IF_ERROR(VerifyPlan(planned.plan));
  planned.plan_id = PlanId(planned.text);
  if (planned.plan_id != wire.plan_id()) {
    return absl::DataLossError(absl::StrFormat("the service calls the plan %s, its text has the id %s",
                                               wire.plan_id(), planned.plan_id));
  }
  for (const plan::v1::Capacity& row : wire.report().capacities()) {
    planned.report.capacity.push_back(CapacityAt(planned.plan, row.context_tokens()));
  }
  planned.report.longest_context_tokens = wire.report().longest_context_tokens();
  planned.report.longest_is_model_limit = wire.report().limited_by_model();
  return planned;
}

DoesNotFit ToDoesNotFit(const plan::v1::DoesNotFit& wire) {
  DoesNotFit out;
  out.context_tokens = wire.context_tokens();
  out.min_requests = wire.request_count_min();
  out.given = Bytes(wire.given_bytes());
  out.needed = Bytes(wire.needed_bytes());
  out.shortfall = Bytes(wire.shortfall_bytes());
  out.bound_by = wire.bound_by();
  out.bound_by_bytes = Bytes(wire.bound_by_bytes());
  out.longest_context_tokens = wire.longest_context_tokens();
  for (const plan::v1::FitRemedy& remedy : wire.remedies()) {
    out.remedies.push_back({remedy.field(), remedy.value(), remedy.text(), remedy.request_count()});
  }
  return out;
}

absl::StatusOr<Refusals> ToRefusals(const planner::v1::RefusalList& wire) {
  Refusals out;
  for (const plan::v1::Refusal& refusal : wire.refusals()) {
    const auto table = RuleTable();
    const auto row =
        std::find_if(table.begin(), table.end(), [&](const RuleRow& r) { return r.name == refusal.rule(); });
    if (row == table.end()) {
      return absl::UnimplementedError(
          absl::StrFormat("the service refuses by a rule that this kvasir does not know: %s: %s",
                          refusal.rule(), refusal.message()));
    }
    Refusal& added = out.refusals.emplace_back();
    added.rule = row->id;
    added.field = refusal.field();
    added.subjects.assign(refusal.subjects().begin(), refusal.subjects().end());
    for (const plan::v1::Operand& operand : refusal.operands()) {
      added.operands.push_back({operand.name(), operand.value()});
    }
    added.remedies.assign(refusal.remedies().begin(), refusal.remedies().end());
  }
  return out;
}

// The engine's own words, passed on as they are: a launch command after "--", or a file of specs.
absl::StatusOr<planner::v1::CreatePlanRequest> MakeEngineRequest(const CommandLine& line) {
  planner::v1::CreatePlanRequest request;
  plan::v1::EngineInput& engine = *request.mutable_engine();
  engine.set_ruleset(line.ValueOr("ruleset", ""));
  if (line.Has("specs")) {
    KVASIR_ASSIGN_OR_RETURN(*engine.mutable_specs_json(),
                            ReadWholeFile(line.ValueOr("specs", ""), kEngineCaseBytesMax));
    return request;
  }
  for (const std::string& word : line.words()) engine.mutable_launch()->add_words(word);
  if (const std::optional<std::string> memory = line.Value("kv-memory")) {
    KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int64_t> bytes, ParseBytesList(*memory));
    engine.mutable_launch()->mutable_kv_memory_bytes()->Add(bytes.begin(), bytes.end());
  }
  return request;
}

absl::StatusOr<planner::v1::CreatePlanResponse> Ask(const Session& session,
                                                    const planner::v1::CreatePlanRequest& request) {
  const auto stub = planner::v1::PlannerService::NewStub(session.channel);
  grpc::ClientContext context;
  SetTimeout(context, session.timeout);
  planner::v1::CreatePlanResponse response;
  KVASIR_RETURN_IF_ERROR(FromPeer(stub->CreatePlan(&context, request, &response), session.server));
  return response;
}

absl::StatusOr<PlanOutcome> ToOutcome(const planner::v1::CreatePlanResponse& response) {
  if (response.has_plan()) {
    KVASIR_ASSIGN_OR_RETURN(Planned planned, ToPlanned(response.plan()));
    return PlanOutcome(std::move(planned));
  }
  if (response.has_does_not_fit()) return PlanOutcome(ToDoesNotFit(response.does_not_fit()));
  if (!response.has_refusals()) return absl::DataLossError("the service's answer holds no outcome");
  KVASIR_ASSIGN_OR_RETURN(Refusals refusals, ToRefusals(response.refusals()));
  return PlanOutcome(std::move(refusals));
}

int Show(const Console& console, const PlanQuestion& question, const PlanOutcome& outcome, bool kept,
         const std::string& form) {
  const auto* planned = std::get_if<Planned>(&outcome);
  const auto* misfit = std::get_if<DoesNotFit>(&outcome);
  if (form == "json") {
    console.out << OutcomeJson(RequestOf(question), outcome, {});
  } else if (planned != nullptr && form == "text") {
    console.out << planned->text;
  } else if (planned != nullptr) {
    // What other layouts would hold is found here: the service was asked for one.
    ShowPlan(console, *planned, FindAlternatives(question, planned->report), kept);
  } else if (misfit != nullptr) {
    ShowDoesNotFit(console, *misfit);
  } else {
    ShowRefusals(console, question, std::get<Refusals>(outcome));
  }
  if (planned != nullptr) return kExitOk;
  return misfit != nullptr ? kExitDoesNotFit : kExitRefused;
}

int ShowEngineAnswer(const Console& console, const plan::v1::EnginePrediction& prediction,
                     const std::string& form) {
  if (form == "json") {
    console.out << PredictionJson(prediction);
  } else if (form == "text") {
    console.out << prediction.canonical_text();
  } else {
    ShowPrediction(console, prediction);
  }
  return PredictionExitCode(prediction);
}

}  // namespace

int RunPlanOnServer(const Console& console, Args args) {
  const std::vector<Flag> flags = FlagsOfPlan();
  const absl::StatusOr<CommandLine> line =
      CommandLine::Parse(flags, {.min = 0, .max = kLaunchWordsMax}, args);
  if (!line.ok()) return BadUsage(console, "plan", line.status());
  const std::string form = line->ValueOr("output", "table");
  const absl::Status output = CheckOutput(form, /*has_text=*/true);
  if (!output.ok()) return BadUsage(console, "plan", output);
  const absl::StatusOr<Session> session = OpenSession(console, *line, /*has_text=*/true);
  if (!session.ok()) return BadUsage(console, "plan", session.status());
  if (line->Has("specs") || !line->words().empty()) {
    const absl::StatusOr<planner::v1::CreatePlanRequest> request = MakeEngineRequest(*line);
    if (!request.ok()) return BadUsage(console, "plan", request.status());
    const auto response = Ask(*session, *request);
    if (!response.ok()) return ServiceFailure(console, "plan", response.status());
    return ShowEngineAnswer(console, response->engine(), form);
  }
  const absl::StatusOr<PlanQuestion> question = ReadQuestion(*line, /*needs_memory=*/true);
  if (!question.ok()) return BadUsage(console, "plan", question.status());
  // 0 is "not given" on the wire: what is out of range is answered here, as without a server.
  if (const absl::Status in_range = CheckPlanOptions(question->options); !in_range.ok()) {
    if (IsEngineRuleset(question->options.ruleset)) return BadUsage(console, "plan", in_range);
    return Show(console, *question, MakePlan(RequestOf(*question)), /*kept=*/false, form);
  }
  const auto response = Ask(*session, MakeRequest(*question));
  if (!response.ok()) return ServiceFailure(console, "plan", response.status());
  if (response->has_engine()) return ShowEngineAnswer(console, response->engine(), form);

  const absl::StatusOr<PlanOutcome> outcome = ToOutcome(*response);
  if (!outcome.ok()) return ServiceFailure(console, "plan", outcome.status());
  const bool kept = KeepPlan(console, *line, *question, *outcome);
  return Show(console, *question, *outcome, kept, form);
}

}  // namespace kvasir::cli
