#include "planner/cli/plan_json.h"

#include <nlohmann/json.hpp>
#include <variant>

#include "planner/cli/flag_words.h"

namespace kvasir::cli {
namespace {

// Keeps the members in the order in which they are written.
using Json = nlohmann::ordered_json;

// Names came through checks that leave printable ASCII only where it matters; anything else is replaced, not
// thrown on.
std::string Dump(const Json& json) { return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n"; }

Json ModelJson(const ModelRef& ref) {
  if (ref.name.empty()) return nullptr;
  return {{"name", ref.name}, {"digest", ref.digest}};
}

Json TopologyJson(const Topology& t) {
  return {{"tp", t.tp}, {"dcp", t.dcp}, {"pp", 1}, {"interleave", t.interleave}, {"ranks", t.tp}};
}

Json GroupJson(const PlanGroup& group) {
  Json layers = Json::array();
  for (const PlanLayer& layer : group.layers) layers.push_back(layer.id.index);
  return {{"name", group.name},
          {"role", RoleName(group.behaviour.role)},
          {"mixer", MixerName(group.behaviour.mixer)},
          {"causal", group.behaviour.causal},
          {"window", group.behaviour.window},
          {"block_rows", group.behaviour.block_rows},
          {"backend", group.behaviour.backend},
          {"layers", layers}};
}

Json PoolJson(const PlanPool& pool) {
  Json groups = Json::array();
  for (const PlanGroup& group : pool.groups) groups.push_back(GroupJson(group));
  return {{"name", pool.name},
          {"lifetime", LifetimeKindName(pool.lifetime.kind)},
          {"context", pool.sharded ? "sharded" : "replicated"},
          {"window", pool.lifetime.window},
          {"copies", pool.lifetime.copies},
          {"block_tokens", pool.block_tokens},
          {"parts", pool.parts},
          {"block_bytes", pool.block_bytes},
          {"stride_bytes", pool.stride_bytes},
          {"blocks_per_parent", pool.blocks_per_parent},
          {"groups", groups}};
}

Json CapacityJson(const std::vector<CapacityRow>& capacity) {
  Json rows = Json::array();
  for (const CapacityRow& row : capacity) {
    rows.push_back({{"context_tokens", row.context_tokens},
                    {"requests", row.requests},
                    {"guaranteed_requests", row.guaranteed_requests},
                    {"bytes_per_request", row.bytes_per_request.value()}});
  }
  return rows;
}

Json GraphJson(const PlanGraph& graph) {
  Json groups = Json::array();
  for (const GroupId id : graph.groups) groups.push_back(id.value());
  return {{"pass", PassName(graph.pass)},
          {"query_rows", graph.query_rows},
          {"bucket", graph.bucket},
          {"groups", groups}};
}

Json RefusalsJson(const std::vector<Refusal>& refusals) {
  Json out = Json::array();
  for (const Refusal& refusal : refusals) {
    Json operands = Json::object();
    for (const Operand& operand : refusal.operands) operands[operand.name] = operand.value;
    Json remedies = Json::array();
    for (const std::string& remedy : refusal.remedies) remedies.push_back(remedy);
    out.push_back({{"rule", RuleName(refusal.rule)},
                   {"field", refusal.field},
                   {"subjects", refusal.subjects},
                   {"operands", operands},
                   {"message", RefusalText(refusal)},
                   {"remedies", remedies}});
  }
  return out;
}

struct OutcomeWriter {
  const PlanRequest& request;
  const Extras& extras;
  Json& json;

  void operator()(const Planned& planned) const {
    const Plan& plan = planned.plan;
    json["verdict"] = "fits";
    json["plan_id"] = planned.plan_id;
    json["ruleset"] = plan.ruleset;
    json["topology"] = TopologyJson(plan.topology);
    json["target"] = ModelJson(plan.target);
    json["draft"] = ModelJson(plan.draft);
    json["draft_tokens"] = plan.draft_tokens;
    json["state_rollback"] = StateRollbackName(plan.rollback);
    json["context_tokens"] = plan.context_tokens;
    json["max_requests"] = plan.max_requests;
    json["prefill_chunk"] = plan.prefill_chunk;
    json["arena_bytes"] = plan.arena_bytes.value();
    json["parent_bytes"] = plan.parent_bytes.value();
    json["parents"] = plan.parents;
    json["pools"] = Json::array();
    for (const PlanPool& pool : plan.pools) json["pools"].push_back(PoolJson(pool));
    json["graphs"] = Json::array();
    for (const PlanGraph& graph : plan.graphs) json["graphs"].push_back(GraphJson(graph));
    json["capacity"] = CapacityJson(planned.report.capacity);
    json["longest_context_tokens"] = planned.report.longest_context_tokens;
    json["longest_is_model_limit"] = planned.report.longest_is_model_limit;
    json["alternatives"] = Json::array();
    for (const Alternative& other : extras.alternatives) {
      Json one = {{"label", other.label}, {"capacity", CapacityJson(other.capacity)}};
      if (!other.remark.empty()) one["remark"] = other.remark;
      json["alternatives"].push_back(one);
    }
    json["attribution"] = Json::array();
    for (const OwnedBytes& owned : plan.attribution) {
      json["attribution"].push_back(
          {{"owner", owned.owner}, {"bytes", owned.bytes.value()}, {"provenance", "exact"}});
    }
    json["warnings"] = Json::array();
    json["refusals"] = Json::array();
  }

  void operator()(const DoesNotFit& outcome) const {
    Asked("does_not_fit");
    json["context_tokens"] = outcome.context_tokens;
    json["min_requests"] = outcome.min_requests;
    json["given_bytes"] = outcome.given.value();
    json["needed_bytes"] = outcome.needed.value();
    json["shortfall_bytes"] = outcome.shortfall.value();
    json["bound_by"] = outcome.bound_by;
    json["bound_by_bytes"] = outcome.bound_by_bytes.value();
    json["longest_context_tokens"] = outcome.longest_context_tokens;
    json["remedies"] = Json::array();
    for (const FitRemedy& remedy : outcome.remedies) {
      json["remedies"].push_back({{"field", remedy.field},
                                  {"value", remedy.value},
                                  {"flag", FlagOf(remedy.field)},
                                  {"text", remedy.text},
                                  {"requests", remedy.requests}});
    }
    json["warnings"] = Json::array();
    json["refusals"] = Json::array();
  }

  void operator()(const Refusals& outcome) const {
    Asked("refused");
    json["warnings"] = Json::array();
    json["refusals"] = RefusalsJson(outcome.refusals);
    json["accepted_instead"] = extras.accepted_instead;
  }

  // What an answer without a plan still knows of the question.
  void Asked(const char* verdict) const {
    json["verdict"] = verdict;
    json["plan_id"] = nullptr;
    json["ruleset"] = request.ruleset;
    json["topology"] = TopologyJson(request.topology);
  }
};

}  // namespace

std::string OutcomeJson(const PlanRequest& request, const PlanOutcome& outcome, const Extras& extras) {
  Json json;
  json["schema"] = "kvasir.plan/1";
  std::visit(OutcomeWriter{request, extras, json}, outcome);
  return Dump(json);
}

std::string ValidationJson(const std::vector<Refusal>& refusals, const Extras& extras) {
  Json json;
  json["schema"] = "kvasir.validate/1";
  json["verdict"] = refusals.empty() ? "valid" : "refused";
  json["refusals"] = RefusalsJson(refusals);
  json["accepted_instead"] = extras.accepted_instead;
  return Dump(json);
}

std::string ExplainJson(const std::string& plan_id, const std::vector<ExplainLine>& lines,
                        const std::optional<std::vector<Remedy>>& remedies) {
  Json out = {{"schema", "kvasir.explain/1"},
              {"plan_id", plan_id},
              {"lines", Json::array()},
              {"remedies", remedies.has_value() ? Json::array() : Json()}};
  for (const ExplainLine& line : lines) {
    out["lines"].push_back(
        {{"topic", ExplainTopicName(line.topic)}, {"subject", line.subject}, {"text", line.text}});
  }
  for (const Remedy& remedy : remedies.value_or(std::vector<Remedy>{})) {
    out["remedies"].push_back(
        {{"flags", remedy.flags}, {"plan_id", remedy.plan_id}, {"capacity", CapacityJson(remedy.capacity)}});
  }
  return Dump(out);
}

}  // namespace kvasir::cli
