#include "tests/conformance/decode_difference.h"

#include <algorithm>
#include <cmath>

namespace kvasir::testing {
namespace {

bool Near(double got, double want, double absolute, double relative) {
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::abs(got - want) <= std::max(absolute, relative * std::abs(want));
}

}  // namespace

std::string Difference(const DecodeValues& got, const ExactValues& want, const Tolerance& tolerance) {
  if (got.lse.size() != want.lse.size() || got.out.size() != want.out.size()) return "sizes differ";
  for (std::size_t i = 0; i < want.lse.size(); ++i) {
    const double lse = static_cast<double>(got.lse[i]);
    if (!Near(lse, want.lse[i], tolerance.lse_absolute, tolerance.lse_relative)) {
      return "lse[" + std::to_string(i) + "] = " + std::to_string(lse) + ", not " +
             std::to_string(want.lse[i]);
    }
  }
  double product = 0;
  double squares = 0;
  for (std::size_t i = 0; i < want.out.size(); ++i) {
    const double out = static_cast<double>(got.out[i]);
    if (!Near(out, want.out[i], tolerance.out_absolute, tolerance.out_relative)) {
      return "out[" + std::to_string(i) + "] = " + std::to_string(out) + ", not " +
             std::to_string(want.out[i]);
    }
    product += out * want.out[i];
    squares += out * out + want.out[i] * want.out[i];
  }
  const double cosine = squares == 0 ? 0 : 1 - 2 * product / squares;
  return cosine <= tolerance.cosine ? "" : "cosine difference " + std::to_string(cosine);
}

}  // namespace kvasir::testing
