// Memory, capture and errors of the CPU backend.
#include "worker/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using ::kvasir::testing::IsOk;
using ::kvasir::testing::StatusIs;

TEST(CpuBackendTest, MemoryIsAlignedZeroedAndCounted) {
  const auto backend = MakeCpuBackend({.memory_limit = Bytes(10000)});
  EXPECT_EQ(backend->Describe().memory_bytes, Bytes(10000));
  for (const std::int64_t size : {0, 1, 255, 4097}) {
    auto memory = backend->Allocate(Bytes(size));
    KVASIR_ASSERT_OK(memory);
    EXPECT_EQ((*memory)->size(), Bytes(size));
    ASSERT_NE((*memory)->data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*memory)->data()) % 256, 0U);
    for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ((*memory)->data()[i], std::byte{0}) << i;
    std::memset((*memory)->data(), 0xff, static_cast<std::size_t>(size));  // all of it is ours to write
  }
}

TEST(CpuBackendTest, TheLimitHoldsAndFreedMemoryComesBack) {
  const auto backend = MakeCpuBackend({.memory_limit = Bytes(1000)});
  auto first = backend->Allocate(Bytes(700));
  KVASIR_ASSERT_OK(first);
  EXPECT_THAT(backend->Allocate(Bytes(301)),
              StatusIs(absl::StatusCode::kResourceExhausted, "301 bytes asked for, 300 of 1000"));
  KVASIR_EXPECT_OK(backend->Allocate(Bytes(300)));
  first->reset();
  KVASIR_EXPECT_OK(backend->Allocate(Bytes(1000)));
  EXPECT_THAT(backend->Allocate(Bytes(-1)), StatusIs(absl::StatusCode::kResourceExhausted, "-1 bytes"));
}

TEST(CpuBackendTest, MemoryOutlivesItsBackend) {
  auto backend = MakeCpuBackend({});
  auto memory = backend->Allocate(Bytes(64));
  KVASIR_ASSERT_OK(memory);
  backend.reset();
  std::memset((*memory)->data(), 1, 64);
}

TEST(CpuBackendTest, WriteReadZeroAndCopy) {
  const auto backend = MakeCpuBackend({});
  auto memory = backend->Allocate(Bytes(8));
  KVASIR_ASSERT_OK(memory);
  const std::vector<std::byte> in = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  std::vector<std::byte> out(4);
  KVASIR_EXPECT_OK(backend->Write((*memory)->data() + 2, in));
  KVASIR_EXPECT_OK(backend->Zero((*memory)->data() + 3, Bytes(1)));
  KVASIR_EXPECT_OK(backend->Read(out, (*memory)->data() + 2));
  EXPECT_EQ(out, (std::vector<std::byte>{std::byte{1}, std::byte{0}, std::byte{3}, std::byte{4}}));
  KVASIR_EXPECT_OK(backend->Copy((*memory)->data(), (*memory)->data() + 4, Bytes(2)));
  KVASIR_EXPECT_OK(backend->Read(std::span(out).first(2), (*memory)->data()));
  EXPECT_EQ(out[0], std::byte{3});
  EXPECT_EQ(out[1], std::byte{4});
  KVASIR_EXPECT_OK(backend->Copy((*memory)->data(), (*memory)->data() + 4, Bytes(0)));
  KVASIR_EXPECT_OK(backend->Write((*memory)->data(), {}));
  KVASIR_EXPECT_OK(backend->Read({}, (*memory)->data()));
}

TEST(CpuBackendTest, AGraphIsFrozenButReadsItsBuffersWhenReplayed) {
  const auto backend = MakeCpuBackend({});
  std::vector<float> x = {1, 2};
  std::vector<float> y = {10, 20};
  std::vector<float> other = {1000, 1000};
  LaunchList list = {AddOp{.x = x.data(), .y = y.data(), .count = 2}};
  const auto graph = backend->Capture(list);
  KVASIR_ASSERT_OK(graph);
  EXPECT_EQ(x[0], 1.0F) << "capturing runs nothing";
  std::get<AddOp>(list[0]).y = other.data();
  list.clear();
  KVASIR_EXPECT_OK((*graph)->Replay());
  EXPECT_EQ(x, (std::vector<float>{11, 22}));
  y = {1, 1};  // a copy into the same memory
  KVASIR_EXPECT_OK((*graph)->Replay());
  EXPECT_EQ(x, (std::vector<float>{12, 23}));
}

TEST(CpuBackendTest, TokenIdsOutsideTheTableAreRefusedBeforeAnythingIsRead) {
  const auto backend = MakeCpuBackend({});
  const std::vector<float> table(6, 1.0F);
  std::vector<float> out(4);
  for (const std::int32_t bad : {-1, 3, 2147480000}) {
    const std::vector<std::int32_t> ids = {2, bad};
    const LaunchList list = {EmbedOp{
        .ids = ids.data(), .table = table.data(), .out = out.data(), .rows = 2, .hidden = 2, .vocab = 3}};
    EXPECT_THAT(backend->Run(list), StatusIs(absl::StatusCode::kInvalidArgument, "of row 1 is outside"));
  }
  std::vector<float> logits(3);
  std::vector<std::int32_t> drafted(1);
  const std::int32_t anchor = 3;
  std::int32_t fault = 0;
  const LaunchList chain = {MarkovChainOp{.base = table.data(),
                                          .w1 = table.data(),
                                          .w2 = table.data(),
                                          .anchors = &anchor,
                                          .logits = logits.data(),
                                          .drafted = drafted.data(),
                                          .fault = &fault,
                                          .requests = 1,
                                          .query_rows = 1,
                                          .vocab = 3,
                                          .rank = 2}};
  EXPECT_THAT(backend->Run(chain), StatusIs(absl::StatusCode::kInvalidArgument, "anchor token id 3"));
}

}  // namespace
}  // namespace kvasir
