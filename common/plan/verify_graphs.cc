// Graphs and attribution of a plan: both follow from the rest, so they are derived again and compared.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "common/plan/verify_parts.h"

namespace kvasir::verify {
namespace {

std::string GraphText(const PlanGraph& graph) {
  std::string text =
      absl::StrFormat("%s q=%d bucket=%d groups=", PassName(graph.pass), graph.query_rows, graph.bucket);
  for (const GroupId id : graph.groups) text += std::to_string(id.value()) + ",";
  return text;
}

void AddPass(const Plan& plan, Pass pass, std::int64_t query_rows, std::vector<PlanGraph>& graphs) {
  const bool draft = pass == Pass::kDraftContext || pass == Pass::kDraftBlock;
  std::vector<GroupId> groups;
  for (const PlanPool& pool : plan.pools) {
    for (const PlanGroup& group : pool.groups) {
      if ((group.behaviour.role == Role::kDraft) == draft) groups.push_back(group.id);
    }
  }
  for (std::int64_t bucket = 1; bucket < plan.max_requests; bucket *= 2) {
    graphs.push_back({pass, query_rows, bucket, groups});
  }
  graphs.push_back({pass, query_rows, plan.max_requests, groups});
}

std::vector<PlanGraph> GraphsOf(const Plan& plan) {
  std::vector<PlanGraph> graphs;
  AddPass(plan, Pass::kTargetDecode, 1, graphs);
  if (plan.draft_tokens == 0) return graphs;
  std::int64_t draft_rows = 0;
  for (const PlanPool& pool : plan.pools) {
    for (const PlanGroup& group : pool.groups) {
      if (group.behaviour.role == Role::kDraft) draft_rows = group.behaviour.block_rows;
    }
  }
  AddPass(plan, Pass::kTargetVerify, plan.draft_tokens + 1, graphs);
  AddPass(plan, Pass::kDraftContext, plan.draft_tokens + 1, graphs);
  AddPass(plan, Pass::kDraftBlock, draft_rows, graphs);
  return graphs;
}

// "payload.x" of a group x, "slack.y" of a pool y, or one of the arena's own.
bool OwnerExists(std::string_view owner, const std::set<std::string_view>& groups,
                 const std::set<std::string_view>& pools) {
  if (owner == "null_parent" || owner == "free_parents" || owner == "unassigned") return true;
  const std::size_t dot = owner.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view kind = owner.substr(0, dot);
  const std::string_view name = owner.substr(dot + 1);
  if (kind == "payload" || kind == "speculative") return groups.count(name) != 0;
  return (kind == "padding" || kind == "prefill" || kind == "slack" || kind == "partial_parent") &&
         pools.count(name) != 0;
}

}  // namespace

absl::Status Graphs(const Plan& plan) {
  const std::vector<PlanGraph> want = GraphsOf(plan);
  for (std::size_t i = 0; i < std::max(want.size(), plan.graphs.size()); ++i) {
    const std::string place = std::to_string(i);
    const Field field = Field("graphs[") + place + "]";
    if (i >= want.size()) return Broken(field, GraphText(plan.graphs[i]), "absent");
    if (i >= plan.graphs.size()) return Broken(field, "absent", GraphText(want[i]));
    if (plan.graphs[i] != want[i]) return Broken(field, GraphText(plan.graphs[i]), GraphText(want[i]));
  }
  return absl::OkStatus();
}

absl::Status Attribution(const Plan& plan) {
  std::set<std::string_view> groups;
  std::set<std::string_view> pools;
  for (const PlanPool& pool : plan.pools) {
    pools.insert(pool.name);
    for (const PlanGroup& group : pool.groups) groups.insert(group.name);
  }
  std::int64_t sum = 0;
  std::set<std::string_view> owners;
  for (const OwnedBytes& owned : plan.attribution) {
    const Field field = Field("attribution[") + owned.owner + "]";
    const std::int64_t bytes = owned.bytes.value();
    if (!OwnerExists(owned.owner, groups, pools))
      return Broken(field, "unknown", "of a group, a pool or the arena");
    if (!owners.empty() && !(*owners.rbegin() < owned.owner))
      return Broken(field, "out of order", "sorted by owner");
    owners.insert(owned.owner);
    KVASIR_RETURN_IF_ERROR(CheckRange(field, bytes, 0, plan.arena_bytes.value()));
    // Both terms are at most the arena: no overflow before the sum is seen to be too large.
    KVASIR_RETURN_IF_ERROR(CheckRange("attribution sum", sum += bytes, 0, plan.arena_bytes.value()));
    if (owned.owner == "null_parent") {
      KVASIR_RETURN_IF_ERROR(CheckEqual(field, bytes, plan.parent_bytes.value(), "parent_bytes"));
    }
    if (owned.owner == "unassigned") {
      KVASIR_RETURN_IF_ERROR(CheckEqual(field, bytes, plan.arena_bytes.value() % plan.parent_bytes.value(),
                                        "what is left after whole parents"));
    }
  }
  for (const std::string_view group : groups) {
    const std::string owner = "payload." + std::string(group);
    if (owners.count(owner) == 0) return Broken("attribution", "without " + owner, "complete");
  }
  for (const char* owner : {"null_parent", "unassigned"}) {
    if (owners.count(owner) == 0) return Broken("attribution", std::string("without ") + owner, "complete");
  }
  return CheckEqual("attribution sum", sum, plan.arena_bytes.value(), "arena_bytes");
}

}  // namespace kvasir::verify
