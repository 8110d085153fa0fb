#include "worker/engine/mlp_weights.h"

#include <utility>

#include "absl/strings/str_format.h"

namespace kvasir {
namespace {

// Logits of a spread that makes some experts clear favourites and leaves none without rows.
constexpr std::int64_t kRouterGain = 2;

// Declares parts of the MLP's tensors. Shards are whole tensors where the MLP is not sharded.
class MlpDeclarer {
 public:
  MlpDeclarer(const std::string& prefix, const RankPlace& place, WeightSet& weights, const RoleLayer& layer)
      : prefix_(prefix),
        weights_(weights),
        shards_(layer.mlp_sharded ? place.topology.tp : 1),
        index_(layer.mlp_sharded ? place.rank : 0) {}

  void Whole(WeightSpec spec, const float** to) { weights_.AddWhole(std::move(spec), to); }
  [[nodiscard]] std::string Name(const char* word) const { return prefix_ + word; }

  // gate, up [width, hidden] and down [hidden, width] of one MLP.
  void GatedMlp(const std::string& name, std::int64_t width, std::int64_t hidden, LayerWeights* out) {
    const WeightSpec down = MatrixSpec(name + "_down", hidden, width, kBranchGainNum, kBranchGainDen);
    weights_.AddRows(MatrixSpec(name + "_gate", width, hidden), index_, shards_, &out->mlp_gate);
    weights_.AddRows(MatrixSpec(name + "_up", width, hidden), index_, shards_, &out->mlp_up);
    weights_.Add(down, ColumnShard(down, index_, shards_), &out->mlp_down);
  }

  // The same of `experts` MLPs, one below the other.
  void Experts(std::int64_t experts, std::int64_t width, std::int64_t in, LayerWeights* out) {
    const std::int64_t rows = width / shards_;
    const TensorPart part{
        .row_begin = index_ * rows, .rows = rows, .row_step = width, .blocks = experts, .cols = in};
    weights_.Add(MatrixSpec(Name("experts_gate"), experts * width, in), part, &out->expert_gate);
    weights_.Add(MatrixSpec(Name("experts_up"), experts * width, in), part, &out->expert_up);
    const WeightSpec down =
        MatrixSpec(Name("experts_down"), experts * in, width, kBranchGainNum, kBranchGainDen);
    weights_.Add(down, ColumnShard(down, index_, shards_), &out->expert_down);
  }

 private:
  std::string prefix_;
  WeightSet& weights_;
  std::int64_t shards_;
  std::int64_t index_;
};

// Of the dense MLP, or of all shared experts.
std::int64_t DenseWidth(const MlpShape& mlp) {
  return mlp.experts > 0 ? mlp.shared_width() : mlp.intermediate;
}

}  // namespace

std::string UnsupportedMlp(const MlpShape& mlp) {
  if (!mlp.gated) return "has an MLP that is not gated";
  if (mlp.experts == 0) return "";
  if (mlp.scoring == ExpertScoring::kUnstated) {
    return absl::StrFormat("mixes %d experts, and its description does not say how they are chosen",
                           mlp.experts);
  }
  if (mlp.intermediate != 0) return "has a dense MLP beside its experts";
  return "";
}

void ShardMlp(const MlpShape& mlp, std::int64_t tp, RoleLayer* layer) {
  const std::int64_t dense = DenseWidth(mlp);
  layer->mlp = mlp;
  layer->mlp_sharded = tp > 1 && dense % tp == 0 && mlp.expert_intermediate % tp == 0;
  const std::int64_t shards = layer->mlp_sharded ? tp : 1;
  layer->intermediate = dense / shards;
  layer->expert_width = mlp.expert_intermediate / shards;
  layer->activation = {.situ_beta = static_cast<float>(mlp.situ_beta),
                       .situ_linear_beta = static_cast<float>(mlp.situ_linear_beta)};
}

void DeclareMlp(const std::string& prefix, const RankPlace& place, std::int64_t hidden, WeightSet& weights,
                RoleLayer* layer) {
  const MlpShape& mlp = layer->mlp;
  LayerWeights* out = &layer->weights;
  MlpDeclarer declare(prefix, place, weights, *layer);
  declare.Whole(NormSpec(prefix + "mlp_norm", hidden), &out->mlp_norm);
  if (const std::int64_t dense = DenseWidth(mlp); dense > 0) {
    declare.GatedMlp(prefix + (mlp.experts > 0 ? "shared" : "mlp"), dense, hidden, out);
  }
  if (mlp.experts == 0) return;
  declare.Whole(MatrixSpec(prefix + "router", mlp.experts, hidden, kRouterGain), &out->router);
  if (mlp.correction_bias) {
    declare.Whole(MatrixSpec(prefix + "router_bias", 1, mlp.experts, 1, 2), &out->router_bias);
  }
  declare.Experts(mlp.experts, mlp.expert_intermediate, layer->expert_in(hidden), out);
  if (mlp.latent == 0) return;
  declare.Whole(MatrixSpec(prefix + "latent_down", mlp.latent, hidden), &out->latent_down);
  if (mlp.latent_norm) declare.Whole(NormSpec(prefix + "latent_norm", mlp.latent), &out->latent_norm);
  declare.Whole(MatrixSpec(prefix + "latent_up", hidden, mlp.latent), &out->latent_up);
}

}  // namespace kvasir
