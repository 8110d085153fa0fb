// What a rank holds of a layer's MLP: a dense one, or a mixture of experts. Ranks share both in one way, by
// intermediate columns: each holds its slice of every expert, so that all ranks do equal work whatever is
// chosen, and the partial sums are reduced in rank order like those of a dense MLP. The router, and the
// projections into and out of a latent, are whole on every rank.
#ifndef KVASIR_WORKER_ENGINE_MLP_WEIGHTS_H_
#define KVASIR_WORKER_ENGINE_MLP_WEIGHTS_H_

#include <cstdint>
#include <string>

#include "common/models/model_description.h"
#include "worker/engine/pass.h"
#include "worker/engine/role_model.h"
#include "worker/engine/weight_set.h"

namespace kvasir {

// Why passes cannot compute this MLP, as the end of "layer x ..."; empty where they can.
[[nodiscard]] std::string UnsupportedMlp(const MlpShape& mlp);

// Sets the MLP's sizes on one of `tp` tensor ranks. A layer with a width that they do not divide is computed
// whole by every rank.
void ShardMlp(const MlpShape& mlp, std::int64_t tp, RoleLayer* layer);

// Declares the rank's part of the MLP's tensors, which are named `prefix` and:
//   mlp_norm; mlp_gate, mlp_up, mlp_down of a dense MLP
//   shared_gate, shared_up, shared_down: the shared experts side by side, as one MLP
//   router [experts, hidden], router_bias [1, experts]
//   experts_gate, experts_up [experts * width, in], experts_down [experts * in, width]: one expert below the
//     other, `in` being the latent or the hidden size
//   latent_down [latent, hidden], latent_norm, latent_up [hidden, latent]
void DeclareMlp(const std::string& prefix, const RankPlace& place, std::int64_t hidden, WeightSet& weights,
                RoleLayer* layer);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_MLP_WEIGHTS_H_
