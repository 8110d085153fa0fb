// Which backend this process runs its ranks on: the flag's word, what was built, and what the machine has.
#ifndef KVASIR_WORKER_CHOOSE_BACKEND_H_
#define KVASIR_WORKER_CHOOSE_BACKEND_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/units.h"
#include "worker/comm/rank_comms.h"
#include "worker/engine/backend.h"

namespace kvasir {

struct ChosenBackend {
  std::string name;     // "cpu", "cuda"
  std::string device;   // for people
  std::string remark;   // why not another, or what is not known of this one; empty: nothing to say
  Bytes device_memory;  // of all devices together; 0: the machine's own is used
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(const RankComms&, bool reference)> make;
};

// auto: CUDA where this build has it and the machine has a device, else the CPU. FailedPrecondition for cuda
// where there is none, with what is missing.
[[nodiscard]] absl::StatusOr<ChosenBackend> ChooseBackend(std::string_view word);

}  // namespace kvasir

#endif  // KVASIR_WORKER_CHOOSE_BACKEND_H_
