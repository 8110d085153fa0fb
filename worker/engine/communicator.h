// Collectives among the ranks of one deployment and epoch. Everything is built on AllGather: a reduction
// gathers and sums in rank order in fp32, so that every rank gets the same bits.
#ifndef KVASIR_WORKER_ENGINE_COMMUNICATOR_H_
#define KVASIR_WORKER_ENGINE_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace kvasir {

class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual std::int64_t rank() const = 0;  // inside this group
  [[nodiscard]] virtual std::int64_t size() const = 0;
  // `mine` of every rank, in rank order, into `all` (size() * mine.size() bytes). All ranks call with equal
  // sizes. Unavailable if a peer is gone, DeadlineExceeded after the communicator's timeout, Cancelled after
  // Abort.
  virtual absl::Status AllGather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // Makes running and later calls on this rank, and those of its peers, fail soon. Callable from any thread.
  virtual void Abort(const std::string& reason) = 0;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_COMMUNICATOR_H_
