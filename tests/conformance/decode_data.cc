// The unpaged half of the rig: random values, and attention over them in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "common/geometry/bf16.h"
#include "common/geometry/context_shard.h"
#include "tests/conformance/decode_rig.h"

namespace kvasir::testing {
namespace {

// A tenth of a normal draw, clamped to one, and exact in the cache's type.
std::vector<float> Values(std::mt19937_64& random, std::int64_t count, DType dtype) {
  std::normal_distribution<float> normal(0.0F, 0.1F);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = std::clamp(normal(random), -1.0F, 1.0F);
    if (dtype == DType::kBf16) value = Bf16ToFloat(FloatToBf16(value));
  }
  return values;
}

// The first rotary lane alone makes scores of 0 to 3, by bits of the position that every interleave deals out
// to different ranks; odd heads have the opposite order.
void Skew(DecodeData& data) {
  const DecodeCase& c = data.c;
  for (std::vector<float>& cache : data.cache) {
    const std::int64_t length = static_cast<std::int64_t>(cache.size()) / c.width();
    for (std::int64_t p = 0; p < length; ++p) {
      cache[static_cast<std::size_t>(p * c.width() + c.latent)] =
          static_cast<float>(p % 2 + p / 16 % 2 + p / 64 % 2);
    }
  }
  for (std::int64_t i = 0; i < data.rows() * c.heads; ++i) {
    data.q[static_cast<std::size_t>(i * c.width() + c.latent)] = (i % 2 == 0 ? 1.0F : -1.0F) / data.scale;
  }
}

// In eight lanes, which a compiler keeps in vectors.
double Dot(const double* a, const double* b, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  double lanes[kLanes] = {};
  const std::int64_t whole = count - count % kLanes;
  for (std::int64_t k = 0; k < whole; k += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += a[k + l] * b[k + l];
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (std::int64_t k = whole; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

// Attention of one head of one row over the first `visible` tokens.
double ExactHead(const DecodeData& data, const std::vector<double>& q, const std::vector<double>& cache,
                 std::int64_t visible, double* out) {
  if (visible == 0) return -std::numeric_limits<double>::infinity();
  const std::int64_t width = data.c.width();
  std::vector<double> scores(static_cast<std::size_t>(visible));
  for (std::int64_t k = 0; k < visible; ++k) {
    scores[static_cast<std::size_t>(k)] =
        Dot(q.data(), cache.data() + k * width, width) * static_cast<double>(data.scale);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) {
    score = std::exp(score - largest);
    sum += score;
  }
  for (std::int64_t k = 0; k < visible; ++k) {
    const double weight = scores[static_cast<std::size_t>(k)] / sum;
    const double* value = cache.data() + k * width;
    for (std::int64_t i = 0; i < data.c.latent; ++i) out[i] += weight * value[i];
  }
  return largest + std::log(sum);
}

}  // namespace

DecodeData MakeData(const DecodeCase& c, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  DecodeData data;
  data.c = c;
  for (std::int64_t b = 0; b < c.batch; ++b) {
    const std::int64_t length = c.mix.empty() ? std::max<std::int64_t>(0, c.length - b * (c.query_rows + 1))
                                              : c.mix[static_cast<std::size_t>(b)];
    data.lengths.push_back(length);
    data.cache.push_back(Values(random, length * c.width(), c.dtype));
  }
  data.q = Values(random, data.rows() * c.heads * c.width(), DType::kF32);
  // Ten times the usual queries: scores then differ enough that a wrong set of keys shows.
  for (float& value : data.q) value *= 10.0F;
  data.scale = 1.0F / std::sqrt(static_cast<float>(c.width()));
  if (c.skewed) Skew(data);
  // Activations of a model with bf16 caches are bf16, for the backends that take them so.
  for (float& value : data.q) value = c.dtype == DType::kBf16 ? Bf16ToFloat(FloatToBf16(value)) : value;
  return data;
}

ExactValues ExactDecode(const DecodeData& data) {
  const DecodeCase& c = data.c;
  ExactValues exact;
  exact.out.resize(static_cast<std::size_t>(data.rows() * c.heads * c.latent));
  std::vector<std::vector<double>> cache;
  cache.reserve(data.cache.size());
  for (const std::vector<float>& tokens : data.cache) cache.emplace_back(tokens.begin(), tokens.end());
  for (std::int64_t index = 0; index < data.rows() * c.heads; ++index) {
    const std::int64_t row = index / c.heads;
    const std::size_t request = static_cast<std::size_t>(row / c.query_rows);
    const std::int64_t length = data.lengths[request];
    const std::int64_t visible =
        RowBound(length, std::min(length, c.query_rows), row % c.query_rows, c.causal);
    const auto first = data.q.begin() + index * c.width();
    exact.lse.push_back(ExactHead(data, std::vector<double>(first, first + c.width()), cache[request],
                                  visible, exact.out.data() + index * c.latent));
  }
  return exact;
}

}  // namespace kvasir::testing
