// The first message on a connection between two ranks, in both directions.
//
//   hello := magic:"KVCM" version:u16 size:u16 body{size}
//   body  := epoch:i64 ranks:i32 from:i32 to:i32 deployment:str plan_id:str
//   str   := length:u16 bytes{length}
//
// Integers are little-endian. `size` is at most kHelloBodyMax, so that a stranger cannot make a worker wait
// for or hold much.
#ifndef KVASIR_WORKER_COMM_HELLO_H_
#define KVASIR_WORKER_COMM_HELLO_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/units.h"

namespace kvasir {

inline constexpr std::uint16_t kCommVersion = 1;
inline constexpr std::size_t kHelloHeadBytes = 8;
inline constexpr std::size_t kHelloBodyMax = 1024;

struct Hello {
  std::string deployment;
  Epoch epoch;
  std::string plan_id;
  std::int32_t ranks = 0;
  std::int32_t from = 0;
  std::int32_t to = 0;
  friend bool operator==(const Hello&, const Hello&) = default;
};

[[nodiscard]] std::string EncodeHello(const Hello& hello);

// A head without a body: what a peer of another version is answered before the connection closes.
[[nodiscard]] std::string EncodeVersion();

// The body's size from the first kHelloHeadBytes bytes. InvalidArgument: not ours. FailedPrecondition
// (RANKS_DISAGREE): another version; `peer` names the rank in the message, -1 if it is not known yet.
[[nodiscard]] absl::StatusOr<std::size_t> ParseHelloHead(std::span<const std::byte> head, std::int32_t peer);

// InvalidArgument: lengths that do not add up, negative or absurd numbers.
[[nodiscard]] absl::StatusOr<Hello> ParseHelloBody(std::span<const std::byte> body);

// Whether both sides mean the same plan. RANKS_DISAGREE names the higher rank, the field and both values, the
// same on both sides.
[[nodiscard]] absl::Status CheckSamePlan(const Hello& self, const Hello& peer);

}  // namespace kvasir

#endif  // KVASIR_WORKER_COMM_HELLO_H_
