#include "common/models/model_text.h"

#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "common/base/limits.h"
#include "common/models/catalogue.h"
#include "common/models/read_config.h"
#include "tests/common/models/model_configs.h"
#include "tests/testing/golden.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using testing::StatusIs;
using testing::With;

ModelDescription Catalogued(std::string_view name) {
  auto model = FindInCatalogue(name);
  EXPECT_THAT(model, testing::IsOk());
  return model.ok() ? *model : ModelDescription{};
}

TEST(ModelText, RoundTripsTheCatalogueAndEveryFamily) {
  std::vector<ModelDescription> models;
  for (const CatalogueEntry& entry : ListCatalogue()) models.push_back(Catalogued(entry.name));
  for (const std::string_view config :
       {testing::kDeepseekConfig, testing::kKimiConfig, testing::kDsparkConfig, testing::kQwenConfig,
        testing::kNemotronConfig}) {
    auto model = ReadConfigJson(config, "org/tiny");
    KVASIR_ASSERT_OK(model);
    models.push_back(*model);
  }
  for (const ModelDescription& model : models) {
    const std::string text = ModelToText(model);
    const auto again = ModelFromText(text);
    KVASIR_ASSERT_OK(again);
    EXPECT_EQ(*again, model) << model.name;
    EXPECT_EQ(ModelToText(*again), text);
    EXPECT_LE(text.size(), static_cast<std::size_t>(kPlanTextBytesMax));
    EXPECT_EQ(ModelDigest(model).size(), 64U);
  }
}

// The digests of these texts enter plans, so the bytes are pinned.
TEST(ModelText, Golden) {
  for (const char* name :
       {"demo-target", "demo-dspark", "kimi-k3", "kimi-k3-dspark", "deepseek-v4-flash", "gemma-4-e2b",
        "nemotron-3-super-120b", "qwen3.5-27b", "qwen3.6-27b-dflash", "bart-large-cnn", "llama-4-scout"}) {
    testing::ExpectGolden(std::string("model/") + name + ".txt", ModelToText(Catalogued(name)));
  }
}

TEST(ModelText, DoublesRoundTripInTheShortestForm) {
  ModelDescription model = Catalogued("demo-target");
  for (const double eps : {1e-5, 0.1, 1.0 / 3.0, 5e-8, 0.30000000000000004, 1.0}) {
    model.rms_eps = eps;
    const auto again = ModelFromText(ModelToText(model));
    KVASIR_ASSERT_OK(again);
    EXPECT_EQ(again->rms_eps, eps);
  }
  model.rms_eps = 0.1;
  EXPECT_NE(ModelToText(model).find("rms_eps 0.1\n"), std::string::npos);
}

TEST(ModelText, DigestDependsOnEveryField) {
  const ModelDescription base = Catalogued("demo-dspark");
  std::vector<ModelDescription> changed(8, base);
  changed[0].name = "other";
  changed[1].rms_eps = 2e-6;
  changed[2].rope.beta_fast = 31;
  changed[3].layers[1].mlp.intermediate = 255;
  changed[4].draft->causal = true;
  changed[5].draft->target_taps = {0, 1, 3};
  std::get<MlaShape>(changed[6].layers[0].mixer).rotate = false;
  changed[7].draft.reset();
  for (const ModelDescription& model : changed) EXPECT_NE(ModelDigest(model), ModelDigest(base));
}

struct BadCase {
  std::string what;
  std::string text;
  std::string part;  // of the message
};
void PrintTo(const BadCase& c, std::ostream* out) { *out << c.what; }

class BadModelText : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadModelText, IsRefusedByName) {
  EXPECT_THAT(ModelFromText(GetParam().text), StatusIs(absl::StatusCode::kInvalidArgument, GetParam().part));
}

