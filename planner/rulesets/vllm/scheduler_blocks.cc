#include "planner/rulesets/vllm/scheduler_blocks.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/exact.h"

namespace kvasir::vllm {
namespace {

EngineFailure Mismatch(std::string message) {
  return {EngineStage::kBlockSizes, EngineErrorKind::kValueError, std::move(message)};
}

bool ReadsHashes(const EngineConfig& config) { return config.enable_prefix_caching || config.kv_connector; }

EngineResult<SchedulerBlocks> OneGroup(const SpecTable& table, const std::vector<std::int32_t>& specs,
                                       const EngineConfig& config) {
  const bool later = table.version() == EngineVersion::k2026_11;
  const bool sharded = !later || specs.empty() || table[specs.front()].dcp_sharded;
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t block,
                          Exact(Wide{config.block_size} * (sharded ? config.dcp : 1)));
  if (later && config.prefix_match_unit.value_or(block) != block && specs.size() == 1 &&
      ReadsHashes(config)) {
    return Mismatch(
        absl::StrFormat("prefix_match_unit is %d, but one group's hits end at blocks of %d tokens; "
                        "leave it out or set it to %d",
                        *config.prefix_match_unit, block, block));
  }
  return SchedulerBlocks{block, block};
}

// Tokens of one block over all ranks.
EngineResult<std::vector<std::int64_t>> BlocksOf(const SpecTable& table,
                                                 const std::vector<std::int32_t>& specs,
                                                 const EngineConfig& config) {
  std::vector<std::int64_t> blocks;
  blocks.reserve(specs.size());
  for (const std::int32_t id : specs) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t block,
                            Exact(Wide{table[id].block_size} * (table[id].dcp_sharded ? config.dcp : 1)));
    blocks.push_back(block);
  }
  return blocks;
}

// Whether the group's blocks take part in prefix hits: rings, tails and replayed windows do not.
bool PrefixCacheable(const EngineSpec& spec) {
  return spec.kind != SpecKind::kCircularBuffer && spec.kind != SpecKind::kKpoolTail && !spec.bounded_replay;
}

// 2026-11: where hits may end must be whole states of every compressed cache.
std::optional<EngineFailure> CheckStates(const SpecTable& table, const std::vector<std::int32_t>& specs,
                                         const std::vector<std::int64_t>& blocks, const EngineConfig& config,
                                         const SchedulerBlocks& sizes) {
  bool partial = false;  // a mamba group whose block is longer than the hash's
  for (std::size_t g = 0; g < specs.size(); ++g) {
    if (table[specs[g]].kind != SpecKind::kMamba) continue;
    partial = partial || (config.dcp == 1 ? blocks[g] > sizes.hash : blocks[g] >= sizes.hash);
  }
  const std::int64_t ends = partial ? sizes.hash : sizes.scheduler;
  for (const std::int32_t id : specs) {
    const EngineSpec& spec = table[id];
    if (!PrefixCacheable(spec) || spec.tokens_per_state.states != 1) continue;
    if (ends % spec.tokens_per_state.tokens == 0) continue;
    return Mismatch(
        absl::StrFormat("prefix hits end at multiples of %d tokens, which cut states of %d tokens; "
                        "choose another prefix_match_unit",
                        ends, spec.tokens_per_state.tokens));
  }
  return std::nullopt;
}

}  // namespace

EngineResult<SchedulerBlocks> ResolveSchedulerBlocks(const SpecTable& table,
                                                     const std::vector<std::int32_t>& specs,
                                                     const EngineConfig& config) {
  if (specs.size() <= 1) return OneGroup(table, specs, config);
  KVASIR_ASSIGN_OR_RETURN(const std::vector<std::int64_t> blocks, BlocksOf(table, specs, config));
  SchedulerBlocks sizes{1, 0};
  for (const std::int64_t block : blocks) {
    const std::optional<std::int64_t> both = CheckedLcm(sizes.scheduler, block);
    if (!both.has_value()) {
      return EngineFailure{EngineStage::kBlockSizes, EngineErrorKind::kTooLarge,
                           "the groups' block sizes have no common multiple below 2^63"};
    }
    sizes.scheduler = *both;
  }
  sizes.hash = sizes.scheduler;
  const bool aligned = std::all_of(specs.begin(), specs.end(), [&](std::int32_t id) {
    return table[id].kind != SpecKind::kMamba || table[id].mamba_cache_mode == MambaCacheMode::kAlign;
  });
  if (!ReadsHashes(config) || !aligned) return sizes;

  std::vector<std::int64_t> hashed;
  for (std::size_t g = 0; g < specs.size(); ++g) {
    if (PrefixCacheable(table[specs[g]])) hashed.push_back(blocks[g]);
  }
  if (hashed.empty()) hashed = blocks;
  std::int64_t common = 0;
  for (const std::int64_t block : hashed) common = std::gcd(common, block);
  sizes.hash = config.prefix_match_unit.value_or(common);
  for (const std::int64_t block : hashed) {
    if (block % sizes.hash == 0) continue;
    return Mismatch(
        absl::StrFormat("prefix_match_unit is %d, which does not divide a group's block of %d tokens; "
                        "choose a divisor of %d",
                        sizes.hash, block, common));
  }
  if (table.version() == EngineVersion::k2026_11) {
    if (auto cut = CheckStates(table, specs, blocks, config, sizes)) return *std::move(cut);
  }
  return sizes;
}

}  // namespace kvasir::vllm
