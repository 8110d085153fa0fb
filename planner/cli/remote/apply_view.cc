#include "planner/cli/remote/apply_view.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_format.h"
#include "planner/cli/quantity.h"
#include "planner/cli/remote/session.h"
#include "planner/cli/text_table.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t Microseconds(const google::protobuf::Duration& time) {
  return time.seconds() * 1'000'000 + time.nanos() / 1000;
}

std::string MicrosecondsText(std::int64_t us) {
  return absl::StrFormat("%s.%03d ms", Thousands(us / 1000), static_cast<int>(us % 1000));
}

std::string MillionthsText(std::int64_t parts_per_billion) {
  return absl::StrFormat("%s.%03d ppm", Thousands(parts_per_billion / 1000),
                         static_cast<int>(parts_per_billion % 1000));
}

bool Passed(const plan::v1::RowComparison& comparison) {
  return comparison.replay_equals_eager() &&
         comparison.error_parts_per_billion() <= comparison.tolerance_parts_per_billion();
}

// One line for each graph: the shortest replay of any rank, and the median of the slowest rank, which all
// wait for.
std::string TimingsText(const ApplyProgress& progress) {
  struct Times {
    std::int64_t shortest = 0;
    std::int64_t median = 0;
  };
  std::vector<std::array<std::string, 3>> order;
  std::map<std::array<std::string, 3>, Times> times;
  for (const planner::v1::WorkerPrepared& worker : progress.prepared) {
    for (const auto& t : worker.graph_timings()) {
      const std::array<std::string, 3> key = {t.pass(), std::to_string(t.query_rows()),
                                              std::to_string(t.bucket())};
      const Times own{Microseconds(t.shortest()), Microseconds(t.median())};
      const auto [it, fresh] = times.try_emplace(key, own);
      if (fresh) order.push_back(key);
      it->second.shortest = std::min(it->second.shortest, own.shortest);
      it->second.median = std::max(it->second.median, own.median);
    }
  }
  TextTable table("lrrrr");
  table.Row({"Pass", "Rows", "Requests", "Shortest", "Median"});
  for (const auto& key : order) {
    table.Row(
        {key[0], key[1], key[2], MicrosecondsText(times[key].shortest), MicrosecondsText(times[key].median)});
  }
  return table.Text(0);
}

// One line for each pass: the rank that is furthest from the reference, and whether every replay equalled
// eager.
std::string ComparisonsText(const ApplyProgress& progress) {
  std::vector<plan::v1::RowComparison> worst;
  for (const planner::v1::WorkerPrepared& worker : progress.prepared) {
    for (const auto& c : worker.comparisons()) {
      const auto it =
          std::find_if(worst.begin(), worst.end(), [&c](const auto& w) { return w.pass() == c.pass(); });
      if (it == worst.end()) {
        worst.push_back(c);
        continue;
      }
      const bool equal = it->replay_equals_eager() && c.replay_equals_eager();
      if (c.error_parts_per_billion() > it->error_parts_per_billion()) *it = c;
      it->set_replay_equals_eager(equal);
    }
  }
  TextTable table("lrrrl");
  table.Row({"Pass", "Rows", "Distance", "Allowed", "Replay"});
  for (const plan::v1::RowComparison& c : worst) {
    table.Row({c.pass(), std::to_string(c.row_count()), MillionthsText(c.error_parts_per_billion()),
               MillionthsText(c.tolerance_parts_per_billion()),
               c.replay_equals_eager() ? "equals eager" : "DIFFERS FROM EAGER"});
  }
  return table.Text(0);
}

Json WorkerJson(const planner::v1::WorkerPrepared& worker) {
  Json ranks = Json::array();
  for (const auto& m : worker.measurements()) {
    ranks.push_back({{"rank", m.rank()},
                     {"planned_arena_bytes", m.planned_arena_bytes()},
                     {"arena_bytes", m.arena_bytes()},
                     {"weight_bytes", m.weight_bytes()},
                     {"scratch_bytes", m.scratch_bytes()},
                     {"planned_graphs", m.planned_graph_count()},
                     {"graphs", m.graph_count()}});
  }
  Json timings = Json::array();
  for (const auto& t : worker.graph_timings()) {
    timings.push_back({{"rank", t.rank()},
                       {"pass", t.pass()},
                       {"query_rows", t.query_rows()},
                       {"bucket", t.bucket()},
                       {"replays", t.replay_count()},
                       {"shortest_us", Microseconds(t.shortest())},
                       {"median_us", Microseconds(t.median())}});
  }
  Json comparisons = Json::array();
  for (const auto& c : worker.comparisons()) {
    comparisons.push_back({{"rank", c.rank()},
                           {"pass", c.pass()},
                           {"rows", c.row_count()},
                           {"error_parts_per_billion", c.error_parts_per_billion()},
                           {"tolerance_parts_per_billion", c.tolerance_parts_per_billion()},
                           {"replay_equals_eager", c.replay_equals_eager()}});
  }
  return {{"address", worker.worker_address()},
          {"ranks", ranks},
          {"graph_timings", timings},
          {"comparisons", comparisons}};
}

}  // namespace

void ShowPrepared(const Console& console, const planner::v1::WorkerPrepared& worker) {
  std::int64_t arena = 0;
  std::int64_t planned = 0;
  std::int64_t graphs = 0;
  std::int64_t planned_graphs = 0;
  for (const auto& m : worker.measurements()) {
    arena += m.arena_bytes();
    planned += m.planned_arena_bytes();
    graphs += m.graph_count();
    planned_graphs += m.planned_graph_count();
  }
  console.out << absl::StrFormat("prepare   %s   %d rank%s   %s of %s   graphs %d/%d   agreed\n",
                                 worker.worker_address(), worker.measurements_size(),
                                 worker.measurements_size() == 1 ? "" : "s", BytesText(arena),
                                 BytesText(planned), graphs, planned_graphs)
              << std::flush;
}

void ShowCommitted(const Console& console, const ApplyProgress& progress, std::chrono::milliseconds took) {
  console.out << absl::StrFormat("commit    epoch %d on %d of %d workers   %s\n", progress.epoch,
                                 progress.committed.size(), progress.workers, SecondsText(took));
}

bool PreflightPassed(const ApplyProgress& progress) {
  return std::all_of(progress.prepared.begin(), progress.prepared.end(), [](const auto& worker) {
    return std::all_of(worker.comparisons().begin(), worker.comparisons().end(), Passed);
  });
}

void ShowPreflight(const Console& console, const ApplyProgress& progress, std::chrono::milliseconds took) {
  console.out << "\n" << TimingsText(progress) << "\n" << ComparisonsText(progress) << "\n";
  const bool passed = PreflightPassed(progress);
  const std::size_t workers = progress.prepared.size();
  console.out << Inked(console, passed ? Ink::kGood : Ink::kBad, passed ? "passed" : "failed")
              << absl::StrFormat("   %d worker%s, everything freed   %s\n", workers, workers == 1 ? "" : "s",
                                 SecondsText(took));
}

std::string ApplyJson(const std::string& schema, const std::string& plan_id, const ApplyProgress& progress,
                      std::chrono::milliseconds took) {
  Json json;
  json["schema"] = schema;
  json["plan_id"] = plan_id;
  json["epoch"] = progress.epoch;
  json["workers"] = Json::array();
  for (const planner::v1::WorkerPrepared& worker : progress.prepared)
    json["workers"].push_back(WorkerJson(worker));
  json["committed"] = progress.committed;
  json["milliseconds"] = took.count();
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvasir::cli
