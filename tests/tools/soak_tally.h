// What happened in a run of the soak so far, counted by all clients together.
#ifndef KVASIR_TESTS_TOOLS_SOAK_TALLY_H_
#define KVASIR_TESTS_TOOLS_SOAK_TALLY_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "tests/tools/soak_request.h"
#include "tests/tools/soak_script.h"

namespace kvasir::soak {

struct Counts {
  std::int64_t arrivals = 0;
  std::int64_t running = 0;  // admitted and not ended
  std::int64_t tokens = 0;
  std::array<std::int64_t, kEnds> ends = {};
  std::array<std::int64_t, kStreamKinds> streams = {};  // that have ended
  std::int64_t drafted = 0;                             // of finished requests
  std::int64_t accepted = 0;
  std::int64_t target_steps = 0;
  std::int64_t faults = 0;
  std::chrono::milliseconds longest_wait{
      0};  // of an admitted request for its next event, where its client reads
};

class Tally {
 public:
  void Arrived();
  void Joined();
  void Said(std::int64_t tokens, std::chrono::milliseconds waited);
  void Ended(const RequestCheck& request, bool was_running);
  void StreamEnded(StreamKind kind);
  // Counts it, and prints the first few.
  void Fault(const std::string& what);
  [[nodiscard]] Counts counts() const;

 private:
  mutable std::mutex mutex_;
  Counts counts_;
};

// "arrivals 312, running 8, length 201, stop 50, ...".
[[nodiscard]] std::string CountsText(const Counts& counts);
[[nodiscard]] std::string StreamsText(const Counts& counts);

}  // namespace kvasir::soak

#endif  // KVASIR_TESTS_TOOLS_SOAK_TALLY_H_
