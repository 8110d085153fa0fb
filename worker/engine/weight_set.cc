#include "worker/engine/weight_set.h"

#include <span>
#include <utility>

#include "common/base/checked_math.h"
#include "common/base/status_macros.h"

namespace kvasir {
namespace {

// Of each tensor's first byte: what vector loads and TMA copies like.
constexpr std::int64_t kTensorAlignment = 256;
constexpr std::int64_t kFloatBytes = sizeof(float);

}  // namespace

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

absl::Status WeightSet::Load(Backend& backend, const WeightSource& source) {
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
