// SHA-256 (FIPS 180-4): the fingerprint of canonical text.
#ifndef KVASIR_COMMON_BASE_SHA256_H_
#define KVASIR_COMMON_BASE_SHA256_H_

#include <string>
#include <string_view>

namespace kvasir {

// 64 lower-case hex digits.
[[nodiscard]] std::string Sha256Hex(std::string_view bytes);

}  // namespace kvasir

#endif  // KVASIR_COMMON_BASE_SHA256_H_
