// The operations of recurrent layers; part of launch.h, whose head says what holds for all of them.
//
// A sequence's recurrent state lies in `copies` copies, each in `parts` blocks; column copy * parts + part of
// its block table is the block that holds a layer's page of that copy. Padding is bounds[r] == 0: such a row
// reads and writes no state, and its output is 0.
//
// What is kept between rows is rounded where it is made (the convolution's inputs, keys and updates), never
// where it is stored, so that a row's bits do not depend on whether its predecessors ran in the same pass, in
// an earlier one, or were replayed.
#ifndef KVASIR_WORKER_ENGINE_LAUNCH_RECURRENT_H_
#define KVASIR_WORKER_ENGINE_LAUNCH_RECURRENT_H_

#include <cstddef>
#include <cstdint>

#include "common/geometry/block_address.h"
#include "common/geometry/dtype.h"

namespace kvasir {

// Causal depthwise convolution over the last `kernel` tokens, then SiLU, in place:
//   x[p, c] = silu(sum_j weight[c, j] * in[p - kernel + 1 + j, c]), tokens before the first are 0.
// The inputs of the last `history` tokens stand in copy 0 of the state, token p in row p mod history. With
// history = kernel - 1 + N a verify of N + 1 rows overwrites nothing that a rejection would bring back:
// rolling back is moving the cursor.
struct ShortConvOp {
  float* x;             // [rows] of `channels`, row_stride floats apart
  const float* weight;  // [channels, kernel]
  std::byte* arena;
  StateGeometry state;              // of the history: [history, history_stride]
  DType dtype;                      // of the history, and what inputs are rounded to: kBf16 or kF32
  const std::int64_t* block_table;  // [requests, table_width]
  const std::int64_t* bounds;       // [rows]: tokens up to and with the row's own
  std::int64_t requests, query_rows, channels, row_stride, kernel;
  std::int64_t history, history_stride, history_begin;  // elements; the first of these channels in a row
  std::int64_t table_width;
};

// x[r, h] *= scale / sqrt(sum(x[r, h]^2) + eps), in place.
struct L2NormOp {
  float* x;  // [rows, heads, dim], rows row_stride apart
  std::int64_t rows, heads, dim, row_stride;
  float scale, eps;
};

// What the state forgets and takes in, in place:
//   decay[r, h, d] = exp(g), g = -exp(a_log[h]) * softplus(decay[r, h, d] + dt_bias[h, d]), or, with a lower
//   bound (negative), g = lower_bound * sigmoid(exp(a_log[h]) * (decay[r, h, d] + dt_bias[h, d]));
//   beta[r, h] = sigmoid(beta[r, h]).
struct KdaGateOp {
  float* decay;          // [rows, heads, dim]
  float* beta;           // [rows, heads]
  const float* a_log;    // [heads]
  const float* dt_bias;  // [heads, dim]
  std::int64_t rows, heads, dim;
  float lower_bound;  // 0: none
};

// Takes the accepted rows of an earlier pass into the state, by KdaStepOp's arithmetic: tokens t = p -
// replays[b] .. p - 1, where p is the position of the request's first row. Their keys and values are
// convolved and activated again from the history, which still holds what they need (see ShortConvOp), and
// keys are normalised as by L2NormOp with scale 1; decay and beta are rows 0 .. replays[b] - 1 of the ring.
// Reads and writes copy 0 of the state, from zeros where reads[b] is -1. Comes before the pass's own
// ShortConvOps.
struct KdaReplayOp {
  const float* k_weight;  // [heads * dim, kernel]
  const float* v_weight;  // as k_weight
  std::byte* arena;
  StateGeometry conv;                            // of the history: [history, history_stride]
  DType dtype;                                   // of the history
  std::int64_t kernel, history, history_stride;  // elements
  std::int64_t k_begin, v_begin;                 // the first key and value channel in a row of the history
  StateGeometry state;                           // of S: [heads, dim, dim]
  StateGeometry ring_decay;                      // in copy 0: [ring rows, heads * dim], f32
  StateGeometry ring_beta;                       // in copy 0: [ring rows, heads], f32
  const std::int64_t* block_table;               // [requests, table_width]
  const std::int64_t* bounds;                    // [rows]
  const std::int64_t* reads;                     // [requests]
  const std::int64_t* replays;                   // [requests]
  std::int64_t requests, query_rows, heads, dim, table_width;
  float eps;
};

// The delta rule, head by head, row after row; S is [dim of keys, dim of values], f32:
//   S = diag(decay) S;  u = beta (v - S^T k);  S = S + k u^T;  out = S^T q.
// k and u are rounded to `dtype`. A request starts from copy reads[b] (-1: zeros); after row r the state is
// stored in copy writes[r] (-1: not at all). Where `keeps_rows`, row i > 0 of each request leaves its decay
// and beta in row i - 1 of the ring. A row's output that is NaN or infinite sets *fault to 1.
struct KdaStepOp {
  const float* q;      // [rows] of heads * dim, row_stride floats apart
  const float* k;      // as q
  const float* v;      // as q
  const float* decay;  // [rows, heads, dim]
  const float* beta;   // [rows, heads]
  float* out;          // [rows, heads, dim]
  std::byte* arena;
  StateGeometry state;              // of S: [heads, dim, dim]
  StateGeometry ring_decay;         // as in KdaReplayOp
  StateGeometry ring_beta;          // as in KdaReplayOp
  bool keeps_rows;                  // false: there is no ring, or the pass commits all of its rows
  DType dtype;                      // kBf16 or kF32
  const std::int64_t* block_table;  // [requests, table_width]
  const std::int64_t* bounds;       // [rows]
  const std::int64_t* reads;        // [requests]
  const std::int64_t* writes;       // [rows]
  std::int32_t* fault;
  std::int64_t requests, query_rows, heads, dim, row_stride, table_width;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_LAUNCH_RECURRENT_H_
