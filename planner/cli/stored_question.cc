#include "planner/cli/stored_question.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/models/model_text.h"
#include "planner/core/outcome.h"
#include "planner/rulesets/make_plan.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kIdShown = 12;

// One list for writing and reading, so that neither can forget a field.
template <class Options, class Visit>
void EachField(Options& o, Visit visit) {
  visit("ruleset", o.ruleset);
  visit("tp", o.tp);
  visit("dcp", o.dcp);
  visit("interleave", o.interleave);
  visit("kv_memory_bytes", o.kv_memory_bytes);
  visit("contexts", o.contexts);
  visit("max_requests", o.max_requests);
  visit("min_requests", o.min_requests);
  visit("draft_tokens", o.draft_tokens);
  visit("cache_dtype", o.cache_dtype);
  visit("target_backend", o.target_backend);
  visit("draft_backend", o.draft_backend);
  visit("block_tokens", o.block_tokens);
  visit("state_rollback", o.state_rollback);
  visit("draft_context", o.draft_context);
  visit("prefill_chunk", o.prefill_chunk);
}

bool Take(const Json& json, std::string& out) {
  if (!json.is_string()) return false;
  out = json.get<std::string>();
  return true;
}

bool Take(const Json& json, std::int64_t& out) {
  if (!json.is_number_integer()) return false;
  out = json.get<std::int64_t>();
  return true;
}

bool Take(const Json& json, std::vector<std::int64_t>& out) {
  if (!json.is_array()) return false;
  for (const Json& one : json) {
    if (!Take(one, out.emplace_back())) return false;
  }
  return true;
}

absl::StatusOr<PlanOptions> OptionsFromText(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  PlanOptions options;
  std::string missing = json.is_object() ? "" : "the object";
  EachField(options, [&](const char* name, auto& field) {
    if (!missing.empty()) return;
    const auto it = json.find(name);
    if (it == json.end() || !Take(*it, field)) missing = name;
  });
  if (missing.empty()) return options;
  return absl::DataLossError(absl::StrFormat("the stored question was changed: %s; plan again", missing));
}

absl::StatusOr<ModelDescription> StoredModel(const Console& console, const ModelRef& model) {
  KVASIR_ASSIGN_OR_RETURN(const std::string text, LoadModelText(console, model.digest));
  return ModelFromText(text);
}

}  // namespace

absl::Status SaveQuestion(const Console& console, const std::string& plan_id, const PlanQuestion& question) {
  Json json;
  EachField(question.options, [&json](const char* name, const auto& field) { json[name] = field; });
  return SaveText(console, "questions/" + plan_id + ".json",
                  json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n");
}

absl::StatusOr<PlanQuestion> LoadQuestion(const Console& console, const StoredPlan& plan) {
  const absl::StatusOr<std::string> text = LoadText(console, "questions/" + plan.plan_id + ".json");
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(
        absl::StrFormat("plan %s: the question behind it is not stored here; plan again, without --no-save",
                        plan.plan_id.substr(0, kIdShown)));
  }
  if (!text.ok()) return text.status();
  PlanQuestion question;
  KVASIR_ASSIGN_OR_RETURN(question.options, OptionsFromText(*text));
  KVASIR_ASSIGN_OR_RETURN(question.target, StoredModel(console, plan.plan.target));
  if (!plan.plan.draft.digest.empty()) {
    KVASIR_ASSIGN_OR_RETURN(question.draft, StoredModel(console, plan.plan.draft));
  }
  const PlanOutcome outcome = MakePlan(RequestOf(question));
  const auto* planned = std::get_if<Planned>(&outcome);
  if (planned == nullptr || planned->plan_id != plan.plan_id)
    return absl::DataLossError("the stored question gives another plan; plan again");
  return question;
}

}  // namespace kvasir::cli
