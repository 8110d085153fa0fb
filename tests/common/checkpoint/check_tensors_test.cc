// Which tensor is which, and the error of every checkpoint that is not the model's.
#include "common/checkpoint/check_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/checkpoint/expected_tensors.h"
#include "tests/common/checkpoint/small_models.h"
#include "tests/testing/checkpoint_writer.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using testing::RandomTensor;
using testing::WrittenTensor;
using Tensors = std::vector<WrittenTensor>;

// The tensors are copied out of the checkpoint's lifetime only as keys.
absl::StatusOr<std::vector<std::string>> Check(const ModelDescription& model, const Tensors& tensors) {
  const std::string directory = testing::FreshDirectory("");
  testing::WriteCheckpoint(directory, tensors);
  const auto checkpoint = Checkpoint::Open(directory);
  if (!checkpoint.ok()) return checkpoint.status();
  const auto found = CheckTensors(*checkpoint, model);
  if (!found.ok()) return found.status();
  std::vector<std::string> keys;
  for (const auto& [key, tensor] : *found) {
    keys.push_back(absl::StrFormat("%s=%s%s", KeyText(key), tensor.weight->entry.name,
                                   tensor.scales != nullptr ? "+" + tensor.scales->entry.name : ""));
  }
  return keys;
}

TEST(CheckTensors, FindsEveryTensorOfEveryFamily) {
  for (const ModelDescription& model :
       {testing::SmallDeepseek(), testing::SmallKimiLinear(), testing::SmallKimiK3(),
        testing::SmallK3Dspark(), testing::SmallK3Dspark(MarkovHead::kGated),
        testing::SmallK3Dspark(MarkovHead::kRnn), testing::SmallDflash()}) {
    for (const StoredType type : {StoredType::kBf16, StoredType::kF32, StoredType::kF16}) {
      const Tensors tensors = testing::RandomModel(model, type, 1);
      const auto keys = Check(model, tensors);
      KVASIR_ASSERT_OK(keys) << model.architecture;
      EXPECT_EQ(keys->size(), tensors.size()) << model.architecture;
    }
  }
}

TEST(CheckTensors, PairsF8WeightsWithTheirScales) {
  const Tensors tensors = testing::RandomModel(testing::SmallDeepseek(), StoredType::kF8E4M3, 1);
  const auto keys = Check(testing::SmallDeepseek(), tensors);
  KVASIR_ASSERT_OK(keys);
  EXPECT_TRUE(std::count(keys->begin(), keys->end(),
                         "layers.1.experts.2.down=model.layers.1.mlp.experts.2.down_proj.weight+"
                         "model.layers.1.mlp.experts.2.down_proj.weight_scale_inv"));
}

TEST(CheckTensors, AcceptsTheOtherPrefixesAndShapesThatArePublished) {
  Tensors tensors = testing::RandomModel(testing::SmallKimiK3(), StoredType::kBf16, 1);
  for (WrittenTensor& tensor : tensors) {
    tensor.name = std::string(BareName(tensor.name));
    if (tensor.name.ends_with("A_log")) tensor.shape = {2};
    if (tensor.name.ends_with("q_conv1d.weight")) tensor.shape = {8, 3};
  }
  tensors.push_back(RandomTensor("vision_tower.x", StoredType::kU8, {1}, 1));
  KVASIR_EXPECT_OK(Check(testing::SmallKimiK3(), tensors));
  Tensors draft = testing::RandomModel(testing::SmallK3Dspark(), StoredType::kBf16, 1);
  for (WrittenTensor& tensor : draft) tensor.name = "model." + tensor.name;
  KVASIR_EXPECT_OK(Check(testing::SmallK3Dspark(), draft));
}

WrittenTensor& Named(Tensors& tensors, const std::string& name) {
  return *std::find_if(tensors.begin(), tensors.end(),
                       [&](const WrittenTensor& t) { return t.name == name; });
}

void Drop(Tensors& tensors, const std::string& name) {
  tensors.erase(
      std::find_if(tensors.begin(), tensors.end(), [&](const WrittenTensor& t) { return t.name == name; }));
}

void Reshape(Tensors& tensors, const std::string& name, TensorShape shape) {
  WrittenTensor& tensor = Named(tensors, name);
  tensor = RandomTensor(name, tensor.type, std::move(shape), 1);
}

