// Weights from checkpoints: a rank's part is that slice of the whole tensor, and a model that was written
// down decodes as the one that it was written from, bit for bit.
#include "worker/weights/checkpoint_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/checkpoint/expected_tensors.h"
#include "common/geometry/bf16.h"
#include "tests/common/checkpoint/small_models.h"
#include "tests/testing/checkpoint_writer.h"
#include "tests/testing/matchers.h"
#include "tests/worker/cpu/small_models.h"

namespace kvasir::testing {
namespace {

// A tensor of the file as rows and columns; all but the last dimension are rows.
WeightSpec SpecOf(const ExpectedTensor& tensor) {
  WeightSpec spec{.source = "target." + KeyText(tensor.key), .rows = 1, .cols = 1};
  for (const std::int64_t size : tensor.shapes.front()) {
    if (size == 1) continue;
    spec.rows *= spec.cols;
    spec.cols = size;
  }
  return spec;
}

std::vector<float> Slice(const WeightSpec& spec, const std::vector<float>& whole, const TensorPart& part) {
  std::vector<float> values;
  for (std::int64_t block = 0; block < part.blocks; ++block) {
    for (std::int64_t r = 0; r < part.rows; ++r) {
      const std::int64_t row = part.row_begin + block * part.row_step + r;
      for (std::int64_t c = 0; c < part.cols; ++c) {
        values.push_back(whole[static_cast<std::size_t>(row * spec.cols + part.col_begin + c)]);
      }
    }
  }
  return values;
}

std::vector<TensorPart> PartsOf(const WeightSpec& spec) {
  std::vector<TensorPart> parts = {WholeTensor(spec)};
  for (const std::int64_t shards : {2, 5}) {
    for (std::int64_t i = 0; i < shards; ++i) {
      if (spec.rows % shards == 0) parts.push_back(RowShard(spec, i, shards));
      if (spec.cols % shards == 0) parts.push_back(ColumnShard(spec, i, shards));
    }
  }
  if (spec.rows % 4 == 0) {  // the upper half of each half
    parts.push_back({.row_begin = spec.rows / 4,
                     .rows = spec.rows / 4,
                     .row_step = spec.rows / 2,
                     .blocks = 2,
                     .col_begin = spec.cols / 2,
                     .cols = spec.cols - spec.cols / 2});
  }
  return parts;
}

TEST(CheckpointWeights, EveryPartIsThatSliceOfTheWholeTensor) {
  for (const ModelDescription& model : {SmallDeepseek(), SmallKimiLinear(), SmallKimiK3()}) {
    for (const StoredType type : {StoredType::kBf16, StoredType::kF32, StoredType::kF8E4M3}) {
      const std::string directory = FreshDirectory("");
      WriteCheckpoint(directory, RandomModel(model, type, 3), 3);
      const auto weights = CheckpointWeights::Open({&model, directory}, std::nullopt);
      KVASIR_ASSERT_OK(weights);
      const auto expected = ExpectedTensors(model);
      for (const ExpectedTensor& tensor : *expected) {
        if (tensor.optional) continue;
        WeightSpec spec = SpecOf(tensor);
        const auto whole = (*weights)->Read(spec, WholeTensor(spec));
        KVASIR_ASSERT_OK(whole) << tensor.name;
        for (const TensorPart& part : PartsOf(spec)) {
          const auto read = (*weights)->Read(spec, part);
          KVASIR_ASSERT_OK(read) << tensor.name;
          ASSERT_EQ(*read, Slice(spec, *whole, part)) << tensor.name;
        }
        WeightSpec turned = spec;
        std::swap(turned.rows, turned.cols);
        turned.transposed = true;
        const auto transposed = (*weights)->Read(turned, WholeTensor(turned));
        KVASIR_ASSERT_OK(transposed);
        for (std::int64_t r = 0; r < spec.rows; ++r) {
          for (std::int64_t c = 0; c < spec.cols; ++c) {
            ASSERT_EQ((*transposed)[static_cast<std::size_t>(c * spec.rows + r)],
                      (*whole)[static_cast<std::size_t>(r * spec.cols + c)]);
          }
        }
        for (const TensorPart& part : PartsOf(turned)) {
          ASSERT_EQ(*(*weights)->Read(turned, part), Slice(turned, *transposed, part)) << tensor.name;
        }
      }
    }
  }
}

// Remembers what the engine asked for.
class Recorder final : public WeightSource {
 public:
  explicit Recorder(std::int64_t seed) : synthetic_(seed) {}
  [[nodiscard]] absl::StatusOr<std::vector<float>> Read(const WeightSpec& spec,
                                                        const TensorPart& part) const override {
    const std::lock_guard lock(mutex_);
    specs_.insert_or_assign(spec.Name(), spec);
    return synthetic_.Read(spec, part);
  }
  [[nodiscard]] const std::map<std::string, WeightSpec>& specs() const { return specs_; }

