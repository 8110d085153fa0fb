#include "planner/rulesets/vllm/group_hidden_states.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/checked_math.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/exact.h"

namespace kvasir::vllm {
namespace {

// The groups here always carry one merged spec.
std::int32_t SpecOf(const EngineGroup& group) { return std::get<std::int32_t>(group.spec); }

EngineResult<std::int64_t> CommonPage(const SpecTable& table, const std::vector<EngineGroup>& groups) {
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t common, table.Page(SpecOf(groups.front())));
  for (const EngineGroup& group : groups) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t page, table.Page(SpecOf(group)));
    if (page != common) {
      return PlanFailure(EngineErrorKind::kAssertionError,
                         absl::StrFormat("groups have pages of %d and %d bytes", common, page));
    }
  }
  return common;
}

EngineResult<std::int64_t> TokenBytes(const EngineSpec& spec) {
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t elements, Exact(Wide{spec.num_kv_heads} * spec.head_size));
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t bytes, Exact(Wide{elements} * ElementBytes(spec.dtype)));
  if (bytes == 0) return PlanFailure(EngineErrorKind::kZeroDivisionError, "a hidden state of 0 bytes");
  return bytes;
}

// Multiplies blocks and padded pages until one hidden state fits; returns the new common page.
EngineResult<std::int64_t> ScaleBlocks(SpecTable& table, std::vector<EngineGroup>& groups,
                                       std::int64_t common, std::int64_t token_bytes) {
  if (token_bytes <= common) return common;
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t scale, ExactCeilDiv(token_bytes, common));
  for (EngineGroup& group : groups) {
    EngineSpec spec = table[SpecOf(group)];
    KVASIR_ASSIGN_OR_RETURN(spec.block_size, Exact(Wide{spec.block_size} * scale));
    if (spec.page_size_padded.has_value()) {
      KVASIR_ASSIGN_OR_RETURN(const std::int64_t padded, Exact(Wide{*spec.page_size_padded} * scale));
      spec.page_size_padded = padded;
    }
    KVASIR_ASSIGN_OR_RETURN(spec, Constructed(table.version(), std::move(spec)));
    group.spec = table.Intern(std::move(spec));
  }
  return Exact(Wide{common} * scale);
}

// All divisors, ascending. Requires a positive value; blocks are at most 2^40 tokens (engine_spec.h), so this
// is quick.
std::vector<std::int64_t> Divisors(std::int64_t value) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= value / d; ++d) {
    if (value % d != 0) continue;
    divisors.push_back(d);
    divisors.push_back(value / d);
  }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

std::string PaddingLine(const std::string& name, std::int64_t block, std::int64_t token_bytes,
                        std::int64_t common) {
  const Wide wasted = Wide{common} - Wide{block} * token_bytes;
  return absl::StrFormat(
      "Using block size %d for hidden-state cache layer %s; page alignment wastes %d bytes per block", block,
      name, Saturated(wasted));
}

}  // namespace

EngineResult<std::vector<EngineGroup>> AppendHiddenStates(SpecTable& table, std::vector<EngineGroup> groups,
                                                          const LayerSpecs& hidden,
                                                          const std::vector<EngineLayer>& names,
                                                          GroupingNotes& notes) {
  KVASIR_ASSIGN_OR_RETURN(std::int64_t common, CommonPage(table, groups));
  std::int64_t largest = 0;
  for (const UniformTypeSpecs::Member& member : hidden) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t bytes, TokenBytes(table[member.spec]));
    largest = std::max(largest, bytes);
  }
  if (table.version() == EngineVersion::k2026_11) {
    KVASIR_ASSIGN_OR_RETURN(common, ScaleBlocks(table, groups, common, largest));
  }
  std::int64_t block = 0;
  for (const EngineGroup& group : groups) block = std::gcd(block, table[SpecOf(group)].block_size);
  const std::vector<std::int64_t> divisors = Divisors(block);
  for (const UniformTypeSpecs::Member& member : hidden) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t token_bytes, TokenBytes(table[member.spec]));
    const std::int64_t limit = std::max<std::int64_t>(common / token_bytes, 1);
    const std::int64_t fitting = *(std::upper_bound(divisors.begin(), divisors.end(), limit) - 1);
    notes.log.push_back(
        PaddingLine(names[static_cast<std::size_t>(member.layer)].name, fitting, token_bytes, common));
    EngineSpec aligned = table[member.spec];
    aligned.block_size = fitting;
    aligned.page_size_padded = common;
    KVASIR_ASSIGN_OR_RETURN(aligned, Constructed(table.version(), std::move(aligned)));
    groups.push_back({{member.layer}, table.Intern(std::move(aligned)), false});
  }
  return groups;
}

}  // namespace kvasir::vllm
