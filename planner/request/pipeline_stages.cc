#include "planner/request/pipeline_stages.h"

#include <cstddef>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {

absl::StatusOr<std::vector<std::int64_t>> StagesOf(const LaunchOptions& options, std::int64_t layers,
                                                   std::int64_t pp) {
  std::vector<std::int64_t> stages(static_cast<std::size_t>(pp), layers / pp);
  for (std::int64_t i = 0; i < layers % pp; ++i) ++stages[static_cast<std::size_t>(pp - 2 - i)];
  if (!options.pp_layer_partition.has_value()) return stages;
  std::int64_t sum = 0;
  for (const std::int64_t count : *options.pp_layer_partition) sum += count;
  if (static_cast<std::int64_t>(options.pp_layer_partition->size()) != pp || sum != layers) {
    return FieldError(
        reason::kValueOutOfRange, "VLLM_PP_LAYER_PARTITION",
        absl::StrFormat("VLLM_PP_LAYER_PARTITION has %d stages of %d layers together, must be %d stages "
                        "of %d; the engine raises ValueError",
                        options.pp_layer_partition->size(), sum, pp, layers));
  }
  return *options.pp_layer_partition;
}

}  // namespace kvasir
