// Writer of the canonical text. The grammar; docs/formats/model_text.md explains the fields, and
// model_fields.h lists those of each shape in order:
//
//   text    = "kvasir.model/1" LF header layers [mtp] [encoder] [quant] [draft] "end" LF
//   header  = "name " word LF "architecture " word LF "hidden " int LF "vocab " int LF "context " int LF
//             "dtype " dtype LF "rms_eps " real LF "rope" fields LF "tied_embedding " bool LF
//             ["layer_embedding " int LF] ["residual_block " int LF] ["multimodal true" LF]
//             "layers " int LF
//   layers  = one line a layer, by index: "layer " int " " shape *(" extra " shape) " mlp" fields LF
//   shape   = kind fields                  kind: a word of mixer_shapes.h
//   mtp     = "mtp depth=" int " layers=" int LF layers
//   encoder = "encoder" fields LF
//   quant   = "quantisation" fields LF
//   draft   = "draft" fields LF
//   fields  = *(" " name "=" value); those at their default are left out where model_fields.h says "Unless"
//   real    = the shortest decimal that reads back as the same double (std::to_chars)
#include "common/models/model_text.h"

#include <array>
#include <charconv>
#include <string>
#include <variant>

#include "common/base/sha256.h"
#include "common/models/model_fields.h"

namespace kvasir {
namespace {

// Shortest round-trip form; printf would depend on the locale and print digits that mean nothing.
std::string Shortest(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return std::string(buffer.data(), end.ptr);
}

std::string_view Words(bool value) { return value ? "true" : "false"; }

// Walks a shape's fields (model_fields.h) and appends " name=value" for each.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void Put(std::string_view name, std::string_view value) {
    out_.append(" ").append(name).append("=").append(value);
  }
  void Int(std::string_view name, std::int64_t value, IntRange) { Put(name, std::to_string(value)); }
  void Real(std::string_view name, double value, RealRange) { Put(name, Shortest(value)); }
  void Bool(std::string_view name, bool value) { Put(name, Words(value)); }
  void Text(std::string_view name, const std::string& value) { Put(name, value); }
  void Auto(std::string_view name, const std::optional<DType>& dtype) {
    Put(name, dtype.has_value() ? DTypeName(*dtype) : "auto");
  }
  void Layer(std::string_view name, const std::optional<std::int32_t>& layer) {
    if (layer.has_value()) Put(name, std::to_string(*layer));
  }
  void Layers(std::string_view name, const std::vector<std::int64_t>& layers) {
    std::string list;
    for (const std::int64_t layer : layers) list += (list.empty() ? "" : ",") + std::to_string(layer);
    Put(name, list);
  }
  void Format(std::string_view name, const WeightFormat& f) {
    Put(name, std::to_string(f.bits) + "/" + std::to_string(f.group) + "/" + std::to_string(f.scale_bits));
  }
  template <typename E, typename Names>
  void Enum(std::string_view name, E value, const Names& names) {
    for (const auto& [known, word] : names) {
      if (known == value) Put(name, word);
    }
  }
  void IntUnless(std::string_view name, std::int64_t value, IntRange range, std::int64_t fallback) {
    if (value != fallback) Int(name, value, range);
  }
  void RealUnless(std::string_view name, double value, RealRange range, double fallback) {
    if (value != fallback) Real(name, value, range);
  }
  void BoolUnless(std::string_view name, bool value, bool fallback) {
    if (value != fallback) Bool(name, value);
  }
  template <typename E, typename Names>
  void EnumUnless(std::string_view name, E value, const Names& names, E fallback) {
    if (value != fallback) Enum(name, value, names);
  }

 private:
  std::string& out_;
};

template <typename Shape>
void AddFields(const Shape& shape, std::string& out) {
  Writer writer(out);
  model_fields::Walk(writer, shape);
}

void AddShape(const MixerShape& mixer, std::string& out) {
  out.append(" ").append(MixerKind(mixer));
  std::visit([&out](const auto& shape) { AddFields(shape, out); }, mixer);
}

void AddLayers(const std::vector<ModelLayer>& layers, std::string& out) {
  for (const ModelLayer& layer : layers) {
    out += "layer " + std::to_string(layer.index);
    AddShape(layer.mixer, out);
    for (const MixerShape& extra : layer.extra) {
      out += " extra";
      AddShape(extra, out);
    }
    out += " mlp";
    AddFields(layer.mlp, out);
    out += '\n';
  }
}

template <typename Shape>
void AddLine(std::string_view head, const Shape& shape, std::string& out) {
  out += head;
  AddFields(shape, out);
  out += '\n';
}

void AddWord(std::string_view head, std::string_view word, std::string& out) {
  out.append(head).append(" ").append(word).append("\n");
}

}  // namespace

std::string ModelToText(const ModelDescription& model) {
  std::string out = "kvasir.model/1\n";
  AddWord("name", model.name, out);
  AddWord("architecture", model.architecture, out);
  AddWord("hidden", std::to_string(model.hidden), out);
  AddWord("vocab", std::to_string(model.vocab), out);
  AddWord("context", std::to_string(model.context), out);
  AddWord("dtype", DTypeName(model.dtype), out);
  AddWord("rms_eps", Shortest(model.rms_eps), out);
  AddLine("rope", model.rope, out);
  AddWord("tied_embedding", Words(model.tied_embedding), out);
  if (model.layer_embedding != 0) AddWord("layer_embedding", std::to_string(model.layer_embedding), out);
  if (model.residual_block != 0) AddWord("residual_block", std::to_string(model.residual_block), out);
  if (model.multimodal) AddWord("multimodal", "true", out);
  AddWord("layers", std::to_string(model.layers.size()), out);
  AddLayers(model.layers, out);
  if (model.mtp_depth != 0 || !model.mtp_layers.empty()) {
    out += "mtp depth=" + std::to_string(model.mtp_depth);
    out += " layers=" + std::to_string(model.mtp_layers.size()) + "\n";
    AddLayers(model.mtp_layers, out);
  }
  if (model.encoder.has_value()) AddLine("encoder", *model.encoder, out);
  if (!(model.quantisation == WeightQuantisation{})) AddLine("quantisation", model.quantisation, out);
  if (model.draft.has_value()) AddLine("draft", *model.draft, out);
  return out + "end\n";
}

std::string ModelDigest(const ModelDescription& model) { return Sha256Hex(ModelToText(model)); }

}  // namespace kvasir
