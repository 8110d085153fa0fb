// Several requests on one Decode stream, until the last has finished.
#ifndef KVASIR_PLANNER_CLI_REMOTE_DECODE_STREAM_H_
#define KVASIR_PLANNER_CLI_REMOTE_DECODE_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/cli/remote/session.h"

namespace kvasir::cli {

struct DecodeAsk {
  std::vector<std::int32_t> prompt;
  std::int64_t max_tokens = 0;
  std::vector<std::int32_t> stop_tokens;
  bool speculate = true;
  double temperature = 0;
  std::int64_t top_k = 0;
  std::optional<double> top_p;        // absent: 1
  std::optional<std::uint64_t> seed;  // absent: the worker picks one
  bool logprobs = false;
  bool wait = false;
};

struct DecodeError {
  std::int32_t code = 0;  // a value of grpc::StatusCode
  std::string reason;
  std::string field;
  std::string message;
};

struct DecodeResult {
  std::int64_t epoch = 0;
  std::string plan_id;
  std::uint64_t seed = 0;
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;  // of the tokens, where they were asked for
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::int64_t target_steps = 0;
  std::int64_t prefill_steps = 0;
  // Microseconds: waiting for room; its prefill steps; its target steps, and the longest of those.
  std::int64_t queue_us = 0;
  std::int64_t prefill_us = 0;
  std::int64_t target_us = 0;
  std::int64_t target_max_us = 0;
  std::string finish;  // "length", "stop_token", "cancelled"; empty: it did not finish
  std::optional<DecodeError> error;
};

// Called with the request's place and its fresh tokens.
using TokensSink = std::function<void(std::size_t place, const std::vector<std::int32_t>& tokens)>;

// Asks `leader` (host:port), all at once. `results` has one entry for each ask, filled as far as the stream
// came; an error of one request is in its result. The status is the stream's: a failure of the deployment or
// the transport.
[[nodiscard]] absl::Status DecodeAll(const std::string& leader, const std::string& deployment,
                                     const std::vector<DecodeAsk>& asks, std::chrono::milliseconds timeout,
                                     const TokensSink& sink, std::vector<DecodeResult>& results);

}  // namespace kvasir::cli

#endif  // KVASIR_PLANNER_CLI_REMOTE_DECODE_STREAM_H_
