// The running deployment that wrong requests are sent to: one for all tests of a program.
#ifndef KVASIR_TESTS_WORKER_SERVICE_SHARED_RIG_H_
#define KVASIR_TESTS_WORKER_SERVICE_SHARED_RIG_H_

#include <cstdint>

#include "tests/testing/matchers.h"
#include "tests/worker/service/worker_rig.h"

namespace kvasir::testing {

inline constexpr std::int64_t kRunningEpoch = 5;

// Worker 0 leads and worker 1 follows a running plan of two ranks.
inline WorkerRig& SharedRig() {
  static auto* rig = [] {
    auto* made = new WorkerRig();
    KVASIR_EXPECT_OK(made->Apply(RigPlan(2), kRunningEpoch));
    return made;
  }();
  return *rig;
}

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_WORKER_SERVICE_SHARED_RIG_H_
