#include "worker/engine/graph_registry.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace kvasir {
namespace {

std::string GraphName(const PassShape& shape) {
  return absl::StrFormat("graph %s q=%d bucket=%d", PassName(shape.pass), shape.query_rows, shape.requests);
}

std::string Describe(const GroupBehaviour& its) {
  return absl::StrFormat("group %d: %s, %s, causal=%d, window=%d, block_rows=%d, backend=%s",
                         its.group.value(), RoleName(its.behaviour.role), MixerName(its.behaviour.mixer),
                         its.behaviour.causal ? 1 : 0, its.behaviour.window, its.behaviour.block_rows,
                         its.behaviour.backend);
}

std::string Describe(const std::vector<GroupBehaviour>& groups, std::size_t index) {
  return index < groups.size() ? Describe(groups[index]) : std::string("no group");
}

}  // namespace

std::vector<GroupBehaviour> BehavioursOf(const Plan& plan, Pass pass) {
  std::vector<GroupBehaviour> groups;
  for (const PlanGroup* group : GroupsOf(plan)) {
    if (group->behaviour.role != RoleOf(pass)) continue;
    groups.push_back(GroupBehaviour{.group = group->id, .behaviour = group->behaviour});
  }
  return groups;
}

std::vector<GroupBehaviour> BehavioursOf(const PassMetadata& metadata) {
  std::vector<GroupBehaviour> groups;
  groups.reserve(metadata.groups.size());
  for (const GroupMetadata& group : metadata.groups) {
    groups.push_back(GroupBehaviour{.group = group.group, .behaviour = group.behaviour});
  }
  return groups;
}

std::optional<std::int64_t> BucketFor(const Plan& plan, Pass pass, std::int64_t query_rows,
                                      std::int64_t requests) {
  std::optional<std::int64_t> best;
  for (const PlanGraph& graph : plan.graphs) {
    if (graph.pass != pass || graph.query_rows != query_rows || graph.bucket < requests) continue;
    if (!best.has_value() || graph.bucket < *best) best = graph.bucket;
  }
  return best;
}

absl::StatusOr<GraphRegistry> GraphRegistry::Capture(Backend& backend, const Plan& plan,
                                                     const BuildList& build) {
  std::vector<PlanGraph> order = plan.graphs;
  // The largest first, so that a device whose memory grows with the largest graph fails at once.
  std::sort(order.begin(), order.end(), [](const PlanGraph& a, const PlanGraph& b) {
    return std::tuple(-a.bucket * a.query_rows, a.pass, a.query_rows) <
           std::tuple(-b.bucket * b.query_rows, b.pass, b.query_rows);
  });
  GraphRegistry registry;
  for (const PlanGraph& planned : order) {
    const PassShape shape{.pass = planned.pass, .requests = planned.bucket, .query_rows = planned.query_rows};
    std::vector<GroupBehaviour> groups = BehavioursOf(plan, planned.pass);
    const bool as_planned =
        std::equal(groups.begin(), groups.end(), planned.groups.begin(), planned.groups.end(),
                   [](const GroupBehaviour& a, GroupId b) { return a.group == b; });
    if (!as_planned) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: its %d groups are not the %d groups that its pass crosses", GraphName(shape),
                          planned.groups.size(), groups.size()));
    }
    absl::StatusOr<std::unique_ptr<Graph>> graph = backend.Capture(build(shape));
    if (!graph.ok()) {
      return absl::Status(graph.status().code(),
                          absl::StrFormat("%s: %s", GraphName(shape), std::string(graph.status().message())));
    }
    registry.graphs_[Key(planned.pass, planned.query_rows, planned.bucket)] =
        Entry{.groups = std::move(groups), .graph = *std::move(graph)};
  }
  return registry;
}

bool GraphRegistry::Has(const PassShape& shape) const {
  return graphs_.count(Key(shape.pass, shape.query_rows, shape.requests)) > 0;
}

absl::Status GraphRegistry::Replay(const PassShape& shape, const std::vector<GroupBehaviour>& groups) {
  const auto found = graphs_.find(Key(shape.pass, shape.query_rows, shape.requests));
  if (found == graphs_.end()) return absl::NotFoundError(GraphName(shape) + " was not captured");
  const Entry& entry = found->second;
  if (entry.groups != groups) {
    const std::size_t shorter = std::min(entry.groups.size(), groups.size());
    std::size_t first = 0;
    while (first < shorter && entry.groups[first] == groups[first]) ++first;
    return absl::FailedPreconditionError(absl::StrFormat("%s was captured for [%s], the step has [%s]",
                                                         GraphName(shape), Describe(entry.groups, first),
                                                         Describe(groups, first)));
  }
  return entry.graph->Replay();
}

}  // namespace kvasir
