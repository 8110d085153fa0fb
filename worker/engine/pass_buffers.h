// The fixed device buffers that passes read and write. The inputs of a shape are packed one after the other
// from the start of one buffer, so their addresses depend on the shape alone (which is what a captured graph
// needs) and one Write brings a whole pass's metadata over, padded entries included.
#ifndef KVASIR_WORKER_ENGINE_PASS_BUFFERS_H_
#define KVASIR_WORKER_ENGINE_PASS_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "worker/engine/backend.h"
#include "worker/engine/pass.h"
#include "worker/engine/step_metadata.h"

namespace kvasir {

struct PassBufferSizes {
  std::int64_t vocab = 0;
  std::int64_t tap_columns = 0;  // taps * target hidden; 0 without a draft
  bool chain = false;  // the draft is a chain: one tap, of the target's state, and one carried for each seat
};

class PassBuffers {
 public:
  // Two allocations, sized for the largest shape of any pass of the plan. The backend's error.
  static absl::StatusOr<PassBuffers> Create(Backend& backend, const Plan& plan, const PassBufferSizes& sizes);

  // The largest rows() of any pass.
  [[nodiscard]] std::int64_t rows_max() const { return rows_max_; }
  [[nodiscard]] PassInputs InputsAt(const PassShape& shape) const;
  [[nodiscard]] const PassOutputs& outputs() const { return outputs_; }
  [[nodiscard]] Bytes bytes() const { return inputs_->size() + results_->size(); }

  // Copies the metadata to where InputsAt(metadata.shape) points; the rows of a chain's draft_block turned to
  // [query_rows, requests].
  absl::Status Upload(Backend& backend, const PassMetadata& metadata) const;

 private:
  struct GroupOffsets {
    std::int64_t block_table = 0;
    std::int64_t slots = 0;
    std::int64_t bounds = 0;
    std::int64_t reads = 0;
    std::int64_t replays = 0;
    std::int64_t table_width = 0;
    bool used = false;       // by this pass
    bool recurrent = false;  // has reads and replays
  };
  struct Offsets {
    std::int64_t token_ids = 0;
    std::int64_t positions = 0;
    std::int64_t anchors = 0;
    std::int64_t temperatures = 0;
    std::int64_t draws = 0;
    std::int64_t previous = 0;
    std::int64_t carried = 0;
    std::vector<GroupOffsets> groups = {};  // by GroupId
    std::int64_t bytes = 0;
  };
  struct GroupWidth {
    Role role = Role::kTarget;
    Mixer mixer = Mixer::kAttention;
    std::int64_t table_width = 0;
  };
  [[nodiscard]] Offsets OffsetsOf(const PassShape& shape) const;

  // Whether the shape's pass has states to start from, and whether it leaves some.
  [[nodiscard]] bool Starts(const PassShape& shape) const {
    return chain_ && RoleOf(shape.pass) == Role::kDraft;
  }
  [[nodiscard]] bool Carries(const PassShape& shape) const {
    return chain_ && shape.pass == Pass::kDraftContext;
  }

  bool chain_ = false;
  std::vector<GroupWidth> widths_;  // by GroupId
  std::int64_t rows_max_ = 0;
  std::unique_ptr<DeviceMemory> inputs_;
  std::unique_ptr<DeviceMemory> results_;
  PassOutputs outputs_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_PASS_BUFFERS_H_
