// Writer of the canonical text. The grammar; docs/formats/model_text.md explains the fields:
//
//   text    = "kvasir.model/1" LF header layers [draft] "end" LF
//   header  = "name " word LF "architecture " word LF "hidden " int LF "vocab " int LF "context " int LF
//             "dtype " dtype LF "rms_eps " real LF
//             "rope theta=" real " factor=" real " original_context=" int " beta_fast=" real " beta_slow="
//             real " mscale=" real " mscale_all_dim=" real LF "tied_embedding " bool LF "layers " int LF
//   layers  = one line a layer, by index: "layer " int " " mixer " " mlp LF
//   mixer   = ("attention" | "mla" | "kda" | "mamba2") and the fields of its shape, each " " name "=" value
//   mlp     = "mlp intermediate=" int " experts=" int " experts_per_token=" int " shared_experts=" int
//             " expert_intermediate=" int
//   draft   = "draft method=dspark causal=" bool " taps=" int *("," int) " target_hidden=" int
//             " target_layers=" int " mask_token=" int " markov_rank=" int " confidence_head=" bool
//             " own_embedding=" bool " own_head=" bool LF
//   real    = the shortest decimal that reads back as the same double (std::to_chars)
#include "common/models/model_text.h"

#include <array>
#include <charconv>
#include <string>
#include <variant>

#include "common/base/sha256.h"

namespace kvasir {
namespace {

// Appends " name=value" fields to a line.
class Line {
 public:
  explicit Line(std::string_view head) : text_(head) {}

  Line& Int(std::string_view name, std::int64_t value) { return Put(name, std::to_string(value)); }
  Line& Bool(std::string_view name, bool value) { return Put(name, value ? "true" : "false"); }
  Line& Real(std::string_view name, double value) { return Put(name, Shortest(value)); }
  Line& Word(std::string_view word) {
    text_ += ' ';
    text_ += word;
    return *this;
  }
  Line& Put(std::string_view name, std::string_view value) {
    Word(name);
    text_ += '=';
    text_ += value;
    return *this;
  }

  // Shortest round-trip form; printf would depend on the locale and print digits that mean nothing.
  static std::string Shortest(double value) {
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    return std::string(buffer.data(), end.ptr);
  }

  [[nodiscard]] std::string Text() const { return text_ + "\n"; }

 private:
  std::string text_;
};

struct MixerWriter {
  Line& line;

  void operator()(const AttentionShape& s) const {
    line.Word("attention").Int("heads", s.heads).Int("kv_heads", s.kv_heads).Int("head_dim", s.head_dim);
    line.Int("value_dim", s.value_dim).Int("window", s.window);
  }
  void operator()(const MlaShape& s) const {
    line.Word("mla")
        .Int("heads", s.heads)
        .Int("q_lora_rank", s.q_lora_rank)
        .Int("kv_lora_rank", s.kv_lora_rank);
    line.Int("nope_dim", s.nope_dim).Int("rope_dim", s.rope_dim).Int("value_dim", s.value_dim);
    line.Bool("rotate", s.rotate).Bool("output_gate", s.output_gate);
  }
  void operator()(const KdaShape& s) const {
    line.Word("kda").Int("heads", s.heads).Int("head_dim", s.head_dim).Int("conv_kernel", s.conv_kernel);
  }
  void operator()(const Mamba2Shape& s) const {
    line.Word("mamba2").Int("heads", s.heads).Int("head_dim", s.head_dim).Int("state_dim", s.state_dim);
    line.Int("groups", s.groups)
        .Int("conv_kernel", s.conv_kernel)
        .Put("state_dtype", s.state_dtype.has_value() ? DTypeName(*s.state_dtype) : "auto");
  }
  template <typename Shape>
  void operator()(const Shape&) const {}
};

std::string LayerLine(const ModelLayer& layer) {
  Line line("layer " + std::to_string(layer.index));
  std::visit(MixerWriter{line}, layer.mixer);
  line.Word("mlp").Int("intermediate", layer.mlp.intermediate).Int("experts", layer.mlp.experts);
  line.Int("experts_per_token", layer.mlp.experts_per_token).Int("shared_experts", layer.mlp.shared_experts);
  return line.Int("expert_intermediate", layer.mlp.expert_intermediate).Text();
}

std::string DraftLine(const DraftShape& draft) {
  std::string taps;
  for (const std::int64_t tap : draft.target_taps) taps += (taps.empty() ? "" : ",") + std::to_string(tap);
  Line line("draft");
  line.Put("method", "dspark").Bool("causal", draft.causal).Put("taps", taps);
  line.Int("target_hidden", draft.target_hidden).Int("target_layers", draft.target_layers);
  line.Int("mask_token", draft.mask_token).Int("markov_rank", draft.markov_rank);
  line.Bool("confidence_head", draft.confidence_head).Bool("own_embedding", draft.own_embedding);
  return line.Bool("own_head", draft.own_head).Text();
}

}  // namespace

std::string ModelToText(const ModelDescription& model) {
  std::string out = "kvasir.model/1\n";
  out += Line("name").Word(model.name).Text();
  out += Line("architecture").Word(model.architecture).Text();
  out += Line("hidden").Word(std::to_string(model.hidden)).Text();
  out += Line("vocab").Word(std::to_string(model.vocab)).Text();
  out += Line("context").Word(std::to_string(model.context)).Text();
  out += Line("dtype").Word(DTypeName(model.dtype)).Text();
  out += Line("rms_eps").Word(Line::Shortest(model.rms_eps)).Text();
  Line rope("rope");
  rope.Real("theta", model.rope.theta).Real("factor", model.rope.factor);
  rope.Int("original_context", model.rope.original_context).Real("beta_fast", model.rope.beta_fast);
  rope.Real("beta_slow", model.rope.beta_slow).Real("mscale", model.rope.mscale);
  out += rope.Real("mscale_all_dim", model.rope.mscale_all_dim).Text();
  out += Line("tied_embedding").Word(model.tied_embedding ? "true" : "false").Text();
  out += Line("layers").Word(std::to_string(model.layers.size())).Text();
  for (const ModelLayer& layer : model.layers) out += LayerLine(layer);
  if (model.draft.has_value()) out += DraftLine(*model.draft);
  return out + "end\n";
}

std::string ModelDigest(const ModelDescription& model) { return Sha256Hex(ModelToText(model)); }

}  // namespace kvasir
