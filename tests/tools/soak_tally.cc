#include "tests/tools/soak_tally.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "absl/strings/str_format.h"

namespace kvasir::soak {
namespace {

constexpr std::int64_t kFaultsShown = 20;

// By End and by StreamKind.
constexpr const char* kEndNames[kEnds] = {"open",    "length",    "stop", "cancelled", "timeout",
                                          "no slot", "no blocks", "cut",  "fault"};
constexpr const char* kStreamNames[kStreamKinds] = {"read", "paused", "dropped", "deadline", "deaf"};

}  // namespace

void Tally::Arrived() {
  const std::lock_guard lock(mutex_);
  ++counts_.arrivals;
}

void Tally::Joined() {
  const std::lock_guard lock(mutex_);
  ++counts_.running;
}

void Tally::Said(std::int64_t tokens, std::chrono::milliseconds waited) {
  const std::lock_guard lock(mutex_);
  counts_.tokens += tokens;
  counts_.longest_wait = std::max(counts_.longest_wait, waited);
}

void Tally::Ended(const RequestCheck& request, bool was_running) {
  const std::lock_guard lock(mutex_);
  counts_.running -= was_running ? 1 : 0;
  ++counts_.ends[static_cast<std::size_t>(request.end())];
  counts_.drafted += request.totals().drafted_tokens();
  counts_.accepted += request.totals().accepted_tokens();
  counts_.target_steps += request.totals().target_step_count();
}

void Tally::StreamEnded(StreamKind kind) {
  const std::lock_guard lock(mutex_);
  ++counts_.streams[static_cast<std::size_t>(kind)];
}

void Tally::Fault(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (++counts_.faults > kFaultsShown) return;
  std::printf("soak: fault: %s\n", what.c_str());
  std::fflush(stdout);
}

Counts Tally::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::string CountsText(const Counts& counts) {
  std::string text = absl::StrFormat("arrivals %d, running %d", counts.arrivals, counts.running);
  for (std::size_t end = 1; end < kEnds; ++end) {
    text += absl::StrFormat(", %s %d", kEndNames[end], counts.ends[end]);
  }
  return text;
}

std::string StreamsText(const Counts& counts) {
  std::string text = "streams";
  for (std::size_t kind = 0; kind < kStreamKinds; ++kind) {
    text += absl::StrFormat("%s %s %d", kind == 0 ? "" : ",", kStreamNames[kind], counts.streams[kind]);
  }
  return text;
}

}  // namespace kvasir::soak
