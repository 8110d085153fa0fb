// Where the events of one client's requests go. Implemented by the Decode stream; faked in tests.
#ifndef KVASIR_WORKER_SERVICE_DECODE_SINK_H_
#define KVASIR_WORKER_SERVICE_DECODE_SINK_H_

#include <chrono>
#include <cstdint>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "worker/engine/worker_machine.h"

namespace kvasir {

enum class EndReason : std::int8_t { kLength, kStopToken, kCancelled };

struct RequestJoined {
  PlanKey key;
  std::uint64_t seed = 0;
};
struct RequestTokens {
  std::vector<std::int32_t> tokens;  // not empty
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::vector<float> logprobs = {};  // of each token, where the request wants them
};
// Ends the request.
struct RequestFinished {
  EndReason reason = EndReason::kLength;
  std::int64_t emitted = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;  // drafts among those emitted
  std::int64_t target_steps = 0;
  std::int64_t prefill_steps = 0;
  std::chrono::nanoseconds queue_time{0};  // from joining to admission
  // Of the steps it took part in, whatever else did.
  std::chrono::nanoseconds prefill_time{0};
  std::chrono::nanoseconds target_time{0};
  std::chrono::nanoseconds target_time_max{0};  // of one step
};

// The client's own number of a request, and what happened. A status ends the request.
struct DecodeEvent {
  std::int64_t tag = 0;
  std::variant<RequestJoined, RequestTokens, RequestFinished, absl::Status> what;
};

class DecodeSink {
 public:
  virtual ~DecodeSink() = default;
  // Never blocks. False: the client is gone or reads too slowly; its requests may be dropped.
  virtual bool Push(const DecodeEvent& event) = 0;
  // The deployment cannot serve any more: these requests of its end with `cause`, and so does the stream.
  virtual void Fail(const std::vector<std::int64_t>& tags, const absl::Status& cause) = 0;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_DECODE_SINK_H_
