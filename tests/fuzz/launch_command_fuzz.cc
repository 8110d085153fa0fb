// Any text gives options or a typed error; options that were read survive being written as a command. A
// configuration file is the same text again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/typed_error.h"
#include "planner/request/launch_command.h"
#include "planner/request/launch_split.h"
#include "planner/request/launch_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto words = kvasir::SplitCommand(text);
  if (!words.ok()) return 0;
  KVASIR_CHECK(*kvasir::SplitCommand(kvasir::JoinCommand(*words)) == *words);
  const auto read_file = [&](std::string_view) -> absl::StatusOr<std::string> { return text; };
  const auto command = kvasir::ParseLaunchCommand(*words, read_file);
  if (!command.ok()) {
    KVASIR_CHECK(!kvasir::ErrorOf(command.status()).field.empty());
    return 0;
  }
  const auto again = kvasir::ParseLaunchCommand(kvasir::LaunchWords(command->options), read_file);
  KVASIR_CHECK(again.ok());
  KVASIR_CHECK(again->options == command->options);
  KVASIR_CHECK(again->unknown.empty());
  return 0;
}
