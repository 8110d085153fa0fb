// Named places where a test may end or halt the process, set by --fault-point and empty otherwise.
#ifndef KVASIR_WORKER_SERVICE_FAULT_POINTS_H_
#define KVASIR_WORKER_SERVICE_FAULT_POINTS_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvasir {

enum class FaultAction : std::int8_t {
  kExit,  // at once, without any clean-up, as SIGKILL would
  kHang,  // the thread stops there for good; the process goes on
};

// prepare.start     before peers are met
// prepare.agreed    all ranks agreed, nothing is allocated yet
// prepare.built     this worker's ranks are ready, the caller does not know yet
// commit.start      before the switch
// step.start        before a step runs
inline constexpr std::string_view kFaultPointNames[] = {"prepare.start", "prepare.agreed", "prepare.built",
                                                        "commit.start", "step.start"};

class FaultPoints {
 public:
  // "prepare.agreed=exit". InvalidArgument for an unknown point or action.
  absl::Status Add(std::string_view text);
  void Reach(std::string_view point) const;

 private:
  std::map<std::string, FaultAction, std::less<>> actions_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_FAULT_POINTS_H_
