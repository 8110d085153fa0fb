// The mixture of experts of every backend against a computation in double, over one case table.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/conformance/decode_rig.h"
#include "tests/conformance/experts_case.h"
#include "tests/testing/matchers.h"
#include "worker/engine/launch.h"

namespace kvasir::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> Random(std::int64_t count, double deviation, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0.0, deviation);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(normal(random));
  return values;
}

// Inputs of both operations.
struct Data {
  ExpertsCase c;
  std::vector<float> logits, bias, in, gate, up, down;
};

Data MakeData(const ExpertsCase& c, unsigned seed) {
  const double by_dim = 1 / std::sqrt(static_cast<double>(c.dim));
  const double by_width = 1 / std::sqrt(static_cast<double>(c.width));
  const std::int64_t matrix = c.experts * c.dim * c.width;
  return {.c = c,
          .logits = Random(c.rows * c.experts, 2, seed),
          .bias = Random(c.experts, 0.25, seed + 1),
          .in = Random(c.rows * c.dim, 1, seed + 2),
          .gate = Random(matrix, by_dim, seed + 3),
          .up = Random(matrix, by_dim, seed + 4),
          .down = Random(matrix, by_width, seed + 5)};
}

struct Values {
  std::vector<std::int32_t> ids;
  std::vector<float> weights, out;
  std::int32_t fault = 0;
};

// Outputs start as NaN and absurd ids. `replay`: from a captured graph whose list is gone.
absl::StatusOr<Values> RunExperts(const BackendUnderTest& backend, const Data& data, bool replay = false) {
  const ExpertsCase& c = data.c;
  Values v;
  v.ids.assign(static_cast<std::size_t>(c.rows * c.chosen), 2147480000);
  v.weights.assign(v.ids.size(), kNan);
  v.out.assign(data.in.size(), kNan);
  std::vector<float> inner(static_cast<std::size_t>(c.rows * c.width), kNan);
  LaunchList list;
  list.push_back(RouteExpertsOp{.logits = data.logits.data(),
                                .bias = c.bias ? data.bias.data() : nullptr,
                                .ids = v.ids.data(),
                                .weights = v.weights.data(),
                                .fault = &v.fault,
                                .score = c.score,
                                .normalise = c.normalise,
                                .scale = c.scale,
                                .rows = c.rows,
                                .experts = c.experts,
                                .chosen = c.chosen,
                                .groups = c.groups,
                                .groups_kept = c.groups_kept});
  list.push_back(ExpertMlpOp{.in = data.in.data(),
                             .ids = v.ids.data(),
                             .weights = v.weights.data(),
                             .gate = data.gate.data(),
                             .up = data.up.data(),
                             .down = data.down.data(),
                             .inner = inner.data(),
                             .out = v.out.data(),
                             .rows = c.rows,
                             .chosen = c.chosen,
                             .experts = c.experts,
                             .dim = c.dim,
                             .width = c.width,
                             .activation = c.activation});
  const std::unique_ptr<Backend> made = backend.make(nullptr);
  if (!replay) {
    absl::Status ran = made->Run(list);
    if (!ran.ok()) return ran;
    return v;
  }
  auto graph = made->Capture(list);
  if (!graph.ok()) return graph.status();
  list.clear();
  absl::Status ran = (*graph)->Replay();
  if (!ran.ok()) return ran;
  return v;
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One row in double, straight from the definitions.
struct Exact {
  std::vector<std::size_t> ids;
  std::vector<double> weights, out;
};

std::vector<std::size_t> Best(const std::vector<double>& values, std::int64_t count) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return values[a] > values[b] || (values[a] == values[b] && a < b);
  });
  order.resize(static_cast<std::size_t>(count));
  std::sort(order.begin(), order.end());
  return order;
}

void RouteExactly(const Data& data, std::size_t row, Exact* exact) {
  const ExpertsCase& c = data.c;
  const std::size_t experts = static_cast<std::size_t>(c.experts);
  const std::size_t size = static_cast<std::size_t>(c.experts / c.groups);
  std::vector<double> score(experts);
  double sum = 0;
  for (std::size_t e = 0; e < experts; ++e) {
    const double logit = static_cast<double>(data.logits[row * experts + e]);
    score[e] = c.score == ScoreFunction::kSigmoid ? Sigmoid(logit) : std::exp(logit);
    sum += score[e];
  }
  std::vector<double> choice(experts);
  for (std::size_t e = 0; e < experts; ++e) {
    if (c.score == ScoreFunction::kSoftmax) score[e] /= sum;
    choice[e] = score[e] + (c.bias ? static_cast<double>(data.bias[e]) : 0.0);
  }
  std::vector<double> counts;
  for (std::size_t first = 0; first < experts; first += size) {
    std::vector<double> group(choice.begin() + static_cast<std::ptrdiff_t>(first),
                              choice.begin() + static_cast<std::ptrdiff_t>(first + size));
    std::sort(group.begin(), group.end(), std::greater<>());
    counts.push_back(group[0] + (c.bias && size > 1 ? group[1] : 0.0));
  }
  const std::vector<std::size_t> kept = Best(counts, c.groups_kept);
  for (std::size_t e = 0; e < experts; ++e) {
    if (!std::binary_search(kept.begin(), kept.end(), e / size)) choice[e] = -1e9;
  }
  exact->ids = Best(choice, c.chosen);
  sum = 0;
  for (const std::size_t e : exact->ids) sum += score[e];
  for (const std::size_t e : exact->ids) {
    exact->weights.push_back(score[e] * static_cast<double>(c.scale) / (c.normalise ? sum : 1.0));
  }
}

