// What an attention result may differ by from the one in double.
#ifndef KVASIR_TESTS_CONFORMANCE_DECODE_DIFFERENCE_H_
#define KVASIR_TESTS_CONFORMANCE_DECODE_DIFFERENCE_H_

#include <string>

#include "tests/conformance/decode_rig.h"

namespace kvasir::testing {

// A value passes where it is within the absolute or the relative one; the cosine is of the whole output.
// Infinities must be equal.
struct Tolerance {
  double out_absolute, out_relative, cosine, lse_absolute, lse_relative;
};
// FlashMLA's for dense decode: the floor for any backend with bf16 caches.
inline constexpr Tolerance kFlashMla = {8e-4, 2.01 / 128, 5e-6, 1e-6, 8.01 / 65536};
// For backends that compute in float, which must not hide a wrong bound in a long context.
inline constexpr Tolerance kFloat = {2e-6, 1e-6, 1e-10, 2e-6, 1e-6};

// The narrowest that the backend keeps for the case.
[[nodiscard]] inline const Tolerance& StrictFor(const BackendUnderTest& backend, const DecodeCase& c) {
  return backend.rounds_to_bf16 && c.dtype == DType::kBf16 ? kFlashMla : kFloat;
}
// Where a bound that is wrong by one token is more than that.
[[nodiscard]] inline bool ShowsABound(const BackendUnderTest& backend, const DecodeCase& c) {
  return !(backend.rounds_to_bf16 && c.dtype == DType::kBf16) || c.length < 300;
}

// Empty when all values agree, else the first that does not.
[[nodiscard]] std::string Difference(const DecodeValues& got, const ExactValues& want,
                                     const Tolerance& tolerance);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_CONFORMANCE_DECODE_DIFFERENCE_H_
