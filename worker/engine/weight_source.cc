#include "worker/engine/weight_source.h"

#include "common/base/check.h"

namespace kvasir {

TensorPart WholeTensor(const WeightSpec& spec) { return {.rows = spec.rows, .cols = spec.cols}; }

TensorPart RowShard(const WeightSpec& spec, std::int64_t index, std::int64_t shards) {
  KVASIR_CHECK(spec.rows % shards == 0);
  const std::int64_t rows = spec.rows / shards;
  return {.row_begin = index * rows, .rows = rows, .cols = spec.cols};
}

TensorPart ColumnShard(const WeightSpec& spec, std::int64_t index, std::int64_t shards) {
  KVASIR_CHECK(spec.cols % shards == 0);
  const std::int64_t cols = spec.cols / shards;
  return {.rows = spec.rows, .col_begin = index * cols, .cols = cols};
}

std::vector<float> MakeWeights(std::int64_t seed, const WeightSpec& spec, const TensorPart& part) {
  const SyntheticTensor tensor(seed, spec);
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(part.blocks * part.rows * part.cols));
  for (std::int64_t block = 0; block < part.blocks; ++block) {
    for (std::int64_t r = 0; r < part.rows; ++r) {
      const std::int64_t row = part.row_begin + block * part.row_step + r;
      for (std::int64_t c = 0; c < part.cols; ++c) values.push_back(tensor.At(row, part.col_begin + c));
    }
  }
  return values;
}

absl::StatusOr<std::vector<float>> SyntheticWeights::Read(const WeightSpec& spec,
                                                          const TensorPart& part) const {
  return MakeWeights(seed_, spec, part);
}

}  // namespace kvasir
