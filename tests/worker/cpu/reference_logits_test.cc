// Against transformers: over small random checkpoints, its fp32 logits at every position. First the formulas
// (the forward in double that the other tests compare with), then the engine's passes through a paged cache,
// in one prefill, in chunks, and token by token.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/testing/cacheless_model.h"
#include "tests/testing/expanded_forward.h"
#include "tests/testing/matchers.h"
#include "tests/worker/cpu/small_checkpoint.h"
#include "tests/worker/cpu/small_models.h"
#include "worker/engine/pass_scratch.h"
#include "worker/engine/target_pass.h"

namespace kvasir::testing {
namespace {

class ReferenceLogitsTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Checkpoints, ReferenceLogitsTest,
                         ::testing::Values("deepseek-v3-small", "deepseek-v2-small"));

std::vector<float> Forward(SmallCheckpoint& checkpoint) {
  RoleModel model = WholeModel(Role::kTarget, checkpoint.description);
  BindWeights(checkpoint, &model);
  const ExpandedForward forward(model, checkpoint.description, DType::kF32);
  std::vector<Stream> x;
  x.reserve(checkpoint.tokens.size());
  for (const std::int32_t token : checkpoint.tokens) x.push_back({forward.Embedding(token)});
  for (const RoleLayer& layer : model.layers) {
    std::vector<ExpandedRow> cache;
    for (std::size_t t = 0; t < x.size(); ++t) {
      cache.push_back(forward.Row(layer, forward.MixerInput(layer, x[t]), static_cast<std::int64_t>(t)));
      forward.Layer(layer, cache, t + 1, static_cast<std::int64_t>(t), &x[t]);
    }
  }
  std::vector<float> logits;
  for (const Stream& row : x) {
    for (const double logit : forward.Logits(row)) logits.push_back(static_cast<float>(logit));
  }
  return logits;
}

TEST_P(ReferenceLogitsTest, TheFormulasAgree) {
  SmallCheckpoint checkpoint = ReadSmallCheckpoint(GetParam());
  ASSERT_EQ(checkpoint.tokens.size(), 40U);
  const double difference = RelativeDifference<float>(Forward(checkpoint), checkpoint.logits);
  RecordProperty("difference", std::to_string(difference));
  EXPECT_LE(difference, 1e-5);
}

// One rank's target over the checkpoint's weights, on the CPU, with one sequence in shuffled blocks.
class Engine {
 public:
  static constexpr std::int64_t kBlockTokens = 8;

  Engine(SmallCheckpoint& checkpoint, DType dtype) : checkpoint_(checkpoint) {
    ModelRanksOptions options;
    options.target = checkpoint.description;
    options.block_tokens = kBlockTokens;
    options.blocks = 6;
    options.dtype = dtype;
    plan_ = HandMadePlan(options);
  }

  absl::Status Create() {
    auto model = MakeRoleModel(plan_, {}, Role::kTarget, checkpoint_.description);
    if (!model.ok()) return model.status();
    model_ = *std::move(model);
    BindWeights(checkpoint_, &model_);
    auto arena = backend_->Allocate(plan_.arena_bytes);
    if (!arena.ok()) return arena.status();
    arena_ = *std::move(arena);
    auto scratch =
        MakePassScratch(*backend_, {&model_}, static_cast<std::int64_t>(checkpoint_.tokens.size()));
    if (!scratch.ok()) return scratch.status();
    scratch_ = *std::move(scratch);
    return absl::OkStatus();
  }

  // Appends the logits of the tokens [first, first + count), which are written to the cache.
  absl::Status Run(Pass pass, std::int64_t first, std::int64_t count, std::vector<float>* logits) {
    const PassShape shape{.pass = pass, .requests = 1, .query_rows = count};
    std::vector<std::int32_t> ids(checkpoint_.tokens.begin() + first,
                                  checkpoint_.tokens.begin() + first + count);
    std::vector<std::int64_t> positions, slots, bounds;
    for (std::int64_t position = first; position < first + count; ++position) {
      positions.push_back(position);
      slots.push_back(blocks_[static_cast<std::size_t>(position / kBlockTokens)] * kBlockTokens +
                      position % kBlockTokens);
      bounds.push_back(position + 1);
    }
    PassInputs in{.token_ids = ids.data(), .positions = positions.data(), .anchors = nullptr, .groups = {}};
    in.groups.push_back({.block_table = blocks_.data(),
                         .table_width = static_cast<std::int64_t>(blocks_.size()),
                         .slots = slots.data(),
                         .bounds = bounds.data()});
    std::vector<float> rows(static_cast<std::size_t>(count * model_.vocab));
    std::vector<std::int32_t> next(static_cast<std::size_t>(count));
    std::int32_t fault = 0;
    const PassOutputs out{.logits = rows.data(), .next_ids = next.data(), .fault = &fault};
    absl::Status ran =
        backend_->Run(WriteTargetPass(PassContext{model_, scratch_, arena_->data(), shape, in, out}));
    if (!ran.ok()) return ran;
    if (fault != 0) return absl::InternalError("a row has a NaN");
    logits->insert(logits->end(), rows.begin(), rows.end());
    return absl::OkStatus();
  }

 private:
  SmallCheckpoint& checkpoint_;
  Plan plan_;
  RoleModel model_;
  std::unique_ptr<Backend> backend_ = MakeCpuBackend({});
  std::unique_ptr<DeviceMemory> arena_;
  PassScratch scratch_;
  std::vector<std::int64_t> blocks_ = {3, 1, 5, 2, 4};
};

TEST_P(ReferenceLogitsTest, TheEnginesPassesAgree) {
  SmallCheckpoint checkpoint = ReadSmallCheckpoint(GetParam());
  const std::int64_t tokens = static_cast<std::int64_t>(checkpoint.tokens.size());
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    SCOPED_TRACE(std::string(DTypeName(dtype)));
    std::vector<float> first_bits;
    for (const std::int64_t step : {tokens, std::int64_t{7}, std::int64_t{1}}) {
      SCOPED_TRACE(step);
      Engine engine(checkpoint, dtype);
      KVASIR_ASSERT_OK(engine.Create());
      std::vector<float> logits;
      const Pass pass = step == 1 ? Pass::kTargetDecode : Pass::kTargetPrefill;
      for (std::int64_t at = 0; at < tokens; at += step) {
        KVASIR_ASSERT_OK(engine.Run(pass, at, std::min(step, tokens - at), &logits));
      }
      EXPECT_LE(RelativeDifference<float>(logits, checkpoint.logits), dtype == DType::kF32 ? 1e-4 : 2e-2);
      if (first_bits.empty()) first_bits = logits;
      EXPECT_TRUE(first_bits == logits) << "a row's bits depend on how its context was computed";
    }
  }
}

}  // namespace
}  // namespace kvasir::testing
