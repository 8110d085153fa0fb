// Where a rank's weights come from: made from a seed, or read from wherever a source keeps them. A tensor is
// asked for by its spec's name, "target.layers.3.q_up" (common/checkpoint/tensor_key.h lists the names behind
// the role), and only in the part that the rank holds.
#ifndef KVASIR_WORKER_ENGINE_WEIGHT_SOURCE_H_
#define KVASIR_WORKER_ENGINE_WEIGHT_SOURCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/engine/synthetic_weights.h"

namespace kvasir {

// What a rank holds of a tensor: `blocks` times `rows` rows, `row_step` apart, and `cols` columns of each.
struct TensorPart {
  std::int64_t row_begin = 0;
  std::int64_t rows = 0;
  std::int64_t row_step = 0;
  std::int64_t blocks = 1;
  std::int64_t col_begin = 0;
  std::int64_t cols = 0;
};

[[nodiscard]] TensorPart WholeTensor(const WeightSpec& spec);
// Shard `index` of `shards` equal ones. The dimension must divide evenly.
[[nodiscard]] TensorPart RowShard(const WeightSpec& spec, std::int64_t index, std::int64_t shards);
[[nodiscard]] TensorPart ColumnShard(const WeightSpec& spec, std::int64_t index, std::int64_t shards);

// The elements of `part`, row-major.
[[nodiscard]] std::vector<float> MakeWeights(std::int64_t seed, const WeightSpec& spec,
                                             const TensorPart& part);

// May be asked by several ranks at once.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // The elements of `part`, row-major, blocks * rows * cols of them. The source's own errors, naming the
  // tensor.
  [[nodiscard]] virtual absl::StatusOr<std::vector<float>> Read(const WeightSpec& spec,
                                                                const TensorPart& part) const = 0;
};

class SyntheticWeights final : public WeightSource {
 public:
  explicit SyntheticWeights(std::int64_t seed) : seed_(seed) {}
  [[nodiscard]] absl::StatusOr<std::vector<float>> Read(const WeightSpec& spec,
                                                        const TensorPart& part) const override;

 private:
  std::int64_t seed_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_WEIGHT_SOURCE_H_
