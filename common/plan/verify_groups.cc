// Groups of a plan: who is in them and whether one set of metadata can serve them.
#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/plan/verify_parts.h"

namespace kvasir::verify {
namespace {

absl::Status CheckTensors(const Field& field, const std::vector<StateTensor>& tensors) {
  KVASIR_RETURN_IF_ERROR(
      CheckRange(field + ".size", static_cast<std::int64_t>(tensors.size()), 0, kStateTensorsMax));
  for (const StateTensor& tensor : tensors) {
    KVASIR_RETURN_IF_ERROR(CheckName(field + ".name", tensor.name));
    KVASIR_RETURN_IF_ERROR(
        CheckRange(field + "." + tensor.name + ".elements", tensor.elements, 1, kStateElementsMax));
  }
  return absl::OkStatus();
}

absl::Status CheckLayout(const Field& field, const LayoutKey& layout) {
  KVASIR_RETURN_IF_ERROR(
      CheckRange(field + ".alignment_bytes", layout.alignment_bytes, 1, kAlignmentBytesMax));
  KVASIR_RETURN_IF_ERROR(CheckTensors(field + ".states", layout.states));
  KVASIR_RETURN_IF_ERROR(CheckTensors(field + ".ring", layout.ring));
  const auto states = static_cast<std::int64_t>(layout.states.size());
  const auto ring = static_cast<std::int64_t>(layout.ring.size());
  if (layout.kind == LayoutKind::kState) {
    KVASIR_RETURN_IF_ERROR(CheckRange(field + ".states.size", states, 1, kStateTensorsMax));
    KVASIR_RETURN_IF_ERROR(
        CheckEqual(field + ".sharded", layout.sharded ? 1 : 0, 0, "a state is not sharded"));
    return CheckEqual(field + ".heads", layout.heads + layout.key_dim + layout.value_dim, 0,
                      "a state has no rows");
  }
  KVASIR_RETURN_IF_ERROR(CheckEqual(field + ".states.size", states + ring, 0, "only a state has tensors"));
  KVASIR_RETURN_IF_ERROR(
      CheckRange(field + ".heads", layout.heads, 1, layout.kind == LayoutKind::kLatent ? 1 : kHeadsMax));
  KVASIR_RETURN_IF_ERROR(CheckRange(field + ".key_dim", layout.key_dim, 1, kDimMax));
  return CheckRange(field + ".value_dim", layout.value_dim, 0, kDimMax);
}

// The behaviour's own fields; its agreement with N is CheckRows's.
absl::Status CheckBehaviour(const Field& field, const PlanPool& pool, const PlanGroup& group) {
  const BehaviourKey& behaviour = group.behaviour;
  KVASIR_RETURN_IF_ERROR(CheckName(field + ".backend", behaviour.backend));
  const bool recurrent = behaviour.mixer == Mixer::kRecurrent;
  const bool per_sequence = pool.lifetime.kind == LifetimeKind::kPerSequence;
  KVASIR_RETURN_IF_ERROR(CheckEqual(field + ".mixer", recurrent ? 1 : 0, per_sequence ? 1 : 0,
                                    "recurrent (1) exactly in per_sequence pools"));
  const bool bounded = pool.lifetime.kind == LifetimeKind::kBoundedWindow;
  return CheckEqual(field + ".window", behaviour.window, bounded ? pool.lifetime.window : 0,
                    "the window of the pool's lifetime");
}

absl::Status CheckRows(const Field& field, const Plan& plan, const BehaviourKey& behaviour) {
  if (behaviour.role == Role::kTarget) {
    KVASIR_RETURN_IF_ERROR(
        CheckEqual(field + ".causal", behaviour.causal ? 1 : 0, 1, "a target verifies causally"));
    return CheckEqual(field + ".block_rows", behaviour.block_rows, plan.draft_tokens + 1, "draft_tokens + 1");
  }
  KVASIR_RETURN_IF_ERROR(CheckRange("draft_tokens", plan.draft_tokens, 1, kDraftTokensMax));
  return CheckRange(field + ".block_rows", behaviour.block_rows, plan.draft_tokens, plan.draft_tokens + 1);
}

// `ring` is kept exactly under replay.
absl::Status CheckRing(const Field& field, const Plan& plan, const LayoutKey& layout) {
  if (layout.kind != LayoutKind::kState) return absl::OkStatus();
  const auto tensors = static_cast<std::int64_t>(layout.ring.size());
  if (plan.rollback != StateRollback::kReplay)
    return CheckEqual(field + ".ring.size", tensors, 0, "no replay, no ring");
  return CheckRange(field + ".ring.size", tensors, 1, kStateTensorsMax);
}

struct Seen {
  std::set<LayerId> ids;
  std::set<std::string_view> layer_names;
  std::set<std::string_view> group_names;
  std::int64_t draft_rows = 0;
  bool target = false;
  bool state = false;
};

absl::Status CheckLayers(const Field& field, const Plan& plan, const PlanGroup& group, Seen& seen) {
  for (std::size_t i = 0; i < group.layers.size(); ++i) {
    const PlanLayer& layer = group.layers[i];
    const std::string id = LayerIdText(layer.id);
    const Field at = field + ".layers[" + id + "]";
    if (i > 0 && !(group.layers[i - 1].id < layer.id)) {
      return Broken(at, "out of order", "after " + LayerIdText(group.layers[i - 1].id));
    }
    if (layer.id.role != group.behaviour.role) {
      return Broken(at + ".role", std::string(RoleName(layer.id.role)),
                    std::string(RoleName(group.behaviour.role)));
    }
    KVASIR_RETURN_IF_ERROR(CheckRange(at + ".index", layer.id.index, 0, kLayersMax - 1));
    KVASIR_RETURN_IF_ERROR(CheckRange(at + ".cache", layer.id.cache, 0, kLayersMax - 1));
    KVASIR_RETURN_IF_ERROR(CheckName(at + ".name", layer.name));
    if (!seen.ids.insert(layer.id).second) return Broken(at, "listed twice", "in one group only");
    if (!seen.layer_names.insert(layer.name).second) return Broken(at + ".name", layer.name, "unique");
    KVASIR_RETURN_IF_ERROR(CheckLayout(at + ".layout", layer.layout));
    if (layer.layout.kind != group.layers[0].layout.kind) {
      return Broken(
          at + ".layout.kind", std::string(LayoutKindName(layer.layout.kind)),
          std::string(LayoutKindName(group.layers[0].layout.kind)) + " as in the rest of the group");
    }
    KVASIR_RETURN_IF_ERROR(CheckRing(at + ".layout", plan, layer.layout));
    seen.state = seen.state || layer.layout.kind == LayoutKind::kState;
  }
  return absl::OkStatus();
}

absl::Status CheckGroup(const Plan& plan, const PlanPool& pool, const PlanGroup& group, Seen& seen) {
  const Field field = Field("groups[") + group.name + "]";
  KVASIR_RETURN_IF_ERROR(CheckName("groups.name", group.name));
  if (!seen.group_names.insert(group.name).second) return Broken("groups.name", group.name, "unique");
  KVASIR_RETURN_IF_ERROR(
      CheckRange(field + ".layers.size", static_cast<std::int64_t>(group.layers.size()), 1, kLayersMax));
  KVASIR_RETURN_IF_ERROR(CheckBehaviour(field, pool, group));
  KVASIR_RETURN_IF_ERROR(CheckRows(field, plan, group.behaviour));
  if (group.behaviour.role == Role::kTarget) {
    seen.target = true;
  } else {
    // One pass serves all draft groups, so it has one number of rows.
    if (seen.draft_rows == 0) seen.draft_rows = group.behaviour.block_rows;
    KVASIR_RETURN_IF_ERROR(CheckEqual(field + ".block_rows", group.behaviour.block_rows, seen.draft_rows,
                                      "that of the other draft groups"));
  }
  return CheckLayers(field, plan, group, seen);
}

}  // namespace

absl::Status Groups(const Plan& plan) {
  Seen seen;
  std::int32_t next = 0;
  for (const PlanPool& pool : plan.pools) {
    for (const PlanGroup& group : pool.groups) {
      KVASIR_RETURN_IF_ERROR(
          CheckEqual(Field("groups[") + group.name + "].id", group.id.value(), next++, "dense, in order"));
      KVASIR_RETURN_IF_ERROR(CheckGroup(plan, pool, group, seen));
    }
  }
  KVASIR_RETURN_IF_ERROR(CheckRange("layers", static_cast<std::int64_t>(seen.ids.size()), 1, kLayersMax));
  if (!seen.target)
    return Broken("groups", "without a target group", "a target's layers, with or without a draft's");
  KVASIR_RETURN_IF_ERROR(CheckEqual("draft groups", seen.draft_rows > 0 ? 1 : 0,
                                    plan.draft_tokens > 0 ? 1 : 0,
                                    "there (1) exactly when tokens are drafted"));
  const bool rolls_back = seen.state && plan.draft_tokens > 0;
  return CheckEqual("rollback", plan.rollback == StateRollback::kNone ? 0 : 1, rolls_back ? 1 : 0,
                    "snapshots or replay (1) exactly where a draft runs over recurrent state");
}

}  // namespace kvasir::verify
