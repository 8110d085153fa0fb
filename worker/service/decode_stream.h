// One Decode call: reads the client's messages, gives its requests to rank 0's loop, writes events back. The
// loop never waits for a client: events go into a bounded queue, and a client that lets it fill loses its
// stream (RESOURCE_EXHAUSTED, CLIENT_TOO_SLOW), whatever still waits in it, and its requests, whose blocks
// are free before the next step. Answers to its own messages are bounded by the same queue.
#ifndef KVASIR_WORKER_SERVICE_DECODE_STREAM_H_
#define KVASIR_WORKER_SERVICE_DECODE_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "kvasir/worker/v1/decode.pb.h"
#include "worker/service/decode_sink.h"
#include "worker/service/worker_node.h"

namespace kvasir {

inline constexpr std::size_t kStreamQueueMax = 4096;     // events that wait to be written
inline constexpr std::size_t kStreamRequestsMax = 1024;  // open at a time

// What the loop knows of a stream; lives as long as either side.
class DecodeStream;

// All streams of a server, so that a drain reaches them.
class DecodeStreams {
 public:
  explicit DecodeStreams(std::size_t queue_max = kStreamQueueMax) : queue_max_(queue_max) {}
  // A reactor for gRPC, which owns it until it is done.
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Open(WorkerNode& node);
  // Of a request that names none: another one each time, and after each start of the server.
  [[nodiscard]] std::uint64_t FreshSeed();
  // Streams without open requests end now (SERVER_STOPPING); the others after their last one.
  void EndIdle();

 private:
  friend class DecodeStream;
  void Closed(const DecodeStream* stream);

  const std::size_t queue_max_;
  const std::uint64_t started_at_ =
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  std::atomic<std::int64_t> seeds_ = 0;
  std::mutex mutex_;
  std::map<const DecodeStream*, std::weak_ptr<DecodeStream>> open_;
  bool ending_ = false;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_SERVICE_DECODE_STREAM_H_
