// Reader of the canonical text; the grammar stands above the writer in model_text.cc. It reads line by line,
// field by field, in the writer's order; limits are check_model.h's. Last, the description is written again
// and must give the same bytes: "1e4" for 10000 or "+5" would otherwise give one model two digests.
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/models/check_model.h"
#include "common/models/model_fields.h"
#include "common/models/model_text.h"
#include "common/models/model_text_lines.h"

namespace kvasir {
namespace {

// A line "<name> <word>".
absl::StatusOr<std::string> WordLine(TextReader& text, std::string_view name) {
  LineReader line = text.Line();
  line.Expect(name);
  std::string word(line.Next());
  KVASIR_RETURN_IF_ERROR(line.Finish());
  return word;
}

absl::StatusOr<std::int64_t> IntLine(TextReader& text, std::string_view name) {
  LineReader line = text.Line();
  line.Expect(name);
  const std::int64_t value = line.ParseInt(line.Next(), name);
  KVASIR_RETURN_IF_ERROR(line.Finish());
  return value;
}

// Walks a shape's fields (model_fields.h) and reads each from the line. Ranges are checked afterwards.
class FieldReader {
 public:
  explicit FieldReader(LineReader& line) : line_(line) {}

  void Int(std::string_view name, std::int64_t& value, IntRange) {
    value = line_.ParseInt(line_.Value(name), name);
  }
  void Real(std::string_view name, double& value, RealRange) {
    value = line_.ParseReal(line_.Value(name), name);
  }
  void Bool(std::string_view name, bool& value) { value = line_.ParseBool(line_.Value(name), name); }
  void Text(std::string_view name, std::string& value) { value = line_.Value(name); }
  void Auto(std::string_view name, std::optional<DType>& dtype) {
    const std::string_view word = line_.Value(name);
    dtype = word == "auto" ? std::nullopt : std::optional(line_.ParseDType(word));
  }
  void Layer(std::string_view name, std::optional<std::int32_t>& layer) {
    if (!Given(name)) return;
    const std::int64_t index = line_.ParseInt(line_.Value(name), name);
    if (index < 0 || index >= kLayersMax) line_.Fail(std::to_string(index), "a layer index");
    layer = static_cast<std::int32_t>(index);
  }
  void Layers(std::string_view name, std::vector<std::int64_t>& layers) {
    std::string_view list = line_.Value(name);
    while (!list.empty() && layers.size() <= static_cast<std::size_t>(kLayersMax)) {
      const std::size_t comma = list.find(',');
      layers.push_back(line_.ParseInt(list.substr(0, comma), name));
      list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    }
  }
  void Format(std::string_view name, WeightFormat& format) {
    std::string_view rest = line_.Value(name);
    for (std::int64_t* part : {&format.bits, &format.group, &format.scale_bits}) {
      const std::size_t slash = rest.find('/');
      *part = line_.ParseInt(rest.substr(0, slash), name);
      rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
    }
  }
  template <typename E, typename Names>
  void Enum(std::string_view name, E& value, const Names& names) {
    const std::string_view got = line_.Value(name);
    std::string known;
    for (const auto& [candidate, word] : names) {
      if (word == got) {
        value = candidate;
        return;
      }
      known += (known.empty() ? "" : ", ") + std::string(word);
    }
    line_.Fail(got, absl::StrFormat("%s of %s", name, known));
  }
  void IntUnless(std::string_view name, std::int64_t& value, IntRange range, std::int64_t) {
    if (Given(name)) Int(name, value, range);
  }
  void RealUnless(std::string_view name, double& value, RealRange range, double) {
    if (Given(name)) Real(name, value, range);
  }
  void BoolUnless(std::string_view name, bool& value, bool) {
    if (Given(name)) Bool(name, value);
  }
  template <typename E, typename Names>
  void EnumUnless(std::string_view name, E& value, const Names& names, E) {
    if (Given(name)) Enum(name, value, names);
  }

