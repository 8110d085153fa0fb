// From a cache of the whole model to one rank's share of it, with its three keys.
#ifndef KVASIR_PLANNER_REQUEST_SHARD_LAYER_H_
#define KVASIR_PLANNER_REQUEST_SHARD_LAYER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/core/layer_spec.h"
#include "planner/core/refusal.h"
#include "planner/request/cache_layer.h"

namespace kvasir {

// What holds for every layer of one model.
struct ShardContext {
  std::string model;  // for refusals
  std::int64_t tp = 1;
  std::int64_t dcp = 1;           // divides tp
  DType dtype = DType::kBf16;     // of per-token caches that name none
  bool causal = true;             // of the multi-token pass, where the layer does not say
  std::int64_t block_rows = 1;    // of the multi-token pass
  std::string backend;            // of attention layers that name none
  std::string recurrent_backend;  // of recurrent layers that name none
  std::string possible_tps;       // that would divide all heads, "1, 2, 4"; for refusals
};

// Whether tensor parallelism over `tp` ranks, `dcp` of which share a context, divides the layer's heads.
[[nodiscard]] bool HeadsFit(const CacheLayer& layer, std::int64_t tp, std::int64_t dcp);

// The layer as one rank sees it. Heads that tensor parallelism does not divide add a refusal; the sizes are
// then those of the rounded-down share. registration_index is the layer's own or 0.
[[nodiscard]] LayerSpec ShardLayer(const CacheLayer& layer, const ShardContext& context,
                                   std::vector<Refusal>& refusals);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_SHARD_LAYER_H_
