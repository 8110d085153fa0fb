#include "tests/testing/expanded_experts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "tests/testing/expanded_forward.h"

namespace kvasir::testing {
namespace {

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double Activate(const MlpShape& mlp, double gate, double up) {
  if (mlp.situ_beta == 0) return gate * Sigmoid(gate) * up;
  const double limited =
      mlp.situ_linear_beta == 0 ? up : mlp.situ_linear_beta * std::tanh(up / mlp.situ_linear_beta);
  return mlp.situ_beta * std::tanh(gate / mlp.situ_beta) * Sigmoid(gate) * limited;
}

std::vector<double> Gated(const MlpShape& mlp, const float* gate_w, const float* up_w, const float* down_w,
                          std::size_t width, const std::vector<double>& in) {
  std::vector<double> gate = Times(gate_w, width, in);
  const std::vector<double> up = Times(up_w, width, in);
  for (std::size_t i = 0; i < width; ++i) gate[i] = Activate(mlp, gate[i], up[i]);
  return Times(down_w, in.size(), gate);
}

std::vector<double> Scores(const MlpShape& mlp, std::vector<double> logits) {
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (double& logit : logits) {
    logit = mlp.scoring == ExpertScoring::kSoftmax ? std::exp(logit) / sum : Sigmoid(logit);
  }
  return logits;
}

// The indices of the `count` largest values.
std::set<std::size_t> Largest(const std::map<std::size_t, double>& values, std::int64_t count) {
  std::vector<std::pair<double, std::size_t>> order;
  order.reserve(values.size());
  for (const auto& [index, value] : values) order.emplace_back(-value, index);
  std::sort(order.begin(), order.end());
  std::set<std::size_t> picked;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) picked.insert(order[i].second);
  return picked;
}

// The weight of each chosen expert.
std::map<std::size_t, double> Routed(const RoleLayer& layer, const std::vector<double>& normed) {
  const MlpShape& mlp = layer.mlp;
  const std::size_t experts = static_cast<std::size_t>(mlp.experts);
  const std::size_t size = experts / static_cast<std::size_t>(mlp.groups);
  const std::vector<double> scores = Scores(mlp, Times(layer.weights.router, experts, normed));
  std::map<std::size_t, double> choice;
  std::map<std::size_t, std::vector<double>> members;
  for (std::size_t e = 0; e < experts; ++e) {
    const double bias = mlp.correction_bias ? static_cast<double>(layer.weights.router_bias[e]) : 0.0;
    choice[e] = scores[e] + bias;
    members[e / size].push_back(choice[e]);
  }
  std::map<std::size_t, double> groups;
  for (auto& [group, values] : members) {
    std::sort(values.rbegin(), values.rend());
    groups[group] = values[0] + (mlp.correction_bias && size > 1 ? values[1] : 0.0);
  }
  const std::set<std::size_t> kept = Largest(groups, mlp.groups_kept);
  std::erase_if(choice, [&](const auto& entry) { return kept.count(entry.first / size) == 0; });
  std::map<std::size_t, double> weights;
  double sum = 0;
  for (const std::size_t e : Largest(choice, mlp.experts_per_token)) sum += weights[e] = scores[e];
  for (auto& [expert, weight] : weights) weight *= mlp.routed_scale / (mlp.normalise ? sum : 1.0);
  return weights;
}

}  // namespace

std::vector<double> ExpandedMlp(const RoleLayer& layer, double eps, const std::vector<double>& normed) {
  const LayerWeights& w = layer.weights;
  const MlpShape& mlp = layer.mlp;
  std::vector<double> out(normed.size(), 0.0);
  if (layer.intermediate > 0) {
    out = Gated(mlp, w.mlp_gate, w.mlp_up, w.mlp_down, static_cast<std::size_t>(layer.intermediate), normed);
  }
  if (mlp.experts == 0) return out;
  const std::vector<double> in =
      mlp.latent > 0 ? Times(w.latent_down, static_cast<std::size_t>(mlp.latent), normed) : normed;
  const std::size_t width = static_cast<std::size_t>(layer.expert_width);
  std::vector<double> routed(in.size(), 0.0);
  for (const auto& [expert, weight] : Routed(layer, normed)) {
    const std::size_t at = expert * width * in.size();
    const std::vector<double> one =
        Gated(mlp, w.expert_gate + at, w.expert_up + at, w.expert_down + at, width, in);
    for (std::size_t i = 0; i < one.size(); ++i) routed[i] += weight * one[i];
  }
  if (mlp.latent_norm) {
    double squares = 0;
    for (const double value : routed) squares += value * value;
    const double root = std::sqrt(squares / static_cast<double>(routed.size()) + eps);
    for (std::size_t i = 0; i < routed.size(); ++i) {
      routed[i] = routed[i] / root * static_cast<double>(w.latent_norm[i]);
    }
  }
  if (mlp.latent > 0) routed = Times(w.latent_up, normed.size(), routed);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += routed[i];
  return out;
}

}  // namespace kvasir::testing
