// Pages without a plan: what is missing or which rules are broken, and the ways out.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "planner/cli/flag_words.h"
#include "planner/cli/page/html_text.h"
#include "planner/cli/page/page_parts.h"
#include "planner/cli/quantity.h"
#include "planner/cli/subject_words.h"

namespace kvasir::cli {
namespace {

std::string Way(std::string_view flags, std::string_view effect) {
  return Filled(
      "<li><code>{{flags}}</code>{{effect}}</li>\n",
      {Text("flags", flags), Markup("effect", effect.empty() ? "" : "<span>" + Escaped(effect) + "</span>")});
}

// "1.50 GiB" for sizes, else the value.
std::string ValueText(const FitRemedy& remedy) {
  const std::optional<std::int64_t> value = ParseInt(remedy.value);
  const bool is_size = remedy.field.find("kv_memory") != std::string::npos;
  return is_size && value.has_value() ? BytesText(*value) : "";
}

std::string NeededBar(const DoesNotFit& outcome) {
  const std::int64_t most = std::max({outcome.needed.value(), outcome.given.value(), std::int64_t{1}});
  const std::int64_t bound = std::min(outcome.bound_by_bytes.value(), outcome.needed.value());
  const auto row = [&](std::string_view name, std::string_view kind, std::int64_t bytes,
                       std::string_view text) {
    return Filled(
        "<tr><th scope=\"row\">{{name}}</th><td class=\"track\"><i class=\"bar {{kind}}\" "
        "style=\"width:{{width}}\"></i></td><td class=\"n\">{{text}}</td><td class=\"n "
        "exact\">{{exact}}</td></tr>\n",
        {Text("name", name), Text("kind", kind), Text("width", Share(bytes, most)), Text("text", text),
         Text("exact", Thousands(bytes))});
  };
  return "<div class=\"scroll\"><table class=\"bars\">\n<thead><tr><th scope=\"col\">Per rank</th><th "
         "scope=\"col\"><span class=\"off\">To scale</span></th><th scope=\"col\" class=\"n\">Size</th><th "
         "scope=\"col\" class=\"n\">Bytes</th></tr></thead>\n<tbody>\n" +
         row("Given", "given", outcome.given.value(), BytesText(outcome.given.value())) +
         row("Needed", "needed", outcome.needed.value(), BytesText(outcome.needed.value())) +
         row("of it pool " + outcome.bound_by, "p0", bound, BytesText(outcome.bound_by_bytes.value())) +
         row("Missing", "missing", std::min(outcome.shortfall.value(), most),
             BytesText(outcome.shortfall.value())) +
         "</tbody></table></div>\n";
}

}  // namespace

std::string ShortfallPart(const DoesNotFit& outcome) {
  const std::string longest =
      outcome.longest_context_tokens == 0
          ? "No length fits."
          : absl::StrFormat("The longest that fits is %s tokens.", Thousands(outcome.longest_context_tokens));
  std::string out = Section("shortfall", "What is missing",
                            absl::StrFormat("All ranks are cut equally; this is one of them. %s", longest),
                            NeededBar(outcome));
  std::string ways;
  for (const FitRemedy& remedy : outcome.remedies) {
    const std::string size = ValueText(remedy);
    ways += Way(FlagOf(remedy.field) + " " + remedy.value,
                remedy.requests == 0 ? remedy.text
                                     : absl::StrFormat("fits %s%s", Counted(remedy.requests, "request"),
                                                       size.empty() ? "" : ", " + size + " per rank"));
  }
  const std::string_view note = "Each was planned again and fits; best first.";
  if (ways.empty())
    return out + Section("ways", "Ways out", "", "<p>No single change that was tried fits.</p>\n");
  return out + Section("ways", "Ways out", note, "<ul class=\"ways\">\n" + ways + "</ul>\n");
}

std::string RefusalsPart(const Refusals& refusals, const std::vector<std::string>& instead) {
  std::string body;
  for (const Refusal& refusal : refusals.refusals) {
    const RuleRow& row = RowOf(refusal.rule);
    std::string ways;
    for (const std::string& remedy : refusal.remedies)
      ways += Filled("<li>{{way}}</li>\n", {Text("way", InFlagWords(remedy))});
    if (!ways.empty()) ways = Filled("<h4>Try</h4>\n<ul>\n{{ways}}</ul>\n", {Markup("ways", ways)});
    body += Filled(
        "<article class=\"refusal\">\n<h3><code>{{rule}}</code></h3>\n<p>{{sentence}}.</p>\n<p "
        "class=\"quiet\">{{why}}</p>\n{{ways}}<p class=\"quiet\">Rule page: "
        "<code>docs/generated/refusals.md#{{page}}</code></p>\n</article>\n",
        {Text("rule", row.name), Text("sentence", RefusalSentence(refusal)), Text("why", row.why),
         Markup("ways", ways), Text("page", absl::AsciiStrToLower(std::string(row.name)))});
  }
  std::string out = Section("refusals", "Why", "Rules that hold whatever the memory is.", body);
  if (instead.empty()) return out;
  std::string ways;
  for (const std::string& flags : instead) ways += Way(flags, "");
  return out + Section("instead", "Accepted instead", "The rules accept the question with any of these.",
                       "<ul class=\"ways\">\n" + ways + "</ul>\n");
}

}  // namespace kvasir::cli
