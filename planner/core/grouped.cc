#include "planner/core/grouped.h"

#include <set>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "planner/core/compatibility.h"
#include "planner/core/stage_text.h"

namespace kvasir {
namespace {

absl::Status VerifyGroup(const Grouped& grouped, const GroupedPool& pool, const GroupedGroup& group) {
  if (group.layers.empty()) return absl::InternalError("grouped: " + group.name + " is empty");
  const LayerSpec& first = grouped.layer(group.layers.front());
  if (pool.key != PoolKey(first.lifetime, first.layout.sharded)) {
    return absl::InternalError("grouped: " + group.name + " is in a pool of another lifetime");
  }
  for (const std::int32_t place : group.layers) {
    const Compatibility answer = MayShareMetadata(first, grouped.layer(place));
    if (const auto* refusal = std::get_if<Refusal>(&answer)) {
      return absl::InternalError("grouped: " + group.name + ": " + RefusalText(*refusal));
    }
  }
  return absl::OkStatus();
}

// No two groups of a pool could share metadata: separation is by behaviour, not by accident.
absl::Status VerifyApart(const Grouped& grouped, const GroupedPool& pool) {
  for (std::size_t i = 0; i < pool.groups.size(); ++i) {
    for (std::size_t j = i + 1; j < pool.groups.size(); ++j) {
      const LayerSpec& a = grouped.layer(pool.groups[i].layers.front());
      const LayerSpec& b = grouped.layer(pool.groups[j].layers.front());
      if (std::holds_alternative<Refusal>(MayShareMetadata(a, b))) continue;
      return absl::InternalError("grouped: " + pool.groups[i].name + " and " + pool.groups[j].name +
                                 " are alike");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string ToText(const Grouped& grouped) {
  std::string text;
  for (const GroupedPool& pool : grouped.pools) {
    text += absl::StrFormat("pool %s: %s, %s over context\n", pool.name, LifetimeText(pool.key.first),
                            pool.key.second ? "sharded" : "replicated");
    for (const GroupedGroup& group : pool.groups) {
      std::vector<LayerId> ids;
      for (const std::int32_t place : group.layers) ids.push_back(grouped.layer(place).id);
      text += absl::StrFormat("  group %s: %d layers %s, %s\n", group.name, ids.size(), LayerIdsText(ids),
                              BehaviourText(grouped.layer(group.layers.front()).behaviour));
    }
  }
  return text;
}

absl::Status Verify(const Grouped& grouped) {
  std::set<std::int32_t> seen;
  std::set<std::string> names;
  std::set<PoolKey> keys;
  const auto layers = static_cast<std::int32_t>(grouped.validated.request().layers.size());
  for (const GroupedPool& pool : grouped.pools) {
    if (!names.insert(pool.name).second)
      return absl::InternalError("grouped: two pools are named " + pool.name);
    if (!keys.insert(pool.key).second)
      return absl::InternalError("grouped: two pools have the lifetime of " + pool.name);
    for (const GroupedGroup& group : pool.groups) {
      if (!names.insert(group.name).second)
        return absl::InternalError("grouped: name used twice: " + group.name);
      for (const std::int32_t place : group.layers) {
        if (place < 0 || place >= layers || !seen.insert(place).second) {
          return absl::InternalError("grouped: a layer of " + group.name + " is absent or in two groups");
        }
      }
      KVASIR_RETURN_IF_ERROR(VerifyGroup(grouped, pool, group));
    }
    KVASIR_RETURN_IF_ERROR(VerifyApart(grouped, pool));
  }
  if (seen.size() != static_cast<std::size_t>(layers))
    return absl::InternalError("grouped: a layer is in no group");
  return absl::OkStatus();
}

}  // namespace kvasir
