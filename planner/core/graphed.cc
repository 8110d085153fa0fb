#include "planner/core/graphed.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace kvasir {
namespace {

// The groups of one role, in plan order, with the rows of their multi-token pass.
struct RoleGroups {
  std::vector<GroupId> ids;
  std::int64_t block_rows = 1;
};

RoleGroups GroupsWithRole(const Sized& sized, Role role) {
  RoleGroups out;
  std::int32_t next = 0;
  for (const GroupedPool& pool : sized.packed.grouped.pools) {
    for (const GroupedGroup& group : pool.groups) {
      const BehaviourKey& behaviour = sized.packed.grouped.layer(group.layers.front()).behaviour;
      const GroupId id(next++);
      if (behaviour.role != role) continue;
      out.ids.push_back(id);
      out.block_rows = behaviour.block_rows;
    }
  }
  return out;
}

bool OfDraft(Pass pass) { return pass == Pass::kDraftContext || pass == Pass::kDraftBlock; }

std::string IdsText(const std::vector<GroupId>& ids) {
  std::string text;
  for (const GroupId id : ids) text += (text.empty() ? "" : ",") + std::to_string(id.value());
  return text;
}

}  // namespace

std::vector<std::int64_t> BucketsUpTo(std::int64_t max_requests) {
  std::vector<std::int64_t> buckets;
  for (std::int64_t bucket = 1; bucket < max_requests; bucket *= 2) buckets.push_back(bucket);
  buckets.push_back(max_requests);
  return buckets;
}

Graphed AddGraphs(Sized sized) {
  const PlanRequest& request = sized.packed.request();
  const RoleGroups target = GroupsWithRole(sized, Role::kTarget);
  std::vector<PlanGraph> graphs;
  const auto add = [&](Pass pass, std::int64_t query_rows, const RoleGroups& groups) {
    for (const std::int64_t bucket : BucketsUpTo(request.max_requests)) {
      graphs.push_back({.pass = pass, .query_rows = query_rows, .bucket = bucket, .groups = groups.ids});
    }
  };
  add(Pass::kTargetDecode, 1, target);
  if (request.draft_tokens > 0) {
    const RoleGroups draft = GroupsWithRole(sized, Role::kDraft);
    add(Pass::kTargetVerify, target.block_rows, target);
    add(Pass::kDraftContext, request.draft_tokens + 1, draft);
    add(Pass::kDraftBlock, draft.block_rows, draft);
  }
  return {.sized = std::move(sized), .graphs = std::move(graphs)};
}

std::string ToText(const Graphed& graphed) {
  std::string text;
  for (std::size_t i = 0; i < graphed.graphs.size();) {
    const PlanGraph& first = graphed.graphs[i];
    text += absl::StrFormat("%s q %d over groups %s, buckets", PassName(first.pass), first.query_rows,
                            IdsText(first.groups));
    for (; i < graphed.graphs.size() && graphed.graphs[i].pass == first.pass; ++i) {
      text += absl::StrFormat(" %d", graphed.graphs[i].bucket);
    }
    text += "\n";
  }
  return text;
}

absl::Status Verify(const Graphed& graphed) {
  const Grouped& grouped = graphed.sized.packed.grouped;
  std::vector<Role> roles;
  for (const GroupedPool& pool : grouped.pools) {
    for (const GroupedGroup& group : pool.groups)
      roles.push_back(grouped.layer(group.layers.front()).id.role);
  }
  std::int64_t largest = 0;
  for (const PlanGraph& graph : graphed.graphs) {
    const Role role = OfDraft(graph.pass) ? Role::kDraft : Role::kTarget;
    for (const GroupId id : graph.groups) {
      const auto place = static_cast<std::size_t>(id.value());
      if (place < roles.size() && roles[place] == role) continue;
      return absl::InternalError(
          absl::StrFormat("graphed: %s crosses a group that is not of its role", PassName(graph.pass)));
    }
    if (std::count(roles.begin(), roles.end(), role) != static_cast<std::ptrdiff_t>(graph.groups.size())) {
      return absl::InternalError(absl::StrFormat("graphed: %s misses a group", PassName(graph.pass)));
    }
    largest = std::max(largest, graph.bucket);
  }
  if (largest == graphed.sized.packed.request().max_requests) return absl::OkStatus();
  return absl::InternalError("graphed: no graph for max_requests");
}

}  // namespace kvasir
