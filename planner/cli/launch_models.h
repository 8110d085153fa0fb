// The model that a launch command names: in the catalogue, in a folder, or given beside the command.
#ifndef KVASIR_PLANNER_CLI_LAUNCH_MODELS_H_
#define KVASIR_PLANNER_CLI_LAUNCH_MODELS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"

namespace kvasir::cli {

struct LaunchModel {
  ModelDescription model;
  bool is_copy = false;                          // EngineLaunch::is_copy
  std::optional<std::int64_t> checkpoint_bytes;  // of model.safetensors.index.json beside a config.json
};

// `word` as ReadModel takes it (plan_question.h); where that fails, a catalogue entry that the name is a copy
// of
// ("lukealonso/GLM-5.1-NVFP4" is zai-org/GLM-5.1), which is noted. `overrides` is laid over a config.json;
// for a catalogue entry it is noted as not used.
[[nodiscard]] absl::StatusOr<LaunchModel> FindLaunchModel(std::string_view word,
                                                          const std::optional<std::string>& overrides,
                                                          std::vector<std::string>& notes);

// A file of at most `bytes_max`; NotFound names it.
[[nodiscard]] absl::StatusOr<std::string> ReadWholeFile(const std::string& path, std::size_t bytes_max);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_LAUNCH_MODELS_H_
