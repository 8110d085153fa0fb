// Reader of the canonical text; the grammar stands above the writer in model_text.cc. It reads line by line,
// field by field, in the writer's order; limits are check_model.h's. Last, the description is written again
// and must give the same bytes: "1e4" for 10000 or "+5" would otherwise give one model two digests.
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/models/check_model.h"
#include "common/models/model_text.h"

namespace kvasir {
namespace {

absl::Status TextError(std::string message) {
  return FieldError(reason::kModelTextInvalid, "", std::move(message));
}

// One line of the text, read from the left. The first fault is kept; later reads give stand-ins.
class LineReader {
 public:
  LineReader(std::string_view line, std::int64_t number) : rest_(line), number_(number) {}

  // The next space-separated word must be `word`.
  void Expect(std::string_view word) {
    const std::string_view got = Next();
    if (got != word) Fail(got, word);
  }
  std::string_view Next() {
    if (started_ && !rest_.empty()) rest_.remove_prefix(1);  // the separating space
    started_ = true;
    const std::size_t space = rest_.find(' ');
    const std::string_view word = rest_.substr(0, space);
    rest_.remove_prefix(word.size());
    return word;
  }

  // The next word must be "name=value"; gives the value.
  std::string_view Value(std::string_view name) {
    const std::string_view word = Next();
    if (word.substr(0, name.size()) != name || word.size() <= name.size() || word[name.size()] != '=') {
      Fail(word, absl::StrFormat("%s=...", name));
      return {};
    }
    return word.substr(name.size() + 1);
  }

  std::int64_t Int(std::string_view name) { return ParseInt(Value(name), name); }
  double Real(std::string_view name) { return ParseReal(Value(name), name); }
  bool Bool(std::string_view name) { return ParseBool(Value(name), name); }

  std::int64_t ParseInt(std::string_view word, std::string_view name) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) {
      Fail(word, absl::StrFormat("a 64-bit integer as %s", name));
    }
    return value;
  }
  double ParseReal(std::string_view word, std::string_view name) {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size())
      Fail(word, absl::StrFormat("a number as %s", name));
    return value;
  }
  DType ParseDType(std::string_view word) {
    const std::optional<DType> dtype = kvasir::ParseDType(word);
    if (!dtype.has_value()) Fail(word, "bf16, f16 or f32");
    return dtype.value_or(DType::kBf16);
  }
  bool ParseBool(std::string_view word, std::string_view name) {
    if (word != "true" && word != "false") Fail(word, absl::StrFormat("true or false as %s", name));
    return word == "true";
  }

  void Fail(std::string_view got, std::string_view expected) {
    if (!status_.ok()) return;
    status_ = TextError(absl::StrFormat("model text line %d: got \"%s\", expected %s", number_,
                                        ShownText(got, 80), expected));
  }

  [[nodiscard]] absl::Status Finish() {
    if (!rest_.empty()) Fail(rest_, "the line's end");
    return status_;
  }

 private:
  std::string_view rest_;
  std::int64_t number_;
  bool started_ = false;
  absl::Status status_;
};

class TextReader {
 public:
  explicit TextReader(std::string_view text) : rest_(text) {}

