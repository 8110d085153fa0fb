#include "planner/request/build_request.h"

#include <algorithm>
#include <limits>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "common/base/limits.h"
#include "common/models/catalogue.h"
#include "planner/request/backends.h"
#include "planner/request/explicit_layers.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

ModelDescription Catalogued(std::string_view name) {
  auto model = FindInCatalogue(name);
  EXPECT_THAT(model, testing::IsOk());
  return model.ok() ? *model : ModelDescription{};
}

PlanOptions Options(std::int64_t tp, std::int64_t dcp) {
  PlanOptions options;
  options.tp = tp;
  options.dcp = dcp;
  options.kv_memory_bytes = {std::int64_t{40} << 30};
  return options;
}

PlanRequest KimiRequest(const PlanOptions& options) {
  return BuildRequest(Catalogued("kimi-k3"), Catalogued("kimi-k3-dspark"), options);
}

const LayerSpec& LayerOf(const PlanRequest& request, const std::string& name) {
  for (const LayerSpec& layer : request.layers) {
    if (layer.name == name) return layer;
  }
  ADD_FAILURE() << "no layer " << name;
  return request.layers.front();
}

std::vector<std::string> EarlyRules(const PlanRequest& request) {
  std::vector<std::string> out;
  out.reserve(request.early_refusals.size());
  for (const Refusal& refusal : request.early_refusals) out.emplace_back(RuleName(refusal.rule));
  return out;
}

// DFlash, DFlare and Domino predict in place, so their blocks hold the anchor beside the N tokens.
TEST(BuildRequest, ABlockWhoseAnchorPredictsNothingHasARowMore) {
  struct Pair {
    std::string_view target, draft;
    std::int64_t rows;
  };
  for (const Pair& c : {Pair{"qwen3-8b", "z-lab/Qwen3-8B-DFlash-b16", 6}, {"kimi-k3", "kimi-k3-dspark", 5}}) {
    PlanOptions options;
    options.draft_tokens = 5;
    const PlanRequest request = BuildRequest(Catalogued(c.target), Catalogued(c.draft), options);
    bool seen = false;
    for (const LayerSpec& layer : request.layers) {
      if (layer.id.role != Role::kDraft) continue;
      seen = true;
      EXPECT_EQ(layer.behaviour.block_rows, c.rows) << layer.name;
    }
    EXPECT_TRUE(seen) << c.draft;
  }
}

TEST(BuildRequest, KimiK3WithItsDraft) {
  const PlanRequest request = KimiRequest(Options(8, 8));
  EXPECT_TRUE(request.early_refusals.empty());
  ASSERT_EQ(request.layers.size(), 98U);
  EXPECT_EQ(request.draft_tokens, 7);
  EXPECT_EQ(request.target.layers, 93);
  ASSERT_TRUE(request.draft.has_value());
  EXPECT_EQ(request.draft->target_taps, (std::vector<std::int64_t>{2, 23, 47, 71, 89}));
  EXPECT_EQ(request.ranks.size(), 8U);

  const LayerSpec& mla = LayerOf(request, "target.layers.3");
  EXPECT_EQ(mla.mixer, "mla");
  EXPECT_EQ(mla.layout.kind, LayoutKind::kLatent);
  EXPECT_TRUE(mla.layout.sharded);
  EXPECT_EQ(RowBytes(mla.layout), 1152);
  EXPECT_TRUE(mla.behaviour.causal);
  EXPECT_EQ(mla.behaviour.block_rows, 8);
  EXPECT_EQ(mla.lifetime, LifetimeKey{});

  const LayerSpec& draft = LayerOf(request, "draft.layers.0");
  EXPECT_EQ(draft.layout, mla.layout);
  EXPECT_FALSE(draft.behaviour.causal);
  EXPECT_EQ(draft.behaviour.block_rows, 7);
  EXPECT_EQ(draft.behaviour.role, Role::kDraft);
  EXPECT_EQ(draft.registration_index, 93);
}

// Byte counts that public traces report for the state of one KDA layer, by tensor parallelism and draft
// tokens.
TEST(BuildRequest, KdaStateBytes) {
  struct Case {
    std::int64_t tp;
    std::int64_t draft_tokens;
    std::int64_t bytes;
  };
  for (const Case& c : {Case{1, 0, 6512640}, Case{1, 7, 7028736}, Case{4, 7, 1757184}, Case{8, 0, 814080},
                        Case{8, 7, 878592}, Case{16, 0, 407040}, Case{16, 7, 439296}}) {
    PlanOptions options = Options(c.tp, 1);
    const bool with_draft = c.draft_tokens > 0;
    const PlanRequest request =
        with_draft ? KimiRequest(options) : BuildRequest(Catalogued("kimi-k3"), std::nullopt, options);
    const LayerSpec& kda = LayerOf(request, "target.layers.0");
    EXPECT_EQ(StateBytes(kda.layout), c.bytes) << "tp " << c.tp << ", draft tokens " << c.draft_tokens;
    EXPECT_EQ(kda.behaviour.mixer, Mixer::kRecurrent);
    EXPECT_EQ(kda.lifetime, (LifetimeKey{LifetimeKind::kPerSequence, 0, 1}));
    EXPECT_FALSE(kda.layout.sharded);
  }
}

