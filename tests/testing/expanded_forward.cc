#include "tests/testing/expanded_forward.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <variant>

#include "common/geometry/bf16.h"
#include "tests/testing/expanded_experts.h"

namespace kvasir::testing {
namespace {

void AddTo(std::vector<double>& x, const std::vector<double>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Of the first layer that turns; all of a model have as many.
std::int64_t RotaryLanes(const RoleModel& model) {
  for (const RoleLayer& layer : model.layers) {
    if (const auto* mla = std::get_if<MlaLayer>(&layer.mixer)) return mla->shape.rope_dim;
    if (const auto* gqa = std::get_if<GqaLayer>(&layer.mixer)) return gqa->shape.head_dim;
  }
  return 2;
}

}  // namespace

std::vector<double> Times(const float* weight, std::size_t out_dim, const std::vector<double>& in) {
  std::vector<double> out(out_dim, 0.0);
  for (std::size_t n = 0; n < out_dim; ++n) {
    for (std::size_t k = 0; k < in.size(); ++k)
      out[n] += static_cast<double>(weight[n * in.size() + k]) * in[k];
  }
  return out;
}

void Rotation::Apply(std::vector<double>* x, std::size_t begin, std::int64_t position, bool halves) const {
  const double magnitude = Mscale(rope_.mscale) / Mscale(rope_.mscale_all_dim);
  for (std::size_t i = 0; 2 * static_cast<double>(i) < dim_; ++i) {
    const double angle = static_cast<double>(position) * Frequency(static_cast<double>(i));
    double& a = (*x)[begin + (halves ? i : 2 * i)];
    double& b = (*x)[begin + (halves ? i + static_cast<std::size_t>(dim_) / 2 : 2 * i + 1)];
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
    : model_(model), rope_(description.rope, RotaryLanes(model)), dtype_(cache_dtype) {}

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
  if (const auto* gqa = std::get_if<GqaLayer>(&layer.mixer)) return KeysAndValues(*gqa, hidden, position);
  const MlaLayer& mla = layer.mla();
  std::vector<double> both = Times(mla.weights.kv_down, static_cast<std::size_t>(mla.row_dim()), hidden);
  const auto split = both.begin() + static_cast<std::ptrdiff_t>(mla.shape.kv_lora_rank);
  ExpandedRow row;
  row.latent = Norm({both.begin(), split}, mla.weights.kv_norm);
  if (mla.shape.rotate) rope_.Apply(&both, static_cast<std::size_t>(mla.shape.kv_lora_rank), position);
  row.rotary.assign(split, both.end());
  for (double& value : row.latent) value = Stored(value);
  for (double& value : row.rotary) value = Stored(value);
  return row;
}

std::vector<double> ExpandedForward::Mixture(const Stream& stream, const float* norm,
                                             const float* proj) const {
  if (norm == nullptr || stream.blocks.empty()) return stream.x;
  Matrix sources = stream.blocks;
  sources.push_back(stream.x);
  std::vector<double> scores;
  for (const std::vector<double>& source : sources) scores.push_back(Times(proj, 1, Norm(source, norm))[0]);
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  std::vector<double> mixed(stream.x.size(), 0.0);
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const double weight = std::exp(scores[s] - largest);
    sum += weight;
    for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] += weight * sources[s][i];
  }
  for (double& value : mixed) value /= sum;
  return mixed;
}

std::vector<double> ExpandedForward::MixerInput(const RoleLayer& layer, const Stream& stream) const {
  const LayerWeights& w = layer.weights;
  return Norm(Mixture(stream, w.attention_residual_norm, w.attention_residual_proj), w.attention_norm);
}

void ExpandedForward::AddMixer(const RoleLayer& layer, const std::vector<double>& out, Stream* stream) const {
  if (model_.residual_block > 0 && layer.index % model_.residual_block == 0) {
    stream->blocks.push_back(std::exchange(stream->x, std::vector<double>(out.size(), 0.0)));
  }
  AddTo(stream->x, out);
}

std::vector<double> ExpandedForward::NormedHeads(std::vector<double> x, const float* weight, std::size_t dim,
                                                 std::int64_t position) const {
  for (std::size_t begin = 0; begin < x.size(); begin += dim) {
    const auto at = x.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::vector<double> normed = Norm({at, at + static_cast<std::ptrdiff_t>(dim)}, weight);
    std::copy(normed.begin(), normed.end(), at);
    rope_.Apply(&x, begin, position, /*halves=*/true);
  }
  return x;
}

ExpandedRow ExpandedForward::KeysAndValues(const GqaLayer& layer, const std::vector<double>& hidden,
                                           std::int64_t position) const {
  const auto dim = static_cast<std::size_t>(layer.shape.head_dim);
  const auto kv_heads = static_cast<std::size_t>(layer.kv_heads);
  ExpandedRow row;
  row.latent =
      NormedHeads(Times(layer.weights.k, kv_heads * dim, hidden), layer.weights.k_norm, dim, position);
  row.rotary = Times(layer.weights.v, kv_heads * static_cast<std::size_t>(layer.shape.value_dim), hidden);
  for (double& value : row.latent) value = Stored(value);
  for (double& value : row.rotary) value = Stored(value);
  return row;
}

std::vector<double> ExpandedForward::GroupedAttention(const GqaLayer& layer,
                                                      const std::vector<double>& normed,
                                                      const std::vector<ExpandedRow>& cache,
                                                      std::size_t visible, std::int64_t position) const {
  const auto dim = static_cast<std::size_t>(layer.shape.head_dim);
  const auto value_dim = static_cast<std::size_t>(layer.shape.value_dim);
  const auto heads = static_cast<std::size_t>(layer.heads);
  const std::vector<double> queries =
      NormedHeads(Times(layer.weights.q, heads * dim, normed), layer.weights.q_norm, dim, position);
  std::vector<double> values(heads * value_dim, 0.0);
  for (std::size_t h = 0; h < heads; ++h) {
    const std::size_t kv_head = h * static_cast<std::size_t>(layer.kv_heads) / heads;
    std::vector<double> scores(visible, 0.0);
    for (std::size_t k = 0; k < visible; ++k) {
      for (std::size_t i = 0; i < dim; ++i)
        scores[k] += queries[h * dim + i] * cache[k].latent[kv_head * dim + i];
      scores[k] /= std::sqrt(static_cast<double>(dim));
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - largest);
    for (std::size_t k = 0; k < visible; ++k) {
      for (std::size_t i = 0; i < value_dim; ++i) {
        values[h * value_dim + i] += scores[k] / sum * cache[k].rotary[kv_head * value_dim + i];
      }
    }
  }
  return Times(layer.weights.out, normed.size(), values);
}

std::vector<double> ExpandedForward::Attention(const RoleLayer& layer, const std::vector<double>& normed,
                                               const std::vector<ExpandedRow>& cache, std::size_t visible,
                                               std::int64_t position) const {
  if (const auto* gqa = std::get_if<GqaLayer>(&layer.mixer)) {
    return GroupedAttention(*gqa, normed, cache, visible, position);
  }
  const MlaLayer& mla = layer.mla();
  const MlaWeights& w = mla.weights;
  std::vector<double> query_in = normed;
  if (w.q_down != nullptr) {
    query_in = Norm(Times(w.q_down, static_cast<std::size_t>(mla.shape.q_lora_rank), normed), w.q_norm);
  }
  const std::size_t query_dim = static_cast<std::size_t>(mla.query_dim());
  const std::size_t heads = static_cast<std::size_t>(mla.heads);
  std::vector<double> queries = Times(w.q_up, heads * query_dim, query_in);
  std::vector<double> values;
  for (std::size_t h = 0; h < heads; ++h) {
    if (mla.shape.rotate) {
      rope_.Apply(&queries, h * query_dim + static_cast<std::size_t>(mla.shape.nope_dim), position);
    }
    const std::vector<double> head = Head(mla, queries.data() + h * query_dim, h, cache, visible);
    values.insert(values.end(), head.begin(), head.end());
  }
  if (w.gate != nullptr) {
    const std::vector<double> gate = Times(w.gate, values.size(), normed);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= Sigmoid(gate[i]);
  }
  return Times(w.out, normed.size(), values);
}

void ExpandedForward::Layer(const RoleLayer& layer, const std::vector<ExpandedRow>& cache,
                            std::size_t visible, std::int64_t position, Stream* stream) const {
  AddMixer(layer, Attention(layer, MixerInput(layer, *stream), cache, visible, position), stream);
  Mlp(layer, stream);
}

void ExpandedForward::RecurrentLayer(const RoleLayer& layer, std::vector<Stream>* streams) const {
  const KdaLayer& kda = std::get<KdaLayer>(layer.mixer);
  Matrix normed;
  for (const Stream& stream : *streams) normed.push_back(MixerInput(layer, stream));
  Matrix values(streams->size(), std::vector<double>(static_cast<std::size_t>(kda.width())));
  for (std::size_t h = 0; h < static_cast<std::size_t>(kda.heads); ++h)
    RecurrentHead(kda, h, normed, &values);
  for (std::size_t t = 0; t < streams->size(); ++t) {
    Stream* stream = &(*streams)[t];
    AddMixer(layer, Times(kda.weights.out, stream->x.size(), values[t]), stream);
    Mlp(layer, stream);
  }
}

void ExpandedForward::RecurrentHead(const KdaLayer& layer, std::size_t head, const Matrix& in,
                                    Matrix* out) const {
  const KdaWeights& w = layer.weights;
  const auto dim = static_cast<std::size_t>(layer.shape.head_dim);
  const auto kernel = static_cast<std::size_t>(layer.shape.conv_kernel);
  const std::size_t begin = head * dim;
  Matrix inputs[3];  // of the convolutions of queries, keys and values
  const float* const projections[] = {w.q, w.k, w.v};
  const float* const kernels[] = {w.q_conv, w.k_conv, w.v_conv};
  Matrix state(dim, std::vector<double>(dim, 0.0));
  const double rate = std::exp(static_cast<double>(w.a_log[head]));
  for (std::size_t t = 0; t < in.size(); ++t) {
    std::vector<double> mixed[3];
    double scale[3] = {1e-6, 1e-6, 1};
    for (std::size_t which = 0; which < 3; ++which) {
      inputs[which].push_back(Times(projections[which] + begin * in[t].size(), dim, in[t]));
      for (double& value : inputs[which].back()) value = Stored(value);
      for (std::size_t d = 0; d < dim; ++d) {
        double sum = 0;
        for (std::size_t j = 0; j < kernel && j <= t; ++j) {
          const float weight = kernels[which][(begin + d + 1) * kernel - 1 - j];
          sum += static_cast<double>(weight) * inputs[which][t - j][d];
        }
        mixed[which].push_back(sum * Sigmoid(sum));
        if (which < 2) scale[which] += mixed[which][d] * mixed[which][d];
      }
    }
    const std::vector<double> low = Times(w.f_down, dim, in[t]);
    const std::vector<double> decay = Times(w.f_up + begin * dim, dim, low);
    const double beta = Sigmoid(Times(w.beta + head * in[t].size(), 1, in[t])[0]);
    const std::vector<double> gate =
        w.gate_down == nullptr ? Times(w.gate_up + begin * in[t].size(), dim, in[t])
                               : Times(w.gate_up + begin * dim, dim, Times(w.gate_down, dim, in[t]));
    for (std::size_t d = 0; d < dim; ++d) {
      mixed[0][d] /= std::sqrt(scale[0] * static_cast<double>(dim));
      mixed[1][d] = Stored(mixed[1][d] / std::sqrt(scale[1]));
      const double f = decay[d] + static_cast<double>(w.dt_bias[begin + d]);
      const double bound = layer.shape.gate_lower_bound;
      const double g = bound < 0 ? bound * Sigmoid(rate * f) : -rate * std::log1p(std::exp(f));
      for (double& value : state[d]) value *= std::exp(g);
    }
    std::vector<double> read(dim, 0.0);
    for (std::size_t e = 0; e < dim; ++e) {
      double predicted = 0;
      for (std::size_t d = 0; d < dim; ++d) predicted += state[d][e] * mixed[1][d];
      const double update = Stored(beta * (mixed[2][e] - predicted));
      for (std::size_t d = 0; d < dim; ++d) {
        state[d][e] += mixed[1][d] * update;
        read[e] += state[d][e] * mixed[0][d];
      }
    }
    read = Norm(read, w.out_norm);
    for (std::size_t d = 0; d < dim; ++d) (*out)[t][begin + d] = read[d] * Sigmoid(gate[d]);
  }
}

void ExpandedForward::Mlp(const RoleLayer& layer, Stream* stream) const {
  const LayerWeights& w = layer.weights;
  const std::vector<double> in = Norm(Mixture(*stream, w.mlp_residual_norm, w.mlp_residual_proj), w.mlp_norm);
  AddTo(stream->x, ExpandedMlp(layer, static_cast<double>(model_.eps), in));
}

std::vector<double> ExpandedForward::Embedding(std::int32_t token) const {
  const float* row = model_.embedding + token * model_.hidden;
  return {row, row + model_.hidden};
}

std::vector<double> ExpandedForward::HeadInput(const Stream& stream) const {
  return Norm(Mixture(stream, model_.output_residual_norm, model_.output_residual_proj), model_.final_norm);
}

std::vector<double> ExpandedForward::Logits(const Stream& stream) const {
  return Times(model_.head, static_cast<std::size_t>(model_.vocab), HeadInput(stream));
}

std::vector<double> ExpandedForward::Head(const MlaLayer& layer, const double* query, std::size_t h,
                                          const std::vector<ExpandedRow>& cache, std::size_t visible) const {
  const std::size_t nope = static_cast<std::size_t>(layer.shape.nope_dim);
  const std::size_t value_dim = static_cast<std::size_t>(layer.shape.value_dim);
  const std::size_t latent = static_cast<std::size_t>(layer.shape.kv_lora_rank);
  const double scale =
      (layer.shape.rotate ? rope_.SoftmaxFactor() : 1.0) / std::sqrt(static_cast<double>(layer.query_dim()));
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
