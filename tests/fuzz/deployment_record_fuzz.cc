// The planner's own record, as a damaged disk may return it: whatever is accepted is written back as it was
// read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/base/sha256.h"
#include "planner/dispatch/deployment_record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // As it stands, and with a checksum that fits, so that the fuzzer gets behind it.
  const std::string signed_text = std::string(bytes) + "sha256 " + kvasir::Sha256Hex(bytes) + "\n";
  for (const std::string& text : {std::string(bytes), signed_text}) {
    const absl::StatusOr<kvasir::DeploymentRecord> record = kvasir::RecordFromText(text);
    if (record.ok() && kvasir::RecordToText(*record) != text) {
      std::abort();
    }
  }
  return 0;
}
