#include "planner/core/refusal.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/base/check.h"

namespace kvasir {
namespace {

std::string Joined(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i != 0) out += ", ";
    out += words[i];
  }
  return out;
}

std::string Value(std::string_view placeholder, const Refusal& refusal) {
  if (placeholder == "subjects") return Joined(refusal.subjects);
  if (placeholder == "field") return refusal.field;
  for (const Operand& operand : refusal.operands) {
    if (operand.name == placeholder) return operand.value;
  }
  return "{" + std::string(placeholder) + "}";
}

std::string Fill(std::string_view text, const Refusal& refusal) {
  std::string out;
  while (true) {
    const std::size_t open = text.find('{');
    const std::size_t close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) return out.append(text);
    out.append(text.substr(0, open));
    out += Value(text.substr(open + 1, close - open - 1), refusal);
    text.remove_prefix(close + 1);
  }
}

// Whether a remedy offers a list that turned out empty: there is nothing to offer then.
bool NeedsEmpty(std::string_view remedy, const Refusal& refusal) {
  for (const Operand& operand : refusal.operands) {
    if (operand.value.empty() && remedy.find("{" + operand.name + "}") != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

const RuleRow& RowOf(RuleId rule) {
  const std::span<const RuleRow> table = RuleTable();
  const auto place = static_cast<std::size_t>(rule);
  KVASIR_CHECK(place < table.size() && table[place].id == rule);
  return table[place];
}

std::string_view RuleName(RuleId rule) { return RowOf(rule).name; }

Refusal MakeRefusal(RuleId rule, std::vector<std::string> subjects, std::vector<Operand> operands,
                    std::string_view field) {
  const RuleRow& row = RowOf(rule);
  Refusal refusal{.rule = rule,
                  .field = std::string(row.field == "*" ? field : row.field),
                  .subjects = std::move(subjects),
                  .operands = std::move(operands),
                  .remedies = {}};
  for (const std::string_view remedy : row.remedies) {
    if (!remedy.empty() && !NeedsEmpty(remedy, refusal)) refusal.remedies.push_back(Fill(remedy, refusal));
  }
  return refusal;
}

std::string RefusalText(const Refusal& refusal) { return Fill(RowOf(refusal.rule).message, refusal); }

void SortRefusals(std::vector<Refusal>& refusals) {
  const auto key = [](const Refusal& r) {
    return std::tie(r.rule, r.subjects, r.field, r.operands, r.remedies);
  };
  std::sort(refusals.begin(), refusals.end(),
            [&](const Refusal& a, const Refusal& b) { return key(a) < key(b); });
  refusals.erase(std::unique(refusals.begin(), refusals.end()), refusals.end());
}

std::string RefusalPage() {
  std::string page =
      "# Refusals\n\n"
      "Generated from planner/core/refusal_table.cc; `tools/golden` rewrites it. Rules stand in the order of "
      "a\n"
      "report. Words in braces are the operands that each refusal carries.\n";
  for (const RuleRow& row : RuleTable()) {
    page += "\n## " + std::string(row.name) + "\n\n";
    page += std::string(row.why) + "\n\n";
    page += "*   Field: " + (row.field == "*" ? "named by the refusal" : "`" + std::string(row.field) + "`") +
            "\n";
    page += "*   Message: " + std::string(row.message) + "\n";
    for (const std::string_view remedy : row.remedies) {
      if (!remedy.empty()) page += "*   Remedy: " + std::string(remedy) + "\n";
    }
  }
  return page;
}

Refusal HeadsNotDivisibleByTp(std::string subject, std::string what, std::int64_t heads, std::int64_t tp,
                              std::string possible) {
  return MakeRefusal(RuleId::kHeadsNotDivisibleByTp, {std::move(subject)},
                     {{"what", std::move(what)},
                      {"heads", std::to_string(heads)},
                      {"tp", std::to_string(tp)},
                      {"possible", std::move(possible)}});
}

Refusal DtypeUnknown(std::string_view field, std::string word) {
  return MakeRefusal(RuleId::kDtypeUnknown, {}, {{"dtype", std::move(word)}}, field);
}

Refusal CacheKindUnsupported(std::vector<std::string> layers, std::string kind, std::string reason) {
  return MakeRefusal(RuleId::kCacheKindUnsupported, std::move(layers),
                     {{"kind", std::move(kind)}, {"reason", std::move(reason)}});
}

}  // namespace kvasir
