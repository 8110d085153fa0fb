// Each invariant of a plan broken on purpose: VerifyPlan must notice and name the field.
#include "common/plan/verify.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "planner/rulesets/make_plan.h"
#include "tests/testing/k3_request.h"
#include "tests/testing/matchers.h"
#include "tests/testing/window_request.h"

namespace kvasir {
namespace {

using testing::IsOk;
using testing::K3Request;
using testing::StatusIs;
using testing::WindowRequest;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

Plan PlanOf(const PlanRequest& request) { return std::get<Planned>(MakePlan(request)).plan; }

struct Mutation {
  std::string name;
  std::string message;  // part of it
  std::function<void(Plan&)> change;
};

void PrintTo(const Mutation& m, std::ostream* out) { *out << m.name; }

class VerifyK3 : public ::testing::TestWithParam<Mutation> {};

// Pools: 0 tokens (groups 0 target.mla, 1 draft.mla), 1 state (group 2 target.kda), rollback replay.
TEST_P(VerifyK3, Notices) {
  Plan plan = PlanOf(K3Request());
  ASSERT_THAT(VerifyPlan(plan), IsOk());
  GetParam().change(plan);
  EXPECT_THAT(VerifyPlan(plan), StatusIs(absl::StatusCode::kInvalidArgument, GetParam().message));
}

PlanPool& Tokens(Plan& p) { return p.pools[0]; }
PlanPool& State(Plan& p) { return p.pools[1]; }
PlanGroup& Target(Plan& p) { return p.pools[0].groups[0]; }
PlanGroup& Draft(Plan& p) { return p.pools[0].groups[1]; }
PlanGroup& Kda(Plan& p) { return p.pools[1].groups[0]; }

std::string Named(const ::testing::TestParamInfo<Mutation>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Limits, VerifyK3,
    ::testing::Values(
        Mutation{"ruleset", "ruleset.size", [](Plan& p) { p.ruleset.clear(); }},
        Mutation{"target_name", "target.name.size", [](Plan& p) { p.target.name = std::string(257, 'x'); }},
        Mutation{"target_digest", "target.digest", [](Plan& p) { p.target.digest.pop_back(); }},
        Mutation{"draft_digest", "draft.digest", [](Plan& p) { p.draft.digest[3] = 'G'; }},
        Mutation{"draft_missing", "draft.name", [](Plan& p) { p.draft = {}; }},
        Mutation{"draft_tokens_negative", "draft_tokens is -1", [](Plan& p) { p.draft_tokens = -1; }},
        Mutation{"draft_tokens_large", "draft_tokens is 33", [](Plan& p) { p.draft_tokens = 33; }},
        Mutation{"draft_without_tokens", "draft.name", [](Plan& p) { p.draft_tokens = 0; }},
        Mutation{"context", "context_tokens is 0", [](Plan& p) { p.context_tokens = 0; }},
        Mutation{"context_large", "context_tokens", [](Plan& p) { p.context_tokens = kMax; }},
        Mutation{"max_requests", "max_requests is 4097", [](Plan& p) { p.max_requests = 4097; }},
        Mutation{"prefill_chunk", "prefill_chunk is 0", [](Plan& p) { p.prefill_chunk = 0; }},
        Mutation{"tp", "topology.tp is 0", [](Plan& p) { p.topology.tp = 0; }},
        Mutation{"dcp_above_tp", "topology.dcp is 16", [](Plan& p) { p.topology.dcp = 16; }},
        Mutation{"dcp_divides", "topology.dcp is 3, must be a divisor of tp 8",
                 [](Plan& p) { p.topology.dcp = 3; }},
        Mutation{"interleave", "topology.interleave is 0", [](Plan& p) { p.topology.interleave = 0; }},
        Mutation{"interleave_divides", "block_tokens is 64, must be a multiple of interleave 3",
                 [](Plan& p) { p.topology.interleave = 3; }}),
    Named);

INSTANTIATE_TEST_SUITE_P(
    Arena, VerifyK3,
    ::testing::Values(Mutation{"arena_zero", "arena_bytes is 0", [](Plan& p) { p.arena_bytes = Bytes(0); }},
                      Mutation{"arena_large", "arena_bytes", [](Plan& p) { p.arena_bytes = Bytes(kMax); }},
                      Mutation{"parent_zero", "parent_bytes is 0",
                               [](Plan& p) { p.parent_bytes = Bytes(0); }},
                      Mutation{"parent_above_arena", "parent_bytes",
                               [](Plan& p) { p.parent_bytes = p.arena_bytes + Bytes(1); }},
                      Mutation{"one_parent_more", "parents is 2351", [](Plan& p) { ++p.parents; }},
                      Mutation{"one_parent_less", "parents is 2349", [](Plan& p) { --p.parents; }},
                      Mutation{"parent_size", "blocks_per_parent",
                               [](Plan& p) {
                                 p.parent_bytes += Bytes(256);
                                 p.parents = p.arena_bytes.value() / p.parent_bytes.value();
                               }},
                      Mutation{"no_room_for_each_pool", "parents is 2",
                               [](Plan& p) {
                                 p.arena_bytes = Bytes(p.parent_bytes.value() * 2);
                                 p.parents = 2;
                               }},
                      Mutation{"no_pools", "pools.size is 0", [](Plan& p) { p.pools.clear(); }},
                      Mutation{"many_pools", "pools.size is 17", [](Plan& p) { p.pools.resize(17); }}),
    Named);

INSTANTIATE_TEST_SUITE_P(
    Pools, VerifyK3,
    ::testing::Values(
        Mutation{"id", "pools[state].id is 0", [](Plan& p) { State(p).id = PoolId(0); }},
        Mutation{"name_twice", "pools.name is tokens", [](Plan& p) { State(p).name = "tokens"; }},
        Mutation{"no_name", "pools.name.size is 0", [](Plan& p) { Tokens(p).name.clear(); }},
        Mutation{"no_groups", "groups.size is 0",
                 [](Plan& p) {
                   State(p).groups.clear();
                   p.rollback = StateRollback::kNone;
                 }},
        Mutation{"window_of_tokens", "window is 5", [](Plan& p) { Tokens(p).lifetime.window = 5; }},
        Mutation{"copies_of_tokens", "pools[tokens].copies is 1",
                 [](Plan& p) { Tokens(p).lifetime.copies = 1; }},
        Mutation{"copies_under_replay", "pools[state].copies is 8",
                 [](Plan& p) { State(p).lifetime.copies = 8; }},
        Mutation{"no_copy", "pools[state].copies is 0", [](Plan& p) { State(p).lifetime.copies = 0; }},
        Mutation{"sharded_state", "pools[state].sharded is 1", [](Plan& p) { State(p).sharded = true; }},
        Mutation{"replicated_tokens", "layout.sharded is 1", [](Plan& p) { Tokens(p).sharded = false; }},
        Mutation{"sharded_without_dcp", "pools[tokens].sharded is 1", [](Plan& p) { p.topology.dcp = 1; }},
        Mutation{"block_tokens", "block_tokens is 0", [](Plan& p) { Tokens(p).block_tokens = 0; }},
        Mutation{"block_tokens_of_state", "block_tokens is 64", [](Plan& p) { State(p).block_tokens = 64; }},
        Mutation{"parts_of_tokens", "pools[tokens].parts is 2", [](Plan& p) { Tokens(p).parts = 2; }},
        Mutation{"parts", "pools[state].parts is 4", [](Plan& p) { State(p).parts = 4; }},
        Mutation{"part_missing", "part is 2, must be from 0 to 1", [](Plan& p) { State(p).parts = 2; }},
        Mutation{"block_below_pages", "offset_bytes", [](Plan& p) { Tokens(p).block_bytes = 256; }},
        Mutation{"block_above_pages", "block_bytes is 21204529", [](Plan& p) { ++State(p).block_bytes; }},
        Mutation{"stride_below_block", "stride_bytes", [](Plan& p) { Tokens(p).stride_bytes -= 4096; }},
        Mutation{"stride_negative", "stride_bytes is -1", [](Plan& p) { Tokens(p).stride_bytes = -1; }},
        Mutation{"stride_not_dividing", "blocks_per_parent * stride_bytes",
                 [](Plan& p) { State(p).stride_bytes -= 256; }},
        Mutation{"stride_unit", "stride_bytes mod 256",
                 [](Plan& p) {
                   // One block of the parent's size, and a parent that is no multiple of 256.
                   p.parent_bytes += Bytes(64);
                   p.parents = p.arena_bytes.value() / p.parent_bytes.value();
                   Tokens(p).stride_bytes = p.parent_bytes.value();
                   Tokens(p).blocks_per_parent = 1;
                 }},
        Mutation{"blocks_per_parent", "blocks_per_parent is 11",
                 [](Plan& p) { ++Tokens(p).blocks_per_parent; }},
        Mutation{"overlap", "offset_bytes", [](Plan& p) { Target(p).layers[1].offset_bytes -= 16; }},
        Mutation{"overlap_across_groups", "where the page of target.92 ends",
                 [](Plan& p) { Draft(p).layers[0].offset_bytes -= 64; }},
        Mutation{"same_place_in_one_part", "offset_bytes", [](Plan& p) { Kda(p).layers[23].part = 0; }},
        Mutation{"offset_negative", "offset_bytes is -16",
                 [](Plan& p) { Target(p).layers[0].offset_bytes = -16; }},
        Mutation{"offset_overflow", "offset_bytes",
                 [](Plan& p) { Target(p).layers[0].offset_bytes = kMax - 15; }},
        Mutation{"offset_alignment", "offset_bytes mod alignment",
                 [](Plan& p) { Target(p).layers[0].offset_bytes = 8; }},
        Mutation{"stride_alignment", "stride_bytes mod alignment",
                 [](Plan& p) { Target(p).layers[0].layout.alignment_bytes = 65535; }},
        Mutation{"page_bytes", "page_bytes is 73729", [](Plan& p) { ++Target(p).layers[0].page_bytes; }},
        Mutation{"page_without_ring", "page_bytes is 878592",
                 [](Plan& p) { Kda(p).layers[0].page_bytes = 878592; }},
        Mutation{"page_of_another_dtype", "page_bytes",
                 [](Plan& p) { Target(p).layers[0].layout.dtype = DType::kF32; }}),
    Named);

INSTANTIATE_TEST_SUITE_P(
    Groups, VerifyK3,
    ::testing::Values(
        Mutation{"id", "groups[draft.mla].id is 0", [](Plan& p) { Draft(p).id = GroupId(0); }},
        Mutation{"name_twice", "groups.name is target.mla", [](Plan& p) { Draft(p).name = "target.mla"; }},
        Mutation{"empty", "layers.size is 0", [](Plan& p) { Draft(p).layers.clear(); }},
        Mutation{"swapped_flags_target", "groups[target.mla].causal is 0",
                 [](Plan& p) { std::swap(Target(p).behaviour.causal, Draft(p).behaviour.causal); }},
        Mutation{"draft_layer_in_target_group", "role is draft",
                 [](Plan& p) {
                   Target(p).layers.push_back(Draft(p).layers.back());
                   Draft(p).layers.pop_back();
                 }},
        Mutation{"target_rows", "block_rows is 7", [](Plan& p) { Target(p).behaviour.block_rows = 7; }},
        Mutation{"draft_rows", "block_rows is 9", [](Plan& p) { Draft(p).behaviour.block_rows = 9; }},
        Mutation{"backend", "backend.size is 0", [](Plan& p) { Draft(p).behaviour.backend.clear(); }},
        Mutation{"recurrent_rows", "mixer is 1",
                 [](Plan& p) { Target(p).behaviour.mixer = Mixer::kRecurrent; }},
        Mutation{"window", "window is 128", [](Plan& p) { Target(p).behaviour.window = 128; }},
        Mutation{"layer_order", "out of order",
                 [](Plan& p) { std::swap(Target(p).layers[0], Target(p).layers[1]); }},
        Mutation{"layer_in_two_groups", "listed twice",
                 [](Plan& p) {
                   PlanLayer layer = Target(p).layers[0];
                   layer.name = "again";
                   layer.id.index = 0;
                   Target(p).layers.insert(Target(p).layers.begin(), layer);
                 }},
        Mutation{"layer_name_twice", "name is target.layers.3",
                 [](Plan& p) { Kda(p).layers[0].name = "target.layers.3"; }},
        Mutation{"layer_index", "index is -1", [](Plan& p) { Target(p).layers[0].id.index = -1; }},
        Mutation{"layer_cache", "cache is 1024", [](Plan& p) { Target(p).layers[0].id.cache = 1024; }},
        Mutation{"kinds_mixed", "layout.kind",
                 [](Plan& p) { Target(p).layers[1].layout.kind = LayoutKind::kKeyValue; }},
        Mutation{"state_in_token_pool", "layout.kind",
                 [](Plan& p) {
                   for (PlanLayer& layer : Target(p).layers) layer.layout = Kda(p).layers[0].layout;
                 }},
        Mutation{"no_target", "without a target group",
                 [](Plan& p) {
                   p.pools.pop_back();
                   Tokens(p).groups.erase(Tokens(p).groups.begin());
                   Target(p).id = GroupId(0);
                   p.rollback = StateRollback::kNone;
                 }},
        Mutation{"no_draft_group", "draft groups is 0",
                 [](Plan& p) {
                   Tokens(p).groups.pop_back();
                   Kda(p).id = GroupId(1);
                 }},
        Mutation{"no_rollback", "ring.size is 2", [](Plan& p) { p.rollback = StateRollback::kNone; }},
        Mutation{"replay_without_ring", "ring.size is 0",
                 [](Plan& p) { Kda(p).layers[0].layout.ring.clear(); }}),
    Named);

INSTANTIATE_TEST_SUITE_P(
    Layouts, VerifyK3,
    ::testing::Values(
        Mutation{"heads", "heads is 2", [](Plan& p) { Target(p).layers[0].layout.heads = 2; }},
        Mutation{"key_dim", "key_dim is 0", [](Plan& p) { Target(p).layers[0].layout.key_dim = 0; }},
        Mutation{"value_dim", "value_dim is -1", [](Plan& p) { Target(p).layers[0].layout.value_dim = -1; }},
        Mutation{"alignment", "alignment_bytes is 0",
                 [](Plan& p) { Target(p).layers[0].layout.alignment_bytes = 0; }},
        Mutation{"rows_with_tensors", "states.size is 2",
                 [](Plan& p) { Target(p).layers[0].layout.states = Kda(p).layers[0].layout.states; }},
        Mutation{"state_without_tensors", "states.size is 0",
                 [](Plan& p) { Kda(p).layers[0].layout.states.clear(); }},
        Mutation{"state_with_heads", "heads is 1", [](Plan& p) { Kda(p).layers[0].layout.heads = 1; }},
        Mutation{"state_sharded", "layout.sharded is 1",
                 [](Plan& p) { Kda(p).layers[0].layout.sharded = true; }},
        Mutation{
            "many_tensors", "states.size is 17",
            [](Plan& p) { Kda(p).layers[0].layout.states.resize(17, Kda(p).layers[0].layout.states[0]); }},
        Mutation{"elements", "elements is 0",
                 [](Plan& p) { Kda(p).layers[0].layout.states[0].elements = 0; }},
        Mutation{"elements_large", "elements",
                 [](Plan& p) { Kda(p).layers[0].layout.ring[1].elements = kMax; }},
        Mutation{"tensor_name", "name.size is 0",
                 [](Plan& p) { Kda(p).layers[0].layout.states[0].name.clear(); }}),
    Named);

INSTANTIATE_TEST_SUITE_P(
    Graphs, VerifyK3,
    ::testing::Values(
        Mutation{"missing", "graphs[19] is absent", [](Plan& p) { p.graphs.pop_back(); }},
        Mutation{"extra", "graphs[20]", [](Plan& p) { p.graphs.push_back(p.graphs.back()); }},
        Mutation{"order", "graphs[0]", [](Plan& p) { std::swap(p.graphs[0], p.graphs[1]); }},
        Mutation{"rows", "graphs[15]", [](Plan& p) { p.graphs[15].query_rows = 8; }},
        Mutation{"bucket", "graphs[4]", [](Plan& p) { p.graphs[4].bucket = 15; }},
        Mutation{"wrong_role", "graphs[0]", [](Plan& p) { p.graphs[0].groups[0] = GroupId(1); }},
        Mutation{"unknown_group", "graphs[0]", [](Plan& p) { p.graphs[0].groups[0] = GroupId(9); }},
        Mutation{"group_left_out", "graphs[7]", [](Plan& p) { p.graphs[7].groups.pop_back(); }},
        Mutation{"eager_pass", "graphs[0]", [](Plan& p) { p.graphs[0].pass = Pass::kTargetPrefill; }}),
    Named);

OwnedBytes& Owner(Plan& p, const std::string& owner) {
  for (OwnedBytes& owned : p.attribution) {
    if (owned.owner == owner) return owned;
  }
  ADD_FAILURE() << owner;
  return p.attribution.front();
}

void Drop(Plan& p, const std::string& owner) {
  std::erase_if(p.attribution, [&](const OwnedBytes& owned) { return owned.owner == owner; });
}

INSTANTIATE_TEST_SUITE_P(
    Bytes, VerifyK3,
    ::testing::Values(
        Mutation{"sum", "attribution sum", [](Plan& p) { Owner(p, "payload.target.mla").bytes += Bytes(1); }},
        Mutation{"sum_below", "attribution sum",
                 [](Plan& p) { Owner(p, "payload.target.mla").bytes = Bytes(0); }},
        Mutation{"negative", "attribution[payload.target.mla] is -1",
                 [](Plan& p) { Owner(p, "payload.target.mla").bytes = Bytes(-1); }},
        Mutation{"overflow", "attribution",
                 [](Plan& p) { Owner(p, "payload.target.mla").bytes = Bytes(kMax); }},
        Mutation{"order", "out of order", [](Plan& p) { std::swap(p.attribution[0], p.attribution[1]); }},
        Mutation{"twice", "out of order", [](Plan& p) { p.attribution[1] = p.attribution[0]; }},
        Mutation{"unknown_owner", "attribution[ghost]", [](Plan& p) { p.attribution[0].owner = "ghost"; }},
        Mutation{"unknown_group", "attribution[payload.ghost]",
                 [](Plan& p) { p.attribution[0].owner = "payload.ghost"; }},
        Mutation{"null_parent", "attribution[null_parent]",
                 [](Plan& p) { Owner(p, "null_parent").bytes += Bytes(1); }},
        Mutation{"unassigned", "attribution[unassigned]",
                 [](Plan& p) { Owner(p, "unassigned").bytes += Bytes(-1); }},
        Mutation{"no_null_parent", "without null_parent", [](Plan& p) { Drop(p, "null_parent"); }},
        Mutation{"no_payload", "without payload.draft.mla", [](Plan& p) { Drop(p, "payload.draft.mla"); }}),
    Named);

struct OtherPlan {
  std::string name;
  std::string message;
  PlanRequest request;
  std::function<void(Plan&)> change;
};

TEST(VerifyOthers, Notice) {
  const std::vector<OtherPlan> cases = {
      {"snapshots are 1 + N copies", "copies is 1", K3Request({.rollback = RollbackChoice::kSnapshots}),
       [](Plan& p) { State(p).lifetime.copies = 1; }},
      {"snapshots keep no ring", "ring.size is 1", K3Request({.rollback = RollbackChoice::kSnapshots}),
       [](Plan& p) { Kda(p).layers[0].layout.ring = {{"r", 1, DType::kF32}}; }},
      {"a rollback without a draft", "rollback", K3Request({.draft_tokens = 0}),
       [](Plan& p) { p.rollback = StateRollback::kSnapshots; }},
      {"the window of a pool", "window is 1024, must be 512", WindowRequest(),
       [](Plan& p) { p.pools[1].lifetime.window = 512; }},
      {"a pool without its window", "window is 0", WindowRequest(),
       [](Plan& p) {
         p.pools[1].lifetime.window = 0;
         p.pools[1].groups[0].behaviour.window = 0;
       }},
      {"a sharded window", "pools[window.1024].sharded is 1", WindowRequest(),
       [](Plan& p) { p.pools[1].sharded = true; }},
      {"draft groups of different rows", "block_rows is 4", WindowRequest(),
       [](Plan& p) {
         PlanGroup second = p.pools[0].groups[1];
         second.name = "draft.second";
         second.layers.erase(second.layers.begin());
         p.pools[0].groups[1].layers.pop_back();
         second.id = GroupId(2);
         second.behaviour.block_rows = 4;
         p.pools[0].groups.push_back(second);
         p.pools[1].groups[0].id = GroupId(3);
       }},
  };
  for (const OtherPlan& c : cases) {
    Plan plan = PlanOf(c.request);
    ASSERT_THAT(VerifyPlan(plan), IsOk());
    c.change(plan);
    EXPECT_THAT(VerifyPlan(plan), StatusIs(absl::StatusCode::kInvalidArgument, c.message)) << c.name;
  }
}

TEST(VerifyOthers, AnEmptyPlanIsRefused) { EXPECT_FALSE(VerifyPlan(Plan()).ok()); }

}  // namespace
}  // namespace kvasir
