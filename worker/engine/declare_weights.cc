// Which weights a rank's model needs, by their names and shards.
#include <cstddef>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "worker/engine/mlp_weights.h"
#include "worker/engine/role_model.h"
#include "worker/engine/rope_table.h"

namespace kvasir {
namespace {

// Of synthetic queries: scores differ enough for a row to prefer a few keys, so that attention carries
// context and not an average, which would favour one token for ever.
constexpr std::int64_t kQueryGain = 4;

// Names of a role's tensors; they seed the weights, so they may never change.
std::string RolePrefix(Role role) { return role == Role::kTarget ? "target." : "draft."; }

void DeclareMla(const std::string& prefix, const RankPlace& place, std::int64_t hidden, WeightSet& weights,
                MlaLayer* layer) {
  const MlaShape& mla = layer->shape;
  const std::int64_t tp = place.topology.tp;
  MlaWeights& out = layer->weights;
  const auto whole = [&](WeightSpec spec, const float** to) { weights.AddWhole(std::move(spec), to); };
  const auto rows = [&](WeightSpec spec, const float** to) {
    weights.AddRows(std::move(spec), place.rank, tp, to);
  };
  std::int64_t query_in = hidden;
  if (mla.q_lora_rank > 0) {
    whole(MatrixSpec(prefix + "q_down", mla.q_lora_rank, hidden), &out.q_down);
    whole(NormSpec(prefix + "q_norm", mla.q_lora_rank), &out.q_norm);
    query_in = mla.q_lora_rank;
  }
  rows(MatrixSpec(prefix + "q_up", mla.heads * layer->query_dim(), query_in, kQueryGain), &out.q_up);
  whole(MatrixSpec(prefix + "kv_down", layer->row_dim(), hidden), &out.kv_down);
  whole(NormSpec(prefix + "kv_norm", mla.kv_lora_rank), &out.kv_norm);
  // One tensor as in published checkpoints, per head first the key rows, then the value rows.
  const std::int64_t step = mla.nope_dim + mla.value_dim;
  const WeightSpec kv_up = MatrixSpec(prefix + "kv_up", mla.heads * step, mla.kv_lora_rank);
  TensorPart part{.row_begin = place.rank * layer->heads * step,
                  .rows = mla.nope_dim,
                  .row_step = step,
                  .blocks = layer->heads,
                  .cols = mla.kv_lora_rank};
  weights.Add(kv_up, part, &out.w_uk);
  part.row_begin += mla.nope_dim;
  part.rows = mla.value_dim;
  weights.Add(kv_up, part, &out.w_uv);
  if (mla.output_gate) rows(MatrixSpec(prefix + "gate", mla.heads * mla.value_dim, hidden), &out.gate);
  const WeightSpec project =
      MatrixSpec(prefix + "out", hidden, mla.heads * mla.value_dim, kBranchGainNum, kBranchGainDen);
  weights.Add(project, ColumnShard(project, place.rank, tp), &out.out);
}

// The weights of one attention over residuals.
void DeclareMixture(const std::string& prefix, std::int64_t hidden, WeightSet& weights, const float** norm,
                    const float** proj) {
  weights.AddWhole(NormSpec(prefix + "_residual_norm", hidden), norm);
  weights.AddWhole(MatrixSpec(prefix + "_residual_proj", 1, hidden), proj);
}

void DeclareMixer(const std::string& prefix, const RankPlace& place, const ModelDescription& model,
                  WeightSet& weights, RoleLayer* layer) {
  LayerWeights& out = layer->weights;
  weights.AddWhole(NormSpec(prefix + "attention_norm", model.hidden), &out.attention_norm);
  if (model.residual_block > 0) {
    DeclareMixture(prefix + "attention", model.hidden, weights, &out.attention_residual_norm,
                   &out.attention_residual_proj);
    DeclareMixture(prefix + "mlp", model.hidden, weights, &out.mlp_residual_norm, &out.mlp_residual_proj);
  }
  if (auto* kda = std::get_if<KdaLayer>(&layer->mixer)) {
    DeclareKdaWeights(prefix, place, model.hidden, weights, kda);
    return;
  }
  if (auto* gqa = std::get_if<GqaLayer>(&layer->mixer)) {
    DeclareGqaWeights(prefix, place, model.hidden, weights, gqa);
    weights.AddTable(RopeFrequencies(model.rope, gqa->shape.head_dim), &gqa->weights.frequencies);
    return;
  }
  MlaLayer& mla = std::get<MlaLayer>(layer->mixer);
  DeclareMla(prefix, place, model.hidden, weights, &mla);
  if (!mla.shape.rotate) return;
  weights.AddTable(RopeFrequencies(model.rope, mla.shape.rope_dim), &mla.weights.frequencies);
}

void DeclareHeads(const std::string& prefix, const RoleModel& model, WeightSet& weights, DraftHeads* out) {
  const std::int64_t rank = out->markov_rank;
  const std::int64_t hidden = model.hidden;
  const auto whole = [&](WeightSpec spec, const float** to) { weights.AddWhole(std::move(spec), to); };
  if (rank > 0) {
    whole(MarkovInSpec(prefix + "markov", model.vocab, rank), &out->markov_in);
    whole(MarkovOutSpec(prefix + "markov", model.vocab, rank), &out->markov_out);
    if (out->markov_head == MarkovHead::kGated) {
      whole(MatrixSpec(prefix + "markov_gate", rank, hidden + rank), &out->markov_mix);
      whole(MatrixSpec(prefix + "markov_gate_bias", 1, rank), &out->markov_mix_bias);
    } else if (out->markov_head == MarkovHead::kRnn) {
      whole(MatrixSpec(prefix + "markov_joint", 3 * rank, 2 * rank + hidden), &out->markov_mix);
      whole(MatrixSpec(prefix + "markov_joint_bias", 1, 3 * rank), &out->markov_mix_bias);
    }
  }
  if (!out->has_confidence) return;
  const std::int64_t width = hidden + (out->confidence_markov ? rank : 0);
  whole(MatrixSpec(prefix + "confidence", 1, width), &out->confidence);
  whole(MatrixSpec(prefix + "confidence_bias", 1, 1), &out->confidence_bias);
}

}  // namespace

void DeclareWeights(const ModelDescription& model, const RankPlace& place, WeightSet& weights,
                    RoleModel* out) {
  const std::string prefix = RolePrefix(out->role);
  const auto whole = [&](WeightSpec spec, const float** to) { weights.AddWhole(std::move(spec), to); };
  const std::int64_t head_shards = out->vocab_local == out->vocab ? 1 : out->tensor_ranks;
  const std::int64_t head_index = head_shards == 1 ? 0 : place.rank;
  const bool draft = model.draft.has_value();
  if (!draft || model.draft->own_embedding) {
    whole(EmbeddingSpec(prefix + "embedding", out->vocab, out->hidden), &out->embedding);
  }
  if (!draft || model.draft->own_head) {
    const bool own = !draft || model.draft->own_embedding;
    WeightSpec head =
        model.tied_embedding
            ? EmbeddingSpec(prefix + "embedding", out->vocab, out->hidden)
            : HeadSpec((own ? prefix : RolePrefix(Role::kTarget)) + "embedding", out->vocab, out->hidden);
    if (!model.tied_embedding) head.name = prefix + "head";
    weights.Add(head, RowShard(head, head_index, head_shards), &out->head);
  }
  for (std::size_t i = 0; i < out->layers.size(); ++i) {
    const std::string layer_prefix = absl::StrFormat("%slayers.%d.", prefix, i);
    DeclareMixer(layer_prefix, place, model, weights, &out->layers[i]);
    DeclareMlp(layer_prefix, place, out->hidden, weights, &out->layers[i]);
  }
  // A draft's base logits are a quarter of the target's, so that its Markov head decides and the base, which
  // has learned nothing, only colours.
  constexpr int kDraftNormExponent = -2;
  const bool block = draft && !model.draft->IsChain();
  whole(NormSpec(prefix + "final_norm", out->hidden, block ? kDraftNormExponent : 0), &out->final_norm);
  if (out->residual_block > 0) {
    DeclareMixture(prefix + "output", out->hidden, weights, &out->output_residual_norm,
                   &out->output_residual_proj);
  }
  if (!draft) return;
  if (out->chain) {
    whole(NormSpec(prefix + "token_norm", out->hidden), &out->token_norm);
    whole(NormSpec(prefix + "state_norm", out->hidden), &out->state_norm);
    whole(PairSpec(prefix + "pair_proj", out->hidden), &out->pair_proj);
    return;
  }
  const std::int64_t taps = static_cast<std::int64_t>(out->taps.size());
  whole(MatrixSpec(prefix + "context_proj", out->hidden, taps * out->tap_hidden), &out->context_proj);
  whole(NormSpec(prefix + "context_norm", out->hidden), &out->context_norm);
  DeclareHeads(prefix, *out, weights, &out->heads);
}

}  // namespace kvasir
