// Intermediate activations of a pass: one device allocation, cut once for the largest number of rows of any
// pass of either model, at addresses that never change (graphs capture them).
#ifndef KVASIR_WORKER_ENGINE_PASS_SCRATCH_H_
#define KVASIR_WORKER_ENGINE_PASS_SCRATCH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/engine/backend.h"
#include "worker/engine/role_model.h"

namespace kvasir {

// `heads` are of this rank, `all_heads` of the DCP group (MlaLayer::gathered_heads).
struct PassScratch {
  float* x = nullptr;                  // [rows, hidden]: the residual stream
  float* normed = nullptr;             // [rows, hidden]
  float* previous = nullptr;           // [rows, hidden]: the states that a chain draft's rows start from
  float* pair = nullptr;               // [rows, 2, hidden]: token and state, before they are joined
  float* residual_blocks = nullptr;    // [blocks, rows, hidden]: what attention over residuals looks at
  float* branch = nullptr;             // [rows, hidden]: what attention or MLP adds
  float* q_latent = nullptr;           // [rows, q_lora]
  float* q = nullptr;                  // [rows, heads, nope + rope or dim]
  float* keys = nullptr;               // [rows, kv_heads, dim]: of a layer with keys and values per head
  float* kv = nullptr;                 // [rows, latent + rope], or keys and values of all kv heads
  float* absorbed = nullptr;           // [rows, heads, latent + rope]
  float* gathered = nullptr;           // [rows, all_heads, latent + rope]
  float* partial = nullptr;            // [rows, all_heads, latent]
  float* lse = nullptr;                // [rows, all_heads]
  float* attended = nullptr;           // [rows, heads, latent]
  float* values = nullptr;             // [rows, heads, value]: the heads' output
  float* gate = nullptr;               // [rows, heads, value]
  float* qkv = nullptr;                // [rows, 3, heads * dim]: a KDA layer's queries, keys and values
  float* low_rank = nullptr;           // [rows, dim]: of its gates
  float* decay = nullptr;              // [rows, heads, dim]
  float* beta = nullptr;               // [rows, heads]
  float* mlp_gate = nullptr;           // [rows, intermediate]
  float* mlp_up = nullptr;             // [rows, intermediate]
  float* router_logits = nullptr;      // [rows, experts]
  std::int32_t* expert_ids = nullptr;  // [rows, experts_per_token]
  float* expert_weights = nullptr;     // [rows, experts_per_token]
  float* shared = nullptr;             // [rows, hidden]: what shared experts add
  float* latent_in = nullptr;          // [rows, latent of the experts]
  float* latent_out = nullptr;         // [rows, latent of the experts]
  float* local_logits = nullptr;       // [rows, vocab_local]
  float* base_logits = nullptr;        // [rows, vocab]: before the Markov head

  std::unique_ptr<DeviceMemory> memory;
};

// `models` are the target and, if there is one, the draft. The backend's error where it cannot hold it.
absl::StatusOr<PassScratch> MakePassScratch(Backend& backend, const std::vector<const RoleModel*>& models,
                                            std::int64_t rows_max);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_PASS_SCRATCH_H_
