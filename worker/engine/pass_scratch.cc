#include "worker/engine/pass_scratch.h"

#include <algorithm>
#include <variant>

#include "common/base/checked_math.h"
#include "common/base/status_macros.h"

namespace kvasir {
namespace {

constexpr std::int64_t kAlignment = 256;

// Floats per row of each buffer, the maximum over all layers.
struct RowSizes {
  std::int64_t hidden = 0, previous = 0, residual = 0, q_lora = 0, query = 0, row = 0, absorbed = 0,
               gathered = 0, partial = 0, lse = 0, attended = 0, value = 0, keys = 0, qkv = 0, low_rank = 0,
               decay = 0, beta = 0, intermediate = 0, experts = 0, chosen = 0, shared = 0, latent = 0,
               vocab = 0;
};

void Raise(std::int64_t& size, std::int64_t to) { size = std::max(size, to); }

void RaiseFor(const MlaLayer& layer, RowSizes& sizes) {
  Raise(sizes.q_lora, layer.shape.q_lora_rank);
  Raise(sizes.query, layer.heads * layer.query_dim());
  Raise(sizes.row, layer.row_dim());
  Raise(sizes.absorbed, layer.heads * layer.row_dim());
  Raise(sizes.gathered, layer.gathered_heads * layer.row_dim());
  Raise(sizes.partial, layer.gathered_heads * layer.shape.kv_lora_rank);
  Raise(sizes.lse, layer.gathered_heads);
  Raise(sizes.attended, layer.heads * layer.shape.kv_lora_rank);
  Raise(sizes.value, layer.heads * layer.shape.value_dim);
}

void RaiseFor(const GqaLayer& layer, RowSizes& sizes) {
  Raise(sizes.query, layer.heads * layer.shape.head_dim);
  Raise(sizes.keys, layer.key_width());
  Raise(sizes.row, layer.row_dim());
  Raise(sizes.value, layer.heads * layer.shape.value_dim);
}

void RaiseFor(const KdaLayer& layer, RowSizes& sizes) {
  Raise(sizes.qkv, 3 * layer.width());
  Raise(sizes.low_rank, layer.shape.head_dim);
  Raise(sizes.decay, layer.width());
  Raise(sizes.beta, layer.heads);
  Raise(sizes.value, layer.width());
}

RowSizes SizesOf(const std::vector<const RoleModel*>& models) {
  RowSizes sizes;
  for (const RoleModel* model : models) {
    Raise(sizes.hidden, model->hidden);
    Raise(sizes.residual,
          model->BlocksBefore(static_cast<std::int64_t>(model->layers.size())) * model->hidden);
    Raise(sizes.vocab, model->vocab);
    Raise(sizes.previous, model->chain && model->role == Role::kDraft ? model->hidden : 0);
    for (const RoleLayer& layer : model->layers) {
      std::visit([&sizes](const auto& mixer) { RaiseFor(mixer, sizes); }, layer.mixer);
      Raise(sizes.intermediate, std::max(layer.intermediate, layer.expert_width));
      Raise(sizes.experts, layer.mlp.experts);
      Raise(sizes.chosen, layer.mlp.experts_per_token);
      Raise(sizes.shared, layer.mlp.experts > 0 && layer.intermediate > 0 ? model->hidden : 0);
      Raise(sizes.latent, layer.mlp.latent);
    }
  }
  return sizes;
}

}  // namespace

absl::StatusOr<PassScratch> MakePassScratch(Backend& backend, const std::vector<const RoleModel*>& models,
                                            std::int64_t rows_max) {
  const RowSizes sizes = SizesOf(models);
  PassScratch scratch;
  static_assert(sizeof(std::int32_t) == sizeof(float));
  float* expert_ids = nullptr;
  struct Buffer {
    float** at;
    std::int64_t row_floats;
  };
  const Buffer buffers[] = {
      {&scratch.x, sizes.hidden},
      {&scratch.normed, sizes.hidden},
      {&scratch.previous, sizes.previous},
      {&scratch.pair, 2 * sizes.previous},
      {&scratch.residual_blocks, sizes.residual},
      {&scratch.branch, sizes.hidden},
      {&scratch.q_latent, sizes.q_lora},
      {&scratch.q, sizes.query},
      {&scratch.keys, sizes.keys},
      {&scratch.kv, sizes.row},
      {&scratch.absorbed, sizes.absorbed},
      {&scratch.gathered, sizes.gathered},
      {&scratch.partial, sizes.partial},
      {&scratch.lse, sizes.lse},
      {&scratch.attended, sizes.attended},
      {&scratch.values, sizes.value},
      {&scratch.gate, sizes.value},
      {&scratch.qkv, sizes.qkv},
      {&scratch.low_rank, sizes.low_rank},
      {&scratch.decay, sizes.decay},
      {&scratch.beta, sizes.beta},
      {&scratch.mlp_gate, sizes.intermediate},
      {&scratch.mlp_up, sizes.intermediate},
      {&scratch.router_logits, sizes.experts},
      {&expert_ids, sizes.chosen},
      {&scratch.expert_weights, sizes.chosen},
      {&scratch.shared, sizes.shared},
      {&scratch.latent_in, sizes.latent},
      {&scratch.latent_out, sizes.latent},
      {&scratch.local_logits, sizes.vocab},
      {&scratch.base_logits, sizes.vocab},
  };
  const auto bytes_of = [rows_max](const Buffer& buffer) {
    const std::int64_t bytes = rows_max * buffer.row_floats * static_cast<std::int64_t>(sizeof(float));
    return CeilDiv(bytes, kAlignment) * kAlignment;
  };
  std::int64_t total = 0;
  for (const Buffer& buffer : buffers) total += bytes_of(buffer);
  KVASIR_ASSIGN_OR_RETURN(scratch.memory, backend.Allocate(Bytes(total)));
  std::int64_t offset = 0;
  for (const Buffer& buffer : buffers) {
    *buffer.at = reinterpret_cast<float*>(scratch.memory->data() + offset);
    offset += bytes_of(buffer);
  }
  scratch.expert_ids = reinterpret_cast<std::int32_t*>(expert_ids);
  return scratch;
}

}  // namespace kvasir
