#include "planner/cli/page/plan_page.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <variant>

#include "absl/strings/str_format.h"
#include "planner/cli/page/html_text.h"
#include "planner/cli/page/page_files.h"
#include "planner/cli/page/page_parts.h"

namespace kvasir::cli {
namespace {

// The shortest length of the slider, beside one 128th of the longest.
constexpr std::int64_t kFirstStopMax = 4096;

std::string TitleOf(const PlanRequest& request, const PlanOutcome& outcome) {
  const bool fits = std::holds_alternative<Planned>(outcome);
  const bool refused = std::holds_alternative<Refusals>(outcome);
  return absl::StrFormat("%s: %s - Kvasir plan", request.target.ref.name,
                         fits      ? "fits"
                         : refused ? "refused"
                                   : "does not fit");
}

std::string Made(const PlanRequest& request, const PlanOutcome& outcome, const PageFacts& facts) {
  const auto* planned = std::get_if<Planned>(&outcome);
  std::string out;
  const auto add = [&out](std::string_view name, std::string_view value) {
    out += Filled("<div><dt>{{name}}</dt><dd><code>{{value}}</code></dd></div>\n",
                  {Text("name", name), Text("value", value)});
  };
  if (planned != nullptr) add("Plan", planned->plan_id);
  add("Ruleset", planned != nullptr ? planned->plan.ruleset : request.ruleset);
  add("Ask again", facts.command);
  return out;
}

std::string Sections(const PlanRequest& request, const PlanOutcome& outcome, const PageFacts& facts,
                     const std::vector<Stop>& stops) {
  std::string out;
  if (const auto* planned = std::get_if<Planned>(&outcome)) {
    out = ArenaPart(planned->plan) + BlocksPart(planned->plan) +
          ContextPart(*planned, facts.at_stops, stops) + BytesPart(planned->plan);
  } else if (const auto* short_of = std::get_if<DoesNotFit>(&outcome)) {
    out = ShortfallPart(*short_of);
  } else {
    out = RefusalsPart(std::get<Refusals>(outcome), facts.extras.accepted_instead);
  }
  return out + QuestionPart(request, outcome);
}

}  // namespace

std::vector<std::int64_t> PageStops(const Plan& plan, const std::vector<CapacityRow>& asked) {
  const std::int64_t longest = plan.context_tokens;
  std::vector<std::int64_t> stops = {longest};
  for (const CapacityRow& row : asked) stops.push_back(std::min(row.context_tokens, longest));
  const auto share = static_cast<std::uint64_t>(std::max<std::int64_t>(longest / 128, 1));
  std::int64_t power = std::min(static_cast<std::int64_t>(std::bit_floor(share)), kFirstStopMax);
  for (; power < longest; power *= 2) {
    stops.push_back(power);
    const std::int64_t half = power + power / 2;
    if (half < longest) stops.push_back(half);
  }
  std::sort(stops.begin(), stops.end());
  stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
  return stops;
}

std::string Section(std::string_view id, std::string_view title, std::string_view note,
                    std::string_view body) {
  return Filled(
      "<section id=\"{{id}}\" aria-labelledby=\"{{id}}-title\">\n<div class=\"head\"><h2 "
      "id=\"{{id}}-title\">{{title}}</h2>\n<p>{{note}}</p></div>\n<div class=\"body\">\n{{body}}</div>\n"
      "</section>\n",
      {Text("id", id), Text("title", title), Text("note", note), Markup("body", body)});
}

std::string PlanPage(const PlanRequest& request, const PlanOutcome& outcome, const PageFacts& facts) {
  std::vector<Stop> stops;
  if (const auto* planned = std::get_if<Planned>(&outcome)) stops = StopsOf(*planned, facts.at_stops);
  return Filled(kPageForm, {Text("version", KVASIR_VERSION), Text("title", TitleOf(request, outcome)),
                            Markup("style", kPageStyle), Markup("top", VerdictPart(request, outcome)),
                            Markup("sections", Sections(request, outcome, facts, stops)),
                            Markup("made", Made(request, outcome, facts)),
                            Markup("data", EscapedScript(PageData(request, outcome, facts, stops))),
                            Markup("script", kPageScript)});
}

}  // namespace kvasir::cli
