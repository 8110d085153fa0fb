// The top of a page, and what was asked.
#include <algorithm>
#include <string_view>
#include <variant>

#include "absl/strings/str_format.h"
#include "planner/cli/page/html_text.h"
#include "planner/cli/page/page_parts.h"
#include "planner/cli/quantity.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kIdShown = 12;

struct Headline {
  std::string_view kind;  // class
  std::string_view mark;  // beside the colour, for those who do not see it
  std::string_view word;
  std::string sentence;
};

std::string Fact(std::string_view name, std::string_view value, std::string_view remark = "") {
  return Filled("<div><dt>{{name}}</dt><dd>{{value}}{{remark}}</dd></div>\n",
                {Text("name", name), Text("value", value),
                 Markup("remark", remark.empty() ? "" : " <small>" + Escaped(remark) + "</small>")});
}

std::string RanksText(const Topology& topology) {
  return absl::StrFormat("TP %d × DCP %d", topology.tp, topology.dcp);
}

Headline HeadlineOf(const Planned& planned) {
  const Plan& plan = planned.plan;
  const CapacityRow row = CapacityAt(plan, plan.context_tokens);
  return {"good", "✓", "Fits",
          absl::StrFormat("%s of %s tokens at a time, in %s on each of %s.", Counted(row.requests, "request"),
                          Thousands(plan.context_tokens), BytesText(plan.arena_bytes.value()),
                          Counted(plan.topology.tp, "rank"))};
}

Headline HeadlineOf(const DoesNotFit& outcome) {
  return {
      "short", "▲", "Does not fit",
      absl::StrFormat("Each rank is short by %s for %s of %s tokens.", BytesText(outcome.shortfall.value()),
                      Counted(outcome.min_requests, "request"), Thousands(outcome.context_tokens))};
}

Headline HeadlineOf(const Refusals& outcome) {
  const auto count = static_cast<std::int64_t>(outcome.refusals.size());
  return {"bad", "✕", "Refused",
          absl::StrFormat("%s %s broken, so nothing was planned.", Counted(count, "rule"),
                          count == 1 ? "is" : "are")};
}

std::string KeyFigures(const Planned& planned) {
  const Plan& plan = planned.plan;
  const CapacityRow row = CapacityAt(plan, plan.context_tokens);
  std::string out = "<dl class=\"key\">\n";
  const std::string churn = absl::StrFormat("%s under any churn", Thousands(row.guaranteed_requests));
  const std::string batch =
      absl::StrFormat("; batches of %s, by --max-requests", Thousands(plan.max_requests));
  out += Fact("Requests at a time", Thousands(row.requests),
              row.requests > plan.max_requests ? churn + batch : churn);
  out += Fact("Each takes, per rank", BytesText(row.bytes_per_request.value()),
              absl::StrFormat("of %s tokens", Thousands(plan.context_tokens)));
  out += Fact("Longest single request", Thousands(planned.report.longest_context_tokens),
              planned.report.longest_is_model_limit ? "tokens, the model's limit" : "tokens");
  out += Fact("Ranks", Thousands(plan.topology.tp), RanksText(plan.topology));
  if (plan.draft_tokens > 0) out += Fact("Drafted per step", Counted(plan.draft_tokens, "token"));
  if (plan.rollback != StateRollback::kNone) out += Fact("State rollback", StateRollbackName(plan.rollback));
  return out + "</dl>\n";
}

// Memory of the ranks, which may differ.
std::string MemoryText(const PlanRequest& request) {
  if (request.ranks.empty()) return "not given";
  const auto [least, most] =
      std::minmax_element(request.ranks.begin(), request.ranks.end(),
                          [](const RankMemory& a, const RankMemory& b) { return a.kv_memory < b.kv_memory; });
  std::string text = BytesText(least->kv_memory.value());
  if (least->kv_memory == most->kv_memory) return text;
  return absl::StrFormat("%s to %s; the least counts", text, BytesText(most->kv_memory.value()));
}

std::string ModelText(const ModelRef& ref) {
  return Filled("{{name}} <small>digest <code>{{digest}}</code></small>",
                {Text("name", ref.name.empty() ? "none" : ref.name),
                 Text("digest", ref.digest.empty() ? "none" : ref.digest.substr(0, kIdShown))});
}

}  // namespace

std::string VerdictPart(const PlanRequest& request, const PlanOutcome& outcome) {
  const auto* planned = std::get_if<Planned>(&outcome);
  const Headline headline = std::visit([](const auto& answer) { return HeadlineOf(answer); }, outcome);
  std::string models = "<span class=\"model\">" + Escaped(request.target.ref.name) + "</span>";
  if (request.draft.has_value()) {
    models += " <span class=\"with\">drafted by</span> <span class=\"model\">" +
              Escaped(request.draft->ref.name) + "</span>";
  }
  const std::string id = planned == nullptr ? "no plan" : "plan " + planned->plan_id.substr(0, kIdShown);
  return Filled(
      "<header class=\"top\">\n<p class=\"kicker\"><span>Kvasir · KV-cache plan</span><span>{{ruleset}} · "
      "{{id}}</span></p>\n<h1>{{models}}</h1>\n<p class=\"verdict {{kind}}\"><strong><span "
      "aria-hidden=\"true\">{{mark}}</span> {{word}}</strong> <span>{{sentence}}</span></p>\n"
      "{{figures}}</header>",
      {Text("ruleset", planned == nullptr ? request.ruleset : planned->plan.ruleset), Text("id", id),
       Markup("models", models), Text("kind", headline.kind), Text("mark", headline.mark),
       Text("word", headline.word), Text("sentence", headline.sentence),
       Markup("figures", planned == nullptr ? "" : KeyFigures(*planned))});
}

std::string QuestionPart(const PlanRequest& request, const PlanOutcome& outcome) {
  const auto* planned = std::get_if<Planned>(&outcome);
  const auto model = [](std::string_view role, const ModelRef& ref) {
    return Filled("<div><dt>{{role}}</dt><dd>{{model}}</dd></div>\n",
                  {Text("role", role), Markup("model", ModelText(ref))});
  };
  std::string body = "<dl class=\"facts\">\n" + model("Target", request.target.ref);
  if (request.draft.has_value()) body += model("Draft", request.draft->ref);
  body += Fact("Ranks", RanksText(request.topology),
               absl::StrFormat("interleave %d", request.topology.interleave));
  body += Fact("Memory for caches, per rank", MemoryText(request));
  body += Fact("Longest context", Thousands(request.context_tokens), "tokens");
  body += Fact("Requests in one batch", Thousands(request.max_requests));
  body += Fact("Requests that must fit", Thousands(request.min_requests));
  body += Fact("Prefill chunk",
               Thousands(planned == nullptr ? request.prefill_chunk : planned->plan.prefill_chunk), "tokens");
  if (request.draft.has_value()) body += Fact("Drafted per step", Thousands(request.draft_tokens), "tokens");
  const auto layers = static_cast<std::int64_t>(request.layers.size());
  body += Fact("Layers with a cache", Thousands(layers));
  return Section("question", "The question", "What the planner was asked.", body + "</dl>\n");
}

}  // namespace kvasir::cli
