#include "planner/core/compare_plans.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/insert_sorted.h"
#include "common/plan/plan_text.h"
#include "planner/core/capacity.h"
#include "planner/core/stage_text.h"
#include "planner/core/wide.h"

namespace kvasir {
namespace {

constexpr std::array<std::int64_t, 3> kLengths = {8192, 32768, 131072};
constexpr std::int64_t kHundredthsOfPercent = 10000;

struct Field {
  FieldKind kind = FieldKind::kAsked;
  std::string name;
  std::string value;
};
using Fields = std::vector<Field>;

void AddModel(std::string_view role, const ModelRef& ref, Fields& out) {
  if (ref.name.empty()) return;
  out.push_back({FieldKind::kAsked, std::string(role), ref.name});
  out.push_back({FieldKind::kAsked, absl::StrFormat("%s digest", role), ref.digest});
}

void AddAsked(const Plan& plan, Fields& out) {
  const auto add = [&out](std::string name, std::string value) {
    out.push_back({FieldKind::kAsked, std::move(name), std::move(value)});
  };
  add("ruleset", plan.ruleset);
  AddModel("target", plan.target, out);
  AddModel("draft", plan.draft, out);
  add("topology.tp", std::to_string(plan.topology.tp));
  add("topology.dcp", std::to_string(plan.topology.dcp));
  add("topology.interleave", std::to_string(plan.topology.interleave));
  add("draft_tokens", std::to_string(plan.draft_tokens));
  add("rollback", std::string(StateRollbackName(plan.rollback)));
  add("context_tokens", std::to_string(plan.context_tokens));
  add("max_requests", std::to_string(plan.max_requests));
  add("prefill_chunk", std::to_string(plan.prefill_chunk));
  add("arena_bytes", std::to_string(plan.arena_bytes.value()));
}

// The distinct rows or states of a group's layers, in the order in which they appear.
std::string RowsText(const PlanGroup& group) {
  std::vector<std::string> rows;
  for (const PlanLayer& layer : group.layers) {
    const std::string text = LayoutText(layer.layout);
    if (std::find(rows.begin(), rows.end(), text) == rows.end()) rows.push_back(text);
  }
  return JoinedText(rows);
}

void AddPool(const PlanPool& pool, Fields& out) {
  const auto add = [&](std::string_view owner, std::string_view name, std::string_view field,
                       std::string value) {
    out.push_back({FieldKind::kLayout, absl::StrFormat("%s %s: %s", owner, name, field), std::move(value)});
  };
  add("pool", pool.name, "lifetime", LifetimeText(pool.lifetime));
  add("pool", pool.name, "over context", pool.sharded ? "sharded" : "replicated");
  add("pool", pool.name, "block_tokens", std::to_string(pool.block_tokens));
  add("pool", pool.name, "parts", std::to_string(pool.parts));
  add("pool", pool.name, "block_bytes", std::to_string(pool.block_bytes));
  add("pool", pool.name, "stride_bytes", std::to_string(pool.stride_bytes));
  add("pool", pool.name, "blocks_per_parent", std::to_string(pool.blocks_per_parent));
  for (const PlanGroup& group : pool.groups) {
    std::vector<LayerId> ids;
    ids.reserve(group.layers.size());
    for (const PlanLayer& layer : group.layers) ids.push_back(layer.id);
    add("group", group.name, "pool", pool.name);
    add("group", group.name, "layers", LayerIdsText(ids));
    add("group", group.name, "behaviour", BehaviourText(group.behaviour));
    add("group", group.name, "rows", RowsText(group));
  }
}

// One field a pass: "8 rows for up to 16 requests".
void AddGraphs(const Plan& plan, Fields& out) {
  for (std::size_t i = 0; i < plan.graphs.size(); ++i) {
    const PlanGraph& graph = plan.graphs[i];
    const bool last = i + 1 == plan.graphs.size() || plan.graphs[i + 1].pass != graph.pass;
    if (!last) continue;
    out.push_back({FieldKind::kLayout, absl::StrFormat("graphs of %s", PassName(graph.pass)),
                   absl::StrFormat("%d rows for up to %d requests", graph.query_rows, graph.bucket)});
  }
}

Fields FieldsOf(const Plan& plan) {
  Fields out;
  AddAsked(plan, out);
  out.push_back({FieldKind::kLayout, "parent_bytes", std::to_string(plan.parent_bytes.value())});
  out.push_back({FieldKind::kLayout, "parents", std::to_string(plan.parents)});
  for (const PlanPool& pool : plan.pools) AddPool(pool, out);
  AddGraphs(plan, out);
  for (const OwnedBytes& owned : plan.attribution)
    out.push_back({FieldKind::kBytes, owned.owner, std::to_string(owned.bytes.value())});
  return out;
}

const Field* Find(const Fields& fields, const Field& wanted) {
  for (const Field& field : fields) {
    if (field.kind == wanted.kind && field.name == wanted.name) return &field;
  }
  return nullptr;
}

// Names are unique within a plan: pools, groups and owners have names of their own.
std::vector<FieldChange> Changes(const Fields& before, const Fields& after) {
  std::vector<FieldChange> out;
  const auto add = [&out](FieldChange change) {
    InsertSorted(out, std::move(change),
                 [](const FieldChange& a, const FieldChange& b) { return a.kind < b.kind; });
  };
  for (const Field& was : before) {
    const Field* is = Find(after, was);
    if (is != nullptr && is->value == was.value) continue;
    add({was.kind, was.name, was.value, is == nullptr ? "" : is->value});
  }
  for (const Field& is : after) {
    if (Find(before, is) == nullptr) add({is.kind, is.name, "", is.value});
  }
  return out;
}

std::string_view FirstLine(std::string_view text) { return text.substr(0, text.find('\n')); }

// Details of single layers are no fields: of plans that are alike in all fields, the first line of their
// texts that is not the same.
void AddFirstLine(const Plan& before, const Plan& after, std::vector<FieldChange>& out) {
  const std::string was = PlanToText(before);
  const std::string is = PlanToText(after);
  if (was == is) return;
  const auto differs = std::mismatch(was.begin(), was.end(), is.begin(), is.end()).first - was.begin();
  const std::size_t line = was.substr(0, static_cast<std::size_t>(differs)).rfind('\n') + 1;
  out.push_back({FieldKind::kLayout, "text", std::string(FirstLine(std::string_view(was).substr(line))),
                 std::string(FirstLine(std::string_view(is).substr(line)))});
}

CapacityRow RowAt(const Plan& plan, std::int64_t context) {
  if (context <= plan.context_tokens) return CapacityAt(plan, context);
  CapacityRow none;
  none.context_tokens = context;
  return none;
}

}  // namespace

std::string_view FieldKindName(FieldKind kind) {
  switch (kind) {
    case FieldKind::kAsked:
      return "asked";
    case FieldKind::kLayout:
      return "layout";
    case FieldKind::kBytes:
      return "bytes";
  }
  return "invalid";
}

PlanComparison ComparePlans(const Plan& before, const Plan& after) {
  const std::int64_t longest = std::max(before.context_tokens, after.context_tokens);
  std::vector<std::int64_t> lengths = {before.context_tokens, after.context_tokens};
  for (const std::int64_t length : kLengths) {
    if (length < longest) lengths.push_back(length);
  }
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  PlanComparison out;
  for (const std::int64_t length : lengths)
    out.capacity.push_back({length, RowAt(before, length), RowAt(after, length)});
  out.fields = Changes(FieldsOf(before), FieldsOf(after));
  if (out.fields.empty()) AddFirstLine(before, after, out.fields);
  return out;
}

bool LosesMoreThan(const CapacityChange& change, std::int64_t limit) {
  const Wide lost = Wide{change.before.requests} - change.after.requests;
  return lost * kHundredthsOfPercent > Wide{limit} * change.before.requests;
}

}  // namespace kvasir
