// Capacity, the longest context, misfits with their remedies, attribution and explanations.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>

#include "planner/core/build_report.h"
#include "planner/core/capacity.h"
#include "planner/core/explain.h"
#include "planner/rulesets/make_plan.h"
#include "tests/testing/k3_request.h"
#include "tests/testing/window_request.h"

namespace kvasir {
namespace {

using testing::K3Request;
using testing::WindowRequest;

Planned PlannedOf(const PlanRequest& request) { return std::get<Planned>(MakePlan(request)); }

DoesNotFit MisfitOf(const PlanRequest& request) {
  const PlanOutcome outcome = MakePlan(request);
  EXPECT_TRUE(std::holds_alternative<DoesNotFit>(outcome));
  const auto* misfit = std::get_if<DoesNotFit>(&outcome);
  return misfit == nullptr ? DoesNotFit() : *misfit;
}

bool Fits(const PlanRequest& request) { return std::holds_alternative<Planned>(MakePlan(request)); }

// One request more than admitted would need more parents than there are, counted by hand.
TEST(Capacity, IsTheLargestThatThePoolsAdmit) {
  for (const PlanRequest& request : {K3Request(), WindowRequest()}) {
    const Plan plan = PlannedOf(request).plan;
    for (const std::int64_t context :
         {std::int64_t{1}, std::int64_t{777}, std::int64_t{8192}, plan.context_tokens}) {
      const CapacityRow row = CapacityAt(plan, context);
      const auto parents = [&](std::int64_t requests) {
        std::int64_t count = 1;
        for (const PlanPool& pool : plan.pools) {
          const PoolDemand demand = DemandOf(plan, pool);
          const std::int64_t blocks =
              requests * BlocksForSequence(demand, context) + BlocksForPrefill(demand, plan.prefill_chunk);
          count += (blocks + pool.blocks_per_parent - 1) / pool.blocks_per_parent;
        }
        return count;
      };
      EXPECT_LE(parents(row.requests), plan.parents);
      EXPECT_GT(parents(row.requests + 1), plan.parents);
    }
  }
}

TEST(Capacity, LongestContextIsTheLastThatIsAdmitted) {
  const Plan plan = PlannedOf(WindowRequest()).plan;
  const std::int64_t longest = LongestContext(plan, 3, 1 << 30);
  EXPECT_GE(CapacityAt(plan, longest).requests, 3);
  EXPECT_LT(CapacityAt(plan, longest + 1).requests, 3);
  EXPECT_EQ(LongestContext(plan, std::int64_t{1} << 40, 1 << 30), 0);
}

TEST(Report, ContextsAreClippedSortedAndUnique) {
  PlanRequest request = K3Request();
  request.context_tokens = 32768;
  EXPECT_EQ(ReportContexts(request), (std::vector<std::int64_t>{8192, 32768}));
  request.capacity_contexts = {65536, 100, 16384, 100};
  EXPECT_EQ(ReportContexts(request), (std::vector<std::int64_t>{100, 16384, 32768}));
}

TEST(Report, DoesNotChangeThePlan) {
  PlanRequest request = K3Request();
  const std::string id = PlannedOf(request).plan_id;
  request.capacity_contexts = {100, 200};
  EXPECT_EQ(PlannedOf(request).plan_id, id);
}

TEST(Misfit, SaysByHowMuchAndWhatWouldFit) {
  PlanRequest request = K3Request({.context_tokens = 1048576, .kv_memory_bytes = std::int64_t{2} << 30});
  const DoesNotFit misfit = MisfitOf(request);
  EXPECT_EQ(misfit.bound_by, "tokens");
  EXPECT_EQ(misfit.given.value(), std::int64_t{2} << 30);
  EXPECT_EQ(misfit.shortfall, misfit.needed - misfit.given);
  // Exactly the least arena that fits.
  request.ranks.assign(request.ranks.size(), {.rank = Rank(0), .kv_memory = misfit.needed});
  for (std::size_t i = 0; i < request.ranks.size(); ++i)
    request.ranks[i].rank = Rank(static_cast<std::int32_t>(i));
  EXPECT_TRUE(Fits(request));
  request.ranks[0].kv_memory = misfit.needed - Bytes(1);
  EXPECT_FALSE(Fits(request));
  // Exactly the longest context.
  request.ranks[0].kv_memory = misfit.given;
  ASSERT_GT(misfit.longest_context_tokens, 0);
  request.context_tokens = misfit.longest_context_tokens;
  EXPECT_TRUE(Fits(request));
  request.context_tokens = misfit.longest_context_tokens + 1;
  EXPECT_FALSE(Fits(request));
}

// A window's pool holds a chunk besides its sequences; a shorter context has shorter chunks.
TEST(Misfit, TheLongestContextHasChunksOfItsOwn) {
  PlanRequest request = testing::WindowRequest({.kv_memory_bytes = std::int64_t{6} << 20});
  request.prefill_chunk = 8192;
  const DoesNotFit misfit = MisfitOf(request);
  EXPECT_GT(misfit.longest_context_tokens, 0);
  EXPECT_LT(misfit.longest_context_tokens, request.prefill_chunk);
  request.context_tokens = misfit.longest_context_tokens;
  const Planned planned = PlannedOf(request);
  EXPECT_EQ(planned.plan.prefill_chunk, misfit.longest_context_tokens);
  request.context_tokens = misfit.longest_context_tokens + 1;
  EXPECT_FALSE(Fits(request));
}

TEST(Misfit, OffersReplayBeforeAnythingElse) {
  const std::int64_t bytes = std::int64_t{1} << 30;
  const DoesNotFit misfit = MisfitOf(K3Request(
      {.rollback = RollbackChoice::kSnapshots, .context_tokens = 131072, .kv_memory_bytes = bytes}));
  ASSERT_FALSE(misfit.remedies.empty());
  EXPECT_EQ(misfit.remedies[0].field, "rollback");
  EXPECT_EQ(misfit.remedies[0].value, "replay");
  EXPECT_TRUE(Fits(
      K3Request({.rollback = RollbackChoice::kReplay, .context_tokens = 131072, .kv_memory_bytes = bytes})));
}

TEST(Misfit, EachRemedyFits) {
  PlanRequest request = K3Request({.context_tokens = 131072, .kv_memory_bytes = std::int64_t{3} << 30});
  request.min_requests = 40;
  const DoesNotFit misfit = MisfitOf(request);
  ASSERT_EQ(misfit.remedies.size(), 3U);
  for (const FitRemedy& remedy : misfit.remedies) {
    PlanRequest changed = request;
    const std::int64_t value = std::stoll(remedy.value);
    if (remedy.field == "min_requests") changed.min_requests = value;
    if (remedy.field == "context_tokens") changed.context_tokens = value;
    if (remedy.field == "ranks[].kv_memory") {
      for (RankMemory& rank : changed.ranks) rank.kv_memory = Bytes(value);
    }
    EXPECT_TRUE(Fits(changed)) << remedy.text;
  }
}

TEST(Misfit, AnArenaTooSmallForAnyParentIsOne) {
  for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{4096}, std::int64_t{1} << 20}) {
    const DoesNotFit misfit = MisfitOf(K3Request({.kv_memory_bytes = bytes}));
    EXPECT_EQ(misfit.longest_context_tokens, 0);
    EXPECT_GT(misfit.shortfall.value(), 0);
  }
}

