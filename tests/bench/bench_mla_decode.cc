// Paged MLA decode on the CPU, of the published shape (512 + 64, bf16): time per call of the fast version,
// how many times faster than the reference it is on the same machine in the same run, and the arithmetic
// rate. Ratios travel between machines, times do not.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "common/geometry/bf16.h"
#include "worker/cpu/paged_decode.h"
#include "worker/cpu/reference_decode.h"

namespace kvasir {
namespace {

constexpr std::int64_t kLatent = 512;
constexpr std::int64_t kRope = 64;
constexpr std::int64_t kWidth = kLatent + kRope;
constexpr std::int64_t kBlockTokens = 64;

// A batch of sequences of one length, pages in order.
class DecodeInput {
 public:
  DecodeInput(std::int64_t batch, std::int64_t query_rows, std::int64_t heads, std::int64_t length) {
    const std::int64_t blocks = length / kBlockTokens;
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal(0.0F, 0.1F);
    arena_.resize(static_cast<std::size_t>(batch * blocks * kBlockTokens * kWidth));
    for (std::uint16_t& element : arena_) element = FloatToBf16(normal(random));
    for (std::int64_t id = 0; id < batch * blocks; ++id) table_.push_back(id);
    for (std::int64_t row = 0; row < batch * query_rows; ++row) {
      bounds_.push_back(length - query_rows + row % query_rows + 1);
    }
    const std::size_t row_heads = bounds_.size() * static_cast<std::size_t>(heads);
    q_.resize(row_heads * static_cast<std::size_t>(kWidth));
    for (float& value : q_) value = normal(random);
    out_.resize(row_heads * static_cast<std::size_t>(kLatent));
    lse_.resize(row_heads);
    op_ = {.q = q_.data(),
           .arena = reinterpret_cast<const std::byte*>(arena_.data()),
           .page = {.stride_bytes = kBlockTokens * kWidth * 2,
                    .layer_offset_bytes = 0,
                    .block_tokens = kBlockTokens,
                    .row_bytes = kWidth * 2},
           .dtype = DType::kBf16,
           .block_table = table_.data(),
           .bounds = bounds_.data(),
           .out = out_.data(),
           .lse = lse_.data(),
           .requests = batch,
           .query_rows = query_rows,
           .heads = heads,
           .latent = kLatent,
           .rope = kRope,
           .table_width = blocks,
           .split_tokens = 128,
           .scale = 1.0F / std::sqrt(192.0F)};
  }
  [[nodiscard]] const MlaDecodeOp& op() const { return op_; }
  // Multiplications and additions of one call.
  [[nodiscard]] double Operations() const {
    double keys = 0;
    for (const std::int64_t bound : bounds_) keys += static_cast<double>(bound);
    return 2.0 * static_cast<double>(kWidth + kLatent) * static_cast<double>(op_.heads) * keys;
  }

 private:
  std::vector<std::uint16_t> arena_;
  std::vector<std::int64_t> table_, bounds_;
  std::vector<float> q_, out_, lse_;
  MlaDecodeOp op_{};
};

double SecondsOf(void (*decode)(const MlaDecodeOp&), const MlaDecodeOp& op) {
  const auto begin = std::chrono::steady_clock::now();
  decode(op);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Arguments: batch, query rows, heads, tokens.
void BM_MlaDecode(benchmark::State& state) {
  const DecodeInput input(state.range(0), state.range(1), state.range(2), state.range(3));
  const double reference = SecondsOf(cpu::ReferenceDecode, input.op());
  double fast = 0;
  for (auto unused : state) {
    static_cast<void>(unused);
    fast += SecondsOf(cpu::MlaDecode, input.op());
  }
  const double calls = static_cast<double>(state.iterations());
  state.counters["times_reference"] = reference / (fast / calls);
  state.counters["gflop_per_s"] = input.Operations() * calls / fast / 1e9;
}
BENCHMARK(BM_MlaDecode)
    ->Args({1, 1, 16, 4096})
    ->Args({1, 8, 16, 1024})
    ->Args({4, 1, 16, 1024})
    ->Args({1, 1, 128, 1024})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvasir
