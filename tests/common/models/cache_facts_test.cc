#include "common/models/cache_facts.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "common/models/catalogue.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

ModelDescription Catalogued(std::string_view name) {
  auto model = FindInCatalogue(name);
  EXPECT_THAT(model, IsOk());
  return model.ok() ? *model : ModelDescription{};
}

struct RowCase {
  std::string what;
  MixerShape shape;
  std::int64_t tp;
  std::int64_t row_bytes;
  std::int64_t tokens_per_row;
  std::int64_t tokens_kept;
};
void PrintTo(const RowCase& c, std::ostream* out) { *out << c.what; }

AttentionShape Attention(std::int64_t kv_heads, std::int64_t window) {
  AttentionShape s;
  s.heads = 32;
  s.kv_heads = kv_heads;
  s.head_dim = 192;
  s.value_dim = 128;
  s.window = window;
  return s;
}

std::vector<RowCase> RowCases() {
  AttentionShape chunked = Attention(8, 0);
  chunked.chunk = 512;
  AttentionShape sharing = Attention(8, 0);
  sharing.shares_with = 0;
  const MlaShape mla{.heads = 64, .kv_lora_rank = 448, .nope_dim = 448, .rope_dim = 64, .value_dim = 512};
  MlaShape compressed = mla;
  compressed.ratio = 128;
  return {
      {"keys and values differ", Attention(8, 0), 1, 8 * (192 + 128) * 2, 1, 0},
      {"divided by ranks", Attention(8, 0), 4, 2 * 320 * 2, 1, 0},
      {"at least one head a rank", Attention(8, 0), 32, 320 * 2, 1, 0},
      {"window", Attention(8, 128), 1, 5120, 1, 128},
      {"chunk", chunked, 1, 5120, 1, 512},
      {"another layer's cache", sharing, 1, 0, 1, 0},
      {"latent rows are whole on every rank", mla, 8, 1024, 1, 0},
      {"compressed", compressed, 1, 1024, 128, 0},
      {"indexer of fp8 keys", IndexerShape{.heads = 64, .head_dim = 128, .top_k = 1}, 8, 132, 1, 0},
      {"indexer of wide fp8 keys", IndexerShape{.heads = 64, .head_dim = 130, .top_k = 1}, 1, 138, 1, 0},
      {"indexer of plain keys", IndexerShape{.heads = 4, .head_dim = 128, .top_k = 1, .fp8_keys = false}, 1,
       256, 1, 0},
      {"compressor", CompressorShape{4, 8, 2048}, 1, 8192, 1, 8},
      {"cross attention", CrossAttentionShape{16, 16, 64, 64, 1500}, 2, 8 * 128 * 2, 1, 1500},
      {"hidden states", HiddenStateShape{3, 4096}, 1, 3 * 4096 * 2, 1, 0},
      {"encoder", EncoderAttentionShape{8, 8, 64}, 1, 0, 1, 0},
      {"no mixer", NoMixer{}, 1, 0, 1, 0},
  };
}

class RowFacts : public ::testing::TestWithParam<RowCase> {};

TEST_P(RowFacts, AreThose) {
  const RowCase& c = GetParam();
  const auto facts = CacheFactsOf(c.shape, DType::kBf16, c.tp);
  KVASIR_ASSERT_OK(facts);
  EXPECT_EQ(facts->row_bytes, c.row_bytes);
  EXPECT_EQ(facts->tokens_per_row, c.tokens_per_row);
  EXPECT_EQ(facts->tokens_kept, c.tokens_kept);
  EXPECT_TRUE(facts->states.empty());
}
INSTANTIATE_TEST_SUITE_P(All, RowFacts, ::testing::ValuesIn(RowCases()));

struct StateCase {
  std::string model;
  std::int64_t tp;
  std::int64_t bytes;  // of the first recurrent layer, as public logs and issues give it
};
void PrintTo(const StateCase& c, std::ostream* out) { *out << c.model << " at TP " << c.tp; }

class StateFacts : public ::testing::TestWithParam<StateCase> {};

TEST_P(StateFacts, AddUpToThePageOfPublicLogs) {
  const ModelDescription model = Catalogued(GetParam().model);
  for (const ModelLayer& layer : model.layers) {
    std::vector<MixerShape> shapes = layer.extra;
    shapes.push_back(layer.mixer);
    for (const MixerShape& shape : shapes) {
      const auto facts = CacheFactsOf(shape, model.dtype, GetParam().tp);
      KVASIR_ASSERT_OK(facts);
      if (facts->states.empty()) continue;
      EXPECT_EQ(facts->fixed_bytes(), GetParam().bytes);
      return;
    }
  }
  FAIL() << "no recurrent layer";
}
INSTANTIATE_TEST_SUITE_P(
    All, StateFacts,
    ::testing::Values(StateCase{"kimi-k3", 1, 6512640}, StateCase{"kimi-k3", 4, 1628160},
                      StateCase{"kimi-k3", 8, 814080}, StateCase{"kimi-k3", 16, 407040},
                      StateCase{"falcon-h1-1.5b", 1, 1594368}, StateCase{"nemotron-nano-9b-v2", 1, 5316608},
                      StateCase{"qwen3-next-80b-a3b", 1, 3 * 8192 * 2 + 32 * 128 * 128 * 2},
                      StateCase{"falcon-mamba-7b", 2, (3 * 4096 + 4096 * 16) * 2}));

TEST(CacheFacts, Mamba2RepeatsGroupsUntilEachRankHasOne) {
  const Mamba2Shape mamba{.heads = 128, .head_dim = 80, .state_dim = 128, .groups = 8, .conv_kernel = 4};
  const auto facts = CacheFactsOf(mamba, DType::kBf16, 16);
  KVASIR_ASSERT_OK(facts);
  EXPECT_EQ(facts->states[0].shape, (std::vector<std::int64_t>{3, 128 * 80 / 16 + 2 * 128}));
}

TEST(CacheFacts, HeadsThatRanksCannotShare) {
  EXPECT_THAT(CacheFactsOf(KdaShape{96, 128, 4}, DType::kBf16, 5),
              StatusIs(absl::StatusCode::kInvalidArgument, "heads = 96"));
  EXPECT_THAT(CacheFactsOf(Attention(8, 0), DType::kBf16, 3),
              StatusIs(absl::StatusCode::kInvalidArgument, "heads = 32"));
  AttentionShape odd = Attention(6, 0);
  odd.heads = 24;
  EXPECT_THAT(CacheFactsOf(odd, DType::kBf16, 4),
              StatusIs(absl::StatusCode::kInvalidArgument, "kv_heads = 6"));
}

}  // namespace
}  // namespace kvasir::testing
