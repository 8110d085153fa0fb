// Each stage's Verify notices what its maker could get wrong, and stages keep what they promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "planner/core/assembled.h"
#include "planner/core/graphed.h"
#include "planner/rulesets/native/native.h"
#include "tests/testing/k3_request.h"
#include "tests/testing/matchers.h"
#include "tests/testing/window_request.h"

namespace kvasir {
namespace {

using testing::IsOk;
using testing::K3Request;
using testing::WindowRequest;

Validated ValidatedOf(const PlanRequest& request) {
  return std::get<Validated>(Validate(Canonicalize(request)));
}
Grouped GroupedOf(const PlanRequest& request) { return native::GroupLayers(ValidatedOf(request)); }
Packed PackedOf(const PlanRequest& request) { return native::PackBlocks(GroupedOf(request)); }
Sized SizedOf(const PlanRequest& request) { return std::get<Sized>(native::SizeArena(PackedOf(request))); }
Graphed GraphedOf(const PlanRequest& request) { return AddGraphs(SizedOf(request)); }

TEST(CanonicalStage, SortsAndTakesTheLeastMemory) {
  PlanRequest request = K3Request();
  std::reverse(request.layers.begin(), request.layers.end());
  std::reverse(request.ranks.begin(), request.ranks.end());
  request.ranks[3].kv_memory = Bytes(1000);
  const Canonical canonical = Canonicalize(request);
  EXPECT_EQ(canonical.arena_bytes, Bytes(1000));
  EXPECT_EQ(canonical.request.layers, K3Request().layers);
  EXPECT_EQ(canonical.request.ranks.front().rank, Rank(0));
  EXPECT_THAT(Verify(canonical), IsOk());
}

TEST(CanonicalStage, NothingIsShardedOnOneContextRank) {
  PlanRequest request = K3Request();
  request.topology.dcp = 1;
  for (const LayerSpec& layer : Canonicalize(request).request.layers) EXPECT_FALSE(layer.layout.sharded);
}

TEST(CanonicalStage, ItsTextOmitsTheRegistrationIndex) {
  PlanRequest request = K3Request();
  const std::string before = ToText(Canonicalize(request));
  for (LayerSpec& layer : request.layers) layer.registration_index = 200 - layer.registration_index;
  EXPECT_EQ(ToText(Canonicalize(request)), before);
}

// A stage broken on purpose; Verify must say so.
template <class Stage>
struct Break {
  std::string name;
  std::function<void(Stage&)> change;
};

template <class Stage>
void ExpectCaught(const Stage& good, const std::vector<Break<Stage>>& breaks) {
  ASSERT_THAT(Verify(good), IsOk());
  for (const Break<Stage>& broken : breaks) {
    Stage stage = good;
    broken.change(stage);
    EXPECT_FALSE(Verify(stage).ok()) << broken.name;
  }
}

TEST(CanonicalStage, VerifyCatches) {
  ExpectCaught<Canonical>(
      Canonicalize(K3Request()),
      {{"layers out of order", [](Canonical& c) { std::swap(c.request.layers[0], c.request.layers[1]); }},
       {"ranks out of order", [](Canonical& c) { std::swap(c.request.ranks[0], c.request.ranks[1]); }},
       {"arena above a rank", [](Canonical& c) { c.request.ranks[1].kv_memory = Bytes(1); }},
       {"arena below all ranks", [](Canonical& c) { c.arena_bytes = Bytes(1); }}});
}

TEST(ValidatedStage, VerifyCatches) {
  ExpectCaught<Validated>(
      ValidatedOf(K3Request()),
      {{"no page size", [](Validated& v) { v.page_tokens.clear(); }},
       {"a rank too few", [](Validated& v) { v.canonical.request.ranks.pop_back(); }},
       {"non-causal target", [](Validated& v) { v.canonical.request.layers[0].behaviour.causal = false; }},
       {"state that grows",
        [](Validated& v) { v.canonical.request.layers[0].lifetime.kind = LifetimeKind::kPerToken; }}});
}

TEST(GroupedStage, VerifyCatches) {
  const auto tokens = [](Grouped& g) -> GroupedPool& {
    return *std::find_if(g.pools.begin(), g.pools.end(),
                         [](const GroupedPool& p) { return p.name == "tokens"; });
  };
  ExpectCaught<Grouped>(
      GroupedOf(K3Request()),
      {{"lost layer", [&](Grouped& g) { tokens(g).groups[0].layers.pop_back(); }},
       {"layer twice",
        [&](Grouped& g) { tokens(g).groups[0].layers.push_back(tokens(g).groups[0].layers[0]); }},
       {"draft and target merged",
        [&](Grouped& g) {
          auto& groups = tokens(g).groups;
          groups[0].layers.insert(groups[0].layers.end(), groups[1].layers.begin(), groups[1].layers.end());
          groups.pop_back();
        }},
       {"one behaviour in two groups",
        [&](Grouped& g) {
          auto& groups = tokens(g).groups;
          groups.push_back({.name = "again", .layers = {groups[0].layers.back()}});
          groups[0].layers.pop_back();
        }},
       {"two names alike", [&](Grouped& g) { tokens(g).groups[1].name = tokens(g).groups[0].name; }},
       {"wrong pool", [&](Grouped& g) { tokens(g).key.second = false; }}});
}

TEST(PackedStage, VerifyCatches) {
  ExpectCaught<Packed>(
      PackedOf(K3Request()),
      {{"groups out of order",
        [](Packed& p) { std::swap(p.grouped.pools[0].groups[0], p.grouped.pools[0].groups[1]); }},
       {"block too small", [](Packed& p) { p.variants[0].pools[0].blocks[0].block_bytes -= 1; }},
       {"block too large", [](Packed& p) { p.variants[0].pools[0].blocks[0].block_bytes += 4096; }},
       {"no block", [](Packed& p) { p.variants[0].pools[0].blocks.clear(); }},
       {"parts that do not divide", [](Packed& p) { p.variants[0].pools[1].blocks[1].parts = 4; }},
       {"unit", [](Packed& p) { p.variants[0].pools[1].unit_bytes = 128; }},
       {"rollback", [](Packed& p) { p.variants[0].rollback = StateRollback::kNone; }},
       {"no variant", [](Packed& p) { p.variants.clear(); }}});
}

TEST(SizedStage, VerifyCatches) {
  ExpectCaught<Sized>(SizedOf(K3Request()),
                      {{"stride", [](Sized& s) { s.pools[0].stride_bytes += 256; }},
                       {"blocks per parent", [](Sized& s) { s.pools[0].blocks_per_parent += 1; }},
                       {"parents", [](Sized& s) { s.parents += 1; }},
                       {"parent", [](Sized& s) { s.parent_bytes += 256; }},
                       {"unknown block", [](Sized& s) { s.pools[0].block.block_tokens = 32; }},
                       {"bound", [](Sized& s) { s.choice.parent_bytes_max = Bytes(1); }},
                       {"a page is missing", [](Sized& s) { s.pools[1].pages.pop_back(); }},
                       {"a pool is missing", [](Sized& s) { s.pools.pop_back(); }}});
}

TEST(GraphedStage, VerifyCatches) {
  ExpectCaught<Graphed>(
      GraphedOf(K3Request()),
      {{"a target pass over a draft group", [](Graphed& g) { g.graphs[0].groups[1] = GroupId(1); }},
       {"a group left out", [](Graphed& g) { g.graphs[0].groups.pop_back(); }},
       {"no largest bucket", [](Graphed& g) {
          std::erase_if(g.graphs, [](const PlanGraph& graph) { return graph.bucket == 16; });
        }}});
}

TEST(GraphedStage, PassesHaveTheirRows) {
  std::vector<std::pair<Pass, std::int64_t>> rows;
  for (const PlanGraph& graph : GraphedOf(K3Request()).graphs) {
    if (rows.empty() || rows.back().first != graph.pass) rows.emplace_back(graph.pass, graph.query_rows);
  }
  EXPECT_EQ(rows, (std::vector<std::pair<Pass, std::int64_t>>{{Pass::kTargetDecode, 1},
                                                              {Pass::kTargetVerify, 8},
                                                              {Pass::kDraftContext, 8},
                                                              {Pass::kDraftBlock, 7}}));
}

TEST(PlacePages, AlignsEachPageAndRestartsEachPart) {
  PlanRequest request = WindowRequest();
  for (LayerSpec& layer : request.layers) layer.layout.alignment_bytes = 4096 * 3;
  const Packed packed = PackedOf(request);
  const BlockCandidate block{.block_tokens = 16, .parts = 1, .block_bytes = 0};
  const std::vector<PlacedPage> pages = native::PlacePages(packed.grouped, 0, StateRollback::kNone, block);
  ASSERT_EQ(pages.size(), 6U);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    EXPECT_EQ(pages[i].page_bytes, 8192);
    EXPECT_EQ(pages[i].offset_bytes, static_cast<std::int64_t>(i) * 12288);
  }
  EXPECT_EQ(packed.variants[0].pools[0].unit_bytes, 12288);

