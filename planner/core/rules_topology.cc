// Ranks, divisibility, what may be sharded over context.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "planner/core/rules.h"

namespace kvasir::rules {
namespace {

constexpr std::size_t kNamedRanksMax = 8;  // of many missing ones

std::string RankText(std::int64_t rank) { return absl::StrFormat("rank %d", rank); }

void CheckDcp(const Topology& topology, Found& found) {
  if (topology.tp < 1 || topology.dcp < 1 || topology.tp % topology.dcp == 0) return;
  found.push_back(MakeRefusal(RuleId::kDcpNotDividingTp, {},
                              {{"dcp", std::to_string(topology.dcp)}, {"tp", std::to_string(topology.tp)}}));
}

void CheckRanks(const PlanRequest& request, Found& found) {
  const std::int64_t tp = request.topology.tp;
  if (tp < 1 || tp > kRanksMax) return;
  std::map<std::int64_t, std::int64_t> counts;
  for (const RankMemory& rank : request.ranks) ++counts[rank.rank.value()];
  for (const auto& [rank, count] : counts) {
    if (rank < 0 || rank >= tp) {
      found.push_back(MakeRefusal(RuleId::kRankOutOfRange, {RankText(rank)},
                                  {{"tp", std::to_string(tp)}, {"last", std::to_string(tp - 1)}}));
    } else if (count > 1) {
      found.push_back(
          MakeRefusal(RuleId::kRankDuplicate, {RankText(rank)}, {{"count", std::to_string(count)}}));
    }
  }
  std::vector<std::string> missing;
  std::int64_t count = 0;
  for (std::int64_t rank = 0; rank < tp; ++rank) {
    if (counts.count(rank) != 0) continue;
    ++count;
    if (missing.size() < kNamedRanksMax) missing.push_back(RankText(rank));
  }
  if (count == 0) return;
  found.push_back(MakeRefusal(
      RuleId::kRankMissing, std::move(missing),
      {{"tp", std::to_string(tp)}, {"count", std::to_string(count)}, {"last", std::to_string(tp - 1)}}));
}

// Canonical text has cleared the flag where dcp is 1.
void CheckSharded(const PlanRequest& request, Found& found) {
  std::vector<std::string> windows;
  std::vector<std::string> states;
  for (const LayerSpec& layer : request.layers) {
    if (!layer.layout.sharded) continue;
    if (layer.layout.kind == LayoutKind::kState) {
      states.push_back(layer.name);
    } else if (layer.lifetime.kind == LifetimeKind::kBoundedWindow) {
      windows.push_back(layer.name);
    }
  }
  const Operand dcp{"dcp", std::to_string(request.topology.dcp)};
  if (!windows.empty()) found.push_back(MakeRefusal(RuleId::kWindowLayerSharded, std::move(windows), {dcp}));
  if (!states.empty()) found.push_back(MakeRefusal(RuleId::kStateLayerSharded, std::move(states), {dcp}));
}

}  // namespace

void CheckTopology(const PlanRequest& request, Found& found) {
  CheckDcp(request.topology, found);
  CheckRanks(request, found);
  CheckSharded(request, found);
}

}  // namespace kvasir::rules
