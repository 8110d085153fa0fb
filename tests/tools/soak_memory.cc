#include "tests/tools/soak_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <span>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace kvasir::soak {
namespace {

constexpr std::chrono::minutes kWarmUpMax{5};
constexpr double kMiB = 1 << 20;

// 0 where the process is gone.
std::int64_t ResidentBytes(pid_t pid) {
  std::ifstream file(absl::StrFormat("/proc/%d/statm", pid));
  std::int64_t size = 0;
  std::int64_t resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::int64_t Median(std::span<const std::int64_t> samples) {
  std::vector<std::int64_t> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

}  // namespace

Growth GrowthOf(const std::vector<std::int64_t>& samples, std::size_t warm_up_max) {
  if (samples.empty()) return {};
  const std::size_t warm_up = std::min(samples.size() / 4, warm_up_max);
  const std::size_t part = std::max<std::size_t>(1, samples.size() / 10);
  const std::span<const std::int64_t> all(samples);
  return {Median(all.subspan(warm_up, part)), Median(all.last(part))};
}

std::size_t MemoryWatch::WarmUpMax() const {
  return static_cast<std::size_t>(std::chrono::seconds(kWarmUpMax) / interval_);
}

void MemoryWatch::Sample() {
  for (Watched& process : watched_) process.bytes.push_back(ResidentBytes(process.pid));
}

std::string MemoryWatch::NowText() const {
  return absl::StrJoin(watched_, ", ",
                       [](std::string* out, const Watched& process) {
                         const std::int64_t now = process.bytes.empty() ? 0 : process.bytes.back();
                         *out += absl::StrFormat("%s %.1f", process.name, static_cast<double>(now) / kMiB);
                       }) +
         " MiB";
}

bool MemoryWatch::Flat() const {
  return std::all_of(watched_.begin(), watched_.end(), [this](const Watched& process) {
    const Growth growth = GrowthOf(process.bytes, WarmUpMax());
    return growth.to > 0 && growth.to - growth.from <= kGrowthBytesMax;
  });
}

std::string MemoryWatch::GrowthText() const {
  return absl::StrJoin(watched_, ", ", [this](std::string* out, const Watched& process) {
    const Growth growth = GrowthOf(process.bytes, WarmUpMax());
    *out += absl::StrFormat("%s %.2f -> %.2f", process.name, static_cast<double>(growth.from) / kMiB,
                            static_cast<double>(growth.to) / kMiB);
  });
}

}  // namespace kvasir::soak
