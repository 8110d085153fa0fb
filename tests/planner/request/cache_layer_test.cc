// Which caches each kind of layer becomes, and which kinds are refused by name.
#include "planner/request/cache_layer.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "common/models/catalogue.h"
#include "common/models/draft_of.h"
#include "planner/request/build_request.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

ModelDescription Catalogued(std::string_view name) {
  auto model = FindInCatalogue(name);
  EXPECT_THAT(model, testing::IsOk());
  return model.ok() ? *model : ModelDescription{};
}

// "target.layers.0 mla latent 512+64", one for each cache of the first layers.
std::string CacheText(const CacheLayer& layer) {
  std::string out = layer.name + " " + layer.mixer;
  if (const auto* kv = std::get_if<KeyValueCache>(&layer.cache)) {
    out += " " + std::to_string(kv->kv_heads) + "x" + std::to_string(kv->key_dim) + "+" +
           std::to_string(kv->value_dim);
    if (kv->window > 0) out += " w" + std::to_string(kv->window);
  } else if (const auto* latent = std::get_if<LatentCache>(&layer.cache)) {
    out += " " + std::to_string(latent->latent_dim) + "+" + std::to_string(latent->rope_dim);
    if (latent->window > 0) out += " w" + std::to_string(latent->window);
  } else {
    for (const StateTensor& state : std::get<StateCache>(layer.cache).states) {
      out +=
          " " + state.name + "=" + std::to_string(state.elements) + ":" + std::string(DTypeName(state.dtype));
    }
  }
  return layer.dtype.has_value() ? out + " " + std::string(DTypeName(*layer.dtype)) : out;
}

struct KindCase {
  std::string model;
  std::size_t layer;                // of the model
  std::vector<std::string> caches;  // of that layer
};
void PrintTo(const KindCase& c, std::ostream* out) { *out << c.model << " layer " << c.layer; }

std::vector<KindCase> KindCases() {
  return {
      {"llama-3.1-8b", 0, {"target.layers.0 attention 8x128+128"}},
      {"mimo-v2-flash", 1, {"target.layers.1 window 8x192+128 w128"}},
      {"llama-4-scout", 0, {"target.layers.0 chunked 8x128+128 w8192"}},
      {"llama-4-scout", 3, {"target.layers.3 attention 8x128+128"}},
      {"gemma-4-e2b", 15, {}},
      {"deepseek-v3.2", 0, {"target.layers.0 mla 512+64", "target.layers.0.1 indexer 132+0 fp8_e4m3"}},
      {"minimax-m3", 3, {"target.layers.3 attention 4x128+128", "target.layers.3.1 indexer 128+0 bf16"}},
      {"longcat-flash", 5, {"target.layers.5 mla 512+64", "target.layers.5.1 mla 512+64"}},
      {"deepseek-v4-flash", 2, {"target.layers.2 mla_window 448+64 w128"}},
      {"qwen3.5-27b", 0, {"target.layers.0 gated_delta conv=30720:bf16 recurrent=786432:f32"}},
      {"qwen3-next-80b-a3b", 0, {"target.layers.0 gated_delta conv=24576:bf16 recurrent=524288:bf16"}},
      {"falcon-h1-1.5b",
       0,
       {"target.layers.0 attention 2x128+128",
        "target.layers.0.1 mamba2 conv=10752:bf16 recurrent=786432:bf16"}},
      {"falcon-mamba-7b", 0, {"target.layers.0 mamba1 conv=24576:bf16 recurrent=131072:bf16"}},
      {"nemotron-3-nano-30b", 1, {}},
      {"bart-large-cnn", 0, {"target.layers.0 attention 16x64+64"}},
  };
}

class CacheKinds : public ::testing::TestWithParam<KindCase> {};

TEST_P(CacheKinds, BecomeCaches) {
  const ModelInput input = InputOf(Catalogued(GetParam().model), Role::kTarget, {});
  std::vector<std::string> caches;
  for (const CacheLayer& layer : input.layers) {
    if (static_cast<std::size_t>(layer.id.index) == GetParam().layer) caches.push_back(CacheText(layer));
  }
  EXPECT_EQ(caches, GetParam().caches);
}
INSTANTIATE_TEST_SUITE_P(All, CacheKinds, ::testing::ValuesIn(KindCases()));

struct RefusedCase {
  std::string model;
  std::vector<std::string> kinds;  // each refused once
};
void PrintTo(const RefusedCase& c, std::ostream* out) { *out << c.model; }

class RefusedKinds : public ::testing::TestWithParam<RefusedCase> {};

TEST_P(RefusedKinds, NameTheirLayers) {
  const ModelInput input = InputOf(Catalogued(GetParam().model), Role::kTarget, {});
  std::vector<std::string> kinds;
  for (const Refusal& refusal : input.refusals) {
    EXPECT_EQ(refusal.rule, RuleId::kCacheKindUnsupported);
    EXPECT_FALSE(refusal.subjects.empty());
    kinds.push_back(refusal.operands.at(0).value);
  }
  EXPECT_EQ(kinds, GetParam().kinds);
}
INSTANTIATE_TEST_SUITE_P(All, RefusedKinds,
                         ::testing::Values(RefusedCase{"deepseek-v4-flash", {"compressor", "indexer", "mla"}},
                                           RefusedCase{"bart-large-cnn", {"cross_attention"}},
                                           RefusedCase{"deepseek-v3.2", {}},
                                           RefusedCase{"llama-4-scout", {}}));

TEST(CacheLayers, ConvolutionsGrowWithTheDraftWhereTheModelPassesItOn) {
  const StateScale drafting{.draft_tokens = 7, .tp = 1};
  const auto rows = [&](std::string_view name, std::size_t place) {
    const ModelInput input = InputOf(Catalogued(name), Role::kTarget, drafting);
    return std::get<StateCache>(input.layers[place].cache).states[0].elements;
  };
  EXPECT_EQ(rows("qwen3-next-80b-a3b", 0), 10 * 8192);
  EXPECT_EQ(rows("nemotron-3-nano-30b", 0), 10 * 6144);
  EXPECT_EQ(rows("falcon-h1-1.5b", 1), 3 * 3584);
  EXPECT_EQ(rows("falcon-mamba-7b", 0), 3 * 8192);
}

TEST(CacheLayers, WindowsOfADflashDraftAreCausal) {
  const ModelInput input = InputOf(Catalogued("qwen3.6-27b-dflash"), Role::kDraft, {});
  ASSERT_EQ(input.layers.size(), 5U);
  EXPECT_EQ(input.layers[0].causal, true);
  EXPECT_EQ(input.layers[4].causal, false);
  EXPECT_EQ(input.draft->draft_tokens_max, 15);
  EXPECT_EQ(input.draft->target_layers, 64);
}

// A whole plan over two caches a layer, a window and layers that keep nothing.
TEST(CacheLayers, HybridModelsPlanWithTheirOwnMtpLayers) {
  const ModelDescription target = Catalogued("nemotron-3-super-120b");
  const auto draft = MtpDraft(target);
  KVASIR_ASSERT_OK(draft);
  PlanOptions options;
  options.tp = 2;
  options.kv_memory_bytes = {std::int64_t{40} << 30};
  options.draft_tokens = 1;
  const PlanRequest request = BuildRequest(target, *draft, options);
  EXPECT_TRUE(request.early_refusals.empty());
  EXPECT_EQ(request.target.layers, 88);
  EXPECT_EQ(request.layers.size(), 49U);  // 48 of the target, 1 of the draft
}

}  // namespace
}  // namespace kvasir