double Gate(const GatedActivation& act, double gate, double up) {
  const double b = static_cast<double>(act.situ_beta);
  const double l = static_cast<double>(act.situ_linear_beta);
  if (b == 0) return gate * Sigmoid(gate) * up;
  return b * std::tanh(gate / b) * Sigmoid(gate) * (l == 0 ? up : l * std::tanh(up / l));
}

Exact ExactRow(const Data& data, std::size_t row) {
  Exact exact;
  RouteExactly(data, row, &exact);
  const std::size_t dim = static_cast<std::size_t>(data.c.dim);
  const std::size_t width = static_cast<std::size_t>(data.c.width);
  const auto dot = [](const std::vector<float>& weight, std::size_t at, const auto& in, std::size_t first,
                      std::size_t count) {
    double sum = 0;
    for (std::size_t k = 0; k < count; ++k) {
      sum += static_cast<double>(weight[at + k]) * static_cast<double>(in[first + k]);
    }
    return sum;
  };
  exact.out.assign(dim, 0.0);
  for (std::size_t j = 0; j < exact.ids.size(); ++j) {
    const std::size_t matrix = exact.ids[j] * dim * width;
    std::vector<double> inner(width);
    for (std::size_t n = 0; n < width; ++n) {
      inner[n] = Gate(data.c.activation, dot(data.gate, matrix + n * dim, data.in, row * dim, dim),
                      dot(data.up, matrix + n * dim, data.in, row * dim, dim));
    }
    for (std::size_t n = 0; n < dim; ++n) {
      exact.out[n] += exact.weights[j] * dot(data.down, matrix + n * width, inner, 0, width);
    }
  }
  return exact;
}

class ExpertsConformanceTest : public ::testing::TestWithParam<BackendUnderTest> {};
INSTANTIATE_TEST_SUITE_P(Backends, ExpertsConformanceTest, ::testing::ValuesIn(BackendsUnderTest()),
                         [](const auto& test) { return test.param.name; });

TEST_P(ExpertsConformanceTest, EveryCaseMatchesDoublePrecision) {
  for (const ExpertsCase& c : AllExpertsCases()) {
    SCOPED_TRACE(c.name);
    const Data data = MakeData(c, 1);
    const auto got = RunExperts(GetParam(), data);
    KVASIR_ASSERT_OK(got);
    EXPECT_EQ(got->fault, 0);
    for (std::size_t r = 0; r < static_cast<std::size_t>(c.rows); ++r) {
      const Exact exact = ExactRow(data, r);
      const std::size_t chosen = exact.ids.size();
      for (std::size_t j = 0; j < chosen; ++j) {
        EXPECT_EQ(got->ids[r * chosen + j], static_cast<std::int32_t>(exact.ids[j])) << "row " << r;
        EXPECT_NEAR(static_cast<double>(got->weights[r * chosen + j]), exact.weights[j],
                    1e-6 * std::max(1.0, static_cast<double>(c.scale)));
      }
      for (std::size_t n = 0; n < exact.out.size(); ++n) {
        EXPECT_NEAR(static_cast<double>(got->out[r * exact.out.size() + n]), exact.out[n],
                    1e-5 * std::max(1.0, static_cast<double>(c.scale)));
      }
    }
    const auto again = RunExperts(GetParam(), data, /*replay=*/true);
    KVASIR_ASSERT_OK(again);
    EXPECT_TRUE(got->ids == again->ids && got->weights == again->weights && got->out == again->out)
        << "a replay gave other bits";
  }
}

// Row `r` of `data`, as often and in such an order as `rows` says.
Data Rearranged(const Data& data, const std::vector<std::size_t>& rows) {
  const auto take = [&rows](const std::vector<float>& from, std::int64_t cols) {
    std::vector<float> to;
    for (const std::size_t r : rows) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(r) * cols;
      to.insert(to.end(), begin, begin + cols);
    }
    return to;
  };
  Data out = data;
  out.c.rows = static_cast<std::int64_t>(rows.size());
  out.logits = take(data.logits, data.c.experts);
  out.in = take(data.in, data.c.dim);
  return out;
}

