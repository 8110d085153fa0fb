// What one client of the soak does on one Decode stream: a pure function of the run's seed and the stream's
// number.
#ifndef KVASIR_TESTS_TOOLS_SOAK_SCRIPT_H_
#define KVASIR_TESTS_TOOLS_SOAK_SCRIPT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvasir::soak {

struct RequestScript {
  std::size_t prompt = 0;  // of Prompts()
  std::size_t way = 0;     // of Ways()
  std::int64_t limit = 0;  // max_tokens
  std::vector<std::int32_t> stops = {};
  bool logprobs = false;
  bool wait = false;
  std::chrono::milliseconds timeout{0};  // 0: none
  std::chrono::milliseconds pause{0};    // since the request before it
  // At most one of the two.
  std::optional<std::int64_t> cancel_after_events = {};
  std::optional<std::chrono::milliseconds> cancel_after_time = {};
  bool operator==(const RequestScript&) const = default;
};

enum class StreamKind : std::int8_t {
  kReads,     // to the end
  kPauses,    // stops reading for a while, then goes on
  kDrops,     // cancels the call
  kDeadline,  // has a deadline of its call
  kDeaf,      // does not read until the server ends its stream
};
inline constexpr std::size_t kStreamKinds = 5;

struct StreamScript {
  std::int64_t number = 0;
  StreamKind kind = StreamKind::kReads;
  bool own_connection = false;
  std::int64_t after_events = 0;      // of kPauses, and of kDrops where `time` is 0
  std::chrono::milliseconds time{0};  // how long a pause is, when a call is dropped, its deadline
  std::vector<RequestScript> requests = {};
  bool operator==(const StreamScript&) const = default;
};

[[nodiscard]] StreamScript WriteScript(std::uint64_t seed, std::int64_t number);

}  // namespace kvasir::soak

#endif  // KVASIR_TESTS_TOOLS_SOAK_SCRIPT_H_
