#include "tests/testing/cacheless_model.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "common/base/status_macros.h"
#include "tests/testing/expanded_forward.h"
#include "worker/cpu/cpu_backend.h"
#include "worker/engine/mlp_weights.h"
#include "worker/engine/weight_set.h"

namespace kvasir::testing {

RoleModel WholeModel(Role role, const ModelDescription& model) {
  RoleModel whole;
  whole.role = role;
  whole.hidden = model.hidden;
  whole.vocab = model.vocab;
  whole.vocab_local = model.vocab;
  whole.eps = static_cast<float>(model.rms_eps);
  whole.residual_block = model.residual_block;
  for (const ModelLayer& described : model.layers) {
    RoleLayer layer;
    if (const auto* kda = std::get_if<KdaShape>(&described.mixer)) {
      layer.mixer = KdaLayer{.shape = *kda, .heads = kda->heads};
    } else if (const auto* gqa = std::get_if<AttentionShape>(&described.mixer)) {
      layer.mixer = GqaLayer{.shape = *gqa, .heads = gqa->heads, .kv_heads = gqa->kv_heads};
    } else {
      const auto& mla = std::get<MlaShape>(described.mixer);
      layer.mixer = MlaLayer{.shape = mla, .heads = mla.heads};
    }
    ShardMlp(described.mlp, 1, &layer);
    layer.index = static_cast<std::int64_t>(whole.layers.size());
    whole.layers.push_back(layer);
  }
  return whole;
}

namespace {

// Whether an MLA layer of the model turns, which it does in neighbouring pairs.
bool Turns(const ModelDescription& model) {
  for (const ModelLayer& layer : model.layers) {
    const auto* mla = std::get_if<MlaShape>(&layer.mixer);
    if (mla != nullptr && mla->rotate) return true;
  }
  return false;
}

class CachelessModelImpl : public CachelessModel {
 public:
  explicit CachelessModelImpl(CachelessOptions options) : options_(std::move(options)) {}

  absl::Status LoadWeights() {
    backend_ = MakeCpuBackend({});
    target_ = WholeModel(Role::kTarget, options_.target);
    DeclareWeights(options_.target, {}, weights_, &target_);
    if (options_.draft.has_value()) {
      const DraftShape& shape = *options_.draft->draft;
      draft_ = WholeModel(Role::kDraft, *options_.draft);
      draft_.chain = shape.IsChain();
      draft_.taps = shape.target_taps;
      draft_.tap_hidden = shape.target_hidden;
      draft_.heads = DraftHeads::Of(shape);
      for (RoleLayer& layer : draft_.layers) {
        auto* gqa = std::get_if<GqaLayer>(&layer.mixer);
        if (gqa != nullptr) gqa->halves = shape.method != DraftMethod::kDflash || !Turns(options_.target);
      }
      DeclareWeights(*options_.draft, {}, weights_, &draft_);
    }
    KVASIR_RETURN_IF_ERROR(weights_.Load(*backend_, SyntheticWeights(options_.seed)));
    if (draft_.embedding == nullptr) draft_.embedding = target_.embedding;
    if (draft_.head == nullptr) draft_.head = target_.head;
    return absl::OkStatus();
  }

  [[nodiscard]] CachelessTarget Target(std::span<const std::int32_t> tokens) const override {
    const ExpandedForward forward(target_, options_.target, options_.cache_dtype);
    std::vector<Stream> x;
    x.reserve(tokens.size());
    for (const std::int32_t token : tokens) x.push_back({forward.Embedding(token)});
    std::vector<std::vector<Stream>> after_layer;
    for (const RoleLayer& layer : target_.layers) {
      RunLayer(forward, layer, x, {}, 0, /*causal=*/true);
      after_layer.push_back(x);
    }
    CachelessTarget out;
    for (std::size_t t = 0; t < x.size(); ++t) {
      const std::vector<double> logits = forward.Logits(x[t]);
      out.logits.insert(out.logits.end(), logits.begin(), logits.end());
      if (draft_.chain) {
        const std::vector<double> state = forward.HeadInput(x[t]);
        out.taps.insert(out.taps.end(), state.begin(), state.end());
      }
      for (const std::int64_t tap : draft_.taps) {
        const std::vector<double>& row = after_layer[static_cast<std::size_t>(tap)][t].x;
        out.taps.insert(out.taps.end(), row.begin(), row.end());
      }
    }
    return out;
  }

