#include "planner/questions/explain_question.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/insert_sorted.h"
#include "planner/core/capacity.h"
#include "planner/core/outcome.h"
#include "planner/questions/changes.h"
#include "planner/request/weight_bytes.h"
#include "planner/rulesets/make_plan.h"

namespace kvasir {
namespace {

std::vector<CapacityRow> CapacityAtEach(const Plan& plan, const std::vector<std::int64_t>& contexts) {
  std::vector<CapacityRow> rows;
  rows.reserve(contexts.size());
  for (const std::int64_t context : contexts) rows.push_back(CapacityAt(plan, context));
  return rows;
}

bool AdmitsMoreSomewhere(const std::vector<CapacityRow>& rows, const std::vector<CapacityRow>& than) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].requests > than[i].requests) return true;
  }
  return false;
}

// By the longest length, then the next shorter.
bool AdmitsMore(const Remedy& a, const Remedy& b) {
  return std::lexicographical_compare(
      b.capacity.rbegin(), b.capacity.rend(), a.capacity.rbegin(), a.capacity.rend(),
      [](const CapacityRow& x, const CapacityRow& y) { return x.requests < y.requests; });
}

// "1.90x": rounded down, so that it never promises more.
std::string GainText(std::int64_t requests, std::int64_t base) {
  if (base <= 0) return "none before";
  const std::int64_t hundredths = requests * 100 / base;
  return absl::StrFormat("%d.%02dx", hundredths / 100, hundredths % 100);
}

std::string EffectText(const std::vector<CapacityRow>& base, const std::vector<CapacityRow>& rows) {
  std::string text;
  for (std::size_t i = rows.size(); i-- > 0;) {
    text += absl::StrFormat("%s%s, %d instead of %d requests of %d tokens", text.empty() ? "" : "; ",
                            GainText(rows[i].requests, base[i].requests), rows[i].requests, base[i].requests,
                            rows[i].context_tokens);
  }
  return text;
}

ExplainLine WeightLine(const ModelDescription& model, std::int64_t tp, std::string_view role) {
  const BytesRange bytes = WeightBytesOf(model, WeightSplit{.tp = tp}, std::nullopt);
  return {ExplainTopic::kBytes, absl::StrFormat("weights.%s", role),
          absl::StrFormat("estimated: %d to %d bytes on each rank, beside the arena: %s", bytes.least,
                          bytes.most, bytes.basis)};
}

}  // namespace

std::vector<Remedy> RankRemedies(const PlanQuestion& question, const Plan& plan, const GoOn& go_on) {
  const std::vector<std::int64_t> contexts = ExplainedContexts(plan);
  const std::vector<CapacityRow> base = CapacityAtEach(plan, contexts);
  std::vector<Remedy> remedies;
  for (const Change& change : ChangesOf(question)) {
    if (go_on && !go_on()) break;
    PlanQuestion changed = question;
    change.apply(changed);
    const PlanOutcome outcome = MakePlan(RequestOf(changed));
    const auto* planned = std::get_if<Planned>(&outcome);
    if (planned == nullptr) continue;
    std::vector<CapacityRow> rows = CapacityAtEach(planned->plan, contexts);
    if (AdmitsMoreSomewhere(rows, base))
      InsertSorted(remedies, Remedy{change.flags, planned->plan_id, std::move(rows)}, AdmitsMore);
  }
  return remedies;
}

std::vector<ExplainLine> ExplainRemedies(const Plan& plan, const std::vector<Remedy>& remedies) {
  const std::vector<CapacityRow> base = CapacityAtEach(plan, ExplainedContexts(plan));
  std::vector<ExplainLine> lines;
  lines.reserve(remedies.size());
  for (const Remedy& remedy : remedies) {
    lines.push_back({ExplainTopic::kRemedy, remedy.flags, EffectText(base, remedy.capacity)});
  }
  return lines;
}

std::vector<ExplainLine> ExplainWeights(const PlanQuestion& question) {
  std::vector<ExplainLine> lines = {WeightLine(question.target, question.options.tp, "target")};
  if (question.draft.has_value()) lines.push_back(WeightLine(*question.draft, question.options.tp, "draft"));
  return lines;
}

}  // namespace kvasir
