#include "worker/cpu/reference_experts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

namespace kvasir::cpu {
namespace {

using Doubles = std::vector<double>;

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

Doubles Scores(const RouteExpertsOp& op, const float* logits) {
  Doubles scores(logits, logits + op.experts);
  if (op.score == ScoreFunction::kSigmoid) {
    for (double& score : scores) score = Sigmoid(score);
    return scores;
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
  return scores;
}

// Indices by value, the largest first, of equals the lowest.
std::vector<std::size_t> Ranking(const Doubles& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&values](std::size_t a, std::size_t b) {
    return values[a] > values[b] || (values[a] == values[b] && a < b);
  });
  return order;
}

// What group `g` counts.
double GroupScore(const RouteExpertsOp& op, const Doubles& choice, std::size_t g) {
  const std::size_t size = static_cast<std::size_t>(op.experts / op.groups);
  const auto begin = choice.begin() + static_cast<std::ptrdiff_t>(g * size);
  Doubles members(begin, begin + static_cast<std::ptrdiff_t>(size));
  std::sort(members.begin(), members.end(), std::greater<>());
  if (op.bias == nullptr) return members[0];
  return members[0] + (size > 1 ? members[1] : -std::numeric_limits<double>::infinity());
}

std::vector<bool> KeptGroups(const RouteExpertsOp& op, const Doubles& choice) {
  Doubles counts;
  for (std::size_t g = 0; g < static_cast<std::size_t>(op.groups); ++g) {
    counts.push_back(GroupScore(op, choice, g));
  }
  std::vector<bool> kept(counts.size(), false);
  const std::vector<std::size_t> ranking = Ranking(counts);
  for (std::size_t i = 0; i < static_cast<std::size_t>(op.groups_kept); ++i) kept[ranking[i]] = true;
  return kept;
}

void RouteRow(const RouteExpertsOp& op, const float* logits, std::int32_t* ids, float* weights) {
  const Doubles scores = Scores(op, logits);
  Doubles choice = scores;
  for (std::size_t e = 0; op.bias != nullptr && e < choice.size(); ++e) {
    choice[e] += static_cast<double>(op.bias[e]);
  }
  std::iota(ids, ids + op.chosen, 0);
  std::fill(weights, weights + op.chosen, 0.0F);
  for (const double c : choice) {
    if (!std::isnan(c)) continue;
    *op.fault = 1;
    return;
  }
  const std::vector<bool> kept = KeptGroups(op, choice);
  std::vector<std::size_t> chosen;
  for (const std::size_t e : Ranking(choice)) {
    const std::size_t group = e / static_cast<std::size_t>(op.experts / op.groups);
    if (kept[group] && static_cast<std::int64_t>(chosen.size()) < op.chosen) chosen.push_back(e);
  }
  std::sort(chosen.begin(), chosen.end());
  double sum = 0;
  for (const std::size_t e : chosen) sum += scores[e];
  const double factor = static_cast<double>(op.scale) / (op.normalise ? sum + 1e-20 : 1.0);
  for (std::size_t j = 0; j < chosen.size(); ++j) {
    ids[j] = static_cast<std::int32_t>(chosen[j]);
    weights[j] = static_cast<float>(scores[chosen[j]] * factor);
  }
}

double Activate(const GatedActivation& act, double gate, double up) {
  const double beta = static_cast<double>(act.situ_beta);
  const double limit = static_cast<double>(act.situ_linear_beta);
  if (beta == 0) return gate * Sigmoid(gate) * up;
  return beta * std::tanh(gate / beta) * Sigmoid(gate) * (limit > 0 ? limit * std::tanh(up / limit) : up);
}

template <class T>
double Dot(const float* weight, const T* in, std::int64_t count) {
  double sum = 0;
  for (std::int64_t k = 0; k < count; ++k) sum += static_cast<double>(weight[k]) * static_cast<double>(in[k]);
  return sum;
}

}  // namespace

void ReferenceRouteExperts(const RouteExpertsOp& op) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    RouteRow(op, op.logits + r * op.experts, op.ids + r * op.chosen, op.weights + r * op.chosen);
  }
}

void ReferenceExpertMlp(const ExpertMlpOp& op) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    Doubles out(static_cast<std::size_t>(op.dim), 0.0);
    for (std::int64_t j = r * op.chosen; j < (r + 1) * op.chosen; ++j) {
      const std::int64_t matrix = op.ids[j] * op.width * op.dim;
      Doubles inner;
      for (std::int64_t n = 0; n < op.width; ++n) {
        const double gate = Dot(op.gate + matrix + n * op.dim, op.in + r * op.dim, op.dim);
        const double up = Dot(op.up + matrix + n * op.dim, op.in + r * op.dim, op.dim);
        inner.push_back(Activate(op.activation, gate, up));
      }
      for (std::size_t n = 0; n < out.size(); ++n) {
        out[n] += static_cast<double>(op.weights[j]) *
                  Dot(op.down + matrix + static_cast<std::int64_t>(n) * op.width, inner.data(), op.width);
      }
    }
    for (std::size_t n = 0; n < out.size(); ++n) {
      op.out[r * op.dim + static_cast<std::int64_t>(n)] = static_cast<float>(out[n]);
    }
  }
}

}  // namespace kvasir::cpu
