// What the script reads, and where numbers of a stop become widths and words.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "planner/cli/page/html_text.h"
#include "planner/cli/page/page_parts.h"
#include "planner/cli/quantity.h"
#include "planner/core/wide.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;

// Words and widths of a stop, as the page's static table has them.
Json ShownJson(const Stop& stop, std::int64_t most_bytes) {
  std::int64_t most = stop.row.requests;
  for (const std::optional<std::int64_t>& other : stop.others) most = std::max(most, other.value_or(0));
  Json pools = Json::array();
  for (const std::int64_t bytes : stop.pool_bytes)
    pools.push_back({{"text", BytesText(bytes)}, {"width", Share(bytes, most_bytes)}});
  Json requests = {{{"text", Thousands(stop.row.requests)}, {"width", Share(stop.row.requests, most)}}};
  for (const std::optional<std::int64_t>& other : stop.others) {
    requests.push_back(
        {{"text", other.has_value() ? Thousands(*other) : "-"}, {"width", Share(other.value_or(0), most)}});
  }
  return {{"context", Thousands(stop.row.context_tokens)},
          {"bytes", BytesText(stop.row.bytes_per_request.value())},
          {"pools", pools},
          {"requests", requests},
          {"guaranteed", Thousands(stop.row.guaranteed_requests)}};
}

Json StopJson(const Stop& stop, std::int64_t most_bytes) {
  Json others = Json::array();
  for (const std::optional<std::int64_t>& other : stop.others) {
    others.push_back(other.has_value() ? Json(*other) : Json(nullptr));
  }
  return {{"context_tokens", stop.row.context_tokens},
          {"requests", stop.row.requests},
          {"guaranteed_requests", stop.row.guaranteed_requests},
          {"bytes_per_request", stop.row.bytes_per_request.value()},
          {"pool_bytes", stop.pool_bytes},
          {"alternatives", others},
          {"shown", ShownJson(stop, most_bytes)}};
}

Json LoadJson(const Plan& plan) {
  Json out = Json::array();
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    Json layers = Json::array();
    for (const PlanGroup& group : plan.pools[i].groups) {
      for (const PlanLayer& layer : group.layers) {
        layers.push_back({{"name", layer.name},
                          {"group", group.name},
                          {"part", layer.part},
                          {"offset_bytes", layer.offset_bytes},
                          {"page_bytes", layer.page_bytes}});
      }
    }
    out.push_back({{"name", plan.pools[i].name}, {"parents", ParentsOf(plan, i)}, {"layers", layers}});
  }
  return out;
}

}  // namespace

std::vector<Stop> StopsOf(const Planned& planned, const std::vector<Alternative>& at_stops) {
  const std::vector<PoolLoad> loads = LoadsOf(planned.plan);
  std::vector<Stop> stops;
  for (const std::int64_t context : PageStops(planned.plan, planned.report.capacity)) {
    Stop stop;
    stop.row = CapacityAt(planned.plan, context);
    for (const PoolLoad& load : loads) {
      stop.pool_bytes.push_back(Saturated(Wide{BlocksForSequence(load.demand, context)} * load.stride_bytes));
    }
    for (const Alternative& other : at_stops) {
      const auto row = std::find_if(other.capacity.begin(), other.capacity.end(),
                                    [&](const CapacityRow& r) { return r.context_tokens == context; });
      stop.others.push_back(row == other.capacity.end() ? std::nullopt : std::optional(row->requests));
    }
    stops.push_back(std::move(stop));
  }
  return stops;
}

std::string PageData(const PlanRequest& request, const PlanOutcome& outcome, const PageFacts& facts,
                     const std::vector<Stop>& stops) {
  Json json;
  json["schema"] = "kvasir.page/1";
  // The very text of the machine form, read again: the two cannot differ.
  json["plan"] = Json::parse(OutcomeJson(request, outcome, facts.extras), nullptr, false);
  json["command"] = facts.command;
  if (const auto* planned = std::get_if<Planned>(&outcome)) {
    std::int64_t most = 0;
    for (const Stop& stop : stops) most = std::max(most, stop.row.bytes_per_request.value());
    json["load"] = LoadJson(planned->plan);
    json["stops"] = Json::array();
    for (const Stop& stop : stops) json["stops"].push_back(StopJson(stop, most));
  }
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace kvasir::cli
