#include "common/base/utf8.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvasir {
namespace {

// What may stand after a first byte: how many bytes, and the range of the first of them; the others are 80 ..
// BF (RFC 3629, section 4).
struct Form {
  std::uint8_t first_least, first_most;
  std::size_t more;
  std::uint8_t second_least, second_most;
};

constexpr std::array<Form, 9> kForms = {{{0x00, 0x7f, 0, 0, 0},
                                         {0xc2, 0xdf, 1, 0x80, 0xbf},
                                         {0xe0, 0xe0, 2, 0xa0, 0xbf},
                                         {0xe1, 0xec, 2, 0x80, 0xbf},
                                         {0xed, 0xed, 2, 0x80, 0x9f},
                                         {0xee, 0xef, 2, 0x80, 0xbf},
                                         {0xf0, 0xf0, 3, 0x90, 0xbf},
                                         {0xf1, 0xf3, 3, 0x80, 0xbf},
                                         {0xf4, 0xf4, 3, 0x80, 0x8f}}};

const Form* FormOf(std::uint8_t first) {
  for (const Form& form : kForms) {
    if (first >= form.first_least && first <= form.first_most) return &form;
  }
  return nullptr;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  std::size_t at = 0;
  const auto byte = [&text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  while (at < text.size()) {
    const Form* form = FormOf(byte(at));
    if (form == nullptr || form->more >= text.size() - at) return false;
    for (std::size_t i = 1; i <= form->more; ++i) {
      const std::uint8_t least = i == 1 ? form->second_least : 0x80;
      const std::uint8_t most = i == 1 ? form->second_most : 0xbf;
      if (byte(at + i) < least || byte(at + i) > most) return false;
    }
    at += 1 + form->more;
  }
  return true;
}

}  // namespace kvasir
