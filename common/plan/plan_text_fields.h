// The fields of each line of a plan's text, once for both directions: `Io` is the writer of plan_text.cc or
// the reader of plan_text_parse.cc, `T` the record or its const form. Private to these two files.
#ifndef KVASIR_COMMON_PLAN_PLAN_TEXT_FIELDS_H_
#define KVASIR_COMMON_PLAN_PLAN_TEXT_FIELDS_H_

#include <array>
#include <cstddef>
#include <string_view>

#include "common/plan/plan.h"

namespace kvasir::plan_text {

inline constexpr std::string_view kFirstLine = "kvasir-plan 1";
inline constexpr std::string_view kLastLine = "end";

// The words of an enum: every value, and how it is written.
template <class E, std::size_t N>
struct Words {
  std::string_view (*name)(E);
  std::array<E, N> values;
};
template <class E, std::size_t N>
Words(std::string_view (*)(E), std::array<E, N>) -> Words<E, N>;

inline constexpr Words kRoles{RoleName, std::array{Role::kTarget, Role::kDraft}};
inline constexpr Words kMixers{MixerName, std::array{Mixer::kAttention, Mixer::kRecurrent}};
inline constexpr Words kLayoutKinds{
    LayoutKindName, std::array{LayoutKind::kKeyValue, LayoutKind::kLatent, LayoutKind::kState}};
inline constexpr Words kLifetimeKinds{
    LifetimeKindName,
    std::array{LifetimeKind::kPerToken, LifetimeKind::kBoundedWindow, LifetimeKind::kPerSequence}};
inline constexpr Words kDTypes{DTypeName,
                               std::array{DType::kBf16, DType::kF16, DType::kF32, DType::kFp8E4M3}};
inline constexpr Words kPasses{
    PassName, std::array{Pass::kTargetPrefill, Pass::kTargetDecode, Pass::kTargetVerify, Pass::kDraftContext,
                         Pass::kDraftBlock}};
inline constexpr Words kRollbacks{
    StateRollbackName, std::array{StateRollback::kNone, StateRollback::kSnapshots, StateRollback::kReplay}};

template <class Io, class T>
void TopologyFields(Io& io, T& topology) {
  io.Integer("tp", topology.tp);
  io.Integer("dcp", topology.dcp);
  io.Integer("interleave", topology.interleave);
}

template <class Io, class T>
void ModelFields(Io& io, T& model) {
  io.Text("name", model.name);
  io.Text("digest", model.digest);
}

template <class Io, class T>
void LimitsFields(Io& io, T& plan) {
  io.Integer("draft_tokens", plan.draft_tokens);
  io.Word("rollback", plan.rollback, kRollbacks);
  io.Integer("context_tokens", plan.context_tokens);
  io.Integer("max_requests", plan.max_requests);
  io.Integer("prefill_chunk", plan.prefill_chunk);
}

template <class Io, class T>
void ArenaFields(Io& io, T& plan) {
  io.Quantity("arena_bytes", plan.arena_bytes);
  io.Quantity("parent_bytes", plan.parent_bytes);
  io.Integer("parents", plan.parents);
}

// `states` and `ring` follow on lines of their own.
template <class Io, class T>
void LayoutFields(Io& io, T& layout) {
  io.Word("kind", layout.kind, kLayoutKinds);
  io.Flag("sharded", layout.sharded);
  io.Word("dtype", layout.dtype, kDTypes);
  io.Integer("heads", layout.heads);
  io.Integer("key_dim", layout.key_dim);
  io.Integer("value_dim", layout.value_dim);
  io.Integer("alignment_bytes", layout.alignment_bytes);
}

template <class Io, class T>
void TensorFields(Io& io, T& tensor) {
  io.Text("name", tensor.name);
  io.Integer("elements", tensor.elements);
  io.Word("dtype", tensor.dtype, kDTypes);
}

template <class Io, class T>
void PoolFields(Io& io, T& pool) {
  io.Id("id", pool.id);
  io.Text("name", pool.name);
  io.Word("lifetime", pool.lifetime.kind, kLifetimeKinds);
  io.Integer("window", pool.lifetime.window);
  io.Integer("copies", pool.lifetime.copies);
  io.Flag("sharded", pool.sharded);
  io.Integer("block_tokens", pool.block_tokens);
  io.Integer("parts", pool.parts);
  io.Integer("block_bytes", pool.block_bytes);
  io.Integer("stride_bytes", pool.stride_bytes);
  io.Integer("blocks_per_parent", pool.blocks_per_parent);
}

template <class Io, class T>
void GroupFields(Io& io, T& group) {
  io.Id("id", group.id);
  io.Text("name", group.name);
  io.Word("role", group.behaviour.role, kRoles);
  io.Word("mixer", group.behaviour.mixer, kMixers);
  io.Flag("causal", group.behaviour.causal);
  io.Integer("window", group.behaviour.window);
  io.Integer("block_rows", group.behaviour.block_rows);
  io.Text("backend", group.behaviour.backend);
}

// `layout` is the layer's line in the table of layouts.
template <class Io, class T, class N>
void LayerFields(Io& io, T& layer, N& layout) {
  io.Layer("id", layer.id);
  io.Text("name", layer.name);
  io.Integer("layout", layout);
  io.Integer("part", layer.part);
  io.Integer("offset_bytes", layer.offset_bytes);
  io.Integer("page_bytes", layer.page_bytes);
}

template <class Io, class T>
void GraphFields(Io& io, T& graph) {
  io.Word("pass", graph.pass, kPasses);
  io.Integer("query_rows", graph.query_rows);
  io.Integer("bucket", graph.bucket);
  io.Ids("groups", graph.groups);
}

template <class Io, class T>
void OwnedFields(Io& io, T& owned) {
  io.Text("owner", owned.owner);
  io.Quantity("bytes", owned.bytes);
}

}  // namespace kvasir::plan_text

#endif  // KVASIR_COMMON_PLAN_PLAN_TEXT_FIELDS_H_
