// Any bytes give a model description or a typed error; a description that was read survives its canonical
// text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/check.h"
#include "common/models/config_error.h"
#include "common/models/model_text.h"
#include "common/models/read_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto model = kvasir::ReadConfigJson(json, "fuzz/model");
  if (!model.ok()) {
    KVASIR_CHECK(kvasir::ConfigErrorOf(model.status()).has_value());
    return 0;
  }
  const auto again = kvasir::ModelFromText(kvasir::ModelToText(*model));
  KVASIR_CHECK(again.ok());
  KVASIR_CHECK(*again == *model);
  return 0;
}
