// A planted fault that a fuzzer with coverage feedback finds in seconds. tools/fuzz requires that it is
// found, so that "nothing found" elsewhere means something.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint8_t kSecret[] = {'p', 'l', 'a', 'n'};
  if (size < sizeof(kSecret)) return 0;
  for (std::size_t i = 0; i < sizeof(kSecret); ++i) {
    if (data[i] != kSecret[i]) return 0;
  }
  std::abort();
}
