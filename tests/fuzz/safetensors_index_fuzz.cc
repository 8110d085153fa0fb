// Any bytes give an index or a typed error; no file of an index leads out of its directory.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/checkpoint/safetensors_index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto index = kvasir::ReadSafetensorsIndex(text, "fuzz");
  if (!index.ok()) {
    KVASIR_CHECK(kvasir::ReasonOf(index.status()) == kvasir::reason::kCheckpointInvalid);
    return 0;
  }
  KVASIR_CHECK(!index->files.empty());
  for (const std::string& file : index->files) KVASIR_CHECK(file.find('/') == std::string::npos);
  for (const auto& [tensor, file] : index->file_of) KVASIR_CHECK(index->files.contains(file));
  return 0;
}