  [[nodiscard]] CachelessDraft Draft(std::span<const double> taps, std::int32_t anchor,
                                     std::int64_t rows) const override {
    const ExpandedForward forward(draft_, *options_.draft, options_.cache_dtype);
    const DraftShape& shape = *options_.draft->draft;
    const std::size_t tap_dim = draft_.taps.size() * static_cast<std::size_t>(draft_.tap_hidden);
    Matrix context;
    for (std::size_t t = 0; t * tap_dim < taps.size(); ++t) {
      const std::vector<double> row(taps.begin() + static_cast<std::ptrdiff_t>(t * tap_dim),
                                    taps.begin() + static_cast<std::ptrdiff_t>((t + 1) * tap_dim));
      context.push_back(forward.Norm(Times(draft_.context_proj, static_cast<std::size_t>(draft_.hidden), row),
                                     draft_.context_norm));
    }
    std::vector<Stream> x;
    x.reserve(static_cast<std::size_t>(rows));
    for (std::int64_t k = 0; k < rows; ++k) {
      x.push_back({forward.Embedding(k == 0 ? anchor : static_cast<std::int32_t>(shape.mask_token))});
    }
    for (const RoleLayer& layer : draft_.layers) {
      std::vector<ExpandedRow> cache;
      cache.reserve(context.size());
      for (std::size_t t = 0; t < context.size(); ++t) {
        cache.push_back(forward.Row(layer, context[t], static_cast<std::int64_t>(t)));
      }
      RunLayer(forward, layer, x, std::move(cache), static_cast<std::int64_t>(context.size()), shape.causal);
    }
    return Chain(forward, x, anchor);
  }

  [[nodiscard]] CachelessDraft DraftChain(std::span<const std::int32_t> tokens, std::span<const double> taps,
                                          std::int32_t anchor, std::int64_t rows) const override {
    const ExpandedForward forward(draft_, *options_.draft, options_.cache_dtype);
    const RoleLayer& layer = draft_.layers.front();
    const auto hidden = static_cast<std::size_t>(draft_.hidden);
    // Token t with the state of the one before it, at that one's position.
    std::vector<ExpandedRow> cache;
    const auto join = [&](std::int32_t token, const std::vector<double>& state) {
      std::vector<double> pair = forward.Norm(forward.Embedding(token), draft_.token_norm);
      const std::vector<double> normed = forward.Norm(state, draft_.state_norm);
      pair.insert(pair.end(), normed.begin(), normed.end());
      Stream stream{Times(draft_.pair_proj, hidden, pair)};
      cache.push_back(
          forward.Row(layer, forward.MixerInput(layer, stream), static_cast<std::int64_t>(cache.size())));
      return stream;
    };
    const auto state_of = [&](std::size_t t) {
      return std::vector<double>(taps.begin() + static_cast<std::ptrdiff_t>(t * hidden),
                                 taps.begin() + static_cast<std::ptrdiff_t>((t + 1) * hidden));
    };
    for (std::size_t t = 1; t < tokens.size(); ++t) (void)join(tokens[t], state_of(t - 1));
    CachelessDraft out;
    std::vector<double> state = state_of(tokens.size() - 1);
    std::int32_t token = anchor;
    for (std::int64_t k = 0; k < rows; ++k) {
      Stream stream = join(token, state);
      forward.Layer(layer, cache, cache.size(), static_cast<std::int64_t>(cache.size()) - 1, &stream);
      const std::vector<double> logits = forward.Logits(stream);
      token = static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      state = stream.x;
      out.drafted.push_back(token);
      out.logits.insert(out.logits.end(), logits.begin(), logits.end());
    }
    return out;
  }

 private:
  // All rows of `x` through one layer; `cache` holds what came before position `first`.
  static void RunLayer(const ExpandedForward& forward, const RoleLayer& layer, std::vector<Stream>& x,
                       std::vector<ExpandedRow> cache, std::int64_t first, bool causal) {
    if (std::holds_alternative<KdaLayer>(layer.mixer)) {
      forward.RecurrentLayer(layer, &x);
      return;
    }
    const std::size_t before = cache.size();
    for (std::size_t t = 0; t < x.size(); ++t) {
      cache.push_back(
          forward.Row(layer, forward.MixerInput(layer, x[t]), first + static_cast<std::int64_t>(t)));
    }
    for (std::size_t t = 0; t < x.size(); ++t) {
      forward.Layer(layer, cache, causal ? before + t + 1 : cache.size(),
                    first + static_cast<std::int64_t>(t), &x[t]);
    }
  }

