#include <nlohmann/json.hpp>
#include <string>

#include "common/models/model_fields.h"
#include "common/models/model_text.h"
#include "planner/cli/show_model.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;

// Walks a shape's fields (model_fields.h) and writes all of them, defaults too.
class JsonWriter {
 public:
  explicit JsonWriter(Json& json) : json_(json) {}

  void Int(std::string_view name, std::int64_t value, IntRange) { Put(name, value); }
  void Real(std::string_view name, double value, RealRange) { Put(name, value); }
  void Bool(std::string_view name, bool value) { Put(name, value); }
  void Text(std::string_view name, const std::string& value) { Put(name, value); }
  void Auto(std::string_view name, const std::optional<DType>& dtype) {
    Put(name, dtype.has_value() ? DTypeName(*dtype) : "auto");
  }
  void Layer(std::string_view name, const std::optional<std::int32_t>& layer) {
    if (layer.has_value()) Put(name, *layer);
  }
  void Layers(std::string_view name, const std::vector<std::int64_t>& layers) { Put(name, layers); }
  void Format(std::string_view name, const WeightFormat& format) {
    Put(name, Json{{"bits", format.bits}, {"group", format.group}, {"scale_bits", format.scale_bits}});
  }
  template <typename E, typename Names>
  void Enum(std::string_view name, E value, const Names& names) {
    for (const auto& [known, word] : names) {
      if (known == value) Put(name, word);
    }
  }
  void IntUnless(std::string_view name, std::int64_t value, IntRange, std::int64_t) { Put(name, value); }
  void RealUnless(std::string_view name, double value, RealRange, double) { Put(name, value); }
  void BoolUnless(std::string_view name, bool value, bool) { Put(name, value); }
  template <typename E, typename Names>
  void EnumUnless(std::string_view name, E value, const Names& names, E) {
    Enum(name, value, names);
  }

 private:
  template <typename T>
  void Put(std::string_view name, const T& value) {
    json_[std::string(name)] = value;
  }

  Json& json_;
};

template <typename Shape>
Json ShapeJson(const Shape& shape) {
  Json json = Json::object();
  JsonWriter writer(json);
  model_fields::Walk(writer, shape);
  return json;
}

Json KindJson(const LayerKind& kind) {
  Json json;
  json["kind"] = MixerKind(kind.shape);
  json["count"] = kind.layers.size();
  json["layers"] = kind.layers;
  json["shape"] = std::visit([](const auto& shape) { return ShapeJson(shape); }, kind.shape);
  json["row_bytes"] = kind.facts.row_bytes;
  json["tokens_per_row"] = kind.facts.tokens_per_row;
  json["tokens_kept"] = kind.facts.tokens_kept;
  json["states"] = Json::array();
  for (const StateFact& state : kind.facts.states) {
    json["states"].push_back({{"name", state.name},
                              {"shape", state.shape},
                              {"dtype", DTypeName(state.dtype)},
                              {"bytes", state.bytes()}});
  }
  json["bytes_per_sequence"] = kind.facts.grows() ? 0 : kind.facts.fixed_bytes();
  return json;
}

Json LayersJson(const std::vector<ModelLayer>& layers) {
  Json json = Json::array();
  for (const ModelLayer& layer : layers) {
    Json extra = Json::array();
    for (const MixerShape& shape : layer.extra) extra.push_back(MixerKind(shape));
    json.push_back({{"index", layer.index},
                    {"mixer", MixerKind(layer.mixer)},
                    {"extra", extra},
                    {"mlp", ShapeJson(layer.mlp)}});
  }
  return json;
}

}  // namespace

std::string ModelJson(const ModelDescription& model, const ModelKinds& kinds, std::int64_t tp) {
  Json json;
  json["schema"] = "kvasir.model/2";
  json["name"] = model.name;
  json["architecture"] = model.architecture;
  json["digest"] = ModelDigest(model);
  json["context_tokens"] = model.context;
  json["hidden"] = model.hidden;
  json["vocab"] = model.vocab;
  json["dtype"] = DTypeName(model.dtype);
  json["tied_embedding"] = model.tied_embedding;
  json["multimodal"] = model.multimodal;
  json["rope"] = ShapeJson(model.rope);
  json["draft"] = model.draft.has_value() ? ShapeJson(*model.draft) : Json();
  json["encoder"] = model.encoder.has_value() ? ShapeJson(*model.encoder) : Json();
  json["quantisation"] = model.quantisation.method.empty() ? Json() : ShapeJson(model.quantisation);
  json["tp"] = tp;
  json["kinds"] = Json::array();
  for (const LayerKind& kind : kinds.kinds) json["kinds"].push_back(KindJson(kind));
  json["bytes_per_token"] =
      static_cast<double>(kinds.bytes_per_stride) / static_cast<double>(kinds.token_stride);
  json["bytes_per_sequence"] = kinds.bytes_per_sequence;
  json["layers"] = LayersJson(model.layers);
  json["mtp"] = {{"depth", model.mtp_depth}, {"layers", LayersJson(model.mtp_layers)}};
  return json.dump(2) + "\n";
}

}  // namespace kvasir::cli