TEST(Misfit, OfAnAbsurdRequestIsStillAnAnswer) {
  PlanRequest request = WindowRequest();
  request.target.context_tokens = 1 << 30;
  request.context_tokens = 1 << 30;
  request.min_requests = 4096;
  for (LayerSpec& layer : request.layers) {
    layer.layout.heads = 4096;
    layer.layout.key_dim = 1 << 20;
    layer.layout.value_dim = 1 << 20;
  }
  const DoesNotFit misfit = MisfitOf(request);
  EXPECT_GT(misfit.needed.value(), std::int64_t{1} << 50);
}

TEST(Attribution, SumsToTheArenaAndHoldsThePayload) {
  for (const PlanRequest& request :
       {K3Request(), K3Request({.rollback = RollbackChoice::kSnapshots}), K3Request({.draft_tokens = 0}),
        WindowRequest(), WindowRequest({.draft_tokens = 0}), testing::TinyRequest()}) {
    const Plan plan = PlannedOf(request).plan;
    std::int64_t sum = 0;
    for (const OwnedBytes& owned : plan.attribution) sum += owned.bytes.value();
    EXPECT_EQ(sum, plan.arena_bytes.value());
  }
}

TEST(Attribution, OfKimiK3IsWhatTheLayersHold) {
  const Plan plan = PlannedOf(K3Request()).plan;
  std::map<std::string, std::int64_t> owners;
  for (const OwnedBytes& owned : plan.attribution) owners[owned.owner] = owned.bytes.value();
  const std::int64_t requests = CapacityAt(plan, plan.context_tokens).requests;
  EXPECT_EQ(owners["payload.target.mla"], requests * 24 * 1152 * 16384);
  EXPECT_EQ(owners["payload.draft.mla"], requests * 5 * 1152 * 16384);
  EXPECT_EQ(owners["payload.target.kda"], requests * 69 * (786432 + 92160));
  EXPECT_EQ(owners["speculative.target.kda"], requests * 69 * 43344);
  EXPECT_EQ(owners["null_parent"], plan.parent_bytes.value());
}

