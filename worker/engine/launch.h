// The operations a pass is made of, as plain values over fixed addresses. A pass is a LaunchList: a backend
// runs it at once (eager), or freezes it (capture) and runs the frozen copy later (replay). An operation
// holds addresses and sizes only; what changes from step to step (tokens, positions, slots, bounds, block
// tables) is read from memory at run time, which is what makes a frozen list correct for the next step.
//
// Shapes are row-major; `rows` = requests * query_rows, padding included. Activations are fp32. Every
// operation computes each row from that row alone, accumulating along K in ascending order (in fixed lanes),
// so that a row's bits never depend on the batch (DESIGN section 3, row invariance).
#ifndef KVASIR_WORKER_ENGINE_LAUNCH_H_
#define KVASIR_WORKER_ENGINE_LAUNCH_H_

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "common/geometry/block_address.h"
#include "common/geometry/dtype.h"
#include "worker/engine/launch_draft.h"
#include "worker/engine/launch_experts.h"
#include "worker/engine/launch_recurrent.h"

namespace kvasir {

// The ranks a collective spans: all of tensor parallelism, or the DCP group (consecutive ranks).
enum class CommGroup : std::int8_t { kTensor, kContext };

// out[r] = table[ids[r]]
struct EmbedOp {
  const std::int32_t* ids;  // [rows]
  const float* table;       // [vocab, hidden]
  float* out;               // [rows, hidden]
  std::int64_t rows, hidden, vocab;
};

// out[r] = in[r] / sqrt(mean(in[r]^2) + eps) * weight; in and out may be the same.
struct RmsNormOp {
  const float* in;      // [rows] of `cols`, in_stride floats apart
  const float* weight;  // [cols]
  float* out;           // [rows] of `cols`, out_stride floats apart
  std::int64_t rows, cols, in_stride, out_stride;
  float eps;
};

// out[r, n] = sum_k in[r, k] * weight[n, k]
struct LinearOp {
  const float* in;      // [rows, in_dim], in_stride floats apart
  const float* weight;  // [out_dim, in_dim]
  float* out;           // [rows, out_dim], out_stride floats apart
  std::int64_t rows, in_dim, out_dim, in_stride, out_stride;
};

// Rotates `dim` lanes of each head by positions[r] * inv_freq[i], scaled by `magnitude`, in place: pairs 2i
// and 2i + 1, or i and i + dim / 2 where `halves`.
struct RopeOp {
  float* x;  // rows row_stride apart; heads head_stride apart; first rotary lane of head 0
  const std::int64_t* positions;  // [rows]
  const float* inv_freq;          // [dim / 2]
  std::int64_t rows, heads, dim, row_stride, head_stride;
  float magnitude;
  bool halves = false;
};

// Absorbed query: out[r, h] = [ q_nope[r, h] * w_uk[h] ; q_rope[r, h] ]
struct AbsorbQueryOp {
  const float* q;     // [rows, heads, nope + rope]
  const float* w_uk;  // [heads, nope, latent]
  float* out;         // [rows, heads, latent + rope]
  std::int64_t rows, heads, nope, rope, latent;
};

// Stores rows into a paged cache: row r goes to slots[r] (this rank's slot number); -1 writes nothing.
struct CacheWriteOp {
  const float* in;            // [rows, row_elements], in_stride floats apart
  const std::int64_t* slots;  // [rows]
  std::byte* arena;
  PageGeometry page;
  DType dtype;  // kBf16 or kF32
  std::int64_t rows, row_elements, in_stride;
};

// Paged MLA decode over this rank's part of the context. Row r = request * query_rows + i sees the first
// bounds[r] of this rank's tokens of its request, whose pages are block_table[request]. Keys are [latent ;
// rope], values the latent part. KV is split at multiples of `split_tokens`, splits are reduced in ascending
// order, and a split without visible keys is skipped. bounds[r] == 0: out = 0, lse = -inf. Causal or not is
// expressed by `bounds` alone, which the metadata builder derives from the group's BehaviourKey.
struct MlaDecodeOp {
  const float* q;  // [rows, heads, latent + rope]
  const std::byte* arena;
  PageGeometry page;
  DType dtype;
  const std::int64_t* block_table;  // [requests, table_width]
  const std::int64_t* bounds;       // [rows], local tokens
  float* out;                       // [rows, heads, latent]
  float* lse;                       // [rows, heads], natural log
  std::int64_t requests, query_rows, heads, latent, rope, table_width, split_tokens;
  float scale;
};

// Paged decode over keys and values per head, which no rank shares with another: as MlaDecodeOp, but a
// token's row is [kv_heads, key_dim] keys, then [kv_heads, value_dim] values, and heads h of row r read kv
// head h / (heads / kv_heads).
struct GqaDecodeOp {
  const float* q;  // [rows, heads, key_dim]
  const std::byte* arena;
  PageGeometry page;
  DType dtype;
  const std::int64_t* block_table;  // [requests, table_width]
  const std::int64_t* bounds;       // [rows]
  float* out;                       // [rows, heads, value_dim]; 0 where bounds[r] == 0
  std::int64_t requests, query_rows, heads, kv_heads, key_dim, value_dim, table_width, split_tokens;
  float scale;
};

// [rows, heads_local, dim] of every rank of `group` -> [rows, heads_local * ranks, dim], ranks in order.
struct GatherHeadsOp {
  CommGroup group;
  const float* in;
  float* out;
  std::int64_t rows, heads_local, dim;
};

// Combines the ranks' partial results and keeps this rank's heads: M = max lse_r, LSE = M + ln sum exp(lse_r
// - M), out = sum_r exp(lse_r - LSE) out_r in rank order; -inf everywhere gives out = 0. A NaN or +inf lse,
// or a NaN in a partial that has weight, sets *fault to 1 and fails the step.
struct CombineOp {
  CommGroup group;
  const float* partial;  // [rows, heads_local * ranks, dim]
  const float* lse;      // [rows, heads_local * ranks]
  float* out;            // [rows, heads_local, dim]
  float* out_lse;        // [rows, heads_local], or null
  std::int32_t* fault;
  std::int64_t rows, heads_local, dim;
};

// Value up-projection: out[r, h] = latent[r, h] * w_uv[h]
struct ProjectValueOp {
  const float* in;    // [rows, heads, latent]
  const float* w_uv;  // [heads, value, latent]
  float* out;         // [rows, heads, value]
  std::int64_t rows, heads, latent, value;
};

// x = sum over the group's ranks, in rank order, fp32.
struct AllReduceOp {
  CommGroup group;
  float* x;  // [count]
  std::int64_t count;
};

// [rows, cols_local] of every rank -> [rows, cols_local * ranks], ranks in order.
struct GatherColumnsOp {
  CommGroup group;
  const float* in;
  float* out;
  std::int64_t rows, cols_local;
};

// x += y
struct AddOp {
  float* x;
  const float* y;
  std::int64_t count;
};

// out = act(gate, up); out may be one of them.
struct SwiGluOp {
  const float* gate;  // [rows, cols]
  const float* up;    // [rows, cols]
  float* out;         // [rows, cols]
  std::int64_t rows, cols;
  GatedActivation activation = {};
};

// Kimi-K3's attention over residuals. Sources of row r are blocks 0 .. count-1 and x, s = blocks[b][r], x[r]:
//   out[r] = sum_s p_s s,  p = softmax over s of sum_i norm_i proj_i s_i / sqrt(mean(s^2) + eps)
// Without blocks out = x. `out` is not `x`.
struct MixResidualsOp {
  const float* x;       // [rows, cols]
  const float* blocks;  // [count, rows, cols]
  const float* norm;    // [cols]
  const float* proj;    // [cols]
  float* out;           // [rows, cols]
  std::int64_t rows, cols, count;
  float eps;
};

// x *= sigmoid(gate)
struct SigmoidGateOp {
  float* x;
  const float* gate;
  std::int64_t count;
};

// out[r, 0..cols) = in[r, 0..cols) with strides; for tapped hidden states and for padding rows.
struct CopyRowsOp {
  const float* in;
  float* out;
  std::int64_t rows, cols, in_stride, out_stride;
};

// ids[r] = the lowest index of the largest logit; a NaN among the logits, or an infinite largest one, sets
// *fault to 1 and gives 0.
struct ArgmaxOp {
  const float* logits;  // [rows, vocab]
  std::int32_t* ids;    // [rows]
  std::int32_t* fault;
  std::int64_t rows, vocab;
};

using Launch =
    std::variant<EmbedOp, RmsNormOp, LinearOp, RopeOp, AbsorbQueryOp, CacheWriteOp, MlaDecodeOp, GqaDecodeOp,
                 GatherHeadsOp, CombineOp, ProjectValueOp, AllReduceOp, GatherColumnsOp, AddOp, SwiGluOp,
                 MixResidualsOp, SigmoidGateOp, CopyRowsOp, ArgmaxOp, MarkovChainOp, ShortConvOp, L2NormOp,
                 KdaGateOp, KdaReplayOp, KdaStepOp, RouteExpertsOp, ExpertMlpOp>;
using LaunchList = std::vector<Launch>;

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_LAUNCH_H_
