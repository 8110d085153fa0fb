#include "worker/engine/random_draw.h"

namespace kvasir {
namespace {

constexpr int kRounds = 10;
constexpr std::uint32_t kMultiplier0 = 0xD2511F53U;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57U;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;  // the golden ratio
constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;  // sqrt(3) - 1

struct Product {
  std::uint32_t high;
  std::uint32_t low;
};

Product Multiply(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t product = std::uint64_t{a} * b;
  return {static_cast<std::uint32_t>(product >> 32U), static_cast<std::uint32_t>(product)};
}

std::uint32_t Low(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
std::uint32_t High(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32U); }

}  // namespace

PhiloxCounter Philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < kRounds; ++round) {
    const Product a = Multiply(kMultiplier0, counter[0]);
    const Product b = Multiply(kMultiplier1, counter[2]);
    counter = {b.high ^ counter[1] ^ key[0], b.low, a.high ^ counter[3] ^ key[1], a.low};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

double UniformDraw(const DrawKey& key) {
  const auto position = static_cast<std::uint64_t>(key.position);
  const PhiloxCounter bits =
      Philox({Low(position), High(position), static_cast<std::uint32_t>(key.purpose), key.index},
             {Low(key.seed), High(key.seed)});
  const std::uint64_t word = (std::uint64_t{bits[1]} << 32U) | bits[0];
  return static_cast<double>(word >> 11U) * 0x1p-53;
}

}  // namespace kvasir
