// What a sequence costs and how many fit, over lengths: a slider above the table that it walks through.
#include <algorithm>
#include <string_view>

#include "absl/strings/str_format.h"
#include "planner/cli/page/html_text.h"
#include "planner/cli/page/page_parts.h"
#include "planner/cli/quantity.h"

namespace kvasir::cli {
namespace {

std::int64_t MostBytes(const std::vector<Stop>& stops) {
  std::int64_t most = 0;
  for (const Stop& stop : stops) most = std::max(most, stop.row.bytes_per_request.value());
  return most;
}

std::int64_t MostRequests(const Stop& stop) {
  std::int64_t most = stop.row.requests;
  for (const std::optional<std::int64_t>& other : stop.others) most = std::max(most, other.value_or(0));
  return most;
}

std::string Ticks(const std::vector<Stop>& stops) {
  std::string out;
  const auto last = static_cast<std::int64_t>(stops.size()) - 1;
  for (std::int64_t i = 0; i <= last; ++i) {
    const std::int64_t tokens = stops[static_cast<std::size_t>(i)].row.context_tokens;
    // Halves between powers of two are stops without a label.
    const bool power = (tokens & (tokens - 1)) == 0;
    if (!power && i != last) continue;
    out += Filled("<span style=\"--at:{{at}}\">{{text}}</span>",
                  {Text("at", absl::StrFormat("%d", last == 0 ? 0 : i * 10'000 / last)),
                   Text("text", TokensText(tokens))});
  }
  return out;
}

std::string PoolBar(const Plan& plan, const Stop& stop, std::int64_t most) {
  std::string out;
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    out += Filled("<i class=\"{{kind}}\" style=\"width:{{width}}\"></i>",
                  {Text("kind", PoolClass(i)), Text("width", Share(stop.pool_bytes[i], most))});
  }
  return out;
}

std::string CostList(const Plan& plan, const Stop& stop) {
  std::string out = "<ul class=\"legend\">\n";
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    out +=
        Filled("<li><i class=\"swatch {{kind}}\"></i>{{name}} <b data-pool=\"{{index}}\">{{text}}</b></li>\n",
               {Text("kind", PoolClass(i)), Text("name", plan.pools[i].name),
                Text("index", std::to_string(i)), Text("text", BytesText(stop.pool_bytes[i]))});
  }
  return out + "</ul>\n";
}

std::string RequestRow(std::size_t index, std::string_view label, std::string_view remark,
                       std::string_view text, std::string_view width) {
  return Filled(
      "<tr><th scope=\"row\">{{label}}{{remark}}</th><td class=\"n\" "
      "data-requests=\"{{index}}\">{{text}}</td><td "
      "class=\"track\"><i class=\"bar {{kind}}\" data-bar=\"{{index}}\" "
      "style=\"width:{{width}}\"></i></td></tr>\n",
      {Text("label", label), Markup("remark", remark.empty() ? "" : "<small>" + Escaped(remark) + "</small>"),
       Text("index", std::to_string(index)), Text("text", text), Text("kind", index == 0 ? "ours" : "other"),
       Text("width", width)});
}

std::string RequestRows(const Plan& plan, const std::vector<Alternative>& others, const Stop& stop) {
  const std::int64_t most = MostRequests(stop);
  const std::string remark = plan.rollback == StateRollback::kNone
                                 ? ""
                                 : absl::StrFormat("with %s", StateRollbackName(plan.rollback));
  std::string out =
      RequestRow(0, "this plan", remark, Thousands(stop.row.requests), Share(stop.row.requests, most));
  for (std::size_t i = 0; i < others.size(); ++i) {
    const std::optional<std::int64_t> requests = stop.others[i];
    out += RequestRow(i + 1, others[i].label, others[i].remark,
                      requests.has_value() ? Thousands(*requests) : "-", Share(requests.value_or(0), most));
  }
  return out;
}

std::string StopTable(const Plan& plan, const std::vector<Alternative>& others,
                      const std::vector<Stop>& stops) {
  const auto column = [](std::string_view name) {
    return Filled("<th scope=\"col\" class=\"n\">{{name}}</th>", {Text("name", name)});
  };
  std::string head = "<tr>" + column("Context") + column("this plan") + column("under churn");
  for (const Alternative& other : others) head += column(other.label);
  for (const PlanPool& pool : plan.pools) head += column(pool.name);
  head += column("a sequence") +
          "<th scope=\"col\"><span class=\"off\">Bytes of a sequence, to scale</span></th>";
  std::string rows;
  const std::int64_t most = MostBytes(stops);
  const auto number = [](std::string_view text) {
    return Filled("<td class=\"n\">{{text}}</td>", {Text("text", text)});
  };
  for (const Stop& stop : stops) {
    const CapacityRow& row = stop.row;
    rows += absl::StrFormat("<tr%s><th scope=\"row\" class=\"n\">%s</th>",
                            &stop == &stops.back() ? " class=\"now\"" : "", Thousands(row.context_tokens));
    rows += number(Thousands(row.requests)) + number(Thousands(row.guaranteed_requests));
    for (const std::optional<std::int64_t>& other : stop.others)
      rows += number(other.has_value() ? Thousands(*other) : "-");
    for (const std::int64_t bytes : stop.pool_bytes) rows += number(BytesText(bytes));
    rows += number(BytesText(row.bytes_per_request.value()));
    rows += "<td class=\"track\"><span class=\"stack\">" + PoolBar(plan, stop, most) + "</span></td>";
    rows += "</tr>\n";
  }
  return "<div class=\"scroll\"><table class=\"stops\">\n<thead>" + head + "</tr></thead>\n<tbody>\n" + rows +
         "</tbody></table></div>\n";
}

}  // namespace

std::string ContextPart(const Planned& planned, const std::vector<Alternative>& at_stops,
                        const std::vector<Stop>& stops) {
  const Plan& plan = planned.plan;
  const Stop& stop = stops.back();
  const std::string body = Filled(
      "<div class=\"slider\"><label for=\"stop\">Context length</label><output id=\"context\" "
      "for=\"stop\"><b "
      "data-context>{{context}}</b> tokens</output>\n<input type=\"range\" id=\"stop\" min=\"0\" "
      "max=\"{{last}}\" "
      "value=\"{{last}}\" step=\"1\"><div class=\"ticks\" aria-hidden=\"true\">{{ticks}}</div></div>\n"
      "<div class=\"pair\"><div>\n<h3>Bytes of a sequence, per rank</h3>\n<p class=\"big\"><b "
      "data-bytes>{{bytes}}</b>"
      "</p>\n<div class=\"stack tall\" data-stack "
      "aria-hidden=\"true\">{{bar}}</div>\n{{costs}}</div>\n<div>\n<h3>"
      "Requests that fit</h3>\n<p class=\"big\"><b data-count>{{requests}}</b> <small><span data-guaranteed>"
      "{{guaranteed}}</span> under any churn</small></p>\n<table class=\"bars\"><caption "
      "class=\"off\">Requests by "
      "layout</caption>\n<tbody>\n{{rows}}</tbody></table></div></div>\n{{table}}",
      {Text("context", Thousands(stop.row.context_tokens)), Text("last", std::to_string(stops.size() - 1)),
       Markup("ticks", Ticks(stops)), Text("bytes", BytesText(stop.row.bytes_per_request.value())),
       Markup("bar", PoolBar(plan, stop, MostBytes(stops))), Markup("costs", CostList(plan, stop)),
       Text("requests", Thousands(stop.row.requests)),
       Text("guaranteed", Thousands(stop.row.guaranteed_requests)),
       Markup("rows", RequestRows(plan, at_stops, stop)), Markup("table", StopTable(plan, at_stops, stops))});
  return Section(
      "context", "Over context length",
      absl::StrFormat("Requests that are all equally long, up to the planned %s tokens, in the same arena.",
                      Thousands(plan.context_tokens)),
      body);
}

}  // namespace kvasir::cli
