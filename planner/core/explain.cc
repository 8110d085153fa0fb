#include "planner/core/explain.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/core/capacity.h"
#include "planner/core/compatibility.h"
#include "planner/core/stage_text.h"
#include "planner/core/wide.h"

namespace kvasir {
namespace {

using Lines = std::vector<ExplainLine>;

// "12.34 %": of integers, rounded down.
std::string Percent(std::int64_t part, std::int64_t whole) {
  const std::int64_t hundredths = Saturated(Wide{part} * 10000 / whole);
  return absl::StrFormat("%d.%02d %%", hundredths / 100, hundredths % 100);
}

std::string DifferencesText(const std::vector<FieldDifference>& different) {
  std::string text;
  for (const FieldDifference& d : different) {
    text += absl::StrFormat("%s%s is %s and %s", text.empty() ? "" : ", ", d.field, d.a, d.b);
  }
  return text;
}

std::vector<LayerId> IdsOf(const PlanGroup& group) {
  std::vector<LayerId> ids;
  ids.reserve(group.layers.size());
  for (const PlanLayer& layer : group.layers) ids.push_back(layer.id);
  return ids;
}

// Where the group stands, and what keeps it apart from every other one.
void ExplainGroup(const Plan& plan, const PlanPool& pool, const PlanGroup& group, Lines& out) {
  const auto add = [&](std::string text) {
    out.push_back({ExplainTopic::kGroup, group.name, std::move(text)});
  };
  add(absl::StrFormat("layers %s: %s", LayerIdsText(IdsOf(group)), BehaviourText(group.behaviour)));
  add(absl::StrFormat("in pool %s because its caches are %s and %s over context", pool.name,
                      LifetimeText(pool.lifetime), pool.sharded ? "sharded" : "replicated"));
  for (const PlanPool& other_pool : plan.pools) {
    for (const PlanGroup& other : other_pool.groups) {
      if (other.id == group.id) continue;
      if (other_pool.id == pool.id) {
        const std::string why = DifferencesText(Differences(group.behaviour, other.behaviour));
        add(absl::StrFormat("shares blocks with %s and never metadata: %s", other.name,
                            why.empty() ? "their caches are of different kinds" : why));
        continue;
      }
      const std::string why = DifferencesText(Differences(pool.lifetime, other_pool.lifetime));
      add(absl::StrFormat("shares no blocks with %s: %s", other.name,
                          why.empty() ? "only one of them is sharded over context" : why));
    }
  }
}

void ExplainPool(const Plan& plan, const PlanPool& pool, Lines& out) {
  const auto add = [&](std::string text) {
    out.push_back({ExplainTopic::kSize, pool.name, std::move(text)});
  };
  std::int64_t layers = 0;
  for (const PlanGroup& group : pool.groups) layers += static_cast<std::int64_t>(group.layers.size());
  if (pool.lifetime.kind == LifetimeKind::kPerSequence) {
    add(absl::StrFormat("a block is 1/%d of one copy of a sequence's state, %d of %d layers: %d bytes",
                        pool.parts, layers / pool.parts, layers, pool.block_bytes));
    add(absl::StrFormat("a sequence holds %d copies in %d blocks", pool.lifetime.copies,
                        pool.lifetime.copies * pool.parts));
  } else {
    add(absl::StrFormat(
        "a block is %d tokens, a page size that the backends of all %d layers declare: %d bytes",
        pool.block_tokens, layers, pool.block_bytes));
  }
  add(absl::StrFormat(
      "stride %d bytes (%d more than the block), so that %d fill a parent of %d bytes exactly",
      pool.stride_bytes, pool.stride_bytes - pool.block_bytes, pool.blocks_per_parent,
      plan.parent_bytes.value()));
}

// At the plan's context: how the parents divide among the pools, and which pool bounds the number of
// sequences.
void ExplainCapacity(const Plan& plan, const CapacityRow& row, Lines& out) {
  const auto add = [&](std::string text) {
    out.push_back(
        {ExplainTopic::kCapacity, absl::StrFormat("%d tokens", row.context_tokens), std::move(text)});
  };
  add(absl::StrFormat("%d sequences of %d bytes each are admitted, %d under any churn", row.requests,
                      row.bytes_per_request.value(), row.guaranteed_requests));
  const std::vector<PoolLoad> loads = LoadsOf(plan);
  std::size_t bound = 0;
  std::int64_t most = -1;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const std::int64_t blocks = BlocksForSequence(loads[i].demand, row.context_tokens);
    const std::int64_t bytes = Saturated(Wide{blocks} * loads[i].stride_bytes);
    add(absl::StrFormat("pool %s: %d blocks and %d bytes of each sequence, %s", plan.pools[i].name, blocks,
                        bytes, Percent(bytes, std::max<std::int64_t>(row.bytes_per_request.value(), 1))));
    if (bytes <= most) continue;
    most = bytes;
    bound = i;
  }
  add(absl::StrFormat("bound by pool %s", plan.pools[bound].name));
}

void ExplainBytes(const Plan& plan, Lines& out) {
  for (const OwnedBytes& owned : plan.attribution) {
    out.push_back({ExplainTopic::kBytes, owned.owner,
                   absl::StrFormat("exact: %d bytes on each rank, %s of the arena", owned.bytes.value(),
                                   Percent(owned.bytes.value(), plan.arena_bytes.value()))});
  }
}

void ExplainGraphs(const Plan& plan, Lines& out) {
  const std::vector<const PlanGroup*> groups = GroupsOf(plan);
  for (std::size_t i = 0; i < plan.graphs.size(); ++i) {
    const PlanGraph& graph = plan.graphs[i];
    if (i > 0 && plan.graphs[i - 1].pass == graph.pass) continue;
    std::string crossed;
    for (const GroupId id : graph.groups) {
      const PlanGroup& group = *groups[static_cast<std::size_t>(id.value())];
      crossed += absl::StrFormat("%s%s (%s)", crossed.empty() ? "" : ", ", group.name,
                                 group.behaviour.causal ? "causal" : "non-causal");
    }
    out.push_back({ExplainTopic::kGraph, std::string(PassName(graph.pass)),
                   absl::StrFormat("%d rows a request, up to %d requests, over %s", graph.query_rows,
                                   plan.max_requests, crossed)});
  }
}

std::string_view RollbackReason(StateRollback rollback) {
  switch (rollback) {
    case StateRollback::kNone:
      return "nothing to take back: no recurrent state, or no draft";
    case StateRollback::kSnapshots:
      return "one state after each drafted token is kept, and the accepted one is taken";
    case StateRollback::kReplay:
      return "one committed state, and of each drafted row what taking it in needs; the next pass takes in "
             "those that "
             "were accepted";
  }
  return "invalid";
}

void ExplainOptions(const Plan& plan, const Report& report, Lines& out) {
  for (const RollbackOption& option : report.rollback_options) {
    std::string text = option.chosen ? "chosen" : "not chosen";
    if (!option.possible) text = "not possible: a layer declares no ring, or no sizes admit the request";
    for (const CapacityRow& row : option.capacity) {
      text += absl::StrFormat("; %d sequences of %d tokens", row.requests, row.context_tokens);
    }
    out.push_back(
        {ExplainTopic::kRollback, std::string(StateRollbackName(option.rollback)), std::move(text)});
  }
  out.push_back(
      {ExplainTopic::kSize, "parent",
       absl::StrFormat("%d bytes of at most %d allowed: worst cost %d / 512 over 8192, 32768 and 131072 "
                       "tokens",
                       plan.parent_bytes.value(), report.sizes.parent_bytes_max.value(),
                       report.sizes.cost_512)});
}

}  // namespace

