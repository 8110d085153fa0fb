// The resident memory of the servers over a run, and whether it is flat.
#ifndef KVASIR_TESTS_TOOLS_SOAK_MEMORY_H_
#define KVASIR_TESTS_TOOLS_SOAK_MEMORY_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvasir::soak {

// How much the resident memory of a process may grow after the warm-up.
inline constexpr std::int64_t kGrowthBytesMax = std::int64_t{8} << 20;

struct Growth {
  std::int64_t from = 0;  // bytes: the median of the tenth of the run that follows the warm-up
  std::int64_t to = 0;    // of its last tenth
};
// Of samples at equal intervals. The warm-up is the run's first quarter, or `warm_up_max` samples.
[[nodiscard]] Growth GrowthOf(const std::vector<std::int64_t>& samples, std::size_t warm_up_max);

class MemoryWatch {
 public:
  explicit MemoryWatch(std::chrono::seconds interval) : interval_(interval) {}
  void Add(std::string name, pid_t pid) { watched_.push_back({std::move(name), pid, {}}); }
  void Sample();
  // "planner 20.1, worker-0 31.2, worker-1 30.9 MiB"
  [[nodiscard]] std::string NowText() const;
  // Whether every process stayed within kGrowthBytesMax, and the figures.
  [[nodiscard]] bool Flat() const;
  [[nodiscard]] std::string GrowthText() const;

 private:
  struct Watched {
    std::string name;
    pid_t pid = 0;
    std::vector<std::int64_t> bytes;
  };
  [[nodiscard]] std::size_t WarmUpMax() const;

  const std::chrono::seconds interval_;
  std::vector<Watched> watched_;
};

}  // namespace kvasir::soak

#endif  // KVASIR_TESTS_TOOLS_SOAK_MEMORY_H_
