#include "tests/testing/engine_plan.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/checked_math.h"
#include "common/models/model_text.h"
#include "common/plan/verify.h"

namespace kvasir::testing {
namespace {

ModelDescription ModelOf(const EnginePlanOptions& options, Role role) {
  const bool draft = role == Role::kDraft;
  if (draft && options.mtp) return MtpOf(ModelOf(options, Role::kTarget));
  if (draft && options.dflash) return SmallDflash();
  if (draft) return options.hybrid ? HybridDraft() : SmallDraft(options.markov_head);
  if (options.hybrid) return options.experts ? HybridExpertsTarget() : HybridTarget();
  return options.experts ? SmallExpertsTarget() : SmallTarget();
}

bool IsSharded(const EnginePlanOptions& options, Role role) {
  return options.topology.dcp > 1 && !(role == Role::kDraft && options.draft_replicated);
}

PlanGroup MakeGroup(const EnginePlanOptions& options, Role role, std::int64_t* offset) {
  const bool target = role == Role::kTarget;
  const ModelDescription model = ModelOf(options, role);
  PlanGroup group;
  group.name = target ? "target.mla" : "draft.mla";
  group.behaviour =
      BehaviourKey{.role = role,
                   .causal = target || options.mtp,
                   .block_rows = target || options.dflash ? options.draft_tokens + 1 : options.draft_tokens,
                   .backend = "cpu"};
  for (const ModelLayer& layer : model.layers) {
    if (std::holds_alternative<KdaShape>(layer.mixer)) continue;
    const auto* gqa = std::get_if<AttentionShape>(&layer.mixer);
    PlanLayer planned;
    planned.id = LayerId{.role = role, .index = layer.index};
    planned.name = absl::StrFormat("%s.layers.%d", RoleName(role), layer.index);
    planned.layout = LayoutKey{.kind = LayoutKind::kLatent,
                               .sharded = IsSharded(options, role),
                               .dtype = options.dtype,
                               .heads = 1,
                               .key_dim = 16,
                               .value_dim = 8,
                               .states = {},
                               .ring = {}};
    if (gqa != nullptr) {
      planned.layout.kind = LayoutKind::kKeyValue;
      planned.layout.heads = std::max<std::int64_t>(gqa->kv_heads / options.topology.tp, 1);
      planned.layout.key_dim = gqa->head_dim;
      planned.layout.value_dim = gqa->value_dim;
    }
    planned.page_bytes = options.block_tokens * RowBytes(planned.layout);
    planned.offset_bytes = *offset;
    *offset += planned.page_bytes;
    group.layers.push_back(std::move(planned));
  }
  return group;
}

PlanPool MakePool(const EnginePlanOptions& options, std::string name, const std::vector<Role>& roles) {
  PlanPool pool;
  pool.name = std::move(name);
  pool.sharded = IsSharded(options, roles.front());
  pool.block_tokens = options.block_tokens;
  for (const Role role : roles) pool.groups.push_back(MakeGroup(options, role, &pool.block_bytes));
  pool.stride_bytes = CeilDiv(pool.block_bytes, 256) * 256;
  pool.blocks_per_parent = options.blocks_per_parent;
  return pool;
}

LayoutKey StateLayout(const EnginePlanOptions& options, const KdaShape& shape) {
  const std::int64_t width = shape.heads * shape.head_dim / options.topology.tp;
  const std::int64_t history = shape.conv_kernel - 1 + options.draft_tokens;
  LayoutKey layout{.kind = LayoutKind::kState, .dtype = DType::kF32, .states = {}, .ring = {}};
  layout.states = {{"conv", history * 3 * width, options.dtype},
                   {"recurrent", width * shape.head_dim, DType::kF32}};
  if (options.draft_tokens > 0 && options.rollback == StateRollback::kReplay) {
    layout.ring = {{"decay", width, DType::kF32}, {"beta", shape.heads / options.topology.tp, DType::kF32}};
  }
  return layout;
}

// The target's states, `parts` blocks a copy.
PlanPool MakeStatePool(const EnginePlanOptions& options) {
  const bool snapshots = options.draft_tokens > 0 && options.rollback == StateRollback::kSnapshots;
  PlanPool pool;
  pool.name = "state";
  pool.lifetime = {LifetimeKind::kPerSequence, 0, 1 + (snapshots ? options.draft_tokens : 0)};
  pool.parts = options.parts;
  PlanGroup group;
  group.name = "target.kda";
  group.behaviour = BehaviourKey{.role = Role::kTarget,
                                 .mixer = Mixer::kRecurrent,
                                 .block_rows = options.draft_tokens + 1,
                                 .backend = "cpu"};
  std::int64_t place = 0;
  for (const ModelLayer& layer : HybridTarget().layers) {
    const auto* shape = std::get_if<KdaShape>(&layer.mixer);
    if (shape == nullptr) continue;
    PlanLayer planned;
    planned.id = LayerId{.role = Role::kTarget, .index = layer.index};
    planned.name = absl::StrFormat("target.layers.%d", layer.index);
    planned.layout = StateLayout(options, *shape);
    planned.part = place * options.parts / 3;
    const bool first = group.layers.empty() || group.layers.back().part != planned.part;
    planned.offset_bytes = first ? 0 : group.layers.back().offset_bytes + group.layers.back().page_bytes;
    planned.page_bytes = StateBytes(planned.layout) + RingBytes(planned.layout, options.draft_tokens);
    pool.block_bytes = std::max(pool.block_bytes, planned.offset_bytes + planned.page_bytes);
    group.layers.push_back(std::move(planned));
    ++place;
  }
  pool.groups.push_back(std::move(group));
  return pool;
}

// Parents that hold two state blocks, and whole blocks of every token pool.
void AddStatePool(const EnginePlanOptions& options, Plan& plan) {
  PlanPool state = MakeStatePool(options);
  std::int64_t unit = 512;
  for (const PlanPool& pool : plan.pools) unit = std::lcm(unit, pool.stride_bytes);
  const std::int64_t parent = CeilDiv(2 * state.block_bytes, unit) * unit;
  state.stride_bytes = parent / 2;
  state.blocks_per_parent = 2;
  plan.pools.push_back(std::move(state));
  for (PlanPool& pool : plan.pools) pool.blocks_per_parent = parent / pool.stride_bytes;
  plan.parent_bytes = Bytes(parent);
  if (plan.draft_tokens > 0) plan.rollback = options.rollback;
}

void AddGraphs(Plan& plan, Pass pass, std::int64_t query_rows) {
  const bool draft = pass == Pass::kDraftContext || pass == Pass::kDraftBlock;
  PlanGraph graph{.pass = pass, .query_rows = query_rows, .groups = {}};
  for (const PlanGroup* group : GroupsOf(plan)) {
    if ((group->behaviour.role == Role::kDraft) == draft) graph.groups.push_back(group->id);
  }
  for (graph.bucket = 1; graph.bucket < plan.max_requests; graph.bucket *= 2) plan.graphs.push_back(graph);
  graph.bucket = plan.max_requests;
  plan.graphs.push_back(graph);
}

// Ids, arena, graphs and attribution follow from the pools.
void Finish(Plan& plan) {
  std::int32_t pool_id = 0;
  std::int32_t group_id = 0;
  for (PlanPool& pool : plan.pools) {
    pool.id = PoolId(pool_id++);
    for (PlanGroup& group : pool.groups) group.id = GroupId(group_id++);
  }
  plan.arena_bytes = plan.parent_bytes * plan.parents;
  AddGraphs(plan, Pass::kTargetDecode, 1);
  if (plan.draft_tokens > 0) {
    AddGraphs(plan, Pass::kTargetVerify, plan.draft_tokens + 1);
    AddGraphs(plan, Pass::kDraftContext, plan.draft_tokens + 1);
    AddGraphs(plan, Pass::kDraftBlock, DraftBlockRows(plan));
  }
  Bytes rest = plan.arena_bytes - plan.parent_bytes;
  plan.attribution = {{"null_parent", plan.parent_bytes}, {"unassigned", Bytes(0)}};
  for (const PlanGroup* group : GroupsOf(plan)) {
    plan.attribution.push_back({"payload." + group->name, rest});
    rest = Bytes(0);
  }
  std::sort(plan.attribution.begin(), plan.attribution.end(),
            [](const OwnedBytes& a, const OwnedBytes& b) { return a.owner < b.owner; });
  const absl::Status verified = VerifyPlan(plan);
  if (!verified.ok()) std::fprintf(stderr, "%s\n", verified.ToString().c_str());
  KVASIR_CHECK(verified.ok());
}

ModelRef RefOf(const ModelDescription& model) {
  return ModelRef{.name = model.name, .digest = ModelDigest(model)};
}

}  // namespace

std::string NameOf(const EnginePlanOptions& o) {
  return absl::StrFormat(
      "tp%d_dcp%d_i%d_n%d_b%d%s%s%s%s%s", o.topology.tp, o.topology.dcp, o.topology.interleave,
      o.draft_tokens, o.block_tokens, o.one_pool ? "" : "_two_pools", o.draft_first ? "_draft_first" : "",
      o.hybrid ? absl::StrFormat("_%s_parts%d", StateRollbackName(o.rollback), o.parts) : "",
      o.experts ? "_experts" : "", o.draft_replicated ? "_replicated" : "");
}

void PrintTo(const EnginePlanOptions& options, std::ostream* out) { *out << NameOf(options); }

Plan MakeEnginePlan(const EnginePlanOptions& options) {
  Plan plan;
  plan.ruleset = "native/1";
  plan.topology = options.topology;
  plan.target = RefOf(ModelOf(options, Role::kTarget));
  plan.draft_tokens = options.draft_tokens;
  plan.context_tokens = options.context_tokens;
  plan.max_requests = options.max_requests;
  plan.prefill_chunk = options.prefill_chunk;
  plan.parents = options.parents;
  std::vector<Role> roles = {Role::kTarget};
  if (options.draft_tokens > 0) {
    plan.draft = RefOf(ModelOf(options, Role::kDraft));
    roles.insert(options.draft_first ? roles.begin() : roles.end(), Role::kDraft);
  }
  if (options.one_pool && !options.draft_replicated) {
    plan.pools.push_back(MakePool(options, "tokens", roles));
  } else {
    for (const Role role : roles)
      plan.pools.push_back(MakePool(options, std::string(RoleName(role)), {role}));
  }
  // One parent size suits every pool: without a hybrid target, roles have pages of equal size, and an MTP
  // module half as many.
  plan.parent_bytes = Bytes(plan.pools[0].stride_bytes * options.blocks_per_parent);
  for (PlanPool& pool : plan.pools) pool.blocks_per_parent = plan.parent_bytes.value() / pool.stride_bytes;
  if (options.hybrid) AddStatePool(options, plan);
  Finish(plan);
  return plan;
}

Plan MakePoolPlan(const std::vector<PoolSketch>& pools, std::int64_t parents, std::int64_t max_requests,
                  std::int64_t context_tokens) {
  Plan plan;
  plan.ruleset = "native/1";
  plan.target = RefOf(SmallTarget());
  plan.context_tokens = context_tokens;
  plan.max_requests = max_requests;
  plan.prefill_chunk = 8;
  plan.parents = parents;
  std::int64_t units = 1;
  for (const PoolSketch& sketch : pools) units = std::lcm(units, sketch.blocks_per_parent);
  plan.parent_bytes = Bytes(units * 256);
  std::int32_t index = 0;
  for (const PoolSketch& sketch : pools) {
    PlanPool pool;
    pool.name = sketch.name;
    pool.lifetime = sketch.lifetime;
    pool.parts = sketch.parts;
    pool.blocks_per_parent = sketch.blocks_per_parent;
    pool.stride_bytes = plan.parent_bytes.value() / sketch.blocks_per_parent;
    const bool state = sketch.lifetime.kind == LifetimeKind::kPerSequence;
    pool.block_tokens = state ? 0 : sketch.block_tokens;
    PlanGroup group;
    group.name = "target." + sketch.name;
    group.behaviour = BehaviourKey{.mixer = state ? Mixer::kRecurrent : Mixer::kAttention,
                                   .window = sketch.lifetime.window,
                                   .block_rows = 1,
                                   .backend = "cpu"};
    for (std::int64_t part = 0; part < sketch.parts; ++part) {
      PlanLayer layer;
      layer.id = LayerId{.role = Role::kTarget, .index = index};
      layer.name = absl::StrFormat("layers.%d", index++);
      layer.part = part;
      layer.layout.dtype = DType::kBf16;
      if (state) {
        layer.layout.kind = LayoutKind::kState;
        layer.layout.states = {{.name = "s", .elements = 16, .dtype = DType::kF32}};
        layer.page_bytes = StateBytes(layer.layout);
      } else {
        layer.layout.heads = 1;
        layer.layout.key_dim = 8;
        layer.layout.value_dim = 8;
        layer.page_bytes = sketch.block_tokens * RowBytes(layer.layout);
      }
      pool.block_bytes = layer.page_bytes;
      group.layers.push_back(std::move(layer));
    }
    pool.groups.push_back(std::move(group));
    plan.pools.push_back(std::move(pool));
  }
  Finish(plan);
  return plan;
}

}  // namespace kvasir::testing
