// Writes the operations that target and draft layers have in common. One writer per pass.
#ifndef KVASIR_WORKER_ENGINE_LAYER_PASS_H_
#define KVASIR_WORKER_ENGINE_LAYER_PASS_H_

#include <cstddef>

#include "worker/engine/launch.h"
#include "worker/engine/pass.h"
#include "worker/engine/pass_scratch.h"
#include "worker/engine/role_model.h"

namespace kvasir {

// Everything a pass is written from. References outlive the writer.
struct PassContext {
  const RoleModel& model;
  const PassScratch& scratch;
  std::byte* arena;
  const PassShape& shape;
  const PassInputs& in;
  const PassOutputs& out;
};

class LayerPass {
 public:
  LayerPass(const PassContext& context, LaunchList& list) : c_(context), list_(list) {}

  // scratch.x = embedding of the input tokens
  void Embed();
  // Projects `hidden_rows` [rows, hidden] to cache rows of the layer and writes them to its slots. Not KDA.
  void WriteCacheRows(const RoleLayer& layer, const float* hidden_rows);
  // scratch.x += mixer(norm(x)). Attention writes the rows' own cache rows first, so that they see
  // themselves. With attention over residuals, here and below, what is normed is the mixture of x and the
  // blocks before; at a block's first layer x becomes a block, and starts anew.
  void Mix(const RoleLayer& layer);
  // scratch.x += mlp(norm(x))
  void Mlp(const RoleLayer& layer);
  // The same rows for a layer's own input: of norm(x).
  void WriteOwnCacheRows(const RoleLayer& layer);
  // scratch.normed = norm(x), the model's last
  void FinalNorm();
  // logits [rows, vocab] = head(scratch.normed); a draft may use the target's head.
  void Logits(const float* head, float* logits);

 private:
  // scratch.branch = the mixer's output for scratch.normed, of this rank's heads: mla_pass.cc, kda_pass.cc,
  // gqa_pass.cc
  void Mla(const MlaLayer& layer, const GroupInputs& group);
  void Gqa(const GqaLayer& layer, const GroupInputs& group);
  void Kda(const KdaLayer& layer, const GroupInputs& group);
  void CacheRows(const MlaLayer& layer, const GroupInputs& group, const float* hidden_rows);
  void CacheRows(const GqaLayer& layer, const GroupInputs& group, const float* hidden_rows);
  // x [rows, heads, head_dim]: the norm of each head, then the rotation
  void NormAndTurn(float* x, const float* weight, std::int64_t heads, const GqaLayer& layer);
  void Query(const MlaLayer& layer);
  void Replay(const KdaLayer& layer, const GroupInputs& group);
  void Convolve(const KdaLayer& layer, const GroupInputs& group);
  void Gates(const KdaLayer& layer);
  void Norm(const float* in, const float* weight, std::int64_t cols, float* out);
  // scratch.normed = norm(x), or norm of the mixture of x and `blocks` blocks where it has weights.
  struct Mixture {
    const float* norm;
    const float* proj;
    std::int64_t blocks;
  };
  void NormStream(const Mixture& mixture, const float* weight);
  void Copy(const float* in, float* out);  // [rows, hidden]
  void Linear(const float* in, const float* weight, std::int64_t in_dim, std::int64_t out_dim, float* out);
  // x [rows, cols] = sum over the tensor ranks
  void SumOverRanks(float* x, std::int64_t cols);
  void DenseMlp(const RoleLayer& layer, float* out);
  void Route(const RoleLayer& layer);
  void Experts(const RoleLayer& layer, const float* in, float* out);
  void LatentExperts(const RoleLayer& layer);
  // scratch.x += scratch.branch, summed over the tensor ranks first where each holds a part.
  void AddBranch(bool sharded);

  const PassContext& c_;
  LaunchList& list_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_LAYER_PASS_H_