TEST(BuildRequest, KdaRingHoldsDecayAndBeta) {
  const PlanRequest request = KimiRequest(Options(8, 8));
  // 12 heads of 128 lanes and one rate, 4 bytes each, for each of the 7 drafted rows.
  EXPECT_EQ(RingBytes(LayerOf(request, "target.layers.0").layout, 7), 12 * (128 + 1) * 4 * 7);
}

// Nemotron-Nano-9B-v2 on one rank without a draft: 5,316,608 bytes a page, as its start-up log says.
TEST(BuildRequest, Mamba2StateBytes) {
  ModelDescription model;
  model.name = "test/mamba";
  model.architecture = "NemotronHForCausalLM";
  model.hidden = 4480;
  model.vocab = 131072;
  model.context = 131072;
  model.layers = {{0, Mamba2Shape{128, 80, 128, 8, 4, DType::kF32}, {}}};
  EXPECT_EQ(StateBytes(BuildRequest(model, std::nullopt, Options(1, 1)).layers[0].layout), 5316608);
  // 16 ranks share 8 groups: each rank keeps one of its own.
  const PlanRequest wide = BuildRequest(model, std::nullopt, Options(16, 1));
  EXPECT_EQ(wide.layers[0].layout.states[0].elements, 3 * (128 * 80 / 16 + 2 * 128));
}

TEST(BuildRequest, KeyValueHeadsPerRank) {
  struct Case {
    std::int64_t tp;
    std::int64_t dcp;
    std::int64_t kv_heads;
    std::int64_t per_rank;  // 0: refused
  };
  for (const Case& c :
       {Case{1, 1, 8, 8}, Case{2, 1, 8, 4}, Case{8, 1, 8, 1}, Case{16, 1, 8, 1}, Case{8, 1, 2, 1},
        Case{8, 1, 6, 0}, Case{8, 8, 8, 8}, Case{8, 2, 8, 2}, Case{8, 4, 2, 1}, Case{16, 2, 8, 1}}) {
    ModelDescription model;
    model.name = "test/gqa";
    model.architecture = "LlamaForCausalLM";
    model.context = 4096;
    model.hidden = 64;
    model.vocab = 100;
    model.layers = {{0, AttentionShape{48, c.kv_heads, 128, 128, 0}, {.intermediate = 1}}};
    const PlanRequest request = BuildRequest(model, std::nullopt, Options(c.tp, c.dcp));
    if (c.per_rank == 0) {
      EXPECT_EQ(EarlyRules(request), std::vector<std::string>{"HEADS_NOT_DIVISIBLE_BY_TP"});
    } else {
      EXPECT_TRUE(request.early_refusals.empty()) << c.tp << " " << c.kv_heads;
      EXPECT_EQ(request.layers[0].layout.heads, c.per_rank) << c.tp << " " << c.dcp << " " << c.kv_heads;
    }
    EXPECT_EQ(request.layers[0].layout.sharded, c.dcp > 1);
  }
}

TEST(BuildRequest, WindowsAreReplicated) {
  ModelDescription model;
  model.name = "test/window";
  model.architecture = "LlamaForCausalLM";
  model.context = 4096;
  model.hidden = 64;
  model.vocab = 100;
  model.layers = {{0, AttentionShape{8, 8, 128, 128, 512}, {.intermediate = 1}}};
  const PlanRequest request = BuildRequest(model, std::nullopt, Options(8, 8));
  const LayerSpec& layer = request.layers[0];
  EXPECT_FALSE(layer.layout.sharded);
  EXPECT_EQ(layer.layout.heads, 1);
  EXPECT_EQ(layer.behaviour.window, 512);
  EXPECT_EQ(layer.lifetime, (LifetimeKey{LifetimeKind::kBoundedWindow, 512, 0}));
  EXPECT_EQ(layer.behaviour.block_rows, 1);
}

TEST(BuildRequest, HeadsThatTensorParallelismDoesNotDivide) {
  const PlanRequest request = KimiRequest(Options(5, 1));
  // One refusal for each model and kind of head, not one for each layer.
  EXPECT_EQ(EarlyRules(request), (std::vector<std::string>(3, "HEADS_NOT_DIVISIBLE_BY_TP")));
  std::set<std::string> subjects;
  for (const Refusal& refusal : request.early_refusals) subjects.insert(refusal.subjects.at(0));
  EXPECT_EQ(subjects, (std::set<std::string>{"Inferact/Kimi-K3-DSpark", "moonshotai/Kimi-K3"}));
}

