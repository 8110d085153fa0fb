#include "planner/rulesets/native/does_not_fit.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_format.h"
#include "common/base/checked_math.h"
#include "planner/core/wide.h"
#include "planner/rulesets/native/size_problem.h"

namespace kvasir::native {
namespace {

// Far above any arena that a request may have, and far enough from 2^63 for the search's sums.
constexpr std::int64_t kArenaSearchMax = std::int64_t{1} << 60;

// The largest value in [low, high] that `fits`, which holds up to some value and not beyond; low - 1 if none
// does.
template <class Fit>
std::int64_t LargestThat(std::int64_t low, std::int64_t high, Fit fits) {
  std::int64_t good = low - 1;
  while (low <= high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (fits(middle)) {
      good = middle;
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return good;
}

// The least arena that fits; kArenaSearchMax if not even that does.
std::int64_t NeededArena(const Packed& packed, const PackedVariant& variant, SizeQuestion question) {
  const auto too_small = [&](std::int64_t arena) {
    question.arena_bytes = arena;
    return !Fits(packed, variant, question);
  };
  // Doubling first keeps the bound on P, and with it the search, small.
  std::int64_t high = question.arena_bytes;
  while (high < kArenaSearchMax && too_small(high)) high *= 2;
  if (high >= kArenaSearchMax) return kArenaSearchMax;
  return LargestThat(high / 2, high - 1, too_small) + 1;
}

// Each allowed rollback may be the one that helps.
bool AnyFits(const Packed& packed, const std::vector<std::size_t>& variants, const SizeQuestion& question) {
  return std::any_of(variants.begin(), variants.end(),
                     [&](std::size_t place) { return Fits(packed, packed.variants[place], question); });
}

// The pool that asks for the most bytes when the request just fits.
void NameBound(const Packed& packed, const PackedVariant& variant, SizeQuestion question, DoesNotFit& out) {
  question.arena_bytes = out.needed.value();
  const SearchProblem problem = ProblemOf(packed, variant, question);
  for (std::size_t i = 0; i < problem.pools.size(); ++i) {
    Wide least = std::numeric_limits<std::int64_t>::max();
    for (const SearchBlock& block : problem.pools[i].blocks) {
      least = std::min(least, Wide{block.blocks_needed} * block.stride_min);
    }
    if (Saturated(least) <= out.bound_by_bytes.value()) continue;
    out.bound_by = packed.grouped.pools[i].name;
    out.bound_by_bytes = Bytes(Saturated(least));
  }
}

void OfferRollback(const Packed& packed, const std::vector<std::size_t>& variants,
                   const SizeQuestion& question, DoesNotFit& out) {
  for (std::size_t i = 0; i < packed.variants.size(); ++i) {
    if (std::find(variants.begin(), variants.end(), i) != variants.end()) continue;
    const PackedVariant& variant = packed.variants[i];
    const SizedVariant sized = SizeVariant(packed, variant, ProblemOf(packed, variant, question));
    if (!sized.solution.has_value()) continue;
    const std::int64_t requests =
        CapacityAt(sized.loads, sized.parents, question.context_tokens, packed.request().prefill_chunk)
            .requests;
    const std::string word(StateRollbackName(variant.rollback));
    out.remedies.push_back({.field = "rollback",
                            .value = word,
                            .text = absl::StrFormat("set rollback to %s: %d requests fit", word, requests),
                            .requests = requests});
  }
}

void OfferFewer(const Packed& packed, const std::vector<std::size_t>& variants, const SizeQuestion& question,
                DoesNotFit& out) {
  const std::int64_t requests = LargestThat(1, question.min_requests - 1, [&](std::int64_t n) {
    return AnyFits(packed, variants, {question.arena_bytes, question.context_tokens, n});
  });
  if (requests >= 1) {
    out.remedies.push_back({.field = "min_requests",
                            .value = std::to_string(requests),
                            .text = absl::StrFormat("set min_requests to %d", requests),
                            .requests = requests});
  }
  if (out.longest_context_tokens >= 1) {
    out.remedies.push_back(
        {.field = "context_tokens",
         .value = std::to_string(out.longest_context_tokens),
         .text = absl::StrFormat("set context_tokens to at most %d", out.longest_context_tokens),
         .requests = question.min_requests});
  }
  if (out.needed.value() < kArenaSearchMax) {
    out.remedies.push_back({.field = "ranks[].kv_memory",
                            .value = std::to_string(out.needed.value()),
                            .text = absl::StrFormat("give every rank at least %d bytes", out.needed.value()),
                            .requests = question.min_requests});
  }
}

}  // namespace

DoesNotFit ExplainMisfit(const Packed& packed, const std::vector<std::size_t>& variants) {
  const SizeQuestion question = QuestionOf(packed);
  // Of the allowed rollbacks the one that is nearest to fitting speaks for all.
  std::size_t nearest = variants.front();
  std::int64_t needed = std::numeric_limits<std::int64_t>::max();
  for (const std::size_t place : variants) {
    const std::int64_t bytes = NeededArena(packed, packed.variants[place], question);
    if (bytes >= needed) continue;
    needed = bytes;
    nearest = place;
  }
  const PackedVariant& variant = packed.variants[nearest];
  DoesNotFit out;
  out.context_tokens = question.context_tokens;
  out.min_requests = question.min_requests;
  out.given = Bytes(question.arena_bytes);
  out.needed = Bytes(needed);
  out.shortfall = out.needed - out.given;
  NameBound(packed, variant, question, out);
  out.longest_context_tokens = LargestThat(1, question.context_tokens - 1, [&](std::int64_t context) {
    return AnyFits(packed, variants, {question.arena_bytes, context, question.min_requests});
  });
  OfferRollback(packed, variants, question, out);
  OfferFewer(packed, variants, question, out);
  return out;
}

}  // namespace kvasir::native
