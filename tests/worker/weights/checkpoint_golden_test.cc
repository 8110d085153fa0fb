// Small checkpoints of every family, as tools/reference/checkpoints.py wrote them, against transformers' fp32
// logits at every position: in one prefill, in chunks, and token by token through the paged caches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/checkpoint/safetensors_header.h"
#include "common/geometry/bf16.h"
#include "common/models/read_config.h"
#include "tests/testing/checkpoint_writer.h"
#include "tests/testing/matchers.h"
#include "tests/worker/weights/golden_engine.h"

namespace kvasir::testing {
namespace {

struct GoldenCase {
  std::string name;
  DType caches = DType::kF32;
};
void PrintTo(const GoldenCase& c, std::ostream* out) { *out << c.name << " " << DTypeName(c.caches); }

std::string FolderOf(const std::string& name) { return KVASIR_TEST_DATA_DIR "/checkpoints/" + name; }

ModelDescription ModelOf(const std::string& name, DType caches) {
  auto model = ReadConfigPath(FolderOf(name));
  KVASIR_EXPECT_OK(model);
  if (!model.ok()) return {};
  model->dtype = caches;
  return *std::move(model);
}

absl::StatusOr<std::vector<float>> LogitsOf(const ModelDescription& model, const std::string& directory,
                                            const std::vector<float>& golden_tokens, std::int64_t chunk) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(golden_tokens.size());
  for (const float token : golden_tokens) tokens.push_back(static_cast<std::int32_t>(token));
  // Blocks of 16 tokens: the sequence has several, and its last is not full at every step.
  auto engine = GoldenEngine::Create({.target = {model, directory},
                                      .block_tokens = 16,
                                      .prefill_chunk = chunk == 16 ? 16 : 0,
                                      .context = 64});
  if (!engine.ok()) return engine.status();
  return (*engine)->LogitsOf(tokens, chunk);
}

// A copy of a checkpoint with its F32 matrices rounded to BF16.
std::string RoundedCopy(const std::string& name) {
  std::ifstream file(FolderOf(name) + "/model.safetensors", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const auto header = ReadSafetensorsHeader(bytes, name);
  KVASIR_EXPECT_OK(header);
  std::vector<WrittenTensor> tensors;
  for (const TensorEntry& entry : header->tensors) {
    WrittenTensor tensor{.name = entry.name, .type = entry.type, .shape = entry.shape, .bytes = {}};
    tensor.bytes = bytes.substr(static_cast<std::size_t>(entry.begin),
                                static_cast<std::size_t>(entry.end - entry.begin));
    if (entry.type == StoredType::kF32 && entry.shape.size() > 1 && !entry.name.ends_with("A_log")) {
      tensor.type = StoredType::kBf16;
      std::string rounded;
      for (std::size_t at = 0; at < tensor.bytes.size(); at += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, tensor.bytes.data() + at, sizeof value);
        const std::uint16_t bits = FloatToBf16(value);
        rounded.append(reinterpret_cast<const char*>(&bits), sizeof bits);
      }
      tensor.bytes = std::move(rounded);
    }
    tensors.push_back(std::move(tensor));
  }
  const std::string directory = FreshDirectory(name);
  WriteCheckpoint(directory, tensors);
  return directory;
}

class CheckpointGoldenTest : public ::testing::TestWithParam<GoldenCase> {};

std::vector<GoldenCase> AllGoldenCases() {
  std::vector<GoldenCase> cases;
  for (const auto& folder : std::filesystem::directory_iterator(KVASIR_TEST_DATA_DIR "/checkpoints")) {
    for (const DType caches : {DType::kF32, DType::kBf16}) {
      cases.push_back({folder.path().filename().string(), caches});
    }
  }
  std::sort(cases.begin(), cases.end(), [](const GoldenCase& a, const GoldenCase& b) {
    return std::pair(a.name, a.caches) < std::pair(b.name, b.caches);
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, CheckpointGoldenTest, ::testing::ValuesIn(AllGoldenCases()),
                         [](const auto& test) {
                           std::string name = ::testing::PrintToString(test.param);
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

// In fp32: the logits of the stored weights. In bf16: of the weights before they were rounded to be stored,
// where the checkpoint's are, so that weights and caches are both off by their rounding.
TEST_P(CheckpointGoldenTest, LogitsOfEveryPositionAgree) {
  const GoldenCase& c = GetParam();
  auto golden = ReadGolden(FolderOf(c.name) + "/reference.safetensors");
  ASSERT_EQ(golden["tokens"].size(), 40U);
  const bool bf16 = c.caches == DType::kBf16;
  const bool rounded = golden.contains("logits_unrounded");
  const std::vector<float>& want = golden[bf16 && rounded ? "logits_unrounded" : "logits"];
  const bool wide = c.name == "kimi-linear-groups";  // stored in F32
  const std::string directory = bf16 && wide ? RoundedCopy(c.name) : FolderOf(c.name);
  const ModelDescription model = ModelOf(c.name, c.caches);
  std::vector<float> first_bits;
  for (const std::int64_t chunk : {40, 16, 1}) {
    const auto logits = LogitsOf(model, directory, golden["tokens"], chunk);
    KVASIR_ASSERT_OK(logits);
    const double difference = GoldenDifference(*logits, want);
    RecordProperty("difference_" + std::to_string(chunk), std::to_string(difference));
    EXPECT_LE(difference, bf16 ? 2e-2 : 1e-4) << "in chunks of " << chunk;
    if (first_bits.empty()) first_bits = *logits;
    EXPECT_TRUE(first_bits == *logits) << "a row's bits depend on how its context was computed";
  }
}

// A field of the description that is read wrongly shows at these tolerances.
struct Misreading {
  std::string checkpoint;
  std::string what;
  std::function<void(ModelDescription*)> change;
};
void PrintTo(const Misreading& m, std::ostream* out) { *out << m.checkpoint << ": " << m.what; }

void EachMlp(ModelDescription* model, const std::function<void(MlpShape*)>& change) {
  for (ModelLayer& layer : model->layers) {
    if (layer.mlp.experts > 0) change(&layer.mlp);
  }
}
template <class Shape>
void EachMixer(ModelDescription* model, const std::function<void(Shape*)>& change) {
  for (ModelLayer& layer : model->layers) {
    if (auto* shape = std::get_if<Shape>(&layer.mixer); shape != nullptr) change(shape);
  }
}

std::vector<Misreading> AllMisreadings() {
  std::vector<Misreading> all;
  for (const std::string name : {"kimi-linear-small", "kimi-linear-groups"}) {
    all.push_back({name, "weights made to sum to one, or not", [](ModelDescription* model) {
                     EachMlp(model, [](MlpShape* mlp) { mlp->normalise = !mlp->normalise; });
                   }});
    all.push_back({name, "scale", [](ModelDescription* model) {
                     EachMlp(model, [](MlpShape* mlp) { mlp->routed_scale *= 1.01; });
                   }});
    all.push_back({name, "softmax", [](ModelDescription* model) {
                     EachMlp(model, [](MlpShape* mlp) { mlp->scoring = ExpertScoring::kSoftmax; });
                   }});
    all.push_back({name, "rotated", [](ModelDescription* model) {
                     EachMixer<MlaShape>(model, [](MlaShape* mla) { mla->rotate = true; });
                   }});
    all.push_back({name, "the other decay gate", [](ModelDescription* model) {
                     EachMixer<KdaShape>(model, [](KdaShape* kda) { kda->gate_lower_bound = -5; });
                   }});
  }
  all.push_back({"kimi-linear-groups", "groups", [](ModelDescription* model) {
                   EachMlp(model, [](MlpShape* mlp) { mlp->groups_kept = mlp->groups; });
                 }});
  return all;
}

TEST(CheckpointGoldens, SeeEveryMisreading) {
  for (const Misreading& misreading : AllMisreadings()) {
    SCOPED_TRACE(::testing::PrintToString(misreading));
    auto golden = ReadGolden(FolderOf(misreading.checkpoint) + "/reference.safetensors");
    ModelDescription model = ModelOf(misreading.checkpoint, DType::kF32);
    misreading.change(&model);
    const auto logits = LogitsOf(model, FolderOf(misreading.checkpoint), golden["tokens"], 40);
    KVASIR_ASSERT_OK(logits);
    EXPECT_GT(GoldenDifference(*logits, golden["logits"]), 1e-3);
  }
}

}  // namespace
}  // namespace kvasir::testing
