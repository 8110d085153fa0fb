#include "worker/engine/pass_scratch.h"

#include <algorithm>

#include "common/base/checked_math.h"
#include "common/base/status_macros.h"

namespace kvasir {
namespace {

constexpr std::int64_t kAlignment = 256;

// Floats per row of each buffer, the maximum over all layers.
struct RowSizes {
  std::int64_t hidden = 0, q_lora = 0, query = 0, row = 0, absorbed = 0, gathered = 0, partial = 0, lse = 0,
               attended = 0, value = 0, intermediate = 0, experts = 0, chosen = 0, shared = 0, latent = 0,
               vocab = 0;
};

RowSizes SizesOf(const std::vector<const RoleModel*>& models) {
  RowSizes sizes;
  const auto raise = [](std::int64_t& size, std::int64_t to) { size = std::max(size, to); };
  for (const RoleModel* model : models) {
    raise(sizes.hidden, model->hidden);
    raise(sizes.vocab, model->vocab);
    for (const RoleLayer& layer : model->layers) {
      raise(sizes.q_lora, layer.mla.q_lora_rank);
      raise(sizes.query, layer.heads * layer.query_dim());
      raise(sizes.row, layer.row_dim());
      raise(sizes.absorbed, layer.heads * layer.row_dim());
      raise(sizes.gathered, layer.gathered_heads * layer.row_dim());
      raise(sizes.partial, layer.gathered_heads * layer.mla.kv_lora_rank);
      raise(sizes.lse, layer.gathered_heads);
      raise(sizes.attended, layer.heads * layer.mla.kv_lora_rank);
      raise(sizes.value, layer.heads * layer.mla.value_dim);
      raise(sizes.intermediate, std::max(layer.intermediate, layer.expert_width));
      raise(sizes.experts, layer.mlp.experts);
      raise(sizes.chosen, layer.mlp.experts_per_token);
      raise(sizes.shared, layer.mlp.experts > 0 && layer.intermediate > 0 ? model->hidden : 0);
      raise(sizes.latent, layer.mlp.latent);
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
      {&scratch.branch, sizes.hidden},
      {&scratch.q_latent, sizes.q_lora},
      {&scratch.q, sizes.query},
      {&scratch.kv, sizes.row},
      {&scratch.absorbed, sizes.absorbed},
      {&scratch.gathered, sizes.gathered},
      {&scratch.partial, sizes.partial},
      {&scratch.lse, sizes.lse},
      {&scratch.attended, sizes.attended},
      {&scratch.values, sizes.value},
      {&scratch.gate, sizes.value},
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
