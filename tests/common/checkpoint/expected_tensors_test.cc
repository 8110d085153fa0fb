// Names and shapes of the tensors of each family, as golden text, and what is refused by name.
#include "common/checkpoint/expected_tensors.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/checkpoint/safetensors_header.h"
#include "common/models/catalogue.h"
#include "tests/common/checkpoint/small_models.h"
#include "tests/testing/golden.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

// "name shape [or shape] key [optional] [refused]", a line each.
std::string TextOf(const ModelDescription& model) {
  const auto expected = ExpectedTensors(model);
  if (!expected.ok()) return expected.status().ToString();
  std::string text;
  for (const ExpectedTensor& tensor : *expected) {
    text += tensor.name;
    for (const TensorShape& shape : tensor.shapes) text += " " + ShapeText(shape);
    text += " " + KeyText(tensor.key);
    if (tensor.optional) text += " optional";
    if (!tensor.refusal.empty()) text += " refused";
    text += "\n";
  }
  return text;
}

TEST(ExpectedTensors, AreTheNamesOfEachFamily) {
  testing::ExpectGolden("checkpoint/deepseek.txt", TextOf(testing::SmallDeepseek()));
  testing::ExpectGolden("checkpoint/kimi_linear.txt", TextOf(testing::SmallKimiLinear()));
  testing::ExpectGolden("checkpoint/kimi_k3.txt", TextOf(testing::SmallKimiK3()));
  testing::ExpectGolden("checkpoint/k3_dspark.txt", TextOf(testing::SmallK3Dspark()));
  testing::ExpectGolden("checkpoint/dflash.txt", TextOf(testing::SmallDflash()));
  testing::ExpectGolden("checkpoint/mtp.txt", TextOf(testing::SmallMtp()));
}

TEST(ExpectedTensors, TheOtherMarkovHeadsHaveAProjectionMore) {
  EXPECT_NE(TextOf(testing::SmallK3Dspark(MarkovHead::kGated))
                .find("markov_head.gate_proj.weight [4, 14] markov_gate\n"
                      "markov_head.gate_proj.bias [4]"),
            std::string::npos);
  EXPECT_NE(TextOf(testing::SmallK3Dspark(MarkovHead::kRnn))
                .find("markov_head.joint_proj.weight [12, 18] markov_joint\n"
                      "markov_head.joint_proj.bias [12]"),
            std::string::npos);
}

// https://huggingface.co/Inferact/Kimi-K3-DSpark: 68 tensors, 3,562,312,961 parameters.
TEST(ExpectedTensors, OfThePublishedDraftHaveItsNumberOfTensorsAndParameters) {
  const auto model = FindInCatalogue("kimi-k3-dspark");
  KVASIR_ASSERT_OK(model);
  const auto expected = ExpectedTensors(*model);
  KVASIR_ASSERT_OK(expected);
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;
  for (const ExpectedTensor& tensor : *expected) {
    if (tensor.optional) continue;
    ++tensors;
    std::int64_t elements = 1;
    for (const std::int64_t size : tensor.shapes.front()) elements *= size;
    parameters += elements;
  }
  EXPECT_EQ(tensors, 68);
  EXPECT_EQ(parameters, 3562312961);
}

// A module and its target share a checkpoint, and each passes over what is the other's.
TEST(ExpectedTensors, AnMtpModuleAndItsTargetShareACheckpoint) {
  ModelDescription target = testing::SmallDeepseek();
  target.mtp_depth = 1;
  EXPECT_TRUE(IsPassedOver(target, "layers.2.enorm.weight"));
  EXPECT_FALSE(IsPassedOver(target, "layers.1.surplus"));
  const ModelDescription module = testing::SmallMtp();
  EXPECT_TRUE(IsPassedOver(module, "layers.1.self_attn.o_proj.weight"));
  EXPECT_TRUE(IsPassedOver(module, "embed_tokens.weight"));
  EXPECT_FALSE(IsPassedOver(module, "layers.2.surplus"));
  ModelDescription two = module;
  two.layers.push_back(two.layers.front());
  EXPECT_THAT(TextOf(two), ::testing::HasSubstr("2 MTP modules"));
}

