// Which attention backend the engine takes where nobody names one: the first in the device's list that takes
// the layers. Source: _get_backend_priorities in vLLM's platforms/{cuda,rocm}.py, and validate_configuration
// in v1/attention/backend.py.
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_BACKEND_CHOICE_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_BACKEND_CHOICE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "planner/request/backends.h"
#include "planner/request/engine_settings.h"

namespace kvasir {

using BackendTest = std::function<bool(const BackendRow&)>;

// Whether the kernels run there; a device that nobody named runs all.
[[nodiscard]] bool RunsOn(const BackendRow& row, const std::optional<GpuRow>& device);

// Of the target's layers or the draft's: rows of this kind, picked by an indexer or not.
struct BackendLayers {
  LayoutKind kind = LayoutKind::kKeyValue;
  bool sparse = false;
};
[[nodiscard]] BackendLayers BackendLayersOf(const ModelDescription& model);
[[nodiscard]] bool Reads(const BackendRow& row, const BackendLayers& layers);

// vLLM's name, or empty: the device is not named, or none of its list takes the model.
[[nodiscard]] std::string TargetBackendUnsaid(const EngineLaunch& launch);
// The same for a draft whose blocks see all of themselves.
[[nodiscard]] std::string NonCausalDraftBackendUnsaid(const EngineLaunch& launch);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_BACKEND_CHOICE_H_
