// From a row of a log to the launches that may have printed it: the default for everything that it leaves out
// first, then the alternatives.
#ifndef KVASIR_TESTS_TOOLS_LOG_LAUNCH_H_
#define KVASIR_TESTS_TOOLS_LOG_LAUNCH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/request/engine_settings.h"
#include "tests/tools/log_models.h"
#include "tests/tools/log_row.h"

namespace kvasir {

struct LogLaunch {
  EngineLaunch launch;
  std::string assumed;  // what the row does not say, beyond the defaults; empty: nothing
};

// A row without max_model_len means the model's own. NotFound: the model or the draft is not known.
// InvalidArgument: a length below 1.
[[nodiscard]] absl::StatusOr<std::vector<LogLaunch>> LaunchesOf(const LogRow& row, const LogModels& models);

}  // namespace kvasir

#endif  // KVASIR_TESTS_TOOLS_LOG_LAUNCH_H_