TEST(ExpectedTensors, BareNamesDropThePrefixesThatCheckpointsDifferIn) {
  EXPECT_EQ(BareName("model.layers.0.x"), "layers.0.x");
  EXPECT_EQ(BareName("language_model.model.layers.0.x"), "layers.0.x");
  EXPECT_EQ(BareName("language_model.layers.0.x"), "layers.0.x");
  EXPECT_EQ(BareName("language_model.lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(BareName("layers.0.model.x"), "layers.0.model.x");
}

TEST(ExpectedTensors, PredictingLayersAndVisionPartsArePassedOver) {
  ModelDescription model = testing::SmallDeepseek();
  EXPECT_FALSE(IsPassedOver(model, "layers.2.eh_proj.weight"));
  EXPECT_FALSE(IsPassedOver(model, "vision_tower.x"));
  EXPECT_TRUE(IsPassedOver(model, "layers.1.self_attn.rotary_emb.inv_freq"));
  model.mtp_depth = 1;
  model.mtp_layers = {model.layers[1]};
  EXPECT_TRUE(IsPassedOver(model, "layers.2.eh_proj.weight"));
  EXPECT_FALSE(IsPassedOver(model, "layers.3.eh_proj.weight"));
  EXPECT_FALSE(IsPassedOver(model, "layers.1.eh_proj.weight"));
  EXPECT_FALSE(IsPassedOver(model, "layers.2"));
  EXPECT_TRUE(IsPassedOver(testing::SmallKimiK3(), "vision_tower.x"));
}

struct Refused {
  std::string name;
  void (*change)(ModelDescription& model);
  std::string message;
};

void PrintTo(const Refused& c, std::ostream* os) { *os << c.name; }

class RefusedModel : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedModel, IsNamed) {
  ModelDescription model = testing::SmallDeepseek();
  GetParam().change(model);
  const auto expected = ExpectedTensors(model);
  EXPECT_THAT(expected, testing::StatusIs(absl::StatusCode::kFailedPrecondition, GetParam().message));
  EXPECT_EQ(ReasonOf(expected.status()), reason::kCheckpointUnsupported);
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedModel,
    ::testing::Values(
        Refused{"Architecture", [](ModelDescription& m) { m.architecture = "LlamaForCausalLM"; },
                "architecture LlamaForCausalLM: checkpoints are read of DeepseekV2ForCausalLM, "},
        Refused{"PackedWeights", [](ModelDescription& m) { m.quantisation.method = "compressed-tensors"; },
                "quantisation compressed-tensors"},
        Refused{"Mixer", [](ModelDescription& m) { m.layers[1].mixer = Mamba2Shape{}; },
                "layer 1 of kind mamba2"},
        Refused{"KdaOfAnotherFamily", [](ModelDescription& m) { m.layers[0].mixer = KdaShape{}; },
                "layer 0 of kind kda"},
        Refused{"Indexer", [](ModelDescription& m) { m.layers[0].extra = {IndexerShape{}}; },
                "layer 0 with a further cache (indexer)"},
        Refused{"Window", [](ModelDescription& m) { std::get<MlaShape>(m.layers[0].mixer).window = 4; },
                "layer 0: MLA with a window"},
        Refused{"NoGate", [](ModelDescription& m) { m.layers[1].mlp.gated = false; },
                "layer 1 with an MLP without"},
        Refused{"ExpertsAndDense", [](ModelDescription& m) { m.layers[1].mlp.intermediate = 3; },
                "layer 1: experts beside a dense MLP"},
        Refused{"LatentExperts", [](ModelDescription& m) { m.layers[1].mlp.latent = 3; },
                "layer 1: experts in a latent space"},
        Refused{"DraftOfATarget", [](ModelDescription& m) { m.draft = DraftShape{}; },
                "a draft of architecture"},
        Refused{"TooManyExperts", [](ModelDescription& m) { m.layers[1].mlp.experts = 1 << 21; },
                "at most 4194304 are read"},
        Refused{"OwnHeadVocabulary",
                [](ModelDescription& m) {
                  m = testing::SmallDflash();
                  m.draft->head_vocab = 5;
                },
                "a head of 5 tokens only"},
        Refused{"DraftMethod",
                [](ModelDescription& m) {
                  m = testing::SmallDflash();
                  m.draft->method = DraftMethod::kDomino;
                },
                "a draft by the method domino"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace kvasir
