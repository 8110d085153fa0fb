#include "common/rpc/address.h"

#include <charconv>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

constexpr std::size_t kHostBytesMax = 253;  // of a DNS name
constexpr std::int32_t kPortMax = 65535;

bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_';
}

bool IsIpv6Character(char c) {
  return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || (c >= '0' && c <= '9') || c == ':' || c == '.';
}

absl::Status Bad(std::string_view text, std::string_view what) {
  return FieldError(
      reason::kBadAddress, "",
      absl::StrFormat("address \"%s\" %s; write host:port, as in node-a:7451 or [::1]:7451", text, what));
}

}  // namespace

absl::StatusOr<Address> ParseAddress(std::string_view text, bool port_zero) {
  const std::string_view shown = text.substr(0, 64);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return Bad(shown, "has no port");
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  if (host.empty() || host.size() > kHostBytesMax) {
    return Bad(shown, host.empty() ? "has no host" : "has a host longer than 253 characters");
  }
  for (const char c : host) {
    if (bracketed ? !IsIpv6Character(c) : !IsHostCharacter(c)) {
      return Bad(shown, "has a character that no host name has");
    }
  }
  Address address{.host = std::string(host)};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (error != std::errc() || end != digits.data() + digits.size() || address.port > kPortMax ||
      address.port < (port_zero ? 0 : 1)) {
    return Bad(shown, absl::StrFormat("has a port that is not %d to %d", port_zero ? 0 : 1, kPortMax));
  }
  return address;
}

std::string AddressText(const Address& address) {
  const bool ipv6 = address.host.find(':') != std::string::npos;
  return ipv6 ? absl::StrFormat("[%s]:%d", address.host, address.port)
              : absl::StrFormat("%s:%d", address.host, address.port);
}

bool IsLoopback(const Address& address) {
  return address.host == "localhost" || address.host == "::1" || address.host.rfind("127.", 0) == 0;
}

}  // namespace kvasir
