// What is asked of the planner: two models, options, and perhaps a device instead of an amount of memory.
#ifndef KVASIR_PLANNER_QUESTIONS_PLAN_QUESTION_H_
#define KVASIR_PLANNER_QUESTIONS_PLAN_QUESTION_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/models/model_description.h"
#include "planner/core/plan_request.h"
#include "planner/request/engine_settings.h"
#include "planner/request/gpu_table.h"
#include "planner/request/plan_options.h"

namespace kvasir {

struct PlanQuestion {
  ModelDescription target;
  std::optional<ModelDescription> draft;
  PlanOptions options;
};

// Called between plans by what takes many; false ends it with what was found so far. Null: never ends early.
using GoOn = std::function<bool()>;

// For rules alone, which do not depend on the amount.
inline constexpr std::int64_t kAnyMemoryBytes = std::int64_t{1} << 30;

[[nodiscard]] PlanRequest RequestOf(const PlanQuestion& question);

// The engine's launch of the same question (planner/request/launch_of_options.h).
[[nodiscard]] absl::StatusOr<EngineLaunch> LaunchOf(const PlanQuestion& question, EngineRelease release);

// Which end of what a device leaves: weights, activations, communication and graphs are known as ranges.
enum class MemoryEnd : std::int8_t { kLeast, kMost };

// Sets kv_memory_bytes to what a rank of the device has left for caches. At its least, what is planned with
// it fits; at its most, nothing larger can. InvalidArgument where an engine would refuse the options before
// any memory counts. FailedPrecondition: nothing is left; the message says what takes how much.
[[nodiscard]] absl::Status SetMemoryOf(const GpuRow& device, MemoryEnd end, PlanQuestion& question);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_QUESTIONS_PLAN_QUESTION_H_
