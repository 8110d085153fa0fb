// host:port as people and flags write it.
#ifndef KVASIR_COMMON_RPC_ADDRESS_H_
#define KVASIR_COMMON_RPC_ADDRESS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvasir {

struct Address {
  std::string host;  // a name, an IPv4 address, or an IPv6 address without its brackets
  std::int32_t port = 0;
  friend bool operator==(const Address&, const Address&) = default;
};

// "node-a:7451", "127.0.0.1:0", "[::1]:7451". InvalidArgument (BAD_ADDRESS) says what is wrong. Port 0 is
// accepted only if `port_zero` (a server that lets the system choose).
[[nodiscard]] absl::StatusOr<Address> ParseAddress(std::string_view text, bool port_zero = false);

[[nodiscard]] std::string AddressText(const Address& address);

// localhost, 127.0.0.0/8 or ::1.
[[nodiscard]] bool IsLoopback(const Address& address);

}  // namespace kvasir

#endif  // KVASIR_COMMON_RPC_ADDRESS_H_
