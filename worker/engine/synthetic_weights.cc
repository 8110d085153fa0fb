#include "worker/engine/synthetic_weights.h"

#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

namespace kvasir {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection whose output bits all depend on all
// input bits.
std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// 64-bit FNV-1a.
std::uint64_t HashName(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

// An integer in [-limit, limit] from the upper 32 bits of a mixed number.
std::int64_t Centred(std::uint64_t mixed, std::int64_t limit) {
  const std::uint64_t choices = 2 * static_cast<std::uint64_t>(limit) + 1;
  return static_cast<std::int64_t>(((mixed >> 32U) * choices) >> 32U) - limit;
}

std::int64_t IntegerSqrt(std::int64_t x) {
  std::int64_t root = 0;
  for (std::int64_t bit = std::int64_t{1} << 31; bit > 0; bit /= 2) {
    if ((root + bit) <= x / (root + bit)) root += bit;
  }
  return root;
}

// Uniform integers in [-m, m] have the variance m (m + 1) / 3. Picks the power of two for which m has 8 bits.
void SetDeviation(std::int64_t variance_num, std::int64_t variance_den, WeightSpec* spec) {
  constexpr std::int64_t kLimitMin = 128;
  std::int64_t scaled = 3 * variance_num;  // times 4^-exponent; limit^2 = scaled / variance_den
  while (IntegerSqrt(scaled / variance_den) < kLimitMin) {
    scaled *= 4;
    --spec->exponent;
  }
  spec->limit = IntegerSqrt(scaled / variance_den);
}

}  // namespace

std::int64_t SuccessorStride(std::int64_t vocab) {
  std::int64_t stride = vocab * 89 / 144;  // near the golden section: neighbours land far apart
  if (stride < 1) return 1;
  while (std::gcd(stride, vocab) != 1) ++stride;
  return stride;
}

WeightSpec MatrixSpec(std::string name, std::int64_t rows, std::int64_t cols, std::int64_t gain_num,
                      std::int64_t gain_den) {
  WeightSpec spec{.source = std::move(name), .rows = rows, .cols = cols};
  SetDeviation(gain_num * gain_num, cols * gain_den * gain_den, &spec);
  return spec;
}

WeightSpec NormSpec(std::string name, std::int64_t cols, int exponent) {
  return {
      .source = std::move(name), .rows = 1, .cols = cols, .form = WeightForm::kNorm, .exponent = exponent};
}

WeightSpec RateSpec(std::string name, std::int64_t heads) {
  return {.source = std::move(name), .rows = heads, .cols = 1, .limit = 128, .exponent = -8};
}

WeightSpec BiasSpec(std::string name, std::int64_t rows) {
  return {.source = std::move(name), .rows = rows, .cols = 1, .form = WeightForm::kDebit, .exponent = 2};
}

WeightSpec EmbeddingSpec(std::string name, std::int64_t vocab, std::int64_t hidden) {
  WeightSpec spec{.source = std::move(name), .rows = vocab, .cols = hidden};
  SetDeviation(1, 1, &spec);
  return spec;
}

WeightSpec HeadSpec(std::string embedding_name, std::int64_t vocab, std::int64_t hidden) {
  WeightSpec spec = EmbeddingSpec(std::move(embedding_name), vocab, hidden);
  for (std::int64_t covered = 1; covered < hidden; covered *= 4) --spec.exponent;
  spec.row_shift = SuccessorStride(vocab);
  return spec;
}

WeightSpec MarkovInSpec(std::string name, std::int64_t vocab, std::int64_t rank) {
  WeightSpec spec{.source = std::move(name), .rows = vocab, .cols = rank, .form = WeightForm::kSign};
  spec.name = spec.source + "_in";
  return spec;
}

WeightSpec MarkovOutSpec(std::string in_name, std::int64_t vocab, std::int64_t rank) {
  WeightSpec spec{.source = std::move(in_name),
                  .rows = rank,
                  .cols = vocab,
                  .form = WeightForm::kSign,
                  .exponent = 3,
                  .row_shift = SuccessorStride(vocab),
                  .transposed = true};
  spec.name = spec.source + "_out";
  for (std::int64_t covered = 1; covered < rank; covered *= 2) --spec.exponent;
  return spec;
}

WeightSpec PairSpec(std::string name, std::int64_t hidden) {
  constexpr std::int64_t kShare = 8;
  WeightSpec spec{.source = std::move(name), .rows = hidden, .cols = 2 * hidden, .form = WeightForm::kPair};
  SetDeviation(1, hidden * kShare * kShare, &spec);
  return spec;
}

SyntheticTensor::SyntheticTensor(std::int64_t seed, const WeightSpec& spec)
    : spec_(spec),
      stream_(Mix(HashName(spec.source) ^ Mix(static_cast<std::uint64_t>(seed) + 0x9e3779b97f4a7c15U))),
      scale_(std::ldexp(1.0F, spec.exponent)) {}

float SyntheticTensor::At(std::int64_t row, std::int64_t col) const {
  std::int64_t source_rows = spec_.rows;
  std::int64_t source_cols = spec_.cols;
  if (spec_.transposed) {
    std::swap(source_rows, source_cols);
    std::swap(row, col);
  }
  if (spec_.row_shift != 0) row = (row + source_rows - spec_.row_shift) % source_rows;
  const std::uint64_t index = static_cast<std::uint64_t>(row * source_cols + col);
  const std::uint64_t mixed = Mix(stream_ + (index + 1) * 0x9e3779b97f4a7c15U);
  switch (spec_.form) {
    case WeightForm::kUniform:
      return static_cast<float>(Centred(mixed, spec_.limit)) * scale_;
    case WeightForm::kSign:
      return (mixed >> 63U) != 0 ? scale_ : -scale_;
    case WeightForm::kNorm:
      return static_cast<float>(64 + Centred(mixed, 4)) / 64.0F * scale_;
    case WeightForm::kDebit:
      return static_cast<float>(64 + Centred(mixed, 4)) / -64.0F * scale_;
    case WeightForm::kPair:
      if (col < source_rows) return col == row ? 1.0F : 0.0F;
      return static_cast<float>(Centred(mixed, spec_.limit)) * scale_;
  }
  return 0;
}

}  // namespace kvasir