  const Packed k3 = PackedOf(K3Request());
  const std::vector<PlacedPage> parts = native::PlacePages(k3.grouped, 1, StateRollback::kSnapshots,
                                                           {.block_tokens = 0, .parts = 3, .block_bytes = 0});
  ASSERT_EQ(parts.size(), 69U);
  EXPECT_EQ(parts[22].part, 0);
  EXPECT_EQ(parts[23].part, 1);
  EXPECT_EQ(parts[23].offset_bytes, 0);
  EXPECT_EQ(parts[68].part, 2);
}

TEST(AssembledStage, KeepsRingsOnlyUnderReplay) {
  for (const RollbackChoice choice : {RollbackChoice::kSnapshots, RollbackChoice::kReplay}) {
    const Plan plan = Assemble(GraphedOf(K3Request({.rollback = choice})), "native/1");
    const bool replay = choice == RollbackChoice::kReplay;
    for (const PlanLayer& layer : plan.pools[1].groups[0].layers) {
      EXPECT_EQ(layer.layout.ring.size(), replay ? 2U : 0U);
      EXPECT_EQ(layer.page_bytes, 786432 + 92160 + (replay ? 43344 : 0));
    }
    EXPECT_EQ(plan.pools[1].lifetime.copies, replay ? 1 : 8);
  }
}

}  // namespace
}  // namespace kvasir
