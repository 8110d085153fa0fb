// Bytes of rows, states and rings; names of layers; blocks of a sequence.
#include "common/plan/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "common/geometry/context_shard.h"
#include "common/plan/admission.h"

namespace kvasir {
namespace {

struct RowCase {
  std::string name;
  LayoutKey layout;
  std::int64_t want;
};

void PrintTo(const RowCase& c, std::ostream* out) { *out << c.name; }

LayoutKey Rows(LayoutKind kind, DType dtype, std::int64_t heads, std::int64_t key_dim,
               std::int64_t value_dim) {
  LayoutKey layout;
  layout.kind = kind;
  layout.dtype = dtype;
  layout.heads = heads;
  layout.key_dim = key_dim;
  layout.value_dim = value_dim;
  return layout;
}

class RowBytesTest : public ::testing::TestWithParam<RowCase> {};

TEST_P(RowBytesTest, AreThoseOfTheLayout) { EXPECT_EQ(RowBytes(GetParam().layout), GetParam().want); }

INSTANTIATE_TEST_SUITE_P(
    , RowBytesTest,
    ::testing::Values(RowCase{"mla_bf16", Rows(LayoutKind::kLatent, DType::kBf16, 1, 512, 64), 1152},
                      RowCase{"mla_fp8", Rows(LayoutKind::kLatent, DType::kFp8E4M3, 1, 512, 64), 576},
                      RowCase{"gqa_bf16", Rows(LayoutKind::kKeyValue, DType::kBf16, 8, 128, 128), 4096},
                      RowCase{"uneven_f32", Rows(LayoutKind::kKeyValue, DType::kF32, 3, 5, 7), 144}),
    [](const auto& param) { return param.param.name; });

TEST(StateBytesTest, AlignEachTensorTo16Bytes) {
  LayoutKey layout;
  layout.kind = LayoutKind::kState;
  layout.states = {{"recurrent", 3, DType::kF32}, {"conv", 9, DType::kBf16}};
  layout.ring = {{"gate", 1, DType::kF32}, {"key", 8, DType::kBf16}};
  EXPECT_EQ(RowBytes(layout), 0);
  EXPECT_EQ(StateBytes(layout), 16 + 32);
  EXPECT_EQ(RingBytes(layout, 5), 32 + 80);
  EXPECT_EQ(RingBytes(layout, 0), 0);
  EXPECT_EQ(StateTensorOffset(layout, 0), 0);
  EXPECT_EQ(StateTensorOffset(layout, 1), 16);
  EXPECT_EQ(RingTensorOffset(layout, 0, 5), 48);
  EXPECT_EQ(RingTensorOffset(layout, 1, 5), 48 + 32);
}

TEST(StateBytesTest, OfKimiK3AtTp8) {
  LayoutKey layout;
  layout.kind = LayoutKind::kState;
  layout.states = {{"recurrent", 12 * 128 * 128, DType::kF32}, {"conv", 10 * 3 * 12 * 128, DType::kBf16}};
  layout.ring = {{"gate", 12 * 128, DType::kF32}, {"key_value", 12 * 256, DType::kBf16}};
  EXPECT_EQ(StateBytes(layout), 786432 + 92160);
  EXPECT_EQ(RingBytes(layout, 8), 49152 + 49152);
}

TEST(LayerIdTextTest, RoundTrips) {
  for (const LayerId id :
       {LayerId{Role::kTarget, 0, 0}, LayerId{Role::kDraft, 4, 0}, LayerId{Role::kTarget, 92, 1}}) {
    EXPECT_EQ(ParseLayerId(LayerIdText(id)), id);
  }
  EXPECT_EQ(LayerIdText({Role::kTarget, 3, 0}), "target.3");
  EXPECT_EQ(LayerIdText({Role::kDraft, 3, 2}), "draft.3.2");
}

TEST(LayerIdTextTest, RefusesEverythingElse) {
  for (const char* text :
       {"", "target", "target.", "target.-1", "target.03", "target.3.0", "target.3.", "target.3.1.2",
        "targets.3", "draft.99999999999", "target.+3", "target. 3", "Target.3", "target.3 "}) {
    EXPECT_FALSE(ParseLayerId(text).has_value()) << text;
  }
}

TEST(Words, AreDistinct) {
  EXPECT_EQ(RoleName(Role::kDraft), "draft");
  EXPECT_EQ(MixerName(Mixer::kRecurrent), "recurrent");
  EXPECT_EQ(LayoutKindName(LayoutKind::kKeyValue), "key_value");
  EXPECT_EQ(LifetimeKindName(LifetimeKind::kBoundedWindow), "bounded_window");
}

// The formula against the rows that each rank really stores.
TEST(BlocksForSequenceTest, HoldTheFullestRanksRows) {
  for (const std::int64_t ranks : {1, 2, 3, 8}) {
    for (const std::int64_t block : {1, 4, 6}) {
      for (const std::int64_t interleave : {1, 2}) {
        if (block % interleave != 0) continue;
        const PoolDemand demand{.lifetime = {}, .context_ranks = ranks, .block_tokens = block};
        for (std::int64_t tokens = 1; tokens < 200; ++tokens) {
          std::int64_t blocks = 0;
          for (std::int64_t rank = 0; rank < ranks; ++rank) {
            const ContextShard shard{.ranks = ranks, .interleave = interleave, .rank = rank};
            blocks = std::max(blocks, (LocalLength(shard, tokens) + block - 1) / block);
          }
          ASSERT_EQ(BlocksForSequence(demand, tokens), blocks) << tokens << " over " << ranks;
        }
      }
    }
  }
}

// The most blocks that live rows touch at any time of a decode, walked step by step.
TEST(BlocksForSequenceTest, HoldAWindowAtAnyAlignment) {
  for (const std::int64_t window : {1, 5, 16, 31}) {
    for (const std::int64_t rows : {1, 4, 8}) {
      for (const std::int64_t block : {1, 4, 16}) {
        const PoolDemand demand{
            .lifetime = {.kind = LifetimeKind::kBoundedWindow, .window = window, .copies = 0},
            .block_tokens = block,
            .block_rows = rows};
        std::int64_t most = 0;
        for (std::int64_t length = rows; length < 200; ++length) {
          // Rows length - rows .. length - 1 are queries; the first of them sees `window` tokens, itself
          // included.
          std::set<std::int64_t> touched;
          for (std::int64_t p = std::max<std::int64_t>(0, length - rows - window + 1); p < length; ++p) {
            touched.insert(p / block);
          }
          most = std::max(most, static_cast<std::int64_t>(touched.size()));
        }
        EXPECT_EQ(BlocksForSequence(demand, 1000), most) << window << " " << rows << " " << block;
        EXPECT_EQ(BlocksForSequence(demand, 1), 1);
      }
    }
  }
}

TEST(BlocksForSequenceTest, OfStatesAreCopiesTimesParts) {
  const PoolDemand demand{.lifetime = {.kind = LifetimeKind::kPerSequence, .window = 0, .copies = 8},
                          .parts = 3};
  EXPECT_EQ(BlocksForSequence(demand, 1), 24);
  EXPECT_EQ(BlocksForSequence(demand, 1 << 20), 24);
  EXPECT_EQ(BlocksForPrefill(demand, 2048), 0);
}

}  // namespace
}  // namespace kvasir