  static double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  // What the Markov head multiplies with w2, of the hidden state h and the row e of the token before; an rnn
  // head's state moves on.
  [[nodiscard]] std::vector<double> Mixed(const std::vector<double>& h, const std::vector<double>& e,
                                          std::vector<double>& state) const {
    const DraftHeads& heads = draft_.heads;
    if (heads.markov_head == MarkovHead::kVanilla) return e;
    const bool rnn = heads.markov_head == MarkovHead::kRnn;
    std::vector<double> seen = rnn ? state : h;
    seen.insert(seen.end(), e.begin(), e.end());
    if (rnn) seen.insert(seen.end(), h.begin(), h.end());
    const std::size_t rank = e.size();
    std::vector<double> raw = Times(heads.markov_mix, rnn ? 3 * rank : rank, seen);
    for (std::size_t j = 0; j < raw.size(); ++j) raw[j] += static_cast<double>(heads.markov_mix_bias[j]);
    std::vector<double> m(rank);
    for (std::size_t j = 0; j < rank; ++j) {
      m[j] = rnn ? std::tanh(raw[2 * rank + j]) : Sigmoid(raw[j]) * e[j];
      if (!rnn) continue;
      const double gate = Sigmoid(raw[j]);
      state[j] = gate * state[j] + (1 - gate) * std::tanh(raw[rank + j]);
    }
    return m;
  }

  [[nodiscard]] CachelessDraft Chain(const ExpandedForward& forward, const std::vector<Stream>& x,
                                     std::int32_t anchor) const {
    CachelessDraft out;
    const DraftHeads& heads = draft_.heads;
    const auto rank = static_cast<std::size_t>(heads.markov_rank);
    std::vector<double> state(rank, 0);
    std::int64_t token = anchor;
    for (const Stream& row : x) {
      const std::vector<double> h = forward.HeadInput(row);
      const float* e = heads.markov_in + token * heads.markov_rank;
      const std::vector<double> m = Mixed(h, std::vector<double>(e, e + rank), state);
      std::vector<double> logits = forward.Logits(row);
      for (std::size_t j = 0; j < rank; ++j) {
        for (std::size_t n = 0; n < logits.size(); ++n) {
          logits[n] += m[j] * static_cast<double>(heads.markov_out[j * logits.size() + n]);
        }
      }
      if (heads.has_confidence) {
        std::vector<double> seen = h;
        if (heads.confidence_markov) seen.insert(seen.end(), e, e + rank);
        const double raw = Times(heads.confidence, 1, seen)[0] + static_cast<double>(*heads.confidence_bias);
        out.confidences.push_back(Sigmoid(raw));
      }
      token = std::max_element(logits.begin(), logits.end()) - logits.begin();
      out.drafted.push_back(static_cast<std::int32_t>(token));
      out.logits.insert(out.logits.end(), logits.begin(), logits.end());
    }
    return out;
  }

  CachelessOptions options_;
  std::unique_ptr<Backend> backend_;
  WeightSet weights_;
  RoleModel target_;
  RoleModel draft_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CachelessModel>> CachelessModel::Create(const CachelessOptions& options) {
  auto model = std::make_unique<CachelessModelImpl>(options);
  KVASIR_RETURN_IF_ERROR(model->LoadWeights());
  return model;
}

absl::StatusOr<PassResult> FromScratchDraft(const ModelRanksOptions& options,
                                            std::span<const std::int32_t> tokens, std::int32_t anchor,
                                            std::int64_t rows) {
  ModelRanksOptions fresh = options;
  fresh.topology = {};
  const std::int64_t length = static_cast<std::int64_t>(tokens.size()) + rows;
  fresh.blocks = 2 + length / fresh.block_tokens;
  fresh.rows_max = length;
  KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<ModelRanks> ranks, ModelRanks::Create(fresh));
  PassRequest request;
  request.tokens.assign(tokens.begin(), tokens.end());
  request.valid = static_cast<std::int64_t>(tokens.size());
  for (std::int64_t block = 1; block < fresh.blocks; ++block) request.blocks.push_back(block);
  KVASIR_RETURN_IF_ERROR(ranks->Run({.pass = Pass::kTargetPrefill, .requests = {request}}).status());
  KVASIR_RETURN_IF_ERROR(ranks->Run({.pass = Pass::kDraftContext, .requests = {request}}).status());
  request.tokens.assign(static_cast<std::size_t>(rows),
                        static_cast<std::int32_t>(options.draft->draft->mask_token));
  request.tokens[0] = anchor;
  request.position = static_cast<std::int64_t>(tokens.size());
  request.valid = rows;
  return ranks->Run(
      {.pass = Pass::kDraftBlock, .requests = {request}, .causal = options.draft->draft->causal});
}

}  // namespace kvasir::testing
