// The engine's answer as JSON.
#include <nlohmann/json.hpp>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/typed_error.h"
#include "planner/cli/show_engine.h"
#include "planner/request/launch_remedies.h"
#include "planner/rulesets/vllm/engine_plan_text.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) { return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n"; }

Json TopologyJson(const vllm::EngineConfig& config) {
  return {{"tp", config.tp},
          {"dcp", config.dcp},
          {"pp", config.pp},
          {"pcp", config.pcp},
          {"ranks", config.tp * config.pp}};
}

Json RangeJson(const BytesRange& bytes) {
  return {{"least_bytes", bytes.least}, {"most_bytes", bytes.most}, {"basis", bytes.basis}};
}

Json GroupsJson(const EngineAnswer& answer) {
  Json groups = Json::array();
  for (const vllm::EngineGroup& group : answer.plan.groups) {
    Json layers = Json::array();
    for (const std::int32_t layer : group.layers) {
      layers.push_back(answer.engine_case.layers[static_cast<std::size_t>(layer)].name);
    }
    groups.push_back({{"kind", GroupKindText(answer, group)},
                      {"block_size_tokens", GroupBlockTokens(answer, group)},
                      {"page_bytes", GroupPageBytes(answer, group)},
                      {"eagle", group.eagle},
                      {"layers", layers}});
  }
  return groups;
}

std::string ConcurrencyText(double concurrency) { return absl::StrFormat("%.2f", concurrency); }

Json VllmJson(const EngineAnswer& answer) {
  Json out;
  out["num_blocks"] = answer.least.num_blocks;
  out["block_size_tokens"] = answer.engine_case.config.block_size;
  out["groups"] = GroupsJson(answer);
  out["kv_cache_tokens"] = answer.least.tokens;
  out["max_concurrency"] = ConcurrencyText(answer.least.concurrency);
  out["max_model_len"] = answer.plan.max_model_len;
  out["blocks_per_request"] = answer.rule.has_value() ? answer.rule->blocks_per_request : 0;
  out["padding_layers"] = answer.padding_layers();
  if (!answer.exact) {
    out["num_blocks_most"] = answer.most.num_blocks;
    out["kv_cache_tokens_most"] = answer.most.tokens;
    out["max_concurrency_most"] = ConcurrencyText(answer.most.concurrency);
  }
  out["log_lines"] = answer.log_lines;
  if (answer.plan.failure.has_value()) {
    out["failure"] = {{"stage", vllm::EngineStageName(answer.plan.failure->stage)},
                      {"kind", vllm::EngineErrorKindName(answer.plan.failure->kind)},
                      {"message", answer.plan.failure->message}};
  }
  return out;
}

void AddCommand(const EngineAsk& ask, Json& json) {
  json["unknown_flags"] = Json::array();
  for (const UnknownFlag& flag : ask.command.unknown) {
    json["unknown_flags"].push_back({{"flag", flag.word}, {"nearest", flag.nearest}});
  }
  json["not_about_cache"] = ask.command.not_about_cache;
  json["notes"] = ask.notes;
  for (const std::string& note : ask.command.notes) json["notes"].push_back(note);
  json["assumed"] = ask.question.has_value() ? Json(ask.question->settings.assumed) : Json::array();
}

Json WarningsJson(const EngineAsk& ask, const vllm::EnginePlan& plan) {
  Json warnings = Json::array();
  for (const vllm::EngineWarning& warning : plan.warnings) {
    warnings.push_back(warning.about + ": " + warning.message +
                       (warning.address.empty() ? "" : "; " + warning.address));
  }
  if (ask.question.has_value()) {
    for (const std::string& warning : ask.question->settings.warnings) warnings.push_back(warning);
  }
  return warnings;
}

Json RefusalsJson(std::string_view rule, std::string_view field, const std::string& message) {
  return Json::array({{{"rule", rule},
                       {"field", field},
                       {"subjects", Json::array()},
                       {"operands", Json::object()},
                       {"message", message},
                       {"remedies", Json::array()}}});
}

const char* VerdictWord(EngineVerdict verdict) {
  switch (verdict) {
    case EngineVerdict::kFits:
      return "fits";
    case EngineVerdict::kDoesNotFit:
      return "does_not_fit";
    case EngineVerdict::kFails:
      return "refused";
  }
  return "refused";
}

Json BudgetJson(const EngineMemory& memory) {
  Json json = {{"said", memory.said}};
  if (!memory.budget.has_value()) return json;
  json["given"] = RangeJson(memory.budget->given);
  json["taken"] = Json::array();
  for (const BudgetLine& line : memory.budget->taken) {
    Json one = RangeJson(line.bytes);
    one["what"] = line.what;
    json["taken"].push_back(one);
  }
  json["cache"] = RangeJson(memory.budget->cache);
  return json;
}

}  // namespace

