#include "planner/cli/show_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/cli/quantity.h"
#include "planner/cli/text_table.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kIdShown = 12;
constexpr std::int64_t kBarCells = 49;

void ShowVerdict(const Console& console, const Planned& planned) {
  const Topology& t = planned.plan.topology;
  console.out << Inked(console, Ink::kGood, "fits")
              << absl::StrFormat("   %s · plan %s · %d %s (TP %d × DCP %d, interleave %d)\n\n",
                                 planned.plan.ruleset, planned.plan_id.substr(0, kIdShown), t.tp,
                                 t.tp == 1 ? "rank" : "ranks", t.tp, t.dcp, t.interleave);
}

std::vector<std::string> CapacityCells(std::string label, const std::vector<CapacityRow>& capacity,
                                       std::string remark) {
  std::vector<std::string> cells = {std::move(label)};
  for (const CapacityRow& row : capacity) cells.push_back(Thousands(row.requests));
  cells.push_back(std::move(remark));
  return cells;
}

void ShowCapacity(const Console& console, const Planned& planned,
                  const std::vector<Alternative>& alternatives) {
  const Plan& plan = planned.plan;
  const std::vector<CapacityRow>& capacity = planned.report.capacity;
  TextTable table("l" + std::string(capacity.size(), 'r') + "l");
  std::vector<std::string> head = {absl::StrFormat("In %s per rank", BytesText(plan.arena_bytes.value()))};
  for (const CapacityRow& row : capacity) head.push_back(TokensText(row.context_tokens));
  head.push_back("of full-length requests");
  table.Row(head);
  const std::string remark = plan.rollback == StateRollback::kNone
                                 ? ""
                                 : absl::StrFormat("state rollback: %s", StateRollbackName(plan.rollback));
  table.Row(CapacityCells("  this plan", capacity, remark));
  for (const Alternative& other : alternatives)
    table.Row(CapacityCells("  " + other.label, other.capacity, other.remark));
  console.out << table.Text(0);
  const std::int64_t most =
      std::max_element(capacity.begin(), capacity.end(), [](const CapacityRow& a, const CapacityRow& b) {
        return a.requests < b.requests;
      })->requests;
  if (most > plan.max_requests) {
    console.out << absl::StrFormat("  in one batch             %s requests, by --max-requests\n",
                                   Thousands(plan.max_requests));
  }
  console.out << absl::StrFormat("  longest single request   %s tokens%s\n\n",
                                 Thousands(planned.report.longest_context_tokens),
                                 planned.report.longest_is_model_limit ? " (the model's limit)" : "");
}

std::string BlockText(const PlanPool& pool) {
  if (pool.lifetime.kind != LifetimeKind::kPerSequence)
    return absl::StrFormat("%d tokens", pool.block_tokens);
  const std::string copies =
      pool.lifetime.copies == 1 ? "" : absl::StrFormat(" × %d states", pool.lifetime.copies);
  return pool.parts == 1 ? "1 request" + copies : absl::StrFormat("1/%d request%s", pool.parts, copies);
}

std::string ContextText(const PlanPool& pool) {
  if (pool.lifetime.kind == LifetimeKind::kPerSequence) return "per TP head";
  return pool.sharded ? "sharded" : "replicated";
}

// Bytes of the group's pages in one block; of a state that is cut into parts, those of an average block.
std::int64_t GroupBytes(const PlanPool& pool, const PlanGroup& group) {
  std::int64_t bytes = 0;
  for (const PlanLayer& layer : group.layers) bytes += layer.page_bytes;
  return bytes / std::max<std::int64_t>(pool.parts, 1);
}

void ShowPools(const Console& console, const Plan& plan) {
  TextTable table("llrllrl");
  table.Row({"Pool", "Group", "Layers", "Behaviour", "Block", "Bytes", "Over context"});
  for (const PlanPool& pool : plan.pools) {
    bool first = true;
    for (const PlanGroup& group : pool.groups) {
      table.Row({first ? pool.name : "", group.name, std::to_string(group.layers.size()),
                 BehaviourText(plan, group), first ? BlockText(pool) : "(same block)",
                 BytesText(GroupBytes(pool, group)), ContextText(pool)});
      first = false;
    }
  }
  console.out << table.Text(0) << "\n";
}

