#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/rulesets/native/native.h"

namespace kvasir::native {
namespace {

// What layers of one group agree in; MayShareMetadata compares the same.
using GroupKey = std::tuple<BehaviourKey, LayoutKind, std::string>;

std::string PoolName(const PoolKey& key, std::int64_t dcp) {
  switch (key.first.kind) {
    case LifetimeKind::kPerToken:
      return key.second || dcp == 1 ? "tokens" : "tokens.replicated";
    case LifetimeKind::kBoundedWindow:
      return absl::StrFormat("window.%d", key.first.window);
    case LifetimeKind::kPerSequence:
      return "state";
  }
  return "invalid";
}

// "target.mla", with the window where there is one; a number where two behaviours would read alike.
std::string GroupName(const LayerSpec& first, std::set<std::string>& taken) {
  std::string base = absl::StrFormat("%s.%s", RoleName(first.behaviour.role), first.mixer);
  if (first.behaviour.window > 0) base += absl::StrFormat(".w%d", first.behaviour.window);
  std::string name = base;
  for (int i = 2; !taken.insert(name).second; ++i) name = absl::StrFormat("%s.%d", base, i);
  return name;
}

}  // namespace

Grouped GroupLayers(Validated validated) {
  Grouped out{.validated = std::move(validated), .pools = {}};
  const PlanRequest& request = out.validated.request();
  std::map<PoolKey, std::size_t> pools;
  std::map<std::pair<PoolKey, GroupKey>, std::size_t> groups;
  std::set<std::string> names;
  for (std::size_t i = 0; i < request.layers.size(); ++i) {
    const LayerSpec& layer = request.layers[i];
    const PoolKey pool_key(layer.lifetime, layer.layout.sharded);
    const auto [pool_at, new_pool] = pools.try_emplace(pool_key, out.pools.size());
    if (new_pool) {
      out.pools.push_back({.name = PoolName(pool_key, request.topology.dcp), .key = pool_key, .groups = {}});
      names.insert(out.pools.back().name);
    }
    GroupedPool& pool = out.pools[pool_at->second];
    const GroupKey group_key(layer.behaviour, layer.layout.kind, layer.mixer);
    const auto [group_at, new_group] = groups.try_emplace({pool_key, group_key}, pool.groups.size());
    if (new_group) pool.groups.push_back({.name = GroupName(layer, names), .layers = {}});
    pool.groups[group_at->second].layers.push_back(static_cast<std::int32_t>(i));
  }
  return out;
}

}  // namespace kvasir::native
