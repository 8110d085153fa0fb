#include "tests/testing/expanded_forward.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/geometry/bf16.h"
#include "tests/testing/expanded_experts.h"

namespace kvasir::testing {
namespace {

void AddTo(std::vector<double>& x, const std::vector<double>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace

std::vector<double> Times(const float* weight, std::size_t out_dim, const std::vector<double>& in) {
  std::vector<double> out(out_dim, 0.0);
  for (std::size_t n = 0; n < out_dim; ++n) {
    for (std::size_t k = 0; k < in.size(); ++k)
      out[n] += static_cast<double>(weight[n * in.size() + k]) * in[k];
  }
  return out;
}

void Rotation::Apply(std::vector<double>* x, std::size_t begin, std::int64_t position) const {
  const double magnitude = Mscale(rope_.mscale) / Mscale(rope_.mscale_all_dim);
  for (std::size_t i = 0; 2 * static_cast<double>(i) < dim_; ++i) {
    const double angle = static_cast<double>(position) * Frequency(static_cast<double>(i));
    double& a = (*x)[begin + 2 * i];
    double& b = (*x)[begin + 2 * i + 1];
    const double turned = (a * std::cos(angle) - b * std::sin(angle)) * magnitude;
    b = (a * std::sin(angle) + b * std::cos(angle)) * magnitude;
    a = turned;
  }
}

double Rotation::SoftmaxFactor() const {
  return rope_.mscale_all_dim == 0 ? 1.0 : Mscale(rope_.mscale_all_dim) * Mscale(rope_.mscale_all_dim);
}

double Rotation::Mscale(double scale) const {
  return rope_.factor > 1 ? 1 + 0.1 * scale * std::log(rope_.factor) : 1.0;
}

double Rotation::Lane(double turns) const {
  return dim_ / 2 * std::log(static_cast<double>(rope_.original_context) / (2 * std::numbers::pi * turns)) /
         std::log(rope_.theta);
}

double Rotation::Frequency(double lane) const {
  const double plain = std::pow(rope_.theta, -2 * lane / dim_);
  if (rope_.factor <= 1) return plain;
  const double fast = std::clamp(std::floor(Lane(rope_.beta_fast)), 0.0, dim_ - 1);
  const double slow = std::clamp(std::ceil(Lane(rope_.beta_slow)), 0.0, dim_ - 1);
  const double step = lane > fast ? 1.0 : 0.0;
  const double ramp = fast == slow ? step : std::clamp((lane - fast) / (slow - fast), 0.0, 1.0);
  return plain * (1 - ramp) + plain / rope_.factor * ramp;
}

ExpandedForward::ExpandedForward(const RoleModel& model, const ModelDescription& description,
                                 DType cache_dtype)
    : model_(model), rope_(description.rope, model.layers.front().mla.rope_dim), dtype_(cache_dtype) {}

std::vector<double> ExpandedForward::Norm(const std::vector<double>& x, const float* weight) const {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double root = std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(model_.eps));
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] / root * static_cast<double>(weight[i]);
  return out;
}

double ExpandedForward::Stored(double value) const {
  const float narrow = static_cast<float>(value);
  return static_cast<double>(dtype_ == DType::kBf16 ? Bf16ToFloat(FloatToBf16(narrow)) : narrow);
}

ExpandedRow ExpandedForward::Row(const RoleLayer& layer, const std::vector<double>& hidden,
                                 std::int64_t position) const {
  std::vector<double> both = Times(layer.weights.kv_down, static_cast<std::size_t>(layer.row_dim()), hidden);
  const auto split = both.begin() + static_cast<std::ptrdiff_t>(layer.mla.kv_lora_rank);
  ExpandedRow row;
  row.latent = Norm({both.begin(), split}, layer.weights.kv_norm);
  if (layer.mla.rotate) rope_.Apply(&both, static_cast<std::size_t>(layer.mla.kv_lora_rank), position);
  row.rotary.assign(split, both.end());
  for (double& value : row.latent) value = Stored(value);
  for (double& value : row.rotary) value = Stored(value);
  return row;
}

void ExpandedForward::Attention(const RoleLayer& layer, const std::vector<ExpandedRow>& cache,
                                std::size_t visible, std::int64_t position, std::vector<double>* x) const {
  const LayerWeights& w = layer.weights;
  const std::vector<double> normed = Norm(*x, w.attention_norm);
  std::vector<double> query_in = normed;
  if (w.q_down != nullptr) {
    query_in = Norm(Times(w.q_down, static_cast<std::size_t>(layer.mla.q_lora_rank), normed), w.q_norm);
  }
  const std::size_t query_dim = static_cast<std::size_t>(layer.query_dim());
  const std::size_t heads = static_cast<std::size_t>(layer.heads);
  std::vector<double> queries = Times(w.q_up, heads * query_dim, query_in);
  std::vector<double> values;
  for (std::size_t h = 0; h < heads; ++h) {
    if (layer.mla.rotate) {
      rope_.Apply(&queries, h * query_dim + static_cast<std::size_t>(layer.mla.nope_dim), position);
    }
    const std::vector<double> head = Head(layer, queries.data() + h * query_dim, h, cache, visible);
    values.insert(values.end(), head.begin(), head.end());
  }
  if (w.gate != nullptr) {
    const std::vector<double> gate = Times(w.gate, values.size(), normed);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= Sigmoid(gate[i]);
  }
  AddTo(*x, Times(w.out, x->size(), values));
}

void ExpandedForward::Layer(const RoleLayer& layer, const std::vector<ExpandedRow>& cache,
                            std::size_t visible, std::int64_t position, std::vector<double>* x) const {
  Attention(layer, cache, visible, position, x);
  AddTo(*x, ExpandedMlp(layer, static_cast<double>(model_.eps), Norm(*x, layer.weights.mlp_norm)));
}

std::vector<double> ExpandedForward::Embedding(std::int32_t token) const {
  const float* row = model_.embedding + token * model_.hidden;
  return {row, row + model_.hidden};
}

std::vector<double> ExpandedForward::Logits(const std::vector<double>& x) const {
  return Times(model_.head, static_cast<std::size_t>(model_.vocab), Norm(x, model_.final_norm));
}

std::vector<double> ExpandedForward::Head(const RoleLayer& layer, const double* query, std::size_t h,
                                          const std::vector<ExpandedRow>& cache, std::size_t visible) const {
  const std::size_t nope = static_cast<std::size_t>(layer.mla.nope_dim);
  const std::size_t value_dim = static_cast<std::size_t>(layer.mla.value_dim);
  const std::size_t latent = static_cast<std::size_t>(layer.mla.kv_lora_rank);
  const double scale =
      (layer.mla.rotate ? rope_.SoftmaxFactor() : 1.0) / std::sqrt(static_cast<double>(layer.query_dim()));
  std::vector<double> scores;
  for (std::size_t k = 0; k < visible; ++k) {
    const std::vector<double> key = Times(layer.weights.w_uk + h * nope * latent, nope, cache[k].latent);
    double dot = 0;
    for (std::size_t i = 0; i < nope; ++i) dot += query[i] * key[i];
    for (std::size_t i = 0; i < cache[k].rotary.size(); ++i) dot += query[nope + i] * cache[k].rotary[i];
    scores.push_back(dot * scale);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  std::vector<double> out(value_dim, 0.0);
  for (std::size_t k = 0; k < visible; ++k) {
    const double weight = std::exp(scores[k] - largest);
    sum += weight;
    const std::vector<double> value =
        Times(layer.weights.w_uv + h * value_dim * latent, value_dim, cache[k].latent);
    for (std::size_t i = 0; i < value_dim; ++i) out[i] += weight * value[i];
  }
  for (double& value : out) value /= sum;
  return out;
}

}  // namespace kvasir::testing
