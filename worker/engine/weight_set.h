// The weights of one rank in one device allocation: first every tensor's part is declared, then all are made
// and written at once, so that the size is known before anything is allocated.
#ifndef KVASIR_WORKER_ENGINE_WEIGHT_SET_H_
#define KVASIR_WORKER_ENGINE_WEIGHT_SET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/units.h"
#include "worker/engine/backend.h"
#include "worker/engine/weight_source.h"

namespace kvasir {

class WeightSet {
 public:
  // *destination gets the part's address when Load succeeds; it must stay where it is until then.
  void Add(WeightSpec spec, const TensorPart& part, const float** destination);
  void AddWhole(WeightSpec spec, const float** destination);
  // Shard `index` of `shards` equal ones, as RowShard.
  void AddRows(WeightSpec spec, std::int64_t index, std::int64_t shards, const float** destination);
  // At least one value.
  void AddTable(std::vector<float> values, const float** destination);
  [[nodiscard]] Bytes bytes() const { return Bytes(offset_bytes_); }
  // The backend's error where it cannot hold the weights, the source's where it cannot give them;
  // ResourceExhausted where their bytes cannot be counted.
  absl::Status Load(Backend& backend, const WeightSource& source);

 private:
  struct Entry {
    WeightSpec spec;
    TensorPart part;
    std::vector<float> table;  // used as it is when not empty
    const float** destination;
    std::int64_t offset_bytes;
  };
  void AddEntry(Entry entry, std::optional<std::int64_t> count);

  std::vector<Entry> entries_;
  std::int64_t offset_bytes_ = 0;
  bool uncountable_ = false;  // a size, or their sum, is beyond 64 bits
  std::unique_ptr<DeviceMemory> memory_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_WEIGHT_SET_H_