bool Says(const std::vector<ExplainLine>& lines, ExplainTopic topic, const std::string& subject,
          const std::string& part) {
  for (const ExplainLine& line : lines) {
    if (line.topic == topic && line.subject == subject && line.text.find(part) != std::string::npos)
      return true;
  }
  return false;
}

TEST(Explain, NamesTheKeyThatKeepsGroupsApart) {
  const Planned planned = PlannedOf(K3Request());
  const std::vector<ExplainLine> lines = ExplainPlan(planned.plan, planned.report);
  EXPECT_TRUE(Says(lines, ExplainTopic::kGroup, "target.mla",
                   "shares blocks with draft.mla and never metadata: behaviour.role is target and draft, "
                   "behaviour.causal is true and false"));
  EXPECT_TRUE(
      Says(lines, ExplainTopic::kGroup, "target.kda", "shares no blocks with target.mla: lifetime.kind is"));
  EXPECT_TRUE(Says(lines, ExplainTopic::kSize, "tokens", "a block is 64 tokens"));
  EXPECT_TRUE(Says(lines, ExplainTopic::kSize, "parent", "worst cost 516 / 512"));
  EXPECT_TRUE(Says(lines, ExplainTopic::kRollback, "snapshots", "not chosen; 96 sequences of 8192 tokens"));
  EXPECT_TRUE(Says(lines, ExplainTopic::kRollback, "replay", "chosen; "));
  EXPECT_TRUE(Says(lines, ExplainTopic::kCapacity, "131072 tokens", "82 sequences"));
  EXPECT_TRUE(Says(lines, ExplainTopic::kCapacity, "131072 tokens", "bound by pool tokens"));
  EXPECT_TRUE(Says(lines, ExplainTopic::kCapacity, "8192 tokens", "bound by pool state"));
  EXPECT_TRUE(Says(lines, ExplainTopic::kGraph, "draft_block",
                   "7 rows a request, up to 16 requests, over draft.mla (non-causal)"));
  EXPECT_TRUE(Says(lines, ExplainTopic::kBytes, "null_parent", "21381120 bytes"));
}

TEST(Explain, EveryGroupPoolAndOwnerIsExplained) {
  for (const PlanRequest& request : {K3Request(), WindowRequest(), testing::TinyRequest()}) {
    const Plan plan = PlannedOf(request).plan;
    const std::vector<ExplainLine> lines = ExplainPlan(plan);
    for (const PlanPool& pool : plan.pools) {
      EXPECT_TRUE(Says(lines, ExplainTopic::kSize, pool.name, "stride"));
      for (const PlanGroup& group : pool.groups)
        EXPECT_TRUE(Says(lines, ExplainTopic::kGroup, group.name, "in pool"));
    }
    for (const OwnedBytes& owned : plan.attribution) {
      EXPECT_TRUE(Says(lines, ExplainTopic::kBytes, owned.owner, std::to_string(owned.bytes.value())));
    }
  }
}

}  // namespace
}  // namespace kvasir
