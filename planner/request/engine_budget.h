// From a device to what is left for the cache on each rank. Weights, activations, communication and graphs
// are ranges with their basis, and so is the result: a profile run decides the numbers on the device, nothing
// before.
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_BUDGET_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_BUDGET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/request/engine_settings.h"
#include "planner/request/weight_bytes.h"

namespace kvasir {

struct BudgetLine {
  std::string what;  // "weights"
  BytesRange bytes;
};

struct EngineBudget {
  BytesRange given;               // the share of the device that the engine may use
  std::vector<BudgetLine> taken;  // before the cache, largest basis first as listed
  BytesRange cache;               // given - taken; least may be 0 or below: it may not start
};

// Requires launch.device. `checkpoint_bytes` and `draft_checkpoint_bytes`: the sizes of the checkpoints,
// where known.
[[nodiscard]] EngineBudget BudgetOf(const EngineLaunch& launch, const EngineSettings& settings,
                                    std::optional<std::int64_t> checkpoint_bytes,
                                    std::optional<std::int64_t> draft_checkpoint_bytes);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_BUDGET_H_
