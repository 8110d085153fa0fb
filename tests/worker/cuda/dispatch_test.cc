// Each shape without a kernel is refused before anything is enqueued, with what is missing where.
#include "worker/cuda/dispatch.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/matchers.h"
#include "worker/cuda/shared_bytes.h"

namespace kvasir::cuda {
namespace {

using ::kvasir::testing::StatusIs;

constexpr DeviceLimits kHopper{.architecture = 90, .shared_bytes_max = 232448};
constexpr DeviceLimits kSmall{.architecture = 86, .shared_bytes_max = 101376};

MlaDecodeOp Mla(std::int64_t latent, std::int64_t rope, DType dtype = DType::kBf16) {
  MlaDecodeOp op = {};
  op.page = {.stride_bytes = 1 << 20,
             .layer_offset_bytes = 4096,
             .block_tokens = 64,
             .row_bytes = (latent + rope) * 2};
  op.latent = latent;
  op.rope = rope;
  op.dtype = dtype;
  return op;
}

GqaDecodeOp Gqa(std::int64_t key_dim, std::int64_t value_dim) {
  GqaDecodeOp op = {};
  op.key_dim = key_dim;
  op.value_dim = value_dim;
  op.dtype = DType::kF32;
  return op;
}

TEST(DispatchTest, PublishedShapesHaveAKernelOnEveryDevice) {
  for (const DeviceLimits& device : {kHopper, kSmall}) {
    KVASIR_EXPECT_OK(
        CheckShapes({Mla(512, 64), Mla(512, 64, DType::kF32), Gqa(128, 128), Gqa(192, 128)}, device));
  }
  const auto kernel_of = [](const auto& op) {
    return std::get<DecodeKernelId>(ChooseDecode(ShapeOf(op), kHopper));
  };
  EXPECT_EQ(kernel_of(Mla(512, 64)), DecodeKernelId::kMma);
  EXPECT_EQ(kernel_of(Mla(512, 64, DType::kF32)), DecodeKernelId::kThreads);
  EXPECT_EQ(kernel_of(Gqa(128, 128)), DecodeKernelId::kThreads);
  MlaDecodeOp odd = Mla(512, 64);
  odd.page.layer_offset_bytes += 8;  // no row begins at 16 bytes
  EXPECT_EQ(kernel_of(odd), DecodeKernelId::kThreads);
}

TEST(DispatchTest, EveryMissingFeatureIsNamed) {
  MlaDecodeOp op = Mla(648, 60, DType::kFp8E4M3);
  op.page.layer_offset_bytes = 8;
  const auto chosen = ChooseDecode(ShapeOf(op), {.architecture = 75, .shared_bytes_max = 65536});
  const auto& lacking = std::get<std::vector<LackingKernel>>(chosen);
  ASSERT_EQ(lacking.size(), DecodeKernels().size());
  using Missing = std::vector<std::string>;
  EXPECT_EQ(lacking[0].missing,
            (Missing{"architecture sm_75 (sm_80 or newer)", "rows of fp8_e4m3", "key_dim 708 (at most 576)",
                     "value_dim 648 (at most 512)", "key_dim 708 (multiples of 16)",
                     "value_dim 648 (multiples of 32)", "rows at bytes 8 (multiples of 16)",
                     "bytes of shared memory 144768 (at most 65536)"}));
  EXPECT_EQ(lacking[1].missing,
            (Missing{"architecture sm_75 (sm_80 or newer)", "rows of fp8_e4m3", "key_dim 708 (at most 576)",
                     "value_dim 648 (at most 512)", "bytes of shared memory 91968 (at most 65536)"}));
  const auto apart = ChooseDecode(ShapeOf(Gqa(1024, 128)), kHopper);
  EXPECT_EQ(std::get<std::vector<LackingKernel>>(apart)[0].missing.back(),
            "values that do not stand in the keys");
}

TEST(DispatchTest, ARefusalNamesTheOperationAndAnotherBackend) {
  EXPECT_THAT(
      CheckShapes({AddOp{}, Mla(640, 64)}, kHopper),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               "MLA decode: no CUDA kernel runs this shape: mma lacks key_dim 704 (at most 576), value_dim "
               "640 (at most 512)"));
  EXPECT_THAT(
      CheckShapes({Mla(640, 64)}, kHopper),
      StatusIs(
          absl::StatusCode::kFailedPrecondition,
          "; threads lacks key_dim 704 (at most 576), value_dim 640 (at most 512); the CPU backend has no "
          "such limits"));
  EXPECT_THAT(CheckShapes({Gqa(1024, 128)}, kHopper),
              StatusIs(absl::StatusCode::kFailedPrecondition, "GQA decode: no CUDA kernel"));
}

TEST(DispatchTest, AStateThatFillsSharedMemoryIsRefused) {
  KdaStepOp step = {};
  step.dim = 128;
  KVASIR_EXPECT_OK(CheckShapes({step}, kSmall));
  step.dim = 256;
  EXPECT_THAT(CheckShapes({step}, kHopper), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                     "KDA step: no CUDA kernel runs this shape: bytes of"));
  KdaReplayOp replay = {};
  replay.dim = 256;
  EXPECT_THAT(CheckShapes({replay}, kHopper), StatusIs(absl::StatusCode::kFailedPrecondition, "KDA replay"));
}

TEST(DispatchTest, MoreExpertsThanABlockCanScoreAreRefused) {
  RouteExpertsOp route = {};
  route.groups = 1;
  route.experts = 896;
  KVASIR_EXPECT_OK(CheckShapes({route}, kSmall));
  route.experts = 8192;
  EXPECT_THAT(CheckShapes({route}, kHopper),
              StatusIs(absl::StatusCode::kFailedPrecondition, "expert routing"));
}

}  // namespace
}  // namespace kvasir::cuda
