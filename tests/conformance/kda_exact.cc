// Kimi Delta Attention of whole sequences in double, as the formulas stand in the paper: no state blocks, no
// passes, nothing of the operations.
#include <cmath>

#include "common/geometry/bf16.h"
#include "tests/conformance/kda_rig.h"

namespace kvasir::testing {
namespace {

using Vector = std::vector<double>;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double Stored(double x, DType dtype) {
  const float narrow = static_cast<float>(x);
  return static_cast<double>(dtype == DType::kBf16 ? Bf16ToFloat(FloatToBf16(narrow)) : narrow);
}

class Exact {
 public:
  Exact(const KdaData& data, const KdaSequence& sequence) : data_(data), c_(data.c), sequence_(sequence) {}

  [[nodiscard]] Vector Run() const {
    Vector out(Size(c_.tokens * c_.width()));
    for (std::int64_t h = 0; h < c_.heads; ++h) {
      std::vector<Vector> s(Size(c_.dim), Vector(Size(c_.dim), 0.0));
      for (std::int64_t t = 0; t < c_.tokens; ++t) Step(h, t, s, out);
    }
    return out;
  }

 private:
  static std::size_t Size(std::int64_t x) { return static_cast<std::size_t>(x); }

  // Head h of token t: queries (0), keys (1) or values (2), convolved and activated.
  [[nodiscard]] Vector Convolved(std::int64_t which, std::int64_t h, std::int64_t t) const {
    Vector out;
    for (std::int64_t d = 0; d < c_.dim; ++d) {
      const std::int64_t channel = which * c_.width() + h * c_.dim + d;
      double sum = 0;
      for (std::int64_t j = 0; j < c_.kernel; ++j) {
        const std::int64_t token = t - c_.kernel + 1 + j;
        if (token < 0) continue;
        const float x = sequence_.qkv[Size(token * 3 * c_.width() + channel)];
        sum += static_cast<double>(data_.weight[Size(channel * c_.kernel + j)]) *
               Stored(static_cast<double>(x), c_.dtype);
      }
      out.push_back(sum * Sigmoid(sum));
    }
    return out;
  }

  static Vector Normalised(Vector x, double scale) {
    double squares = 1e-6;
    for (const double value : x) squares += value * value;
    for (double& value : x) value *= scale / std::sqrt(squares);
    return x;
  }

  [[nodiscard]] double Decay(std::int64_t h, std::int64_t t, std::int64_t d) const {
    const std::int64_t channel = h * c_.dim + d;
    const double rate = std::exp(static_cast<double>(data_.a_log[Size(h)]));
    const double f = static_cast<double>(sequence_.decay[Size(t * c_.width() + channel)]) +
                     static_cast<double>(data_.dt_bias[Size(channel)]);
    if (c_.lower_bound < 0) return std::exp(static_cast<double>(c_.lower_bound) * Sigmoid(rate * f));
    return std::exp(-rate * std::log(1 + std::exp(f)));
  }

  void Step(std::int64_t h, std::int64_t t, std::vector<Vector>& s, Vector& out) const {
    const Vector q = Normalised(Convolved(0, h, t), 1 / std::sqrt(static_cast<double>(c_.dim)));
    Vector k = Normalised(Convolved(1, h, t), 1);
    const Vector v = Convolved(2, h, t);
    const double beta = Sigmoid(static_cast<double>(sequence_.beta[Size(t * c_.heads + h)]));
    for (std::size_t d = 0; d < s.size(); ++d) {
      k[d] = Stored(k[d], c_.dtype);
      const double decay = Decay(h, t, static_cast<std::int64_t>(d));
      for (double& value : s[d]) value *= decay;
    }
    for (std::size_t e = 0; e < s.size(); ++e) {
      double predicted = 0;
      for (std::size_t d = 0; d < s.size(); ++d) predicted += s[d][e] * k[d];
      const double u = Stored(beta * (v[e] - predicted), c_.dtype);
      double read = 0;
      for (std::size_t d = 0; d < s.size(); ++d) {
        s[d][e] += k[d] * u;
        read += s[d][e] * q[d];
      }
      out[Size(t * c_.width() + h * c_.dim) + e] = read;
    }
  }

  const KdaData& data_;
  const KdaCase& c_;
  const KdaSequence& sequence_;
};

}  // namespace

std::vector<std::vector<double>> ExactKda(const KdaData& data) {
  std::vector<std::vector<double>> all;
  all.reserve(data.sequences.size());
  for (const KdaSequence& sequence : data.sequences) all.push_back(Exact(data, sequence).Run());
  return all;
}

}  // namespace kvasir::testing
