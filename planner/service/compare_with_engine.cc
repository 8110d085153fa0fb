#include "planner/service/compare_with_engine.h"

#include <string>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "planner/core/capacity.h"
#include "planner/core/explain.h"
#include "planner/core/outcome.h"
#include "planner/questions/engine_modes.h"
#include "planner/rulesets/make_plan.h"
#include "planner/service/answer_engine.h"
#include "planner/service/check_field.h"
#include "planner/service/convert_outcome.h"
#include "planner/service/convert_request.h"

namespace kvasir {
namespace {

namespace wire = ::kvasir::planner::v1;

constexpr vllm::EngineVersion kNewest = vllm::EngineVersion::k2026_11;

absl::StatusOr<vllm::EngineVersion> VersionOf(const std::string& name) {
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("engine_ruleset", name, kNameBytesMax));
  const std::optional<vllm::EngineVersion> version = name.empty() ? kNewest : vllm::ParseEngineVersion(name);
  if (version.has_value()) return *version;
  return FieldError(reason::kUnknownValue, "engine_ruleset",
                    absl::StrFormat("engine_ruleset is \"%s\": want vllm-2026-08 or vllm-2026-11", name));
}

void AddLengths(const Plan& plan, const EngineComparison& engine, wire::CompareWithEngineResponse& response) {
  response.set_why_none(engine.why_none);
  for (const EngineCounts& length : engine.lengths) {
    wire::EngineLength& out = *response.add_lengths();
    *out.mutable_plan() = CapacityToProto(CapacityAt(plan, length.context_tokens));
    for (const EngineCount& count : length.counts) {
      wire::EngineModeCount& mode = *out.add_modes();
      mode.set_mode(std::string(EngineModeName(count.mode)));
      mode.set_request_count(count.requests);
      mode.set_bytes_per_request(count.bytes_per_request);
    }
  }
}

}  // namespace

absl::StatusOr<wire::CompareWithEngineResponse> AnswerCompareWithEngine(
    const wire::CompareWithEngineRequest& request, const GoOn& go_on) {
  KVASIR_ASSIGN_OR_RETURN(const vllm::EngineVersion version, VersionOf(request.engine_ruleset()));
  if (!request.has_request()) return MissingField("request", "the question, as CreatePlan takes it");
  if (AsksEngine(request.request())) {
    return FieldError(reason::kUnknownValue, "request.options.ruleset",
                      "the question is planned by ruleset native; engine_ruleset names the engine's");
  }
  const absl::StatusOr<PlanQuestion> question = QuestionFromProto(request.request());
  if (!question.ok()) return WithinField("request", question.status());
  const PlanOutcome outcome = MakePlan(RequestOf(*question));
  wire::CompareWithEngineResponse response;
  *response.mutable_outcome() = OutcomeToProto(outcome);
  const auto* planned = std::get_if<Planned>(&outcome);
  if (planned == nullptr) return response;
  const std::vector<std::int64_t> contexts = ExplainedContexts(planned->plan);
  AddLengths(planned->plan, CountUnderEngine(*question, version, contexts, go_on), response);
  return response;
}

}  // namespace kvasir
