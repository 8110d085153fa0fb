// What the engine asks of a device. Eight calls; nothing optional, no "not supported" defaults: a factory
// succeeds or explains. One backend per rank. tests/testing/fault_backend wraps any backend and fails its
// n-th call.
#ifndef KVASIR_WORKER_ENGINE_BACKEND_H_
#define KVASIR_WORKER_ENGINE_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/units.h"
#include "worker/engine/launch.h"

namespace kvasir {

struct DeviceFacts {
  std::string backend;  // "cpu"
  std::string device;   // for people
  Bytes memory_bytes;   // that a plan may use on this device
};

// Memory of the device, freed with the object. `data` is the address that operations use.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  [[nodiscard]] virtual std::byte* data() const = 0;
  [[nodiscard]] virtual Bytes size() const = 0;
};

// A frozen launch list. The list given to Capture may be destroyed or overwritten afterwards.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual absl::Status Replay() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual DeviceFacts Describe() const = 0;
  // Zeroed memory, aligned to 256 bytes. ResourceExhausted with the bytes asked for.
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(Bytes bytes) = 0;
  // Host to device, and back; complete when the call returns. The caller keeps both ranges valid and in
  // bounds.
  virtual absl::Status Write(std::byte* to, std::span<const std::byte> from) = 0;
  virtual absl::Status Read(std::span<std::byte> to, const std::byte* from) = 0;
  // Fills with zero bytes: a parent that changes its pool.
  virtual absl::Status Zero(std::byte* at, Bytes bytes) = 0;
  // Between places of the device that do not overlap: a block that moves to another parent.
  virtual absl::Status Copy(std::byte* to, const std::byte* from, Bytes bytes) = 0;
  // Runs the list to its end, collectives included. Unavailable or DeadlineExceeded where a peer is gone.
  virtual absl::Status Run(const LaunchList& list) = 0;
  virtual absl::StatusOr<std::unique_ptr<Graph>> Capture(const LaunchList& list) = 0;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_BACKEND_H_
