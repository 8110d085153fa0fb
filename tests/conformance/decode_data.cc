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

// Attention of one head of one row over the first `visible` tokens.
double ExactHead(const DecodeData& data, const float* q, const std::vector<float>& cache,
                 std::int64_t visible, double* out) {
  if (visible == 0) return -std::numeric_limits<double>::infinity();
  std::vector<double> scores;
  for (std::int64_t k = 0; k < visible; ++k) {
    double dot = 0;
    for (std::int64_t i = 0; i < data.width(); ++i) {
      dot += static_cast<double>(q[i]) *
             static_cast<double>(cache[static_cast<std::size_t>(k * data.width() + i)]);
    }
    scores.push_back(dot * static_cast<double>(data.scale));
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) {
    score = std::exp(score - largest);
    sum += score;
  }
  for (std::int64_t k = 0; k < visible; ++k) {
    for (std::int64_t i = 0; i < data.c.latent; ++i) {
      out[i] += scores[static_cast<std::size_t>(k)] / sum *
                static_cast<double>(cache[static_cast<std::size_t>(k * data.width() + i)]);
    }
  }
  return largest + std::log(sum);
}

}  // namespace

DecodeData MakeData(const DecodeCase& c, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  DecodeData data;
  data.c = c;
  for (std::int64_t b = 0; b < c.batch; ++b) {
    data.lengths.push_back(std::max<std::int64_t>(0, c.length - b * (c.query_rows + 1)));
    data.cache.push_back(Values(random, data.lengths.back() * data.width(), c.dtype));
  }
  data.q = Values(random, data.rows() * c.heads * data.width(), DType::kF32);
  // Ten times the usual queries: scores then differ enough that a wrong set of keys shows.
  for (float& value : data.q) value *= 10.0F;
  data.scale = 1.0F / std::sqrt(static_cast<float>(data.width()));
  return data;
}

ExactValues ExactDecode(const DecodeData& data) {
  const DecodeCase& c = data.c;
  ExactValues exact;
  exact.out.resize(static_cast<std::size_t>(data.rows() * c.heads * c.latent));
  for (std::int64_t index = 0; index < data.rows() * c.heads; ++index) {
    const std::int64_t row = index / c.heads;
    const std::size_t request = static_cast<std::size_t>(row / c.query_rows);
    const std::int64_t length = data.lengths[request];
    const std::int64_t visible =
        RowBound(length, std::min(length, c.query_rows), row % c.query_rows, c.causal);
    exact.lse.push_back(ExactHead(data, data.q.data() + index * data.width(), data.cache[request], visible,
                                  exact.out.data() + index * c.latent));
  }
  return exact;
}

}  // namespace kvasir::testing