std::string GroupKindText(const EngineAnswer& answer, const vllm::EngineGroup& group) {
  if (const auto* wrapper = std::get_if<vllm::UniformTypeSpecs>(&group.spec)) {
    const auto& first = answer.plan.specs[static_cast<std::size_t>(wrapper->members.front().spec)];
    return std::string(vllm::SpecKindWord(first.kind)) + ", mixed pages";
  }
  const auto& spec = answer.plan.specs[static_cast<std::size_t>(std::get<std::int32_t>(group.spec))];
  std::string text(vllm::SpecKindWord(spec.kind));
  if (spec.kind == vllm::SpecKind::kMamba) text += " " + spec.mamba_type;
  if (spec.sliding_window.has_value()) text += absl::StrFormat(" %d", *spec.sliding_window);
  if (spec.non_causal_multi_token_decode) text += ", non-causal blocks";
  return text;
}

std::int64_t GroupPageBytes(const EngineAnswer& answer, const vllm::EngineGroup& group) {
  const auto bytes_of = [&](std::int32_t spec) -> std::int64_t {
    const auto bytes = vllm::PageBytes(answer.plan.specs[static_cast<std::size_t>(spec)]);
    return bytes.ok() ? *bytes : 0;
  };
  const auto* wrapper = std::get_if<vllm::UniformTypeSpecs>(&group.spec);
  if (wrapper == nullptr) return bytes_of(std::get<std::int32_t>(group.spec));
  std::int64_t bytes = 0;
  for (const auto& member : wrapper->members) bytes += bytes_of(member.spec);
  return bytes;
}

std::int64_t GroupBlockTokens(const EngineAnswer& answer, const vllm::EngineGroup& group) {
  if (const auto* wrapper = std::get_if<vllm::UniformTypeSpecs>(&group.spec)) return wrapper->block_size;
  return answer.plan.specs[static_cast<std::size_t>(std::get<std::int32_t>(group.spec))].block_size;
}

std::string EngineJson(const EngineAsk& ask, const EngineAnswer& answer) {
  Json json;
  json["schema"] = "kvasir.plan/1";
  json["verdict"] = VerdictWord(answer.verdict);
  const bool fits = answer.verdict == EngineVerdict::kFits && answer.exact;
  json["plan_id"] =
      fits ? Json(vllm::EnginePlanId(vllm::ToText(answer.engine_case, answer.plan))) : Json(nullptr);
  json["ruleset"] = vllm::EngineVersionName(ask.release.version());
  json["topology"] = TopologyJson(answer.engine_case.config);
  json["vllm"] = VllmJson(answer);
  json["memory"] = BudgetJson(ask.memory);
  if (answer.verdict == EngineVerdict::kDoesNotFit) {
    const std::int64_t given = answer.given_bytes();
    json["given_bytes"] = given;
    json["needed_bytes"] = answer.needed_bytes();
    json["shortfall_bytes"] = answer.needed_bytes() > given ? answer.needed_bytes() - given : 0;
    json["longest_context_tokens"] = answer.longest_tokens();
    json["bound_by"] = "cache";
    json["remedies"] = Json::array();
    if (answer.longest_tokens() > 0) {
      json["remedies"].push_back(
          {{"flag", "--max-model-len"}, {"value", std::to_string(answer.longest_tokens())}});
    }
  }
  AddCommand(ask, json);
  json["warnings"] = WarningsJson(ask, answer.plan);
  json["refusals"] = Json::array();
  return Dump(json);
}

std::string EngineRefusalJson(const EngineAsk& ask, const absl::Status& status) {
  const TypedError error = ErrorOf(status);
  Json json;
  json["schema"] = "kvasir.plan/1";
  json["verdict"] = "refused";
  json["plan_id"] = nullptr;
  json["ruleset"] = vllm::EngineVersionName(ask.release.version());
  json["topology"] = nullptr;
  AddCommand(ask, json);
  json["warnings"] = Json::array();
  json["refusals"] = RefusalsJson(error.reason, error.field, error.message);
  json["accepted_instead"] = AcceptedInsteadOf(ask);
  return Dump(json);
}

std::string EngineVerdictJson(const EngineAsk& ask, const absl::Status& refusal, const EngineAnswer* answer) {
  const bool valid = refusal.ok() && answer->verdict == EngineVerdict::kFits;
  Json json;
  json["schema"] = "kvasir.validate/1";
  json["verdict"] = valid ? "valid" : "refused";
  json["ruleset"] = vllm::EngineVersionName(ask.release.version());
  json["topology"] = answer == nullptr ? Json(nullptr) : TopologyJson(answer->engine_case.config);
  json["refusals"] = Json::array();
  if (!refusal.ok()) {
    const TypedError error = ErrorOf(refusal);
    json["refusals"] = RefusalsJson(error.reason, error.field, error.message);
  } else if (!valid) {
    const vllm::EngineFailure& failure = *answer->plan.failure;
    json["refusals"] = RefusalsJson(vllm::EngineErrorKindName(failure.kind),
                                    vllm::EngineStageName(failure.stage), failure.message);
  }
  json["accepted_instead"] = valid ? std::vector<std::string>() : AcceptedInsteadOf(ask);
  json["warnings"] = answer == nullptr ? Json::array() : WarningsJson(ask, answer->plan);
  AddCommand(ask, json);
  return Dump(json);
}

std::vector<std::string> AcceptedInsteadOf(const EngineAsk& ask) {
  return ask.launch.has_value() ? AcceptedInstead(*ask.launch) : std::vector<std::string>();
}

}  // namespace kvasir::cli