  // The next line, without its LF. Past the end every line is empty, which no rule accepts.
  LineReader Line() {
    ++number_;
    const std::size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    return LineReader(line, number_);
  }
  [[nodiscard]] bool NextStartsWith(std::string_view word) const {
    return rest_.substr(0, word.size()) == word;
  }
  [[nodiscard]] bool AtEnd() const { return rest_.empty(); }
  [[nodiscard]] std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

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

std::optional<MixerShape> ReadMixer(LineReader& line) {
  const std::string_view kind = line.Next();
  if (kind == "attention") {
    AttentionShape s;
    s.heads = line.Int("heads");
    s.kv_heads = line.Int("kv_heads");
    s.head_dim = line.Int("head_dim");
    s.value_dim = line.Int("value_dim");
    s.window = line.Int("window");
    return s;
  }
  if (kind == "mla") {
    MlaShape s;
    s.heads = line.Int("heads");
    s.q_lora_rank = line.Int("q_lora_rank");
    s.kv_lora_rank = line.Int("kv_lora_rank");
    s.nope_dim = line.Int("nope_dim");
    s.rope_dim = line.Int("rope_dim");
    s.value_dim = line.Int("value_dim");
    s.rotate = line.Bool("rotate");
    s.output_gate = line.Bool("output_gate");
    return s;
  }
  if (kind == "kda") {
    KdaShape s;
    s.heads = line.Int("heads");
    s.head_dim = line.Int("head_dim");
    s.conv_kernel = line.Int("conv_kernel");
    return s;
  }
  if (kind == "mamba2") {
    Mamba2Shape s;
    s.heads = line.Int("heads");
    s.head_dim = line.Int("head_dim");
    s.state_dim = line.Int("state_dim");
    s.groups = line.Int("groups");
    s.conv_kernel = line.Int("conv_kernel");
    s.state_dtype = line.ParseDType(line.Value("state_dtype"));
    return s;
  }
  line.Fail(kind, "attention, mla, kda or mamba2");
  return std::nullopt;
}

absl::StatusOr<ModelLayer> ReadLayer(TextReader& text) {
  LineReader line = text.Line();
  ModelLayer layer;
  line.Expect("layer");
  // Compared with the layer's place by check_model.h, before anything uses it.
  const std::int64_t index = line.ParseInt(line.Next(), "layer");
  if (index < 0 || index >= kLayersMax) line.Fail(std::to_string(index), "a layer index");
  layer.index = static_cast<std::int32_t>(index);
  std::optional<MixerShape> mixer = ReadMixer(line);
  if (mixer.has_value()) layer.mixer = *mixer;
  line.Expect("mlp");
  layer.mlp.intermediate = line.Int("intermediate");
  layer.mlp.experts = line.Int("experts");
  layer.mlp.experts_per_token = line.Int("experts_per_token");
  layer.mlp.shared_experts = line.Int("shared_experts");
  layer.mlp.expert_intermediate = line.Int("expert_intermediate");
  KVASIR_RETURN_IF_ERROR(line.Finish());
  return layer;
}

absl::StatusOr<DraftShape> ReadDraft(TextReader& text) {
  LineReader line = text.Line();
  DraftShape draft;
  line.Expect("draft");
  line.Expect("method=dspark");
  draft.causal = line.Bool("causal");
  std::string_view taps = line.Value("taps");
  while (draft.target_taps.size() <= static_cast<std::size_t>(kLayersMax)) {
    const std::size_t comma = taps.find(',');
    draft.target_taps.push_back(line.ParseInt(taps.substr(0, comma), "taps"));
    if (comma == std::string_view::npos) break;
    taps.remove_prefix(comma + 1);
  }
  draft.target_hidden = line.Int("target_hidden");
  draft.target_layers = line.Int("target_layers");
  draft.mask_token = line.Int("mask_token");
  draft.markov_rank = line.Int("markov_rank");
  draft.confidence_head = line.Bool("confidence_head");
  draft.own_embedding = line.Bool("own_embedding");
  draft.own_head = line.Bool("own_head");
  KVASIR_RETURN_IF_ERROR(line.Finish());
  return draft;
}

absl::StatusOr<Rope> ReadRope(TextReader& text) {
  LineReader line = text.Line();
  Rope rope;
  line.Expect("rope");
  rope.theta = line.Real("theta");
  rope.factor = line.Real("factor");
  rope.original_context = line.Int("original_context");
  rope.beta_fast = line.Real("beta_fast");
  rope.beta_slow = line.Real("beta_slow");
  rope.mscale = line.Real("mscale");
  rope.mscale_all_dim = line.Real("mscale_all_dim");
  KVASIR_RETURN_IF_ERROR(line.Finish());
  return rope;
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
  KVASIR_ASSIGN_OR_RETURN(model.rope, ReadRope(text));
  LineReader tied = text.Line();
  tied.Expect("tied_embedding");
  model.tied_embedding = tied.ParseBool(tied.Next(), "tied_embedding");
  KVASIR_RETURN_IF_ERROR(tied.Finish());
  return model;
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
  if (layers < 1 || layers > kLayersMax) {
    return TextError(absl::StrFormat("model text line %d: layers %d, expected 1 .. %d", reader.number(),
                                     layers, kLayersMax));
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    KVASIR_ASSIGN_OR_RETURN(ModelLayer layer, ReadLayer(reader));
    model.layers.push_back(layer);
  }
  if (reader.NextStartsWith("draft")) {
    KVASIR_ASSIGN_OR_RETURN(model.draft, ReadDraft(reader));
  }
  LineReader end = reader.Line();
  end.Expect("end");
  KVASIR_RETURN_IF_ERROR(end.Finish());
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
