// Seeded weights: each element is a pure function of (seed, tensor name, global element index), made by
// integer mixing and power-of-two scaling, so that a rank's shard has exactly the bits of that slice of the
// full tensor, on every machine and compiler, and every value is exact in bf16.
//
// Random weights alone make a model that repeats itself and a draft that is never right. The synthetic model
// has two honest structures instead, both pure functions too:
//   * the head's row n is the embedding's row n - s (s: SuccessorStride), so a token's own embedding, carried
//     by the residual stream, votes for its successor t + s. Attention and MLP add context terms that often
//     outvote it.
//   * the draft's Markov head knows the same successor table (W1 row t and W2 column t + s agree) and nothing
//     of the context, so drafts are right as often as the context does not outvote the table.
//   * a chain draft hands the token's embedding on as it is, coloured by the state beside it.
#ifndef KVASIR_WORKER_ENGINE_SYNTHETIC_WEIGHTS_H_
#define KVASIR_WORKER_ENGINE_SYNTHETIC_WEIGHTS_H_

#include <cstdint>
#include <string>

namespace kvasir {

enum class WeightForm : std::int8_t {
  kUniform,  // m * 2^exponent, m an integer in [-limit, limit]
  kSign,     // +-2^exponent
  kNorm,     // (64 + m) / 64 * 2^exponent, m an integer in [-4, 4]
  kDebit,    // minus kNorm
  kPair,     // [rows, 2 * rows]: the identity, and kUniform behind it
};

// A full tensor [rows, cols], before sharding. `limit` <= 255, so values need at most 8 bits of mantissa.
struct WeightSpec {
  std::string source;  // the name that is hashed; tensors may share one
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  WeightForm form = WeightForm::kUniform;
  std::int64_t limit = 0;
  int exponent = 0;
  // Element (r, c) is the source's element ((r - row_shift) mod rows, c); with `transposed` the tensor is
  // [cols of the source, rows of the source] and (r, c) is the source's ((c - row_shift) mod cols, r).
  std::int64_t row_shift = 0;
  bool transposed = false;
  // What the tensor is, where `source` does not say so: "target.head" (weight_source.h).
  std::string name = {};
  [[nodiscard]] const std::string& Name() const { return name.empty() ? source : name; }
};

// Of `vocab` tokens; coprime to it, so that following it visits every token before any returns.
[[nodiscard]] std::int64_t SuccessorStride(std::int64_t vocab);

// Standard deviation gain / sqrt(cols), within 1 %; `gain` = gain_num / gain_den.
[[nodiscard]] WeightSpec MatrixSpec(std::string name, std::int64_t rows, std::int64_t cols,
                                    std::int64_t gain_num = 1, std::int64_t gain_den = 1);
// Near 2^exponent.
[[nodiscard]] WeightSpec NormSpec(std::string name, std::int64_t cols, int exponent = 0);
// [heads, 1], the logarithms of rates: uniform within 1/2 of 0.
[[nodiscard]] WeightSpec RateSpec(std::string name, std::int64_t heads);
// [rows, 1], near -4: the bias of a gate that is nearly shut.
[[nodiscard]] WeightSpec BiasSpec(std::string name, std::int64_t rows);
// [vocab, hidden], standard deviation 1.
[[nodiscard]] WeightSpec EmbeddingSpec(std::string name, std::int64_t vocab, std::int64_t hidden);
// [vocab, hidden], rows of the embedding `embedding_name`, shifted by one successor, divided by about
// sqrt(hidden).
[[nodiscard]] WeightSpec HeadSpec(std::string embedding_name, std::int64_t vocab, std::int64_t hidden);
// DSpark's Markov head: W1 [vocab, rank] and W2 [rank, vocab]. W1[t] * W2[, n] is about `8` for n = t's
// successor, and random, of standard deviation 8 / sqrt(rank), elsewhere.
[[nodiscard]] WeightSpec MarkovInSpec(std::string name, std::int64_t vocab, std::int64_t rank);
[[nodiscard]] WeightSpec MarkovOutSpec(std::string in_name, std::int64_t vocab, std::int64_t rank);

// [hidden, 2 * hidden]: the first half of the pair, and an eighth of a random projection of the second.
[[nodiscard]] WeightSpec PairSpec(std::string name, std::int64_t hidden);

// Makes the elements of one tensor.
class SyntheticTensor {
 public:
  SyntheticTensor(std::int64_t seed, const WeightSpec& spec);
  // Global row and column: 0 <= row < rows, 0 <= col < cols.
  [[nodiscard]] float At(std::int64_t row, std::int64_t col) const;

 private:
  WeightSpec spec_;
  std::uint64_t stream_;
  float scale_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_SYNTHETIC_WEIGHTS_H_