 private:
  SyntheticWeights synthetic_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, WeightSpec> specs_;
};

// Where the engine has a published tensor: by its own name, or as one expert's rows of a tensor of all
// experts.
struct Place {
  WeightSpec spec;
  TensorPart part;
};

std::optional<Place> PlaceOf(const TensorKey& key, const std::string& role, std::int64_t experts,
                             const std::map<std::string, WeightSpec>& specs) {
  std::string name = role + "." + KeyText(key);
  if (key.expert >= 0) {
    const std::string one = absl::StrFormat("experts.%d.", key.expert);
    name.replace(name.find(one), one.size(), "experts_");
  }
  const auto found = specs.find(name);
  if (found == specs.end()) return std::nullopt;
  Place place{found->second, WholeTensor(found->second)};
  if (key.expert >= 0) {
    place.part.rows /= experts;
    place.part.row_begin = key.expert * place.part.rows;
  }
  return place;
}

// The synthetic weights of one role as its published tensors: BF16 holds them exactly.
std::vector<WrittenTensor> Written(const ModelDescription& model, const std::string& role, std::int64_t seed,
                                   const std::map<std::string, WeightSpec>& specs) {
  std::vector<WrittenTensor> tensors;
  const auto expected = ExpectedTensors(model);
  KVASIR_EXPECT_OK(expected);
  for (const ExpectedTensor& tensor : *expected) {
    if (tensor.optional) continue;
    const std::int64_t experts =
        tensor.key.layer < 0 ? 0 : model.layers[static_cast<std::size_t>(tensor.key.layer)].mlp.experts;
    const std::optional<Place> place = PlaceOf(tensor.key, role, experts, specs);
    EXPECT_TRUE(place.has_value()) << tensor.name;
    if (!place.has_value()) continue;
    const WeightSpec& spec = place->spec;
    const std::vector<float> values = MakeWeights(seed, spec, place->part);
    WrittenTensor written{
        .name = tensor.name, .type = StoredType::kBf16, .shape = tensor.shapes.front(), .bytes = {}};
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(values.size()); ++i) {
      const std::int64_t at = spec.transposed ? i % spec.rows * spec.cols + i / spec.rows : i;
      const std::uint16_t bits = FloatToBf16(values[static_cast<std::size_t>(at)]);
      written.bytes.append(reinterpret_cast<const char*>(&bits), sizeof bits);
    }
    tensors.push_back(std::move(written));
  }
  return tensors;
}

struct PairResult {
  PassResult target;
  PassResult draft;
};

PairResult Decode(const ModelRanksOptions& options) {
  PairResult result;
  const auto ranks = ModelRanks::Create(options);
  KVASIR_EXPECT_OK(ranks);
  if (!ranks.ok()) return result;
  PassRequest request;
  request.tokens = RandomTokens(13, options.target.vocab, 4);
  request.valid = 13;
  request.blocks = ShuffledBlocks(4, 3);
  result.target = *(*ranks)->Run({.pass = Pass::kTargetPrefill, .requests = {request}});
  KVASIR_EXPECT_OK((*ranks)->Run({.pass = Pass::kDraftContext, .requests = {request}}));
  request.tokens.assign(4, static_cast<std::int32_t>(options.draft->draft->mask_token));
  request.position = 13;
  request.valid = 4;
  result.draft = *(*ranks)->Run(
      {.pass = Pass::kDraftBlock, .requests = {request}, .causal = options.draft->draft->causal});
  return result;
}

class WrittenPair : public ::testing::TestWithParam<ModelVariant> {};
INSTANTIATE_TEST_SUITE_P(Models, WrittenPair, ::testing::ValuesIn(AllModelVariants()));

TEST_P(WrittenPair, DecodesAsTheOneThatItWasWrittenFrom) {
  ModelVariant variant = GetParam();
  // The family that has names for the tensors of a latent.
  const bool latent = std::any_of(variant.target.layers.begin(), variant.target.layers.end(),
                                  [](const ModelLayer& layer) { return layer.mlp.latent > 0; });
  variant.target.architecture = latent ? "KimiLinearForCausalLM" : "DeepseekV3ForCausalLM";
  const bool per_head = std::holds_alternative<AttentionShape>(variant.draft.layers[0].mixer);
  variant.draft.architecture = per_head ? "DFlashDraftModel" : "K3DSparkModel";
  ModelRanksOptions options = OptionsOf(variant, 1, 1, DType::kBf16);
  const Recorder recorder(options.seed);
  options.weights = &recorder;
  const PairResult plain = Decode(options);
  const std::string target = FreshDirectory("target");
  const std::string draft = FreshDirectory("draft");
  WriteCheckpoint(target, Written(variant.target, "target", options.seed, recorder.specs()), 2);
  WriteCheckpoint(draft, Written(variant.draft, "draft", options.seed, recorder.specs()));
  const auto weights =
      CheckpointWeights::Open({&variant.target, target}, ModelDirectory{&variant.draft, draft});
  KVASIR_ASSERT_OK(weights);
  options.weights = weights->get();
  const PairResult read = Decode(options);
  ASSERT_FALSE(plain.draft.logits.empty());
  EXPECT_EQ(read.target.logits, plain.target.logits);
  EXPECT_EQ(read.draft.logits, plain.draft.logits);
  // Two tensor ranks, each with its shards, against the same ranks with synthetic weights.
  ModelRanksOptions two = OptionsOf(variant, 2, 1, DType::kBf16);
  const PairResult plain_two = Decode(two);
  two.weights = weights->get();
  const PairResult read_two = Decode(two);
  EXPECT_EQ(read_two.target.logits, plain_two.target.logits);
  EXPECT_EQ(read_two.draft.logits, plain_two.draft.logits);
}

class ReadErrors : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteCheckpoint(directory_, RandomModel(model_, StoredType::kBf16, 3));
    auto weights = CheckpointWeights::Open({&model_, directory_}, std::nullopt);
    KVASIR_ASSERT_OK(weights);
    weights_ = *std::move(weights);
  }
  absl::Status Read(const WeightSpec& spec) { return weights_->Read(spec, WholeTensor(spec)).status(); }

  const ModelDescription model_ = SmallDeepseek();
  const std::string directory_ = FreshDirectory("");
  std::unique_ptr<CheckpointWeights> weights_;
};

