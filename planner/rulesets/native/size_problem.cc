#include "planner/rulesets/native/size_problem.h"

#include <algorithm>
#include <limits>

#include "common/base/checked_math.h"
#include "planner/core/capacity.h"
#include "planner/core/wide.h"

namespace kvasir::native {
namespace {

constexpr std::int64_t kArenaPerParent = 1280;
constexpr std::int64_t kPartsPreferred = 4;

// As Canonicalize has it for a request of this context.
std::int64_t ChunkOf(const Packed& packed, const SizeQuestion& question) {
  return std::min(packed.request().prefill_chunk, question.context_tokens);
}

SearchBlock BlockOf(const Packed& packed, const PackedPool& pool, std::size_t place,
                    const BlockCandidate& candidate, const SizeQuestion& question) {
  const PoolDemand demand = DemandOf(packed, pool, place, candidate);
  SearchBlock block{.block_tokens = candidate.block_tokens, .parts = candidate.parts};
  // Page sizes, layers and alignments are limited, so rounding up cannot overflow.
  block.stride_min = CeilDiv(candidate.block_bytes, pool.unit_bytes) * pool.unit_bytes;
  for (std::size_t i = 0; i < kObjectiveContexts.size(); ++i) {
    block.blocks[i] = BlocksForSequence(demand, std::min(kObjectiveContexts[i], question.context_tokens));
  }
  block.blocks_needed = BlocksForRequests({.demand = demand}, question.min_requests, question.context_tokens,
                                          ChunkOf(packed, question));
  return block;
}

std::int64_t SmallestStride(const SearchPool& pool) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const SearchBlock& block : pool.blocks) least = std::min(least, block.stride_min);
  return least;
}

}  // namespace

SizeQuestion QuestionOf(const Packed& packed) {
  return {.arena_bytes = packed.grouped.validated.canonical.arena_bytes.value(),
          .context_tokens = packed.request().context_tokens,
          .min_requests = packed.request().min_requests};
}

SearchProblem ProblemOf(const Packed& packed, const PackedVariant& variant, const SizeQuestion& question) {
  SearchProblem problem;
  problem.arena_bytes = question.arena_bytes;
  problem.parent_bytes_max = question.arena_bytes / kArenaPerParent;
  for (std::size_t i = 0; i < variant.pools.size(); ++i) {
    const PackedPool& pool = variant.pools[i];
    SearchPool& out = problem.pools.emplace_back();
    out.unit_bytes = pool.unit_bytes;
    for (const BlockCandidate& candidate : pool.blocks) {
      out.blocks.push_back(BlockOf(packed, pool, i, candidate, question));
    }
    problem.parent_bytes_max = std::max(problem.parent_bytes_max, SmallestStride(out));
  }
  for (std::size_t c = 0; c < kObjectiveContexts.size(); ++c) {
    Wide payload = 0;
    for (std::size_t i = 0; i < variant.pools.size(); ++i) {
      payload +=
          PayloadBytes(packed, variant.pools[i], i, std::min(kObjectiveContexts[c], question.context_tokens));
    }
    problem.payload[c] = Saturated(payload);
  }
  return problem;
}

void PreferFewParts(SearchProblem& problem) {
  for (SearchPool& pool : problem.pools) {
    // Ascending in parts, so blocks get smaller; the first that the bound allows is within reach by its
    // definition.
    const auto allowed = std::find_if(pool.blocks.begin(), pool.blocks.end(), [&](const SearchBlock& block) {
      return block.stride_min <= problem.parent_bytes_max;
    });
    if (allowed == pool.blocks.end()) continue;
    const std::int64_t parts_max = std::max(kPartsPreferred, allowed->parts);
    std::erase_if(pool.blocks, [&](const SearchBlock& block) { return block.parts > parts_max; });
  }
}

std::optional<SizeSolution> Solve(const SearchProblem& problem) {
  SearchProblem few = problem;
  PreferFewParts(few);
  // Dropped blocks are the last ones, so places mean the same in both problems.
  std::optional<SizeSolution> solution = FindSizes(few);
  return solution.has_value() ? solution : FindSizes(problem);
}

SizedVariant SizeVariant(const Packed& packed, const PackedVariant& variant, const SearchProblem& problem) {
  SizedVariant sized{.solution = Solve(problem), .loads = {}, .parents = 0};
  if (!sized.solution.has_value()) return sized;
  const std::int64_t parent = sized.solution->key.parent_bytes;
  sized.parents = problem.arena_bytes / parent;
  for (std::size_t i = 0; i < variant.pools.size(); ++i) {
    const PoolSize& size = sized.solution->pools[i];
    sized.loads.push_back(
        {.demand = DemandOf(packed, variant.pools[i], i, variant.pools[i].blocks[size.block]),
         .stride_bytes = parent / size.blocks_per_parent,
         .blocks_per_parent = size.blocks_per_parent});
  }
  return sized;
}

bool Fits(const Packed& packed, const PackedVariant& variant, const SizeQuestion& question) {
  return FindAnySizes(ProblemOf(packed, variant, question)).has_value();
}

}  // namespace kvasir::native
