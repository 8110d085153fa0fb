#include "planner/service/convert_outcome.h"

#include <string>
#include <variant>

namespace kvasir {
namespace {

// Values of a plan are bounded by common/base/limits.h, far below 31 bits where the wire has 32.
std::int32_t Int32(std::int64_t value) { return static_cast<std::int32_t>(value); }

void SetModel(const ModelRef& ref, plan::v1::ModelRef& wire) {
  wire.set_name(ref.name);
  wire.set_digest(ref.digest);
}

void SetLayer(const PlanLayer& layer, plan::v1::Layer& wire) {
  const LayoutKey& layout = layer.layout;
  const bool state = layout.kind == LayoutKind::kState && !layout.states.empty();
  wire.set_index(layer.id.index);
  wire.set_cache(layer.id.cache);
  wire.set_name(layer.name);
  wire.set_layout(std::string(LayoutKindName(layout.kind)));
  wire.set_dtype(std::string(DTypeName(state ? layout.states.front().dtype : layout.dtype)));
  wire.set_head_count(Int32(layout.heads));
  wire.set_key_dim(Int32(layout.key_dim));
  wire.set_value_dim(Int32(layout.value_dim));
  wire.set_part(Int32(layer.part));
  wire.set_offset_bytes(layer.offset_bytes);
  wire.set_page_bytes(layer.page_bytes);
}

void SetGroup(const PlanGroup& group, plan::v1::Group& wire) {
  const BehaviourKey& behaviour = group.behaviour;
  wire.set_group_id(group.id.value());
  wire.set_name(group.name);
  wire.set_role(behaviour.role == Role::kTarget ? plan::v1::MODEL_ROLE_TARGET : plan::v1::MODEL_ROLE_DRAFT);
  wire.set_mixer(std::string(MixerName(behaviour.mixer)));
  wire.set_causal(behaviour.causal);
  wire.set_window_tokens(behaviour.window);
  wire.set_block_row_count(Int32(behaviour.block_rows));
  wire.set_backend(behaviour.backend);
  for (const PlanLayer& layer : group.layers) {
    SetLayer(layer, *wire.add_layers());
  }
}

void SetPool(const PlanPool& pool, plan::v1::Pool& wire) {
  wire.set_pool_id(pool.id.value());
  wire.set_name(pool.name);
  wire.set_lifetime(std::string(LifetimeKindName(pool.lifetime.kind)));
  wire.set_window_tokens(pool.lifetime.window);
  wire.set_copy_count(Int32(pool.lifetime.copies));
  wire.set_sharded(pool.sharded);
  wire.set_block_tokens(pool.block_tokens);
  wire.set_part_count(Int32(pool.parts));
  wire.set_block_bytes(pool.block_bytes);
  wire.set_stride_bytes(pool.stride_bytes);
  wire.set_blocks_per_parent(pool.blocks_per_parent);
  for (const PlanGroup& group : pool.groups) {
    SetGroup(group, *wire.add_groups());
  }
}

void SetGraph(const PlanGraph& graph, plan::v1::Graph& wire) {
  wire.set_pass(std::string(PassName(graph.pass)));
  wire.set_query_rows(Int32(graph.query_rows));
  wire.set_bucket(Int32(graph.bucket));
  for (const GroupId group : graph.groups) {
    wire.add_group_ids(group.value());
  }
}

void SetCapacity(const std::vector<CapacityRow>& rows,
                 google::protobuf::RepeatedPtrField<plan::v1::Capacity>& wire) {
  for (const CapacityRow& row : rows) *wire.Add() = CapacityToProto(row);
}

}  // namespace

plan::v1::Plan PlanToProto(const Plan& plan) {
  plan::v1::Plan wire;
  wire.set_ruleset(plan.ruleset);
  wire.mutable_topology()->set_tp(Int32(plan.topology.tp));
  wire.mutable_topology()->set_dcp(Int32(plan.topology.dcp));
  wire.mutable_topology()->set_interleave_tokens(Int32(plan.topology.interleave));
  SetModel(plan.target, *wire.mutable_target());
  if (!plan.draft.digest.empty()) {
    SetModel(plan.draft, *wire.mutable_draft());
  }
  wire.set_draft_tokens(Int32(plan.draft_tokens));
  wire.set_state_rollback(std::string(StateRollbackName(plan.rollback)));
  wire.set_context_tokens(plan.context_tokens);
  wire.set_request_count_max(Int32(plan.max_requests));
  wire.set_prefill_chunk_tokens(plan.prefill_chunk);
  wire.set_arena_bytes(plan.arena_bytes.value());
  wire.set_parent_bytes(plan.parent_bytes.value());
  wire.set_parent_count(plan.parents);
  for (const PlanPool& pool : plan.pools) {
    SetPool(pool, *wire.add_pools());
  }
  for (const PlanGraph& graph : plan.graphs) {
    SetGraph(graph, *wire.add_graphs());
  }
  for (const OwnedBytes& owned : plan.attribution) {
    plan::v1::OwnedBytes* out = wire.add_attribution();
    out->set_owner(owned.owner);
    out->set_bytes(owned.bytes.value());
  }
  return wire;
}

plan::v1::Capacity CapacityToProto(const CapacityRow& row) {
  plan::v1::Capacity wire;
  wire.set_context_tokens(row.context_tokens);
  wire.set_request_count(row.requests);
  wire.set_guaranteed_request_count(row.guaranteed_requests);
  wire.set_bytes_per_request(row.bytes_per_request.value());
  return wire;
}

plan::v1::CapacityReport ReportToProto(const Report& report) {
  plan::v1::CapacityReport wire;
  SetCapacity(report.capacity, *wire.mutable_capacities());
  wire.set_longest_context_tokens(report.longest_context_tokens);
  wire.set_limited_by_model(report.longest_is_model_limit);
  for (const RollbackOption& option : report.rollback_options) {
    plan::v1::RollbackOption* out = wire.add_rollback_options();
    out->set_state_rollback(std::string(StateRollbackName(option.rollback)));
    out->set_possible(option.possible);
    out->set_chosen(option.chosen);
    SetCapacity(option.capacity, *out->mutable_capacities());
  }
  wire.mutable_sizes()->set_layouts_compared(report.sizes.layouts_compared);
  wire.mutable_sizes()->set_cost_per_512(report.sizes.cost_512);
  wire.mutable_sizes()->set_parent_bytes_max(report.sizes.parent_bytes_max.value());
  return wire;
}

plan::v1::Refusal RefusalToProto(const Refusal& refusal) {
  plan::v1::Refusal wire;
  wire.set_rule(std::string(RuleName(refusal.rule)));
  wire.set_field(refusal.field);
  wire.mutable_subjects()->Add(refusal.subjects.begin(), refusal.subjects.end());
  for (const Operand& operand : refusal.operands) {
    plan::v1::Operand* out = wire.add_operands();
    out->set_name(operand.name);
    out->set_value(operand.value);
  }
  wire.set_message(RefusalText(refusal));
  wire.mutable_remedies()->Add(refusal.remedies.begin(), refusal.remedies.end());
  return wire;
}

plan::v1::DoesNotFit DoesNotFitToProto(const DoesNotFit& misfit) {
  plan::v1::DoesNotFit wire;
  wire.set_context_tokens(misfit.context_tokens);
  wire.set_request_count_min(Int32(misfit.min_requests));
  wire.set_given_bytes(misfit.given.value());
  wire.set_needed_bytes(misfit.needed.value());
  wire.set_shortfall_bytes(misfit.shortfall.value());
  wire.set_bound_by(misfit.bound_by);
  wire.set_bound_by_bytes(misfit.bound_by_bytes.value());
  wire.set_longest_context_tokens(misfit.longest_context_tokens);
  for (const FitRemedy& remedy : misfit.remedies) {
    plan::v1::FitRemedy* out = wire.add_remedies();
    out->set_field(remedy.field);
    out->set_value(remedy.value);
    out->set_text(remedy.text);
    out->set_request_count(remedy.requests);
  }
  return wire;
}

plan::v1::Remedy RemedyToProto(const Remedy& remedy) {
  plan::v1::Remedy wire;
  wire.set_flags(remedy.flags);
  wire.set_plan_id(remedy.plan_id);
  for (const CapacityRow& row : remedy.capacity) *wire.add_capacities() = CapacityToProto(row);
  return wire;
}

plan::v1::ExplainLine ExplainLineToProto(const ExplainLine& line) {
  plan::v1::ExplainLine wire;
  wire.set_topic(std::string(ExplainTopicName(line.topic)));
  wire.set_subject(line.subject);
  wire.set_text(line.text);
  return wire;
}

planner::v1::CreatePlanResponse OutcomeToProto(const PlanOutcome& outcome) {
  planner::v1::CreatePlanResponse wire;
  if (const auto* planned = std::get_if<Planned>(&outcome)) {
    planner::v1::PlannedPlan* plan = wire.mutable_plan();
    plan->set_plan_id(planned->plan_id);
    plan->set_canonical_text(planned->text);
    *plan->mutable_plan() = PlanToProto(planned->plan);
    *plan->mutable_report() = ReportToProto(planned->report);
  } else if (const auto* misfit = std::get_if<DoesNotFit>(&outcome)) {
    *wire.mutable_does_not_fit() = DoesNotFitToProto(*misfit);
  } else {
    wire.mutable_refusals();
    for (const Refusal& refusal : std::get<Refusals>(outcome).refusals) {
      *wire.mutable_refusals()->add_refusals() = RefusalToProto(refusal);
    }
  }
  return wire;
}

}  // namespace kvasir
