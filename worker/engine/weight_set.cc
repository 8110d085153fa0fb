#include "worker/engine/weight_set.h"

#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"

namespace kvasir {
namespace {

// Of each tensor's first byte: what vector loads and TMA copies like.
constexpr std::int64_t kTensorAlignment = 256;
constexpr std::int64_t kFloatBytes = sizeof(float);
// More than any device has, and far from where sums overflow.
constexpr std::int64_t kWeightBytesMax = std::int64_t{1} << 60;

}  // namespace

void WeightSet::Add(WeightSpec spec, const TensorPart& part, const float** destination) {
  std::optional<std::int64_t> count = CheckedMul(part.blocks, part.rows);
  if (count.has_value()) count = CheckedMul(*count, part.cols);
  AddEntry(
      {.spec = std::move(spec), .part = part, .table = {}, .destination = destination, .offset_bytes = 0},
      count);
}

void WeightSet::AddWhole(WeightSpec spec, const float** destination) {
  const TensorPart part = WholeTensor(spec);
  Add(std::move(spec), part, destination);
}

void WeightSet::AddRows(WeightSpec spec, std::int64_t index, std::int64_t shards, const float** destination) {
  const TensorPart part = RowShard(spec, index, shards);
  Add(std::move(spec), part, destination);
}

void WeightSet::AddTable(std::vector<float> values, const float** destination) {
  KVASIR_CHECK(!values.empty());
  const std::int64_t count = static_cast<std::int64_t>(values.size());
  AddEntry(
      {.spec = {}, .part = {}, .table = std::move(values), .destination = destination, .offset_bytes = 0},
      count);
}

void WeightSet::AddEntry(Entry entry, std::optional<std::int64_t> count) {
  entry.offset_bytes = offset_bytes_;
  entries_.push_back(std::move(entry));
  // Aligned up: one alignment more than the bytes is enough room for it.
  std::optional<std::int64_t> end = count.has_value() ? CheckedMul(*count, kFloatBytes) : std::nullopt;
  if (end.has_value()) end = CheckedAdd(*end, offset_bytes_ + kTensorAlignment);
  if (!end.has_value() || *end > kWeightBytesMax) {
    uncountable_ = true;
    return;
  }
  offset_bytes_ += CeilDiv(*count * kFloatBytes, kTensorAlignment) * kTensorAlignment;
}

absl::Status WeightSet::Load(Backend& backend, const WeightSource& source) {
  if (uncountable_) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("the weights take more than %d bytes on this rank", kWeightBytesMax));
  }
  KVASIR_ASSIGN_OR_RETURN(memory_, backend.Allocate(Bytes(offset_bytes_)));
  for (const Entry& entry : entries_) {
    std::vector<float> values = entry.table;
    if (values.empty()) {
      KVASIR_ASSIGN_OR_RETURN(values, source.Read(entry.spec, entry.part));
    }
    std::byte* at = memory_->data() + entry.offset_bytes;
    KVASIR_RETURN_IF_ERROR(backend.Write(at, std::as_bytes(std::span(values))));
    *entry.destination = reinterpret_cast<const float*>(at);
  }
  return absl::OkStatus();
}

}  // namespace kvasir