// Bytes of the arena by kind of owner, largest first: "payload.target.mla" counts as "target.mla",
// "slack.state" as "slack".
std::vector<std::pair<std::string, std::int64_t>> Owners(const Plan& plan) {
  std::map<std::string, std::int64_t> sums;
  for (const OwnedBytes& owned : plan.attribution) {
    const std::size_t dot = owned.owner.find('.');
    std::string kind = owned.owner.substr(0, dot);
    if (kind == "payload") kind = owned.owner.substr(dot + 1);
    std::replace(kind.begin(), kind.end(), '_', ' ');
    sums[kind] += owned.bytes.value();
  }
  std::vector<std::pair<std::string, std::int64_t>> out(sums.begin(), sums.end());
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return out;
}

// "target.mla 73.0 %   draft.mla 15.2 %   other 0.1 %": what has less than a thousandth of the arena is
// summed up.
std::string SharesText(const Plan& plan) {
  const std::int64_t arena = plan.arena_bytes.value();
  std::string out;
  std::int64_t other = 0;
  for (const auto& [owner, bytes] : Owners(plan)) {
    if (bytes * 1000 < arena) {
      other += bytes;
      continue;
    }
    out += (out.empty() ? "" : "   ") + owner + " " + PercentText(bytes, arena);
  }
  return other == 0 ? out : out + "   other " + PercentText(other, arena);
}

void ShowArena(const Console& console, const Plan& plan) {
  const std::int64_t arena = plan.arena_bytes.value();
  if (arena <= 0) return;
  std::int64_t payload = 0;
  for (const OwnedBytes& owned : plan.attribution) {
    const std::string_view owner = owned.owner;
    if (owner.starts_with("payload.") || owner.starts_with("speculative.")) payload += owned.bytes.value();
  }
  const std::int64_t filled = (payload * kBarCells + arena / 2) / arena;
  std::string bar;
  for (std::int64_t cell = 0; cell < kBarCells; ++cell) bar += cell < filled ? "█" : "░";
  console.out << absl::StrFormat("Arena    %s  %s, %s parents of %s\n", bar, BytesText(arena),
                                 Thousands(plan.parents), BytesText(plan.parent_bytes.value()));
  console.out << "         " << SharesText(plan) << "\n";
  console.out << Inked(console, Ink::kDim,
                       absl::StrFormat("         at the planned load: full-length requests of %s tokens",
                                       Thousands(plan.context_tokens)))
              << "\n\n";
}

}  // namespace

std::string BehaviourText(const Plan& plan, const PlanGroup& group) {
  const BehaviourKey& b = group.behaviour;
  if (b.mixer == Mixer::kRecurrent) {
    if (plan.rollback == StateRollback::kReplay)
      return absl::StrFormat("recurrent, replay ring %d", plan.draft_tokens);
    if (plan.rollback == StateRollback::kSnapshots)
      return absl::StrFormat("recurrent, %d snapshots", b.block_rows);
    return "recurrent";
  }
  std::string text = b.causal ? "causal" : "non-causal";
  if (b.window > 0) text += absl::StrFormat(", window %d", b.window);
  if (b.role == Role::kDraft) return text + absl::StrFormat(", draft q=%d", b.block_rows);
  return b.block_rows > 1 ? text + absl::StrFormat(", verify q=%d", b.block_rows) : text;
}

void ShowPlan(const Console& console, const Planned& planned, const std::vector<Alternative>& alternatives,
              bool kept) {
  const std::string id = planned.plan_id.substr(0, kIdShown);
  ShowVerdict(console, planned);
  ShowCapacity(console, planned, alternatives);
  ShowPools(console, planned.plan);
  ShowArena(console, planned.plan);
  if (!kept) {
    console.out << "Not stored: --output text writes the plan, and the other commands take such a file\n";
    return;
  }
  console.out << absl::StrFormat("Next     kvasir explain %s      why each of these\n", id);
  console.out << absl::StrFormat(
      "         kvasir preflight %s    prove it on the nodes before loading weights\n", id);
}

}  // namespace kvasir::cli
