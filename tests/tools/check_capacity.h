// Recomputes what a start-up log printed. What the log states is fixed; what it leaves out takes the engine's
// default for release, device and model first, and then each other value that the engine knows. A row passes
// where one number of blocks within the rounding of the printed memory gives every printed figure.
#ifndef KVASIR_TESTS_TOOLS_CHECK_CAPACITY_H_
#define KVASIR_TESTS_TOOLS_CHECK_CAPACITY_H_

#include <string>

#include "tests/tools/log_models.h"
#include "tests/tools/log_row.h"

namespace kvasir {

enum class CapacityVerdict { kPassed, kFailed, kSkipped };

struct CapacityAnswer {
  CapacityVerdict verdict = CapacityVerdict::kFailed;
  std::string text;  // what was recomputed, or how it differs
};

[[nodiscard]] CapacityAnswer CheckCapacity(const LogRow& row, const LogModels& models);

}  // namespace kvasir

#endif  // KVASIR_TESTS_TOOLS_CHECK_CAPACITY_H_
