// Devices by the name that people give them: how much memory the driver reports, and what the engine decides
// by the name (gpu_table.cc has the sources). The reported size differs a little between drivers and boards,
// so it is a range.
#ifndef KVASIR_PLANNER_REQUEST_GPU_TABLE_H_
#define KVASIR_PLANNER_REQUEST_GPU_TABLE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvasir {

struct GpuRow {
  std::string_view name;         // "h200"
  std::string_view title;        // "NVIDIA H200 141 GB"
  std::int64_t bytes_least = 0;  // total, as the driver reports it to the engine
  std::int64_t bytes_most = 0;
  std::int32_t sm = 0;  // compute capability, major * 10 + minor; 0: not NVIDIA
  std::string_view source;
};

[[nodiscard]] std::span<const GpuRow> GpuTable();
// In any case, with or without the maker's name; NotFound names the nearest.
[[nodiscard]] absl::StatusOr<GpuRow> FindGpu(std::string_view name);
// The first row whose name stands in a free text ("8x RTX PRO 6000 96GB", "2x H200"), as start-up logs have
// it.
[[nodiscard]] std::optional<GpuRow> GpuIn(std::string_view text);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_GPU_TABLE_H_
