#include "worker/engine/weight_set.h"

#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"

namespace kvasir {
namespace {

// Of each tensor's first byte: what vector loads and TMA copies like.
constexpr std::int64_t kTensorAlignment = 256;
constexpr std::int64_t kFloatBytes = sizeof(float);

}  // namespace

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

void WeightSet::Add(WeightSpec spec, const TensorPart& part, const float** destination) {
  AddEntry(
      {.spec = std::move(spec), .part = part, .table = {}, .destination = destination, .offset_bytes = 0},
      part.blocks * part.rows * part.cols);
}

void WeightSet::AddTable(std::vector<float> values, const float** destination) {
  const std::int64_t count = static_cast<std::int64_t>(values.size());
  AddEntry(
      {.spec = {}, .part = {}, .table = std::move(values), .destination = destination, .offset_bytes = 0},
      count);
}

void WeightSet::AddEntry(Entry entry, std::int64_t count) {
  entry.offset_bytes = offset_bytes_;
  entries_.push_back(std::move(entry));
  offset_bytes_ += CeilDiv(count * kFloatBytes, kTensorAlignment) * kTensorAlignment;
}

absl::Status WeightSet::Load(Backend& backend, std::int64_t seed) {
  KVASIR_ASSIGN_OR_RETURN(memory_, backend.Allocate(Bytes(offset_bytes_)));
  for (const Entry& entry : entries_) {
    const std::vector<float> values =
        entry.table.empty() ? MakeWeights(seed, entry.spec, entry.part) : entry.table;
    std::byte* at = memory_->data() + entry.offset_bytes;
    KVASIR_RETURN_IF_ERROR(backend.Write(at, std::as_bytes(std::span(values))));
    *entry.destination = reinterpret_cast<const float*>(at);
  }
  return absl::OkStatus();
}

}  // namespace kvasir