struct Case {
  std::string name;
  ModelDescription (*model)();
  StoredType type;
  void (*change)(Tensors& tensors);
  std::string message;
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

class WrongTensors : public ::testing::TestWithParam<Case> {};

TEST_P(WrongTensors, AreNamedWithBothShapes) {
  const ModelDescription model = GetParam().model();
  Tensors tensors = testing::RandomModel(model, GetParam().type, 1);
  KVASIR_ASSERT_OK(Check(model, tensors));
  GetParam().change(tensors);
  const auto keys = Check(model, tensors);
  EXPECT_THAT(keys, testing::StatusIs(absl::StatusCode::kInvalidArgument, GetParam().message));
  EXPECT_EQ(ReasonOf(keys.status()), reason::kCheckpointMismatch);
}

ModelDescription Dspark() { return testing::SmallK3Dspark(); }

INSTANTIATE_TEST_SUITE_P(
    Table, WrongTensors,
    ::testing::Values(
        Case{"MissingMatrix", testing::SmallDeepseek, StoredType::kBf16,
             [](Tensors& all) { Drop(all, "model.layers.1.self_attn.kv_b_proj.weight"); },
             "tensor model.layers.1.self_attn.kv_b_proj.weight: missing, the model has [14, 8]"},
        Case{"MissingHead", testing::SmallDeepseek, StoredType::kBf16,
             [](Tensors& all) { Drop(all, "lm_head.weight"); },
             "tensor lm_head.weight: missing, the model has [20, 10]"},
        Case{"MissingExpert", testing::SmallKimiLinear, StoredType::kBf16,
             [](Tensors& all) { Drop(all, "model.layers.1.block_sparse_moe.experts.2.w2.weight"); },
             "experts.2.w2.weight: missing, the model has [10, 5]"},
        Case{"MissingRouterBias", testing::SmallKimiLinear, StoredType::kBf16,
             [](Tensors& all) { Drop(all, "model.layers.1.block_sparse_moe.gate.e_score_correction_bias"); },
             "e_score_correction_bias: missing, the model has [3]"},
        Case{"MissingDecay", testing::SmallKimiLinear, StoredType::kBf16,
             [](Tensors& all) { Drop(all, "model.layers.0.self_attn.A_log"); },
             "A_log: missing, the model has [1, 1, 2, 1] or [2]"},
        Case{"MissingEmbeddingOfADraft", Dspark, StoredType::kBf16,
             [](Tensors& all) { Drop(all, "embed_tokens.weight"); }, "tensor embed_tokens.weight: missing"},
        Case{"MissingScales", testing::SmallDeepseek, StoredType::kF8E4M3,
             [](Tensors& all) { Drop(all, "model.layers.0.mlp.up_proj.weight_scale_inv"); },
             "tensor model.layers.0.mlp.up_proj.weight_scale_inv: missing, the model has F32 [1, 1]"},
        Case{"Transposed", testing::SmallDeepseek, StoredType::kBf16,
             [](Tensors& all) { Reshape(all, "model.layers.0.mlp.down_proj.weight", {12, 10}); },
             "tensor model.layers.0.mlp.down_proj.weight: [12, 10], the model has [10, 12]"},
        Case{"OtherVocabulary", testing::SmallDeepseek, StoredType::kBf16,
             [](Tensors& all) { Reshape(all, "model.embed_tokens.weight", {21, 10}); },
             "[21, 10], the model has [20, 10]"},
        Case{"NormIsMatrix", testing::SmallDeepseek, StoredType::kBf16,
             [](Tensors& all) { Reshape(all, "model.norm.weight", {1, 10}); }, "[1, 10], the model has [10]"},
        Case{"ConvolutionKernel", testing::SmallKimiLinear, StoredType::kBf16,
             [](Tensors& all) { Reshape(all, "model.layers.0.self_attn.k_conv1d.weight", {8, 1, 4}); },
             "[8, 1, 4], the model has [8, 1, 3] or [8, 3]"},
        Case{"ScalesOfOtherBlocks", testing::SmallDeepseek, StoredType::kF8E4M3,
             [](Tensors& all) { Reshape(all, "model.layers.0.mlp.up_proj.weight_scale_inv", {1, 2}); },
             "F32 [1, 2], the model has F32 [1, 1]"},
        Case{"ScalesOfAnotherType", testing::SmallDeepseek, StoredType::kF8E4M3,
             [](Tensors& all) {
               Named(all, "model.layers.0.mlp.up_proj.weight_scale_inv") =
                   RandomTensor("model.layers.0.mlp.up_proj.weight_scale_inv", StoredType::kBf16, {1, 1}, 1);
             },
             "BF16 [1, 1], the model has F32 [1, 1]"},
        Case{"IntegerWeights", testing::SmallDeepseek, StoredType::kBf16,
             [](Tensors& all) {
               Named(all, "model.layers.0.mlp.up_proj.weight") =
                   RandomTensor("model.layers.0.mlp.up_proj.weight", StoredType::kI8, {12, 10}, 1);
             },
             "I8 elements, the model has BF16, F16, F32 or F8_E4M3"},
        Case{"F8Vector", testing::SmallDeepseek, StoredType::kBf16,
             [](Tensors& all) {
               Named(all, "model.norm.weight") =
                   RandomTensor("model.norm.weight", StoredType::kF8E4M3, {10}, 1);
             },
             "only matrices have scales"},
        Case{"Surplus", testing::SmallDeepseek, StoredType::kBf16,
             [](Tensors& all) {
               all.push_back(RandomTensor("model.layers.0.mlp.extra.weight", StoredType::kF32, {2, 3}, 1));
             },
             "tensor model.layers.0.mlp.extra.weight: [2, 3], the model has no such tensor"},
        Case{"SurplusLayer", testing::SmallDeepseek, StoredType::kBf16,
             [](Tensors& all) {
               all.push_back(RandomTensor("model.layers.2.enorm.weight", StoredType::kF32, {10}, 1));
             },
             "tensor model.layers.2.enorm.weight: [10], the model has no such tensor"},
        Case{"SurplusExpert", testing::SmallDeepseek, StoredType::kBf16,
             [](Tensors& all) {
               all.push_back(RandomTensor("model.layers.1.mlp.experts.3.up_proj.weight", StoredType::kBf16,
                                          {5, 10}, 1));
             },
             "experts.3.up_proj.weight: [5, 10], the model has no such tensor"},
        Case{"SurplusScales", testing::SmallDeepseek, StoredType::kBf16,
             [](Tensors& all) {
               all.push_back(
                   RandomTensor("model.layers.0.mlp.up_proj.weight_scale_inv", StoredType::kF32, {1, 1}, 1));
             },
             "weight_scale_inv: [1, 1], the model has no such tensor"},
        Case{"SurplusVision", testing::SmallDeepseek, StoredType::kBf16,
             [](Tensors& all) { all.push_back(RandomTensor("vision_tower.x", StoredType::kF32, {1}, 1)); },
             "tensor vision_tower.x"},
        Case{"QLoraInsteadOfDirect", testing::SmallKimiLinear, StoredType::kBf16,
             [](Tensors& all) {
               Named(all, "model.layers.1.self_attn.q_proj.weight").name =
                   "model.layers.1.self_attn.q_b_proj.weight";
             },
             "tensor model.layers.1.self_attn.q_proj.weight: missing"},
        Case{"GatedHeadOfAVanillaDraft", Dspark, StoredType::kBf16,
             [](Tensors& all) {
               all.push_back(RandomTensor("markov_head.gate_proj.weight", StoredType::kBf16, {4, 14}, 1));
             },
             "markov_head.gate_proj.weight: [4, 14], the model has no such tensor"},
        Case{"ConfidenceWithoutMarkov", Dspark, StoredType::kBf16,
             [](Tensors& all) { Reshape(all, "confidence_head.proj.weight", {1, 10}); },
             "[1, 10], the model has [1, 14]"},
        Case{"OneTensorUnderTwoPrefixes", testing::SmallDeepseek, StoredType::kBf16,
             [](Tensors& all) { all.push_back(RandomTensor("norm.weight", StoredType::kF32, {10}, 1)); },
             "only one of it and model.norm.weight"}),
    [](const auto& test) { return test.param.name; });

TEST(CheckTensors, ListsFaultsInTheModelsOrderThenSurplusByNameUpToALimit) {
  const ModelDescription model = testing::SmallDeepseek();
  Tensors tensors = testing::RandomModel(model, StoredType::kBf16, 1);
  for (WrittenTensor& tensor : tensors) tensor.name = "x." + tensor.name;
  const auto keys = Check(model, tensors);
  const TypedError error = ErrorOf(keys.status());
  EXPECT_EQ(error.metadata.at("problems"), std::to_string(2 * tensors.size()));
  EXPECT_EQ(error.metadata.at("tensor"), "model.embed_tokens.weight");
  EXPECT_EQ(error.metadata.at("found"), "missing");
  EXPECT_EQ(error.metadata.at("expected"), "[20, 10]");
  EXPECT_TRUE(
      error.message.ends_with(absl::StrFormat("; and %d more", 2 * tensors.size() - kTensorProblemsShown)))
      << error.message;
}

// Kimi-K3's attention over residuals has its tensors exactly where the configuration has it.
TEST(CheckTensors, AttentionOverResidualsIsTheConfigurationsToSay) {
  const ModelDescription with = testing::SmallKimiK3();
  ModelDescription without = with;
  without.residual_block = 0;
  const auto surplus = Check(without, testing::RandomModel(with, StoredType::kBf16, 1));
  EXPECT_THAT(surplus, testing::StatusIs(absl::StatusCode::kInvalidArgument, "10 faults"));
  const auto missing = Check(with, testing::RandomModel(without, StoredType::kBf16, 1));
  EXPECT_THAT(missing, testing::StatusIs(absl::StatusCode::kInvalidArgument, "10 faults"));
  EXPECT_EQ(ErrorOf(missing.status()).metadata.at("tensor"),
            "language_model.model.output_attn_res_norm.weight");
}

}  // namespace
}  // namespace kvasir