std::string_view ExplainTopicName(ExplainTopic topic) {
  switch (topic) {
    case ExplainTopic::kGroup:
      return "group";
    case ExplainTopic::kSize:
      return "size";
    case ExplainTopic::kRollback:
      return "rollback";
    case ExplainTopic::kCapacity:
      return "capacity";
    case ExplainTopic::kBytes:
      return "bytes";
    case ExplainTopic::kGraph:
      return "graph";
    case ExplainTopic::kRemedy:
      return "remedy";
  }
  return "invalid";
}

std::vector<std::int64_t> ExplainedContexts(const Plan& plan) {
  std::vector<std::int64_t> contexts;
  for (const std::int64_t context : {std::int64_t{8192}, std::int64_t{32768}, std::int64_t{131072}}) {
    if (context < plan.context_tokens) contexts.push_back(context);
  }
  contexts.push_back(plan.context_tokens);
  return contexts;
}

std::vector<ExplainLine> ExplainPlan(const Plan& plan) {
  Lines out;
  for (const PlanPool& pool : plan.pools) {
    for (const PlanGroup& group : pool.groups) ExplainGroup(plan, pool, group, out);
  }
  out.push_back(
      {ExplainTopic::kSize, "arena",
       absl::StrFormat("%d bytes on each rank, the least that any rank gave: %d parents, the first of them "
                       "the null parent",
                       plan.arena_bytes.value(), plan.parents)});
  for (const PlanPool& pool : plan.pools) ExplainPool(plan, pool, out);
  out.push_back({ExplainTopic::kRollback, std::string(StateRollbackName(plan.rollback)),
                 std::string(RollbackReason(plan.rollback))});
  for (const std::int64_t context : ExplainedContexts(plan))
    ExplainCapacity(plan, CapacityAt(plan, context), out);
  ExplainBytes(plan, out);
  ExplainGraphs(plan, out);
  return out;
}

std::vector<ExplainLine> ExplainPlan(const Plan& plan, const Report& report) {
  Lines lines = ExplainPlan(plan);
  ExplainOptions(plan, report, lines);
  Lines out;
  for (const ExplainTopic topic : {ExplainTopic::kGroup, ExplainTopic::kSize, ExplainTopic::kRollback,
                                   ExplainTopic::kCapacity, ExplainTopic::kBytes, ExplainTopic::kGraph}) {
    for (ExplainLine& line : lines) {
      if (line.topic == topic) out.push_back(std::move(line));
    }
  }
  return out;
}

}  // namespace kvasir