bool SameRow(const std::vector<float>& a, std::size_t row_a, const std::vector<float>& b, std::size_t row_b,
             std::int64_t cols) {
  const std::size_t count = static_cast<std::size_t>(cols);
  return std::memcmp(&a[row_a * count], &b[row_b * count], count * sizeof(float)) == 0;
}

TEST_P(ExpertsConformanceTest, ARowsBitsDependOnItsOwnValuesAlone) {
  for (const ExpertsCase& c : AllExpertsCases()) {
    SCOPED_TRACE(c.name);
    const Data data = MakeData(c, 7);
    const auto batch = RunExperts(GetParam(), data);
    KVASIR_ASSERT_OK(batch);
    std::vector<std::size_t> order(static_cast<std::size_t>(c.rows));
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937(3));
    std::vector<std::vector<std::size_t>> batches = {order};
    for (const std::size_t r : order) batches.push_back({r});
    batches.push_back({order[0], order[0], order[0]});  // as padding repeats a row
    for (const std::vector<std::size_t>& rows : batches) {
      const auto got = RunExperts(GetParam(), Rearranged(data, rows));
      KVASIR_ASSERT_OK(got);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_TRUE(SameRow(got->out, i, batch->out, rows[i], c.dim)) << "row " << rows[i];
        EXPECT_TRUE(SameRow(got->weights, i, batch->weights, rows[i], c.chosen)) << "row " << rows[i];
      }
    }
  }
}

TEST_P(ExpertsConformanceTest, OfEqualsTheLowestIdComesFirst) {
  Data data = MakeData({.experts = 8, .chosen = 3, .rows = 1}, 1);
  data.logits.assign(8, 0.5F);
  const auto flat = RunExperts(GetParam(), data);
  KVASIR_ASSERT_OK(flat);
  EXPECT_EQ(flat->ids, (std::vector<std::int32_t>{0, 1, 2}));
  data.logits = {0, 3, 1, 3, 0, 1, 3, 1};
  data.c.chosen = 4;
  const auto some = RunExperts(GetParam(), data);
  KVASIR_ASSERT_OK(some);
  EXPECT_EQ(some->ids, (std::vector<std::int32_t>{1, 2, 3, 6}));
  data.logits = {1, 2, 2, 1, 0, 2, 2, 0};  // groups of two with 2, 2, 2, 2 as their best
  data.c.chosen = 2;
  data.c.groups = 4;
  data.c.groups_kept = 2;
  const auto grouped = RunExperts(GetParam(), data);
  KVASIR_ASSERT_OK(grouped);
  EXPECT_EQ(grouped->ids, (std::vector<std::int32_t>{1, 2}));
}

TEST_P(ExpertsConformanceTest, NanFaultsAndLeavesOtherRowsAlone) {
  for (const ExpertsCase& c : AllExpertsCases()) {
    if (c.rows < 3) continue;
    SCOPED_TRACE(c.name);
    const Data clean = MakeData(c, 5);
    const auto want = RunExperts(GetParam(), clean);
    KVASIR_ASSERT_OK(want);
    Data data = clean;
    data.logits[static_cast<std::size_t>(2 * c.experts - 1)] = kNan;  // row 1, its last expert
    const auto got = RunExperts(GetParam(), data);
    KVASIR_ASSERT_OK(got);
    EXPECT_EQ(got->fault, 1);
    for (std::size_t r = 0; r < static_cast<std::size_t>(c.rows); ++r) {
      if (r != 1) {
        EXPECT_TRUE(SameRow(got->out, r, want->out, r, c.dim)) << "row " << r;
      }
    }
    for (std::size_t n = 0; n < static_cast<std::size_t>(c.dim); ++n) {
      EXPECT_EQ(got->out[static_cast<std::size_t>(c.dim) + n], 0.0F);
    }
  }
}

TEST_P(ExpertsConformanceTest, InfiniteLogitsFaultWhereTheyMakeNoScore) {
  Data data = MakeData({.score = ScoreFunction::kSoftmax, .rows = 1}, 1);
  data.logits[3] = kInfinity;
  const auto softmax = RunExperts(GetParam(), data);
  KVASIR_ASSERT_OK(softmax);
  EXPECT_EQ(softmax->fault, 1);
  data.c.score = ScoreFunction::kSigmoid;
  const auto sigmoid = RunExperts(GetParam(), data);
  KVASIR_ASSERT_OK(sigmoid);
  EXPECT_EQ(sigmoid->fault, 0);
  EXPECT_TRUE(std::find(sigmoid->ids.begin(), sigmoid->ids.end(), 3) != sigmoid->ids.end());
}

}  // namespace
}  // namespace kvasir::testing
