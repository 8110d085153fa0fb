// Named places where a test may end or halt the process, set by --fault-point and empty otherwise.
#ifndef KVASIR_WORKER_SERVICE_FAULT_POINTS_H_
#define KVASIR_WORKER_SERVICE_FAULT_POINTS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvasir {

enum class FaultAction : std::int8_t {
  kExit,  // at once, without any clean-up, as SIGKILL would
  kHang,  // the first thread to come there stops for good; later ones, and the process, go on
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
  struct Point {
    FaultAction action = FaultAction::kExit;
    std::shared_ptr<std::atomic<bool>> reached = std::make_shared<std::atomic<bool>>(false);
  };
  std::map<std::string, Point, std::less<>> points_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_FAULT_POINTS_H_