std::vector<BadCase> BadCases() {
  const std::string good = ModelToText(Catalogued("demo-dspark"));
  const auto bad = [&good](std::string_view from, std::string_view to) { return With(good, from, to); };
  return {
      {"empty", "", "line 1"},
      {"version", bad("model/1", "model/2"), "line 1"},
      {"cut", good.substr(0, good.size() - 4), "expected end"},
      {"cut in the middle", good.substr(0, good.size() / 2), "line"},
      {"extra line", good + "\n", "canonical"},
      {"carriage return", bad("hidden 128\n", "hidden 128\r\n"), "hidden"},
      {"two spaces", bad("hidden 128", "hidden  128"), "hidden"},
      {"plus sign", bad("hidden 128", "hidden +128"), "hidden"},
      {"leading zero", bad("hidden 128", "hidden 0128"), "canonical"},
      {"overflow", bad("hidden 128", "hidden 99999999999999999999"), "hidden"},
      {"negative", bad("hidden 128", "hidden -128"), "hidden"},
      {"dtype", bad("dtype bf16", "dtype int8"), "int8"},
      {"fp8 weights", bad("dtype bf16", "dtype fp8_e4m3"), "dtype"},
      {"long real", bad("rms_eps 1e-06", "rms_eps 0.000001"), "canonical"},
      {"nan", bad("rms_eps 1e-06", "rms_eps nan"), "rms_eps"},
      {"infinite", bad("theta=10000", "theta=inf"), "theta"},
      {"negative zero", bad("mscale=1", "mscale=-0"), "mscale"},
      {"bool", bad("tied_embedding false", "tied_embedding 0"), "tied_embedding"},
      {"more layers", bad("layers 2", "layers 3"), "layer"},
      {"fewer layers", bad("layers 2", "layers 1"), "expected end"},
      {"no layers", bad("layers 2", "layers 0"), "layers"},
      {"too many layers", bad("layers 2", "layers 1025"), "layers"},
      {"layer number", bad("layer 1 ", "layer 2 "), "layer 2 index"},
      {"layer negative", bad("layer 1 ", "layer -1 "), "layer"},
      {"mixer", bad("layer 0 mla", "layer 0 mlp"), "attention, mla, kda"},
      {"field order", bad("heads=8 q_lora_rank=48", "q_lora_rank=48 heads=8"), "heads="},
      {"field missing", bad("q_lora_rank=48 ", ""), "q_lora_rank"},
      {"field extra", bad("own_head=false", "own_head=false x=1"), "line's end"},
      {"heads", bad("heads=8", "heads=4097"), "heads"},
      {"taps empty", bad("taps=0,2,3", "taps="), "taps"},
      {"taps repeated", bad("taps=0,2,3", "taps=0,2,2"), "taps"},
      {"taps beyond", bad("taps=0,2,3", "taps=0,2,4"), "taps"},
      {"mask", bad("mask_token=258", "mask_token=512"), "mask_token"},
      {"method", bad("method=dspark", "method=dmark"), "method of dspark"},
      {"default written", bad("rotate=true output_gate=false", "rotate=true output_gate=false window=0"),
       "canonical"},
      {"extra mixer", bad("mlp intermediate", "extra none mlp intermediate"), "keeps nothing"},
      {"extra unknown", bad("mlp intermediate", "extra x mlp intermediate"), "attention, mla, kda"},
      {"only beside", bad("layer 0 mla heads=8", "layer 0 indexer heads=8 head_dim=8 top_k=8 mlp heads=8"),
       "line"},
      {"name", bad("name kvasir/demo-dspark", "name \"quoted\""), "name"},
      {"not ascii", bad("demo-dspark", "demo-dsp\xc3\xa4rk"), "name"},
      {"too long", std::string(std::size_t{5} << 20, 'x'), "bytes"},
  };
}
INSTANTIATE_TEST_SUITE_P(All, BadModelText, ::testing::ValuesIn(BadCases()));

TEST(Catalogue, FindsByBothNamesInAnyCase) {
  EXPECT_EQ(Catalogued("KIMI-K3"), Catalogued("moonshotai/kimi-k3"));
  EXPECT_THAT(FindInCatalogue("kimi-k4"), StatusIs(absl::StatusCode::kNotFound, "kimi-k3"));
  EXPECT_THAT(FindInCatalogue(""), StatusIs(absl::StatusCode::kNotFound, "nearest"));
  EXPECT_THAT(FindInCatalogue(std::string(100000, 'k')), StatusIs(absl::StatusCode::kNotFound, "nearest"));
}

TEST(Catalogue, IsSortedAndMarksDrafts) {
  std::string previous;
  for (const CatalogueEntry& entry : ListCatalogue()) {
    EXPECT_LT(previous, entry.name);
    previous = entry.name;
    EXPECT_EQ(entry.draft, Catalogued(entry.name).draft.has_value());
    EXPECT_FALSE(entry.summary.empty());
  }
}

// The demo's point: the pair differs in behaviour only.
TEST(Catalogue, DemoPairHasOneLatentLayout) {
  const ModelDescription target = Catalogued("demo-target");
  const ModelDescription draft = Catalogued("demo-dspark");
  EXPECT_EQ(target.layers.size(), 4U);
  EXPECT_EQ(draft.layers.size(), 2U);
  EXPECT_EQ(std::get<MlaShape>(target.layers[0].mixer), std::get<MlaShape>(draft.layers[0].mixer));
  EXPECT_EQ(draft.draft->target_taps, (std::vector<std::int64_t>{0, 2, 3}));
}

}  // namespace
}  // namespace kvasir