TEST(BuildRequest, UnknownWordsAreRefused) {
  PlanOptions options = Options(8, 8);
  options.cache_dtype = "int4";
  options.state_rollback = "undo";
  options.draft_context = "both";
  EXPECT_EQ(EarlyRules(KimiRequest(options)),
            (std::vector<std::string>{"INVALID_NAME", "INVALID_NAME", "DTYPE_UNKNOWN"}));
}

TEST(BuildRequest, UnsaidAsManyAreDraftedAsTheDraftWasTrainedFor) {
  EXPECT_EQ(BuildRequest(Catalogued("qwen3-8b"), Catalogued("z-lab/Qwen3-8B-DFlash-b16"), PlanOptions{})
                .draft_tokens,
            15);
  EXPECT_EQ(KimiRequest(Options(8, 8)).draft_tokens, 7);
}

TEST(BuildRequest, AReplicatedDraftKeepsItsOwnHeadsOfAllTokens) {
  PlanOptions options = Options(8, 8);
  const PlanRequest sharded = KimiRequest(options);
  EXPECT_TRUE(LayerOf(sharded, "draft.layers.0").layout.sharded);
  EXPECT_EQ(LayerOf(sharded, "draft.layers.0").query_heads, 64);
  options.draft_context = kDraftReplicated;
  const PlanRequest replicated = KimiRequest(options);
  EXPECT_FALSE(LayerOf(replicated, "draft.layers.0").layout.sharded);
  EXPECT_EQ(LayerOf(replicated, "draft.layers.0").query_heads, 8);
  EXPECT_EQ(LayerOf(replicated, "target.layers.3").layout, LayerOf(sharded, "target.layers.3").layout);
  EXPECT_TRUE(LayerOf(replicated, "target.layers.3").layout.sharded);
}

TEST(BuildRequest, CacheDtypeLeavesStatesAlone) {
  PlanOptions options = Options(8, 8);
  options.cache_dtype = "fp8_e4m3";
  const PlanRequest request = KimiRequest(options);
  EXPECT_EQ(RowBytes(LayerOf(request, "target.layers.3").layout), 576);
  EXPECT_EQ(RowBytes(LayerOf(request, "draft.layers.0").layout), 576);
  EXPECT_EQ(StateBytes(LayerOf(request, "target.layers.0").layout), 878592);
}

TEST(BuildRequest, RecurrentLayersGoToABackendThatKeepsState) {
  PlanOptions options = Options(8, 8);
  options.target_backend = "flashmla";
  const PlanRequest request = KimiRequest(options);
  EXPECT_EQ(LayerOf(request, "target.layers.3").behaviour.backend, "flashmla");
  EXPECT_EQ(LayerOf(request, "target.layers.0").behaviour.backend, kRecurrentBackend);
  EXPECT_EQ(LayerOf(request, "draft.layers.0").behaviour.backend, kDefaultBackend);
  EXPECT_EQ(LayerOf(KimiRequest(Options(8, 8)), "target.layers.0").behaviour.backend, kDefaultBackend);
}

TEST(BuildRequest, Contexts) {
  struct Case {
    std::string model;
    std::vector<std::int64_t> given;
    std::int64_t context;
    std::vector<std::int64_t> columns;
  };
  for (const Case& c :
       {Case{"kimi-k3", {}, 1048576, {8192, 32768, 131072, 1048576}}, Case{"demo-target", {}, 4096, {}},
        Case{"kimi-k3", {131072}, 131072, {}}, Case{"kimi-k3", {0}, 1048576, {}},
        Case{"kimi-k3", {0, 100, 7, 100}, 1048576, {7, 100, 1048576}},
        Case{"demo-target", {8192}, 8192, {}}}) {
    PlanOptions options = Options(1, 1);
    options.contexts = c.given;
    const PlanRequest request = BuildRequest(Catalogued(c.model), std::nullopt, options);
    EXPECT_EQ(request.context_tokens, c.context);
    EXPECT_EQ(request.capacity_contexts, c.columns);
  }
}

TEST(BuildRequest, MemoryPerRank) {
  PlanOptions options = Options(2, 1);
  options.kv_memory_bytes = {100, 200};
  const PlanRequest listed = KimiRequest(options);
  ASSERT_EQ(listed.ranks.size(), 2U);
  EXPECT_EQ(listed.ranks[1], (RankMemory{Rank(1), Bytes(200)}));
  options.kv_memory_bytes = {};
  EXPECT_TRUE(KimiRequest(options).ranks.empty());
  options.kv_memory_bytes = {1, 2, 3};
  EXPECT_EQ(KimiRequest(options).ranks.size(), 3U);
}

