#include "planner/cli/show_refusals.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/cli/flag_words.h"
#include "planner/cli/quantity.h"
#include "planner/cli/remedy_search.h"
#include "planner/cli/subject_words.h"
#include "planner/cli/text_table.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kWidth = 96;

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// Lines of at most kWidth characters, broken at spaces.
std::string Wrapped(std::string_view text, std::string_view indent) {
  std::string out;
  std::string line(indent);
  bool fresh = true;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (!fresh && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line = indent;
      fresh = true;
    }
    if (!fresh) line += ' ';
    line += word;
    fresh = false;
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return out + line + "\n";
}

std::string Requests(std::int64_t count) {
  return absl::StrFormat("%s request%s", Thousands(count), count == 1 ? "" : "s");
}

// "fits, 2 requests (3.78 MiB)"; a service that does not say how many has its own words.
std::string EffectText(const FitRemedy& remedy) {
  if (remedy.requests == 0) return remedy.text;
  const std::optional<std::int64_t> bytes = ParseInt(remedy.value);
  const bool is_size = remedy.field.find("kv_memory") != std::string::npos && bytes.has_value();
  return "fits, " + Requests(remedy.requests) + (is_size ? " (" + BytesText(*bytes) + ")" : "");
}

std::string WaysOut(std::string_view head, const std::vector<std::string>& ways) {
  TextTable table("ll", 2);
  for (std::size_t i = 0; i < ways.size(); ++i) table.Row({std::string(i == 0 ? head : ""), ways[i]});
  return ways.empty() ? "" : table.Text(2);
}

}  // namespace

void ShowRefusals(const Console& console, const PlanQuestion& question, const Refusals& refusals) {
  for (const Refusal& refusal : refusals.refusals) {
    const RuleRow& row = RowOf(refusal.rule);
    console.out << Inked(console, Ink::kBad, "refused") << "   " << Inked(console, Ink::kBold, row.name)
                << "\n\n";
    console.out << Wrapped(RefusalSentence(refusal) + ".", "  ") << Wrapped(row.why, "  ");
    std::vector<std::string> ways;
    ways.reserve(refusal.remedies.size());
    for (const std::string& remedy : refusal.remedies) ways.push_back(InFlagWords(remedy));
    console.out << WaysOut("Try", ways);
    console.out << "  Rule page: docs/generated/refusals.md#" << Lower(row.name) << "\n\n";
  }
  const std::vector<std::string> tried = FindRemedies(question, refusals.refusals);
  if (!tried.empty()) console.out << "Accepted instead\n" << WaysOut("Either", tried);
}

void ShowDoesNotFit(const Console& console, const DoesNotFit& outcome) {
  console.out << Inked(console, Ink::kBad, "does not fit")
              << absl::StrFormat("   short by %s per rank for %s of %s tokens\n\n",
                                 BytesText(outcome.shortfall.value()), Requests(outcome.min_requests),
                                 Thousands(outcome.context_tokens));
  TextTable table("lll");
  console.out << absl::StrFormat("  Bound by            %s pool: %s of the %s needed; %s given\n",
                                 outcome.bound_by, BytesText(outcome.bound_by_bytes.value()),
                                 BytesText(outcome.needed.value()), BytesText(outcome.given.value()));
  console.out << absl::StrFormat(
      "  Longest that fits   %s\n",
      outcome.longest_context_tokens == 0 ? "none" : Thousands(outcome.longest_context_tokens) + " tokens");
  for (const FitRemedy& remedy : outcome.remedies) {
    table.Row({&remedy == outcome.remedies.data() ? "Try" : "", FlagOf(remedy.field) + " " + remedy.value,
               EffectText(remedy)});
  }
  if (!outcome.remedies.empty()) console.out << table.Text(2);
}

}  // namespace kvasir::cli