 private:
  [[nodiscard]] bool Given(std::string_view name) const { return line_.Peek(std::string(name) + "="); }

  LineReader& line_;
};

template <typename Shape>
Shape ReadFields(LineReader& line) {
  Shape shape;
  FieldReader reader(line);
  model_fields::Walk(reader, shape);
  return shape;
}

// The alternative of MixerShape whose kind stands next on the line.
template <std::size_t I = 0>
MixerShape ReadShape(std::string_view kind, LineReader& line) {
  if constexpr (I == kMixerKinds.size()) {
    std::string known;
    for (const std::string_view word : kMixerKinds) known += (known.empty() ? "" : ", ") + std::string(word);
    line.Fail(kind, known);
    return NoMixer{};
  } else {
    if (kind == kMixerKinds[I]) return ReadFields<std::variant_alternative_t<I, MixerShape>>(line);
    return ReadShape<I + 1>(kind, line);
  }
}

absl::StatusOr<ModelLayer> ReadLayer(TextReader& text) {
  LineReader line = text.Line();
  ModelLayer layer;
  line.Expect("layer");
  // Compared with the layer's place by check_model.h, before anything uses it.
  const std::int64_t index = line.ParseInt(line.Next(), "layer");
  if (index < 0 || index >= kLayersMax) line.Fail(std::to_string(index), "a layer index");
  layer.index = static_cast<std::int32_t>(index);
  layer.mixer = ReadShape(line.Next(), line);
  while (line.Peek("extra") && layer.extra.size() <= static_cast<std::size_t>(kExtraCachesMax)) {
    line.Expect("extra");
    layer.extra.push_back(ReadShape(line.Next(), line));
  }
  line.Expect("mlp");
  layer.mlp = ReadFields<MlpShape>(line);
  KVASIR_RETURN_IF_ERROR(line.Finish());
  return layer;
}

absl::Status ReadLayers(TextReader& text, std::int64_t layers, std::vector<ModelLayer>& out) {
  if (layers < 1 || layers > kLayersMax) {
    return TextError(absl::StrFormat("model text line %d: layers %d, expected 1 .. %d", text.number(), layers,
                                     kLayersMax));
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    KVASIR_ASSIGN_OR_RETURN(ModelLayer layer, ReadLayer(text));
    out.push_back(std::move(layer));
  }
  return absl::OkStatus();
}

// A line "<head>" and the shape's fields.
template <typename Shape>
absl::StatusOr<Shape> ShapeLine(TextReader& text, std::string_view head) {
  LineReader line = text.Line();
  line.Expect(head);
  Shape shape = ReadFields<Shape>(line);
  KVASIR_RETURN_IF_ERROR(line.Finish());
  return shape;
}

absl::Status ReadMtp(TextReader& text, ModelDescription& model) {
  LineReader line = text.Line();
  line.Expect("mtp");
  model.mtp_depth = line.ParseInt(line.Value("depth"), "depth");
  const std::int64_t layers = line.ParseInt(line.Value("layers"), "layers");
  KVASIR_RETURN_IF_ERROR(line.Finish());
  return ReadLayers(text, layers, model.mtp_layers);
}

absl::StatusOr<ModelDescription> ReadHeader(TextReader& text) {
  ModelDescription model;
  LineReader version = text.Line();
  version.Expect("kvasir.model/1");
  KVASIR_RETURN_IF_ERROR(version.Finish());
  KVASIR_ASSIGN_OR_RETURN(model.name, WordLine(text, "name"));
  KVASIR_ASSIGN_OR_RETURN(model.architecture, WordLine(text, "architecture"));
  KVASIR_ASSIGN_OR_RETURN(model.hidden, IntLine(text, "hidden"));
  KVASIR_ASSIGN_OR_RETURN(model.vocab, IntLine(text, "vocab"));
  KVASIR_ASSIGN_OR_RETURN(model.context, IntLine(text, "context"));
  LineReader dtype = text.Line();
  dtype.Expect("dtype");
  model.dtype = dtype.ParseDType(dtype.Next());
  KVASIR_RETURN_IF_ERROR(dtype.Finish());
  LineReader eps = text.Line();
  eps.Expect("rms_eps");
  model.rms_eps = eps.ParseReal(eps.Next(), "rms_eps");
  KVASIR_RETURN_IF_ERROR(eps.Finish());
  KVASIR_ASSIGN_OR_RETURN(model.rope, ShapeLine<Rope>(text, "rope"));
  LineReader tied = text.Line();
  tied.Expect("tied_embedding");
  model.tied_embedding = tied.ParseBool(tied.Next(), "tied_embedding");
  KVASIR_RETURN_IF_ERROR(tied.Finish());
  if (text.NextStartsWith("layer_embedding ")) {
    KVASIR_ASSIGN_OR_RETURN(model.layer_embedding, IntLine(text, "layer_embedding"));
  }
  if (text.NextStartsWith("residual_block ")) {
    KVASIR_ASSIGN_OR_RETURN(model.residual_block, IntLine(text, "residual_block"));
  }
  if (text.NextStartsWith("multimodal ")) {
    LineReader multimodal = text.Line();
    multimodal.Expect("multimodal");
    multimodal.Expect("true");
    KVASIR_RETURN_IF_ERROR(multimodal.Finish());
    model.multimodal = true;
  }
  return model;
}

// What may follow the layers.
absl::Status ReadTail(TextReader& text, ModelDescription& model) {
  if (text.NextStartsWith("mtp ")) KVASIR_RETURN_IF_ERROR(ReadMtp(text, model));
  if (text.NextStartsWith("encoder ")) {
    KVASIR_ASSIGN_OR_RETURN(model.encoder, ShapeLine<EncoderShape>(text, "encoder"));
  }
  if (text.NextStartsWith("quantisation ")) {
    KVASIR_ASSIGN_OR_RETURN(model.quantisation, ShapeLine<WeightQuantisation>(text, "quantisation"));
  }
  if (text.NextStartsWith("draft ")) {
    KVASIR_ASSIGN_OR_RETURN(model.draft, ShapeLine<DraftShape>(text, "draft"));
  }
  LineReader end = text.Line();
  end.Expect("end");
  return end.Finish();
}

// The number of the first line that differs.
std::int64_t FirstDifference(std::string_view a, std::string_view b) {
  std::int64_t line = 1;
  for (std::size_t i = 0; i < a.size() && i < b.size() && a[i] == b[i]; ++i) line += a[i] == '\n' ? 1 : 0;
  return line;
}

}  // namespace

absl::StatusOr<ModelDescription> ModelFromText(std::string_view text) {
  if (text.size() > static_cast<std::size_t>(kPlanTextBytesMax)) {
    return TextError(
        absl::StrFormat("model text has %d bytes; at most %d are read", text.size(), kPlanTextBytesMax));
  }
  TextReader reader(text);
  KVASIR_ASSIGN_OR_RETURN(ModelDescription model, ReadHeader(reader));
  KVASIR_ASSIGN_OR_RETURN(const std::int64_t layers, IntLine(reader, "layers"));
  KVASIR_RETURN_IF_ERROR(ReadLayers(reader, layers, model.layers));
  KVASIR_RETURN_IF_ERROR(ReadTail(reader, model));
  if (const std::optional<ConfigError> fault = FindModelFault(model)) {
    return TextError(absl::StrFormat("model text: %s = %s: %s", fault->field, fault->value, fault->fix));
  }
  const std::string canonical = ModelToText(model);
  if (canonical != text) {
    return TextError(
        absl::StrFormat("model text line %d: not in canonical form", FirstDifference(canonical, text)));
  }
  return model;
}

}  // namespace kvasir
