#include "planner/request/checkpoint_json.h"

#include <nlohmann/json.hpp>

#include "absl/status/status.h"

namespace kvasir {

absl::StatusOr<std::int64_t> CheckpointBytes(std::string_view index_json) {
  const auto json = nlohmann::json::parse(index_json, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) {
    const auto metadata = json.find("metadata");
    if (metadata != json.end() && metadata->is_object()) {
      const auto total = metadata->find("total_size");
      if (total != metadata->end() && total->is_number()) {
        const auto bytes = total->get<double>();
        if (bytes > 0 && bytes < 1e15) return static_cast<std::int64_t>(bytes);
      }
    }
  }
  return absl::InvalidArgumentError("no metadata.total_size: not the index of a safetensors checkpoint");
}

}  // namespace kvasir
