// A rank's view of one model (target or draft): its sizes after tensor parallelism, where each layer's cache
// lies, and its weights. Made once per plan; the pass writers only read it. Each layer mixes tokens in one
// way (MlaLayer here, KdaLayer in kda_layer.h, GqaLayer in gqa_layer.h); its MLP is its own.
#ifndef KVASIR_WORKER_ENGINE_ROLE_MODEL_H_
#define KVASIR_WORKER_ENGINE_ROLE_MODEL_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/geometry/block_address.h"
#include "common/geometry/dtype.h"
#include "common/models/model_description.h"
#include "common/plan/plan.h"
#include "worker/engine/gqa_layer.h"
#include "worker/engine/kda_layer.h"
#include "worker/engine/pass.h"
#include "worker/engine/weight_set.h"

namespace kvasir {

struct MlaWeights {
  const float* q_down = nullptr;       // [q_lora, hidden]; null where queries are projected directly
  const float* q_norm = nullptr;       // [q_lora]
  const float* q_up = nullptr;         // [heads * (nope + rope), q_lora or hidden]
  const float* kv_down = nullptr;      // [latent + rope, hidden]
  const float* kv_norm = nullptr;      // [latent]
  const float* w_uk = nullptr;         // [heads, nope, latent]
  const float* w_uv = nullptr;         // [heads, value, latent]
  const float* gate = nullptr;         // [heads * value, hidden]; null without an output gate
  const float* out = nullptr;          // [hidden, heads * value]
  const float* frequencies = nullptr;  // [rope / 2], of the rotation
};

struct MlaLayer {
  MlaShape shape = {};
  std::int64_t heads = 0;           // of this rank
  std::int64_t gathered_heads = 0;  // of the DCP group where the cache is sharded over context, else `heads`
  PageGeometry page = {};
  DType dtype = DType::kBf16;
  float scale = 0;  // of the softmax
  MlaWeights weights = {};
  [[nodiscard]] std::int64_t query_dim() const { return shape.nope_dim + shape.rope_dim; }
  [[nodiscard]] std::int64_t row_dim() const { return shape.kv_lora_rank + shape.rope_dim; }
};
// Deviations of what attention and MLP add to the residual stream, which make the synthetic model decode like
// one that has learned something (tests/worker/cpu/demo_pair_test.cc holds it to that): enough to outvote the
// token's own embedding about every fifth time.
inline constexpr std::int64_t kBranchGainNum = 3;
inline constexpr std::int64_t kBranchGainDen = 2;

struct LayerWeights {
  const float* attention_norm = nullptr;  // [hidden], before the mixer
  const float* mlp_norm = nullptr;        // [hidden]
  // Of attention over residuals, before either; null without.
  const float* attention_residual_norm = nullptr;  // [hidden]
  const float* attention_residual_proj = nullptr;  // [hidden]
  const float* mlp_residual_norm = nullptr;        // [hidden]
  const float* mlp_residual_proj = nullptr;        // [hidden]
  const float* mlp_gate = nullptr;     // [intermediate, hidden], of the dense MLP or the shared experts
  const float* mlp_up = nullptr;       // [intermediate, hidden]
  const float* mlp_down = nullptr;     // [hidden, intermediate]
  const float* router = nullptr;       // [experts, hidden]; null without experts, as all that follow
  const float* router_bias = nullptr;  // [experts]; null without a correction bias
  const float* expert_gate = nullptr;  // [experts, expert_width, expert_in]
  const float* expert_up = nullptr;    // [experts, expert_width, expert_in]
  const float* expert_down = nullptr;  // [experts, expert_in, expert_width]
  const float* latent_down = nullptr;  // [mlp.latent, hidden]; null where experts work on hidden
  const float* latent_norm = nullptr;  // [mlp.latent]; null without one
  const float* latent_up = nullptr;    // [hidden, mlp.latent]
};

struct RoleLayer {
  std::int64_t index = 0;
  std::variant<MlaLayer, KdaLayer, GqaLayer> mixer;
  MlpShape mlp;
  std::int64_t intermediate = 0;  // of the dense MLP or the shared experts, on this rank
  std::int64_t expert_width = 0;  // of one routed expert, on this rank
  bool mlp_sharded = false;       // else every rank computes the whole MLP, and nothing is reduced
  GatedActivation activation;
  std::int32_t group = 0;  // index into PassInputs::groups
  LayerWeights weights;
  [[nodiscard]] const MlaLayer& mla() const { return std::get<MlaLayer>(mixer); }
  [[nodiscard]] std::int64_t expert_in(std::int64_t hidden) const {
    return mlp.latent > 0 ? mlp.latent : hidden;
  }
};

// What a DSpark draft has behind its last layer (MarkovChainOp).
struct DraftHeads {
  std::int64_t markov_rank = 0;  // 0 without a Markov head
  MarkovHead markov_head = MarkovHead::kVanilla;
  bool has_confidence = false;
  bool confidence_markov = true;
  const float* markov_in = nullptr;   // [vocab, rank]
  const float* markov_out = nullptr;  // [rank, vocab]
  const float* markov_mix = nullptr;  // of the gate or of the state; null for a vanilla head
  const float* markov_mix_bias = nullptr;
  const float* confidence = nullptr;  // null without a confidence head
  const float* confidence_bias = nullptr;
  [[nodiscard]] static DraftHeads Of(const DraftShape& shape) {
    return {.markov_rank = shape.markov_rank,
            .markov_head = shape.markov_head,
            .has_confidence = shape.confidence_head,
            .confidence_markov = shape.confidence_markov && shape.markov_rank > 0};
  }
};

struct RoleModel {
  Role role = Role::kTarget;
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t tensor_ranks = 1;
  std::int64_t context_ranks = 1;
  std::int64_t vocab_local = 0;  // of the head on this rank; == vocab where it is replicated
  float eps = 0;
  float rope_magnitude = 1;
  std::int64_t residual_block = 0;  // attention over residuals, of blocks of so many layers; 0: a plain sum
  // How many blocks began before layer `index`.
  [[nodiscard]] std::int64_t BlocksBefore(std::int64_t index) const {
    return residual_block == 0 ? 0 : (index + residual_block - 1) / residual_block;
  }
  std::vector<RoleLayer> layers;
  std::vector<std::int64_t> taps;               // target layers whose outputs feed the draft; of both roles
  std::int64_t tap_hidden = 0;                  // draft: hidden size of the target
  const float* embedding = nullptr;             // [vocab, hidden]
  const float* final_norm = nullptr;            // [hidden]
  const float* output_residual_norm = nullptr;  // [hidden]; null without attention over residuals
  const float* output_residual_proj = nullptr;  // [hidden]
  const float* head = nullptr;                  // [vocab_local, hidden]
  // Of a chain draft (DraftShape::IsChain), and of its target, which taps its own last state instead of
  // layers.
  bool chain = false;
  const float* token_norm = nullptr;    // chain: [hidden]
  const float* state_norm = nullptr;    // chain: [hidden]
  const float* pair_proj = nullptr;     // chain: [hidden, 2 * hidden], over [token; state]
  const float* context_proj = nullptr;  // draft: [hidden, taps * tap_hidden]
  const float* context_norm = nullptr;  // draft: [hidden]
  DraftHeads heads;                     // draft
};

// How a draft's layers with keys and values per head turn (GqaLayer::halves): in halves, but a DFlash draft
// as its target's attention does, which no configuration of the draft says.
[[nodiscard]] bool TurnsInHalves(const DraftShape& draft, const ModelDescription& target);

// Sizes and places, without weights. Unimplemented (BACKEND_UNSUPPORTED_GROUP <group>) and InvalidArgument as
// MakeRankModel.
absl::StatusOr<RoleModel> MakeRoleModel(const Plan& plan, const RankPlace& place, Role role,
                                        const ModelDescription& model);

// Declares every weight of `model` that the rank needs; their addresses appear in *out when `weights` loads.
// *out must not move before that. The draft's embedding and head are declared only where it ships them.
void DeclareWeights(const ModelDescription& model, const RankPlace& place, WeightSet& weights,
                    RoleModel* out);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_ROLE_MODEL_H_
