// Memory, capture and errors of the CUDA backend; every call of the runtime failed in turn.
#include "worker/cuda/cuda_backend.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "common/base/status_macros.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using ::kvasir::testing::StatusIs;

std::unique_ptr<Backend> Make() { return MakeCudaBackend({}).value(); }

// x += y on the device, with x = {1, 2} and y = {10, 20}.
class CudaBackendTest : public ::testing::Test {
 protected:
  absl::Status Fill() {
    KVASIR_ASSIGN_OR_RETURN(memory_, backend_->Allocate(Bytes(64)));
    const std::vector<float> values = {1, 2, 10, 20};
    return backend_->Write(memory_->data(), std::as_bytes(std::span(values)));
  }
  LaunchList List() {
    auto* at = reinterpret_cast<float*>(memory_->data());
    return {AddOp{.x = at, .y = at + 2, .count = 2}};
  }
  std::vector<float> X() {
    std::vector<float> x(2);
    EXPECT_TRUE(backend_->Read(std::as_writable_bytes(std::span(x)), memory_->data()).ok());
    return x;
  }

  std::unique_ptr<Backend> backend_ = Make();
  std::unique_ptr<DeviceMemory> memory_;
};

TEST_F(CudaBackendTest, DescribesItsDevice) {
  EXPECT_EQ(backend_->Describe().backend, "cuda");
  EXPECT_NE(backend_->Describe().device, "");
  EXPECT_GT(backend_->Describe().memory_bytes, Bytes(0));
  ASSERT_EQ(CudaDevices()->size(), 1U);
  EXPECT_EQ(CudaDevices()->front(), backend_->Describe().device);
}

TEST_F(CudaBackendTest, WithoutADriverThereIsATypedError) {
  cuda_on_cpu::SetDevices(0);
  EXPECT_THAT(CudaDevices().status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                               "cudaGetDeviceCount: cudaErrorInsufficientDriver"));
  EXPECT_THAT(MakeCudaBackend({}).status(), StatusIs(absl::StatusCode::kFailedPrecondition, "cudaSetDevice"));
  cuda_on_cpu::SetDevices(1);
  EXPECT_THAT(MakeCudaBackend({.device = 3}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "cudaSetDevice"));
}

TEST_F(CudaBackendTest, MemoryIsAlignedAndZeroed) {
  for (const std::int64_t size : {0, 1, 255, 4097}) {
    auto memory = backend_->Allocate(Bytes(size));
    KVASIR_ASSERT_OK(memory);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*memory)->data()) % 256, 0U);
    std::vector<std::byte> read(static_cast<std::size_t>(size), std::byte{1});
    KVASIR_EXPECT_OK(backend_->Read(read, (*memory)->data()));
    for (const std::byte b : read) ASSERT_EQ(b, std::byte{0});
  }
  EXPECT_THAT(backend_->Allocate(Bytes(std::int64_t{1} << 50)).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, "1125899906842624 bytes asked for"));
  EXPECT_THAT(backend_->Allocate(Bytes(-1)).status(), StatusIs(absl::StatusCode::kResourceExhausted, ""));
}

TEST_F(CudaBackendTest, MemoryOutlivesItsBackend) {
  KVASIR_ASSERT_OK(Fill());
  backend_.reset();
  memory_.reset();
}

TEST_F(CudaBackendTest, AGraphIsFrozenButReadsItsBuffersWhenReplayed) {
  KVASIR_ASSERT_OK(Fill());
  LaunchList list = List();
  const auto graph = backend_->Capture(list);
  KVASIR_ASSERT_OK(graph);
  EXPECT_EQ(X(), (std::vector<float>{1, 2})) << "capturing runs nothing";
  list.clear();
  KVASIR_EXPECT_OK((*graph)->Replay());
  EXPECT_EQ(X(), (std::vector<float>{11, 22}));
  KVASIR_EXPECT_OK(backend_->Copy(memory_->data(), memory_->data() + 8, Bytes(8)));
  KVASIR_EXPECT_OK((*graph)->Replay());
  EXPECT_EQ(X(), (std::vector<float>{20, 40}));
}