TEST_F(ReadErrors, NameTheTensorAndBothShapes) {
  EXPECT_THAT(
      Read(MatrixSpec("target.layers.0.mlp_up", 13, 10)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "tensor model.layers.0.mlp.up_proj.weight: [12, 10]: the engine reads it as [13, 10]"));
  EXPECT_THAT(Read(MatrixSpec("target.layers.0.mlp_up", 10, 12)),
              StatusIs(absl::StatusCode::kInvalidArgument, "the engine reads it as [10, 12]"));
  EXPECT_THAT(Read(NormSpec("target.layers.1.router_bias", 3)),
              StatusIs(absl::StatusCode::kInvalidArgument, "tensor target.layers.1.router_bias: missing"));
  EXPECT_THAT(Read(NormSpec("target.layers.1.no_such_word", 3)),
              StatusIs(absl::StatusCode::kInvalidArgument, "tensor target.layers.1.no_such_word: missing"));
  EXPECT_THAT(Read(NormSpec("draft.final_norm", 10)),
              StatusIs(absl::StatusCode::kInvalidArgument, "no checkpoint of a draft was given"));
}

TEST_F(ReadErrors, AShrunkenFileIsAnError) {
  std::filesystem::resize_file(directory_ + "/model.safetensors", 100);
  EXPECT_EQ(ReasonOf(Read(NormSpec("target.final_norm", 10))), reason::kCheckpointUnreadable);
}

}  // namespace
}  // namespace kvasir::testing
