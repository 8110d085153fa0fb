// Any bytes give a model description or an error; what is accepted is written back as the same bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/check.h"
#include "common/models/model_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto model = kvasir::ModelFromText(text);
  if (model.ok()) KVASIR_CHECK(kvasir::ModelToText(*model) == text);
  return 0;
}