TEST_F(CudaBackendTest, TokenIdsOutsideTheTableAreRefusedAndNothingIsReadFromThere) {
  const std::vector<float> table(6, 1.0F);
  std::vector<float> out(4);
  for (const std::int32_t bad : {-1, 3, 2147480000}) {
    const std::vector<std::int32_t> ids = {2, bad};
    const LaunchList list = {EmbedOp{
        .ids = ids.data(), .table = table.data(), .out = out.data(), .rows = 2, .hidden = 2, .vocab = 3}};
    EXPECT_THAT(backend_->Run(list), StatusIs(absl::StatusCode::kInvalidArgument,
                                              "token id " + std::to_string(bad) + " of row 1 is outside"));
    const auto graph = backend_->Capture(list);
    KVASIR_ASSERT_OK(graph);
    EXPECT_THAT((*graph)->Replay(), StatusIs(absl::StatusCode::kInvalidArgument, "of row 1 is outside"));
  }
  // The next list is not the last one's heir.
  const std::vector<std::int32_t> good = {2, 0};
  KVASIR_EXPECT_OK(backend_->Run({EmbedOp{
      .ids = good.data(), .table = table.data(), .out = out.data(), .rows = 2, .hidden = 2, .vocab = 3}}));
}

TEST_F(CudaBackendTest, ShapesWithoutAKernelAreRefusedBeforeAnythingRuns) {
  KVASIR_ASSERT_OK(Fill());
  LaunchList list = List();
  KdaStepOp large = {};
  large.dim = 1024;
  list.emplace_back(large);
  EXPECT_THAT(backend_->Run(list),
              StatusIs(absl::StatusCode::kFailedPrecondition, "KDA step: no CUDA kernel"));
  EXPECT_THAT(backend_->Capture(list).status(), StatusIs(absl::StatusCode::kFailedPrecondition, "KDA step"));
  EXPECT_EQ(X(), (std::vector<float>{1, 2}));
}

// Everything that calls the runtime, from a new backend to a replay.
absl::Status WholeLife() {
  KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeCudaBackend({}));
  KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory, backend->Allocate(Bytes(64)));
  const std::vector<float> values = {1, 2, 10, 20};
  KVASIR_RETURN_IF_ERROR(backend->Write(memory->data(), std::as_bytes(std::span(values))));
  auto* at = reinterpret_cast<float*>(memory->data());
  const LaunchList list = {AddOp{.x = at, .y = at + 2, .count = 2}};
  KVASIR_RETURN_IF_ERROR(backend->Run(list));
  KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, backend->Capture(list));
  KVASIR_RETURN_IF_ERROR(graph->Replay());
  std::vector<float> x(2);
  KVASIR_RETURN_IF_ERROR(backend->Read(std::as_writable_bytes(std::span(x)), memory->data()));
  return x == std::vector<float>{21, 42} ? absl::OkStatus() : absl::DataLossError("another sum");
}

TEST(CudaFailuresTest, EveryCallThatFailsIsAnErrorAndLeavesNothing) {
  const std::int64_t before = cuda_on_cpu::Calls();
  KVASIR_ASSERT_OK(WholeLife());
  const std::int64_t calls = cuda_on_cpu::Calls() - before;
  ASSERT_GT(calls, 20);
  for (std::int64_t n = 1; n <= calls; ++n) {
    cuda_on_cpu::FailCall(n);
    const absl::Status status = WholeLife();
    EXPECT_FALSE(status.ok()) << "call " << n;
    EXPECT_FALSE(absl::IsDataLoss(status)) << "call " << n;
    EXPECT_NE(std::string(status.message()), "") << "call " << n;
    cuda_on_cpu::FailCall(0);
  }
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, total) << "memory was lost";
  KVASIR_EXPECT_OK(WholeLife());
}

}  // namespace
}  // namespace kvasir