// Numbers that no plan has pass through for the core to refuse; nothing overflows, divides by zero or
// allocates by them.
TEST(BuildRequest, AbsurdOptionsAreSafe) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t value : {kMin, std::int64_t{-1}, std::int64_t{0}, kMax}) {
    PlanOptions options;
    options.tp = value;
    options.dcp = value;
    options.interleave = value;
    options.kv_memory_bytes = {value};
    options.contexts = {value};
    options.max_requests = value;
    options.min_requests = value;
    options.draft_tokens = value;
    options.block_tokens = value;
    options.prefill_chunk = value;
    const PlanRequest request = KimiRequest(options);
    EXPECT_EQ(request.topology.tp, value);
    EXPECT_LE(request.ranks.size(), static_cast<std::size_t>(kRanksMax));
    EXPECT_EQ(request.layers.size(), 98U);
  }
}

TEST(Backends, AreSortedWithUniqueNamesAndIncludeTheDefaults) {
  const std::vector<BackendFacts> table = BackendTable();
  EXPECT_TRUE(std::is_sorted(table.begin(), table.end(),
                             [](const BackendFacts& a, const BackendFacts& b) { return a.name < b.name; }));
  std::set<std::string> names;
  for (const BackendFacts& facts : table) names.insert(facts.name);
  EXPECT_EQ(names.size(), table.size());
  EXPECT_TRUE(names.contains(std::string(kDefaultBackend)));
  EXPECT_TRUE(KeepsState(kDefaultBackend));
  EXPECT_TRUE(KeepsState(kRecurrentBackend));
  EXPECT_FALSE(KeepsState("flashmla"));
  EXPECT_FALSE(KeepsState("no such backend"));
}

TEST(Backends, BlockOptionNarrowsPageSizes) {
  struct Case {
    std::string backend;
    std::int64_t block;
    std::vector<std::int64_t> pages;
  };
  for (const Case& c : {Case{"flashmla", 64, {64}}, Case{"flashmla", 128, {}}, Case{"triton", 256, {256}},
                        Case{"triton", 100, {}}, Case{"triton", -16, {}}, Case{"triton", 1 << 20, {}},
                        Case{"tokenspeed", 32, {32}}, Case{"reference", 4096, {4096}}, Case{"fla", 64, {}}}) {
    for (const BackendFacts& facts : BackendsWithBlock(c.block)) {
      if (facts.name == c.backend) {
        EXPECT_EQ(facts.page_tokens, c.pages) << c.backend << " " << c.block;
      }
    }
  }
}

TEST(ExplicitInput, DigestIsOrderFreeAndNamesAreFilled) {
  CacheLayer a;
  a.id = {Role::kTarget, 0, 0};
  a.cache = LatentCache{8, 512, 64, 0};
  CacheLayer b = a;
  b.id.index = 1;
  b.cache = KeyValueCache{8, 2, 64, 64, 128};
  const ModelInput ab = ExplicitInput(Role::kTarget, "", {a, b}, 0);
  const ModelInput ba = ExplicitInput(Role::kTarget, "", {b, a}, 0);
  EXPECT_EQ(ab.ref, ba.ref);
  EXPECT_EQ(ab.ref.name, "target-layers");
  EXPECT_EQ(ab.layers[1].name, "target.layers.1");
  EXPECT_EQ(ab.layers[1].mixer, "window");
  EXPECT_EQ(ab.layers_total, 2);
  EXPECT_EQ(ab.context_tokens, kContextTokensMax);
  b.cache = KeyValueCache{8, 2, 64, 64, 256};
  EXPECT_NE(ExplicitInput(Role::kTarget, "", {a, b}, 0).ref.digest, ab.ref.digest);
}

TEST(ExplicitInput, UnsaidWidthsAgreeWithTheOtherModel) {
  CacheLayer layer;
  layer.id = {Role::kTarget, 0, 0};
  layer.cache = LatentCache{8, 64, 16, 0};
  const ModelInput target = ExplicitInput(Role::kTarget, "org/target", {layer}, 4096);
  const ModelInput draft = InputOf(Catalogued("demo-dspark"), Role::kDraft, {});
  const PlanRequest mixed = BuildRequest(target, draft, Options(1, 1));
  EXPECT_EQ(mixed.target.hidden, 128);
  EXPECT_EQ(mixed.target.vocab, 512);
  layer.id.role = Role::kDraft;
  const PlanRequest both = BuildRequest(target, ExplicitInput(Role::kDraft, "", {layer}, 0), Options(1, 1));
  EXPECT_EQ(both.target.hidden, both.draft->target_hidden);
  EXPECT_GE(both.target.vocab, 1);
}

}  // namespace
}  // namespace kvasir
