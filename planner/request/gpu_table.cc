#include "planner/request/gpu_table.h"

#include <array>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/edit_distance.h"

namespace kvasir {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// Least: what torch.cuda reports in public start-up logs ("79.18 GiB"); most: nvidia-smi's or rocm-smi's
// total of the product. Longer names first where one begins the other.
constexpr std::array kRows = {
    GpuRow{"h100nvl", "NVIDIA H100 NVL 94 GB", 95225 * kMiB, 95830 * kMiB, 90, "nvidia-smi of H100 NVL"},
    GpuRow{"h100", "NVIDIA H100 80 GB", 80994 * kMiB, 81559 * kMiB, 90,
           "vLLM log \"79.18 GiB\"; nvidia-smi 81559 MiB"},
    GpuRow{"gh200", "NVIDIA GH200 96 GB", 96768 * kMiB, 97871 * kMiB, 90, "nvidia-smi 97871 MiB"},
    GpuRow{"h200", "NVIDIA H200 141 GB", 143074 * kMiB, 143771 * kMiB, 90,
           "vLLM logs; nvidia-smi 143771 MiB"},
    GpuRow{"h20", "NVIDIA H20 96 GB", 97280 * kMiB, 97871 * kMiB, 90, "nvidia-smi 97871 MiB"},
    GpuRow{"gb300", "NVIDIA GB300 288 GB", 281600 * kMiB, 284208 * kMiB, 103,
           "product brief: 288 GB, 279 GB usable"},
    GpuRow{"b300", "NVIDIA B300 288 GB", 274432 * kMiB, 284208 * kMiB, 103, "product brief: 288 GB"},
    GpuRow{"gb200", "NVIDIA GB200 192 GB", 188416 * kMiB, 189471 * kMiB, 100, "nvidia-smi 189471 MiB"},
    GpuRow{"b200", "NVIDIA B200 192 GB", 182400 * kMiB, 183359 * kMiB, 100, "nvidia-smi 183359 MiB"},
    GpuRow{"gb10", "NVIDIA GB10 128 GB, shared with the CPU", 122000 * kMiB, 124600 * kMiB, 121,
           "DGX Spark logs: 119.7 GiB"},
    GpuRow{"rtxpro6000", "NVIDIA RTX PRO 6000 96 GB", 97230 * kMiB, 97887 * kMiB, 120,
           "nvidia-smi 97887 MiB"},
    GpuRow{"rtx5090", "NVIDIA GeForce RTX 5090 32 GB", 32110 * kMiB, 32607 * kMiB, 120,
           "nvidia-smi 32607 MiB"},
    GpuRow{"rtx4090", "NVIDIA GeForce RTX 4090 24 GB", 24080 * kMiB, 24564 * kMiB, 89,
           "nvidia-smi 24564 MiB"},
    GpuRow{"rtx3090", "NVIDIA GeForce RTX 3090 24 GB", 24130 * kMiB, 24576 * kMiB, 86,
           "nvidia-smi 24576 MiB"},
    GpuRow{"l40s", "NVIDIA L40S 48 GB", 45450 * kMiB, 46068 * kMiB, 89,
           "nvidia-smi 46068 MiB (modal-client 2797)"},
    GpuRow{"l4", "NVIDIA L4 24 GB", 22500 * kMiB, 23034 * kMiB, 89,
           "nvidia-smi 23034 MiB (modal-client 2797)"},
    GpuRow{"a100-40", "NVIDIA A100 40 GB", 40330 * kMiB, 40960 * kMiB, 80,
           "nvidia-smi 40960 MiB (modal-client 2797)"},
    GpuRow{"a100", "NVIDIA A100 80 GB", 81050 * kMiB, 81920 * kMiB, 80, "vLLM logs; nvidia-smi 81920 MiB"},
    GpuRow{"a10", "NVIDIA A10 24 GB", 22500 * kMiB, 23028 * kMiB, 86,
           "nvidia-smi 23028 MiB (modal-client 2797)"},
    GpuRow{"mi300x", "AMD Instinct MI300X 192 GB", 196288 * kMiB, 196592 * kMiB, 0,
           "rocm-smi 206141652992 B (ROCm/legacy-rocm-build 4750)"},
    GpuRow{"mi325x", "AMD Instinct MI325X 256 GB", 261800 * kMiB, 262128 * kMiB, 0, "rocm-smi 262128 MiB"},
    GpuRow{"mi355x", "AMD Instinct MI355X 288 GB", 294500 * kMiB, 294896 * kMiB, 0, "product brief: 288 GB"},
};

// Lower case letters, digits and dashes; maker's words away.
std::string Plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-') out += c;
  }
  for (const std::string_view word : {"nvidia", "amd", "instinct", "geforce"}) {
    const std::size_t at = out.find(word);
    if (at != std::string::npos) out.erase(at, word.size());
  }
  return out;
}

}  // namespace

std::span<const GpuRow> GpuTable() { return kRows; }

absl::StatusOr<GpuRow> FindGpu(std::string_view name) {
  const std::string wanted = Plain(name.substr(0, 64));
  std::string known;
  std::size_t least = wanted.size() / 2 + 1;
  std::string_view nearest;
  for (const GpuRow& row : kRows) {
    if (wanted == row.name) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
    const std::size_t edits = EditDistance(wanted, row.name);
    if (edits < least) {
      least = edits;
      nearest = row.name;
    }
  }
  return absl::NotFoundError(
      absl::StrFormat("device \"%s\" is not in the table; %s", std::string(name.substr(0, 64)),
                      nearest.empty() ? "there are " + known : "nearest: " + std::string(nearest)));
}

std::optional<GpuRow> GpuIn(std::string_view text) {
  const std::string plain = Plain(text);
  for (const GpuRow& row : kRows) {
    if (plain.find(row.name) != std::string::npos) return row;
  }
  return std::nullopt;
}

}  // namespace kvasir
