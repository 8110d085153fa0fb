// A rank's weights: where they lie, and sizes that cannot be.
#include "worker/engine/weight_set.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "tests/testing/matchers.h"
#include "worker/cpu/cpu_backend.h"

namespace kvasir {
namespace {

using testing::StatusIs;

TEST(WeightSet, LaysPartsAndTablesApart) {
  const auto backend = MakeCpuBackend({.memory_limit = Bytes(1 << 20)});
  const SyntheticWeights source(7);
  const WeightSpec spec = MatrixSpec("m", 6, 5);
  const float* whole = nullptr;
  const float* shard = nullptr;
  const float* table = nullptr;
  WeightSet weights;
  weights.AddWhole(spec, &whole);
  weights.AddRows(spec, 1, 3, &shard);
  weights.AddTable({1.5F, -2.0F}, &table);
  EXPECT_EQ(weights.bytes(), Bytes(768)) << "120, 40 and 8 bytes, each in its own 256";
  KVASIR_ASSERT_OK(weights.Load(*backend, source));
  EXPECT_EQ(std::vector<float>(shard, shard + 10), std::vector<float>(whole + 10, whole + 20));
  EXPECT_EQ(std::vector<float>(table, table + 2), (std::vector<float>{1.5F, -2.0F}));
}

TEST(WeightSet, BytesThatCannotBeCountedAreRefusedBeforeAnythingIsAllocated) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  const auto backend = MakeCpuBackend({});
  const float* unused = nullptr;
  for (const auto& [rows, cols] :
       {std::pair{kHuge, std::int64_t{2}}, {kHuge / 4, 1}, {1LL << 40, 1LL << 40}}) {
    WeightSet weights;
    weights.AddTable({1.0F}, &unused);
    weights.AddWhole(MatrixSpec("m", rows, cols), &unused);
    EXPECT_THAT(weights.Load(*backend, SyntheticWeights(1)),
                StatusIs(absl::StatusCode::kResourceExhausted, "on this rank"));
  }
  WeightSet many;  // each can be counted, their sum cannot
  for (int i = 0; i < 16; ++i) many.AddWhole(MatrixSpec("m", 1LL << 56, 1), &unused);
  EXPECT_THAT(many.Load(*backend, SyntheticWeights(1)),
              StatusIs(absl::StatusCode::kResourceExhausted, "on this rank"));
  EXPECT_EQ(unused, nullptr);
}

}  // namespace
}  // namespace kvasir
