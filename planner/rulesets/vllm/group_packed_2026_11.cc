#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/exact.h"
#include "planner/rulesets/vllm/group_packed.h"
#include "planner/rulesets/vllm/layer_tuples.h"
#include "planner/rulesets/vllm/same_type.h"
#include "planner/rulesets/vllm/unify_pages.h"

namespace kvasir::vllm {
namespace {

// Layers that stay of one type, greedily collected.
struct Bucket {
  LayerSpecs layers = {};
  std::vector<PageLayers> by_page = {};
  bool balanced = false;
  bool state = false;           // may be cut down to one layer a group
  std::int64_t tuples = 0;      // repeats of its pattern
  std::int64_t num_groups = 1;  // before the cut of state buckets
};

// Whether the bucket stays of one type with `spec`: the engine asks the bucket's first layer.
EngineResult<bool> StaysSameType(const SpecTable& table, const Bucket& bucket, std::int32_t spec) {
  const std::int32_t first = bucket.layers.front().spec;
  if (table[first].block_size != table[spec].block_size ||
      table[first].dcp_sharded != table[spec].dcp_sharded) {
    return false;
  }
  return AcceptsAsSameType(table, first, spec);
}

EngineResult<std::vector<Bucket>> Buckets(const SpecTable& table, const LayerSpecs& layers) {
  std::vector<Bucket> buckets;
  std::vector<std::int32_t> home_of_spec;  // by spec id; -1: not yet known. Equal specs have one home.
  for (const UniformTypeSpecs::Member& member : layers) {
    const auto id = static_cast<std::size_t>(member.spec);
    if (id >= home_of_spec.size()) home_of_spec.resize(id + 1, -1);
    for (std::size_t b = 0; b < buckets.size() && home_of_spec[id] < 0; ++b) {
      KVASIR_ASSIGN_OR_RETURN(const bool stays, StaysSameType(table, buckets[b], member.spec));
      if (stays) home_of_spec[id] = static_cast<std::int32_t>(b);
    }
    if (home_of_spec[id] < 0) {
      home_of_spec[id] = static_cast<std::int32_t>(buckets.size());
      buckets.emplace_back();
    }
    buckets[static_cast<std::size_t>(home_of_spec[id])].layers.push_back(member);
  }
  for (Bucket& bucket : buckets) {
    KVASIR_ASSIGN_OR_RETURN(bucket.by_page, LayersByPage(table, bucket.layers));
    bucket.balanced = IsBalanced(bucket.by_page);
    bucket.tuples = TupleCount(bucket.by_page);
  }
  return buckets;
}

// Pattern repeats of a group. Balanced buckets that mix page sizes set the floor; without one nothing
// repeats.
std::optional<std::int64_t> RepeatsPerGroup(const std::vector<Bucket>& buckets) {
  std::int64_t floor = 0;
  std::vector<std::int64_t> counts;
  for (const Bucket& bucket : buckets) {
    if (!bucket.balanced) continue;
    counts.push_back(bucket.tuples);
    if (bucket.by_page.size() > 1) floor = std::max(floor, bucket.tuples);
  }
  if (floor == 0) return std::nullopt;
  return LeastPaddingSize(counts, floor);
}

// Bytes of the widest of `count` groups of a bucket.
EngineResult<std::int64_t> WidestGroupBytes(const Bucket& bucket, std::int64_t count) {
  std::int64_t bytes = 0;
  for (const PageLayers& row : bucket.by_page) {
    const std::int64_t layers = CeilDiv(static_cast<std::int64_t>(row.layers.size()), count);
    KVASIR_ASSIGN_OR_RETURN(bytes, Exact(bytes + Wide{layers} * row.page));
  }
  return bytes;
}

// Cuts state buckets so that none widens the block that the other buckets need anyway.
EngineResult<bool> CutStateBuckets(const SpecTable& table, std::vector<Bucket>& buckets) {
  std::int64_t anchor = 0;
  for (const Bucket& bucket : buckets) {
    const auto layers = static_cast<std::int64_t>(bucket.layers.size());
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t bytes,
                            WidestGroupBytes(bucket, bucket.state ? layers : bucket.num_groups));
    anchor = std::max(anchor, bytes);
  }
  if (anchor == 0) return true;
  for (Bucket& bucket : buckets) {
    if (!bucket.state) continue;
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(bucket.layers.front().spec));
    if (page == 0) {
      return PlanFailure(EngineErrorKind::kZeroDivisionError, "a state layer has a page of 0 bytes");
    }
    const std::int64_t states_per_block = std::max<std::int64_t>(anchor / page, 1);
    bucket.num_groups = std::max(bucket.num_groups,
                                 CeilDiv(static_cast<std::int64_t>(bucket.layers.size()), states_per_block));
  }
  return true;
}

}  // namespace

EngineResult<PackedGroups> GroupPacked202611(const SpecTable& table, const LayerSpecs& layers,
                                             KvLayout layout) {
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int64_t> sizes, PageSizes(table, layers));
  if (!IsBlockOutermost(layout) || sizes.size() <= 1) return PackedGroups();

  KVASIR_ASSIGN_OR_RETURN(std::vector<Bucket> buckets, Buckets(table, layers));
  const std::optional<std::int64_t> repeats = RepeatsPerGroup(buckets);
  for (Bucket& bucket : buckets) {
    if (bucket.balanced && repeats.has_value()) bucket.num_groups = CeilDiv(bucket.tuples, *repeats);
    const SpecKind kind = table[bucket.layers.front().spec].kind;
    bucket.state = kind == SpecKind::kMamba || kind == SpecKind::kCircularBuffer ||
                   (!repeats.has_value() && IsSlidingKind(kind));
    // Cutting an unbalanced bucket loses the layers beyond its shortest page size.
    if (table.repaired() && !bucket.balanced) bucket.state = false;
  }
  KVASIR_ASSIGN_OR_RETURN(const bool cut, CutStateBuckets(table, buckets));
  static_cast<void>(cut);

  std::vector<EngineGroup> groups;
  for (const Bucket& bucket : buckets) {
    for (std::int64_t i = 0; i < bucket.num_groups; ++i) {
      KVASIR_ASSIGN_OR_RETURN(
          EngineGroup group,
          WrappedGroup(table, bucket.num_groups == 1 ? bucket.layers
                                                     : StridedTuples(bucket.by_page, i, bucket.num_groups)));
      groups.push_back(std::move(group));
    }
  }
  return PackedGroups(std::move(groups));
}

}  // namespace kvasir::vllm
