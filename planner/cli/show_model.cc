#include "planner/cli/show_model.h"

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/models/model_fields.h"
#include "common/models/model_text.h"
#include "planner/cli/quantity.h"
#include "planner/cli/text_table.h"

namespace kvasir::cli {
namespace {

std::string HeadsText(std::int64_t heads, std::int64_t kv_heads, std::int64_t key, std::int64_t value) {
  const std::string dims = key == value ? std::to_string(key) : absl::StrFormat("%d + %d", key, value);
  return absl::StrFormat("%d heads of %s, %d key-value heads", heads, dims, kv_heads);
}

// The dims of a shape, in words; windows and states stand in columns of their own.
struct DimsText {
  std::string operator()(const AttentionShape& s) const {
    return HeadsText(s.heads, s.kv_heads, s.head_dim, s.value_dim) + (s.sinks ? ", sinks" : "");
  }
  std::string operator()(const CrossAttentionShape& s) const {
    return HeadsText(s.heads, s.kv_heads, s.head_dim, s.value_dim);
  }
  std::string operator()(const EncoderAttentionShape& s) const {
    return HeadsText(s.heads, s.kv_heads, s.head_dim, s.head_dim);
  }
  std::string operator()(const MlaShape& s) const {
    return absl::StrFormat("%d heads, latent %d + %d rotary%s", s.heads, s.kv_lora_rank, s.rope_dim,
                           s.rotate ? "" : " (not rotated)");
  }
  std::string operator()(const IndexerShape& s) const {
    const std::string what = s.block > 1 ? absl::StrFormat("blocks of %d", s.block) : "rows";
    return absl::StrFormat("%d heads of %d, picks %d %s", s.heads, s.head_dim, s.top_k, what);
  }
  std::string operator()(const CompressorShape& s) const {
    return absl::StrFormat("%d f32 a token, for rows of %d tokens", s.width, s.ratio);
  }
  std::string operator()(const HiddenStateShape& s) const {
    return absl::StrFormat("%d layers of %d", s.taps, s.width);
  }
  std::string operator()(const KdaShape& s) const {
    return absl::StrFormat("%d heads of %d", s.heads, s.head_dim);
  }
  std::string operator()(const GatedDeltaShape& s) const {
    return absl::StrFormat("%d key heads of %d, %d value heads of %d", s.key_heads, s.key_dim, s.value_heads,
                           s.value_dim);
  }
  std::string operator()(const Mamba1Shape& s) const {
    return absl::StrFormat("%d channels, state %d", s.inner, s.state_dim);
  }
  std::string operator()(const Mamba2Shape& s) const {
    return absl::StrFormat("%d heads of %d, state %d, %d groups", s.heads, s.head_dim, s.state_dim, s.groups);
  }
  std::string operator()(const LightningShape& s) const {
    return absl::StrFormat("%d heads of %d", s.heads, s.head_dim);
  }
  std::string operator()(const ShortConvShape& s) const { return absl::StrFormat("width %d", s.width); }
  std::string operator()(const NoMixer& s) const { return s.linear ? "a matrix in its place" : ""; }
};

// What limits the rows, and what they cost.
std::string RowText(const LayerKind& kind) {
  const auto* attention = std::get_if<AttentionShape>(&kind.shape);
  if (attention != nullptr && attention->shares_with.has_value())
    return absl::StrFormat("reads layer %d's", *attention->shares_with);
  const CacheFacts& facts = kind.facts;
  if (facts.row_bytes == 0) return facts.states.empty() ? "keeps nothing" : "";
  std::string text = Thousands(facts.row_bytes) + " B a token";
  if (facts.tokens_per_row > 1)
    text = absl::StrFormat("%s B for %d tokens", Thousands(facts.row_bytes), facts.tokens_per_row);
  if (facts.tokens_kept > 0) {
    const std::string_view word = attention != nullptr && attention->chunk > 0              ? "chunk"
                                  : std::holds_alternative<CrossAttentionShape>(kind.shape) ? "encoder"
                                                                                            : "window";
    text += absl::StrFormat(", %s %s", word, Thousands(facts.tokens_kept));
  }
  return text;
}

std::string StatesText(const CacheFacts& facts) {
  std::string text;
  for (const StateFact& state : facts.states) {
    std::string shape;
    for (const std::int64_t side : state.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(side);
    text +=
        absl::StrFormat("%s%s (%s) %s", text.empty() ? "" : ", ", state.name, shape, DTypeName(state.dtype));
  }
  return text;
}

std::string FormatText(const WeightFormat& format) {
  return format.bits == 0 ? "as dtype" : absl::StrFormat("%d bits", format.bits);
}

void AddDraft(const DraftShape& draft, TextTable& table) {
  const std::string layers =
      draft.target_layers > 0 ? absl::StrFormat(", for targets of %d layers", draft.target_layers) : "";
  table.Row({"draft", absl::StrFormat("%s, %s inside its block%s", DraftMethodName(draft.method),
                                      draft.causal ? "causal" : "non-causal", layers)});
  if (draft.target_taps.empty()) return;
  std::string taps;
  for (const std::int64_t tap : draft.target_taps) taps += (taps.empty() ? "" : ", ") + std::to_string(tap);
  table.Row({"", "reads the outputs of target layers " + taps});
}

void AddQuantisation(const WeightQuantisation& q, TextTable& table) {
  if (q.method.empty()) return;
  table.Row(
      {"weights", absl::StrFormat("%s: mixers %s, dense MLPs %s, experts %s, shared experts %s, head %s",
                                  q.method, FormatText(q.mixers), FormatText(q.dense), FormatText(q.experts),
                                  FormatText(q.shared), FormatText(q.head))});
  if (q.cache_dtype.has_value())
    table.Row({"", absl::StrFormat("brings scales for an %s cache", DTypeName(*q.cache_dtype))});
}

}  // namespace

void ShowModel(const Console& console, const ModelDescription& model, const ModelKinds& kinds,
               std::int64_t tp) {
  console.out << Inked(console, Ink::kBold, model.name) << "   " << model.architecture << "\n\n";
  TextTable head("ll");
  head.Row({"context", Thousands(model.context) + " tokens"});
  head.Row({"hidden", std::to_string(model.hidden)});
  head.Row({"vocabulary", Thousands(model.vocab)});
  head.Row({"dtype", std::string(DTypeName(model.dtype))});
  head.Row({"layers", std::to_string(model.layers.size())});
  if (model.mtp_depth > 0) {
    head.Row({"", absl::StrFormat("and %d that predict %d tokens ahead", model.mtp_layers.size(),
                                  model.mtp_depth)});
  }
  if (model.encoder.has_value()) {
    head.Row({"", absl::StrFormat("behind an encoder of %d, which keeps nothing", model.encoder->layers)});
  }
  AddQuantisation(model.quantisation, head);
  if (model.draft.has_value()) AddDraft(*model.draft, head);
  head.Row({"digest", ModelDigest(model)});
  console.out << head.Text(2) << "\n";

  console.out << (tp == 1 ? std::string("Caches\n") : absl::StrFormat("Caches on each of %d ranks\n", tp));
  TextTable table("rlllr");
  for (const LayerKind& kind : kinds.kinds) {
    const std::int64_t fixed = kind.facts.grows() ? 0 : kind.facts.fixed_bytes();
    std::string keeps = RowText(kind);
    const std::string states = StatesText(kind.facts);
    if (!states.empty()) keeps = states;
    table.Row({absl::StrFormat("%d x", kind.layers.size()), std::string(MixerKind(kind.shape)),
               std::visit(DimsText{}, kind.shape), keeps, fixed > 0 ? BytesText(fixed) : ""});
  }
  console.out << table.Text(2) << "\n";
  TextTable sums("ll");
  sums.Row({"a token", BytesPerToken(kinds) + " B"});
  sums.Row({"a sequence",
            kinds.bytes_per_sequence == 0
                ? "nothing more"
                : absl::StrFormat("%s B more, whatever its length (%s)", Thousands(kinds.bytes_per_sequence),
                                  BytesText(kinds.bytes_per_sequence))});
  console.out << sums.Text(2);
}

}  // namespace kvasir::cli
