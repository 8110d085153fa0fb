// LaunchOptions as a command: what `kvasir plan --emit vllm` prints. Reading it back gives the same options.
#ifndef KVASIR_PLANNER_REQUEST_LAUNCH_TEXT_H_
#define KVASIR_PLANNER_REQUEST_LAUNCH_TEXT_H_

#include <string>
#include <vector>

#include "planner/request/launch_options.h"

namespace kvasir {

// Variables, "vllm", "serve", the model, and each flag that has a value in the order of CacheFlags(); keys of
// a JSON-valued flag stand together. launch_split.h joins the words to a line.
[[nodiscard]] std::vector<std::string> LaunchWords(const LaunchOptions& options);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_LAUNCH_TEXT_H_
