// Any bytes give a header or a typed error; the tensors of a header lie inside the file, side by side.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/check.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/checkpoint/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto header = kvasir::ReadSafetensorsHeader(bytes, "fuzz");
  if (!header.ok()) {
    KVASIR_CHECK(kvasir::ReasonOf(header.status()) == kvasir::reason::kCheckpointInvalid);
    return 0;
  }
  std::int64_t covered = 0;
  for (const kvasir::TensorEntry& entry : header->tensors) {
    KVASIR_CHECK(entry.begin >= 8 && entry.begin <= entry.end);
    KVASIR_CHECK(entry.end <= static_cast<std::int64_t>(size));
    covered += entry.end - entry.begin;
  }
  KVASIR_CHECK(covered <= static_cast<std::int64_t>(size) - 8);
  return 0;
}
