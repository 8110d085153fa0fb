// Whether bytes from outside are text: what JSON and the wire can carry unchanged.
#ifndef KVASIR_COMMON_BASE_UTF8_H_
#define KVASIR_COMMON_BASE_UTF8_H_

#include <string_view>

namespace kvasir {

// Well-formed UTF-8 (RFC 3629): no overlong form, no surrogate, nothing above U+10FFFF.
[[nodiscard]] bool IsUtf8(std::string_view text);

}  // namespace kvasir

#endif  // KVASIR_COMMON_BASE_UTF8_H_
