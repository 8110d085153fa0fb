#include <algorithm>

#include "planner/rulesets/vllm/grouping_notes.h"

namespace kvasir::vllm {
namespace {

// Whether the specs, mla among them, record two windows or two chunks.
bool TwoWindows(const SpecTable& table, const std::vector<std::int32_t>& ids) {
  std::optional<std::int64_t> window;
  std::optional<std::int64_t> chunk;
  const auto second = [](std::optional<std::int64_t>& kept, const std::optional<std::int64_t>& value) {
    if (!value.has_value()) return false;
    if (kept.has_value()) return *kept != *value;
    kept = value;
    return false;
  };
  return std::any_of(ids.begin(), ids.end(), [&](std::int32_t id) {
    return second(window, table[id].sliding_window) || second(chunk, table[id].attention_chunk_size);
  });
}

// Sets of strings and of string enumerations are ordered by their hash, which a seed changes.
bool StringsDiffer(const SpecTable& table, const std::vector<std::int32_t>& ids) {
  const EngineSpec& first = table[ids.front()];
  return std::any_of(ids.begin(), ids.end(), [&](std::int32_t id) {
    const EngineSpec& spec = table[id];
    return spec.cache_dtype_str != first.cache_dtype_str || spec.model_version != first.model_version ||
           spec.cache_role != first.cache_role;
  });
}

template <class Reads>
bool LacksFields(const SpecTable& table, const std::vector<std::int32_t>& ids, Reads reads) {
  return !std::all_of(ids.begin(), ids.end(), [&](std::int32_t id) { return reads(table[id].kind); });
}

}  // namespace

WithoutAssert MergeWithoutAssert(const SpecTable& table, const std::vector<std::int32_t>& ids,
                                 const CannotMerge& refusal) {
  switch (refusal.rule) {
    case MergeRule::kEqual:
      // 2026-11 raises explicitly here, and only here.
      return table.version() == EngineVersion::k2026_08 ? WithoutAssert::kMerges : WithoutAssert::kSame;
    case MergeRule::kFull:
    case MergeRule::kSinkFull:
      if (LacksFields(table, ids, IsFullKind)) return WithoutAssert::kAttributeError;
      return TwoWindows(table, ids) ? WithoutAssert::kValueError : WithoutAssert::kMerges;
    case MergeRule::kRswa:
      if (LacksFields(table, ids, [](SpecKind kind) { return kind == SpecKind::kRswa; })) {
        return WithoutAssert::kAttributeError;
      }
      return TwoWindows(table, ids) ? WithoutAssert::kValueError : WithoutAssert::kMerges;
    case MergeRule::kMla:
      if (LacksFields(table, ids, IsMlaKind)) return WithoutAssert::kAttributeError;
      return StringsDiffer(table, ids) ? WithoutAssert::kHashSeed : WithoutAssert::kMerges;
    case MergeRule::kSlidingMla:
      if (LacksFields(table, ids, [](SpecKind kind) { return kind == SpecKind::kSlidingMla; })) {
        return WithoutAssert::kAttributeError;
      }
      return StringsDiffer(table, ids) ? WithoutAssert::kHashSeed : WithoutAssert::kMerges;
  }
  return WithoutAssert::kSame;
}

}  // namespace kvasir::vllm
