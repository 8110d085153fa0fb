// The recurrent states of sequences as they stand now, so that the same pass can run again from them.
#ifndef KVASIR_WORKER_SERVICE_SAVED_STATES_H_
#define KVASIR_WORKER_SERVICE_SAVED_STATES_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "worker/engine/backend.h"
#include "worker/engine/step_plan.h"

namespace kvasir {

class SavedStates {
 public:
  SavedStates() = default;
  // Of every per_sequence pool what the next pass over a sequence reads: the copy of its committed tokens,
  // and copy 0 with the histories (step_metadata.h). Empty for a plan without recurrent state. `arena`
  // outlives the object. The backend's error.
  static absl::StatusOr<SavedStates> Save(Backend& backend, const Plan& plan, std::byte* arena,
                                          std::span<const StepSequence> sequences);
  absl::Status Restore(Backend& backend) const;

 private:
  struct Block {
    std::byte* at = nullptr;
    std::vector<std::byte> bytes = {};
  };
  std::vector<Block> blocks_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_SAVED_STATES_H_
