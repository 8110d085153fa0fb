// One rank's device buffers for cases of one shape, and the operations over them. They are made once, for the
// largest batch and the longest request, and every Write refills them in place, as an engine does before it
// replays a graph. Requests that a case lacks are padding: no keys, absurd blocks, queries of NaN.
#ifndef KVASIR_TESTS_CONFORMANCE_DECODE_BUFFERS_H_
#define KVASIR_TESTS_CONFORMANCE_DECODE_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/geometry/context_shard.h"
#include "tests/conformance/decode_rig.h"
#include "worker/engine/backend.h"

namespace kvasir::testing {

// Device memory that holds a host vector.
template <class T>
class OnDevice {
 public:
  // Allocates at the first call; later ones must have as many values.
  absl::Status Put(Backend& backend, const std::vector<T>& values) {
    if (memory_ == nullptr) {
      count_ = values.size();
      KVASIR_ASSIGN_OR_RETURN(memory_,
                              backend.Allocate(Bytes(static_cast<std::int64_t>(count_ * sizeof(T)))));
    }
    if (values.size() != count_) return absl::InternalError("a buffer's size changed");
    return backend.Write(memory_->data(), std::as_bytes(std::span(values)));
  }
  absl::StatusOr<std::vector<T>> Get(Backend& backend) const {
    std::vector<T> values(count_);
    KVASIR_RETURN_IF_ERROR(backend.Read(std::as_writable_bytes(std::span(values)), memory_->data()));
    return values;
  }
  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(memory_->data()); }

 private:
  std::unique_ptr<DeviceMemory> memory_;
  std::size_t count_ = 0;
};

class DecodeBuffers {
 public:
  DecodeBuffers(Backend& backend, DecodeCase capacity, const ContextShard& shard)
      : backend_(backend), capacity_(std::move(capacity)), shard_(shard) {}

  absl::Status Write(const DecodeData& data, const RunOptions& options);
  // After a first Write.
  [[nodiscard]] LaunchList List() const;
  // The rows of `requests` requests, of this rank's heads. Internal where padding is not empty.
  absl::StatusOr<DecodeValues> Read(std::int64_t requests) const;
  [[nodiscard]] std::unique_ptr<Graph>& graph() { return graph_; }

 private:
  [[nodiscard]] std::int64_t rows() const { return capacity_.batch * capacity_.query_rows; }

  Backend& backend_;
  DecodeCase capacity_;
  ContextShard shard_;
  PageGeometry page_;
  std::int64_t table_width_ = 0;
  float scale_ = 0;
  OnDevice<std::byte> arena_;
  OnDevice<std::int64_t> table_, bounds_;
  OnDevice<float> q_, partial_, lse_, out_, out_lse_;
  OnDevice<std::int32_t> fault_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_CONFORMANCE_DECODE_BUFFERS_H_
