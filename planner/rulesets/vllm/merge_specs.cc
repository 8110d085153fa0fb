#include "planner/rulesets/vllm/merge_specs.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "planner/rulesets/vllm/spec_fields.h"

namespace kvasir::vllm {
namespace {

using Ids = std::vector<std::int32_t>;

CannotMerge Refuse(MergeRule rule, std::string_view field, std::int32_t first, std::int32_t other) {
  return {rule, field, first, other, -1, -1};
}

// The first spec whose kind the rule excludes.
template <class Allowed>
std::optional<CannotMerge> WrongKind(const SpecTable& table, const Ids& ids, MergeRule rule,
                                     Allowed allowed) {
  for (const std::int32_t id : ids) {
    if (!allowed(table[id].kind)) return Refuse(rule, "kind", ids.front(), id);
  }
  return std::nullopt;
}

// The first of `fields` that some spec has otherwise than the first spec.
template <class... Member>
std::optional<CannotMerge> Different(const SpecTable& table, const Ids& ids, MergeRule rule,
                                     std::initializer_list<std::string_view> names, Member... member) {
  std::optional<CannotMerge> refusal;
  const auto* name = names.begin();
  const auto check = [&](auto field) {
    for (const std::int32_t id : ids) {
      if (refusal.has_value()) return;
      if (table[id].*field != table[ids.front()].*field) refusal = Refuse(rule, *name, ids.front(), id);
    }
    ++name;
  };
  (check(member), ...);
  return refusal;
}

// The fields that the engine compares between every member and the merged spec.
std::optional<CannotMerge> DifferentAttention(const SpecTable& table, const Ids& ids, MergeRule rule,
                                              const EngineSpec& merged) {
  for (const std::int32_t id : ids) {
    const std::string_view field = FirstDifferentAttentionField(table[id], merged);
    if (!field.empty()) return Refuse(rule, field, ids.front(), id);
  }
  return std::nullopt;
}

MergeResult MergeEqual(const SpecTable& table, const Ids& ids) {
  for (const std::int32_t id : ids) {
    if (id == ids.front()) continue;
    const EngineSpec& first = table[ids.front()];
    const std::string_view field =
        first.kind != table[id].kind ? "kind" : FirstDifferentField(first, table[id]);
    return Refuse(MergeRule::kEqual, field, ids.front(), id);
  }
  return table[ids.front()];
}

using Window = std::optional<std::int64_t> EngineSpec::*;

// Nulls ignored, one distinct value kept, two raise.
std::variant<std::optional<std::int64_t>, MergeRaises> OneWindow(const SpecTable& table, const Ids& ids,
                                                                 Window window, std::string_view field) {
  std::optional<std::int32_t> holder;
  for (const std::int32_t id : ids) {
    if (!(table[id].*window).has_value()) continue;
    if (!holder.has_value()) {
      holder = id;
    } else if (table[id].*window != table[*holder].*window) {
      return MergeRaises{field, *holder, id, -1, -1};
    }
  }
  return holder.has_value() ? table[*holder].*window : std::nullopt;
}

// The rule of full attention; `merged` comes with the kind and the fields of its own.
MergeResult MergeFullFields(const SpecTable& table, const Ids& ids, MergeRule rule, EngineSpec merged) {
  const auto sliding = OneWindow(table, ids, &EngineSpec::sliding_window, "sliding_window");
  if (const auto* raises = std::get_if<MergeRaises>(&sliding)) return *raises;
  const auto chunk = OneWindow(table, ids, &EngineSpec::attention_chunk_size, "attention_chunk_size");
  if (const auto* raises = std::get_if<MergeRaises>(&chunk)) return *raises;
  merged.sliding_window = std::get<0>(sliding);
  merged.attention_chunk_size = std::get<0>(chunk);
  merged.non_causal =
      std::any_of(ids.begin(), ids.end(), [&](std::int32_t id) { return table[id].non_causal; });
  if (auto refusal = DifferentAttention(table, ids, rule, merged)) return *refusal;
  if (merged.sliding_window.has_value() && merged.attention_chunk_size.has_value()) {
    const auto chunked = std::find_if(
        ids.begin(), ids.end(), [&](std::int32_t id) { return table[id].attention_chunk_size.has_value(); });
    return Refuse(rule, "attention_chunk_size", ids.front(), *chunked);
  }
  return merged;
}

// The first spec's common attention fields, as a spec of `kind`.
EngineSpec CommonOf(const EngineSpec& first, SpecKind kind) {
  EngineSpec merged = MakeSpec(kind);
  merged.block_size = first.block_size;
  merged.dcp_sharded = first.dcp_sharded;
  merged.block_stride_alignment = first.block_stride_alignment;
  merged.num_kv_heads = first.num_kv_heads;
  merged.head_size = first.head_size;
  merged.head_size_v = first.head_size_v;
  merged.dtype = first.dtype;
  merged.kv_quant_mode = first.kv_quant_mode;
  merged.page_size_padded = first.page_size_padded;
  merged.indexes_kv_by_block_stride = first.indexes_kv_by_block_stride;
  merged.num_head_slots = first.num_head_slots;
  merged.state_content_bytes = first.state_content_bytes;
  merged.tokens_per_state = first.tokens_per_state;
  return merged;
}

constexpr bool PlainFull(SpecKind kind) { return IsFullKind(kind) && !IsMlaKind(kind); }

// A first spec of kFull takes rswa and sink members in and forgets their window and sink.
MergeResult MergeFull(const SpecTable& table, const Ids& ids) {
  if (auto refusal = WrongKind(table, ids, MergeRule::kFull, PlainFull)) return *refusal;
  return MergeFullFields(table, ids, MergeRule::kFull, CommonOf(table[ids.front()], SpecKind::kFull));
}

MergeResult MergeRswa(const SpecTable& table, const Ids& ids) {
  const auto rule = MergeRule::kRswa;
  if (auto refusal = WrongKind(table, ids, rule, [](SpecKind kind) { return kind == SpecKind::kRswa; })) {
    return *refusal;
  }
  if (auto refusal = Different(table, ids, rule, {"rswa_window"}, &EngineSpec::rswa_window)) return *refusal;
  EngineSpec merged = CommonOf(table[ids.front()], SpecKind::kRswa);
  merged.rswa_window = table[ids.front()].rswa_window;
  return MergeFullFields(table, ids, rule, std::move(merged));
}

MergeResult MergeSink(const SpecTable& table, const Ids& ids) {
  if (auto refusal = WrongKind(table, ids, MergeRule::kSinkFull, PlainFull)) return *refusal;
  EngineSpec merged = CommonOf(table[ids.front()], SpecKind::kSinkFull);
  merged.sink_len = table[ids.front()].sink_len;
  // 2026-11 leaves this field out and then finds that it differs.
  merged.tokens_per_state = {};
  return MergeFullFields(table, ids, MergeRule::kSinkFull, std::move(merged));
}

// Windows, non_causal and alignment are dropped; the draft's flag spreads to the group.
MergeResult MergeMla(const SpecTable& table, const Ids& ids) {
  const auto rule = MergeRule::kMla;
  if (auto refusal = WrongKind(table, ids, rule, IsMlaKind)) return *refusal;
  if (auto refusal =
          Different(table, ids, rule,
                    {"cache_dtype_str", "tokens_per_state", "model_version", "indexes_kv_by_block_stride",
                     "cache_role", "is_index_group_leader", "storage_block_size", "block_stride_alignment"},
                    &EngineSpec::cache_dtype_str, &EngineSpec::tokens_per_state, &EngineSpec::model_version,
                    &EngineSpec::indexes_kv_by_block_stride, &EngineSpec::cache_role,
                    &EngineSpec::is_index_group_leader, &EngineSpec::storage_block_size,
                    &EngineSpec::block_stride_alignment)) {
    return *refusal;
  }
  const EngineSpec& first = table[ids.front()];
  EngineSpec merged = CommonOf(first, first.kind);
  merged.head_size_v = 0;
  merged.cache_dtype_str = first.cache_dtype_str;
  merged.model_version = first.model_version;
  merged.cache_role = first.cache_role;
  merged.is_index_group_leader = first.is_index_group_leader;
  merged.storage_block_size = first.storage_block_size;
  merged.non_causal_multi_token_decode = std::any_of(
      ids.begin(), ids.end(), [&](std::int32_t id) { return table[id].non_causal_multi_token_decode; });
  if (auto refusal = DifferentAttention(table, ids, rule, merged)) return *refusal;
  return merged;
}

// Neither heads nor dtype nor block size are compared here: the first one's are taken.
MergeResult MergeSlidingMla(const SpecTable& table, const Ids& ids) {
  const auto rule = MergeRule::kSlidingMla;
  if (auto refusal =
          WrongKind(table, ids, rule, [](SpecKind kind) { return kind == SpecKind::kSlidingMla; })) {
    return *refusal;
  }
  if (auto refusal = Different(
          table, ids, rule,
          {"dcp_sharded", "cache_dtype_str", "tokens_per_state", "model_version", "sliding_window",
           "extra_retained_tokens", "bounded_replay", "block_stride_alignment", "indexes_kv_by_block_stride"},
          &EngineSpec::dcp_sharded, &EngineSpec::cache_dtype_str, &EngineSpec::tokens_per_state,
          &EngineSpec::model_version, &EngineSpec::sliding_window, &EngineSpec::extra_retained_tokens,
          &EngineSpec::bounded_replay, &EngineSpec::block_stride_alignment,
          &EngineSpec::indexes_kv_by_block_stride)) {
    return *refusal;
  }
  const EngineSpec& first = table[ids.front()];
  EngineSpec merged = CommonOf(first, SpecKind::kSlidingMla);
  merged.head_size_v = 0;
  merged.kv_quant_mode = QuantMode::kNone;
  merged.cache_dtype_str = first.cache_dtype_str;
  merged.model_version = first.model_version;
  merged.sliding_window = first.sliding_window;
  merged.extra_retained_tokens = first.extra_retained_tokens;
  merged.bounded_replay = first.bounded_replay;
  return merged;
}

}  // namespace

std::string_view MergeRuleName(MergeRule rule) {
  switch (rule) {
    case MergeRule::kEqual:
      return "equal";
    case MergeRule::kFull:
      return "full";
    case MergeRule::kMla:
      return "mla";
    case MergeRule::kRswa:
      return "rswa";
    case MergeRule::kSinkFull:
      return "sink_full";
    case MergeRule::kSlidingMla:
      return "sliding_mla";
  }
  return "invalid";
}

MergeRule RuleOf(SpecKind kind) {
  switch (kind) {
    case SpecKind::kFull:
      return MergeRule::kFull;
    case SpecKind::kMla:
    case SpecKind::kHiddenState:
      return MergeRule::kMla;
    case SpecKind::kRswa:
      return MergeRule::kRswa;
    case SpecKind::kSinkFull:
      return MergeRule::kSinkFull;
    case SpecKind::kSlidingMla:
      return MergeRule::kSlidingMla;
    default:
      return MergeRule::kEqual;
  }
}

MergeResult MergeSpecs(const SpecTable& table, const std::vector<std::int32_t>& ids) {
  switch (RuleOf(table[ids.front()].kind)) {
    case MergeRule::kFull:
      return MergeFull(table, ids);
    case MergeRule::kMla:
      return MergeMla(table, ids);
    case MergeRule::kRswa:
      return MergeRswa(table, ids);
    case MergeRule::kSinkFull:
      return MergeSink(table, ids);
    case MergeRule::kSlidingMla:
      return MergeSlidingMla(table, ids);
    case MergeRule::kEqual:
      break;
  }
  return MergeEqual(table, ids);
}

}  // namespace kvasir::vllm
