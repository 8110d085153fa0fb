#include "planner/request/engine_case_json.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/typed_error.h"
#include "planner/request/case_object.h"
#include "planner/request/engine_config_json.h"
#include "planner/request/engine_spec_json.h"

namespace kvasir {
namespace {

using vllm::EngineCase;

constexpr int kDepthMax = 16;
constexpr CaseRange kMemory{-(std::int64_t{1} << 60), std::int64_t{1} << 60};

// Workers times layers: what a plan's size grows with.
constexpr std::size_t kWorkerLayersMax = std::size_t{1} << 18;

using Index = std::map<std::string, std::int32_t, std::less<>>;

// Printable ASCII without blanks, so that a canonical text can hold it.
bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= static_cast<std::size_t>(kNameBytesMax) &&
         std::all_of(name.begin(), name.end(), [](char c) { return '!' <= c && c <= '~'; });
}

class CaseReader {
 public:
  explicit CaseReader(const nlohmann::json& node) : root_(node, "", error_) {}

  absl::StatusOr<EngineCase> Read() && {
    ReadSpecs();
    ReadLayers();
    ReadWorkers();
    if (const nlohmann::json* const config = root_.Require("config")) {
      case_.config = ReadEngineConfig(*config, "config", error_);
    }
    root_.RefuseUnread();
    if (!error_.ok()) return error_;
    return std::move(case_);
  }

 private:
  // A list of at most `max` items under `key`; nullptr with the fault kept.
  const nlohmann::json* List(std::string_view key, std::size_t max, bool required) {
    const nlohmann::json* const list = required ? root_.Require(key) : root_.Find(key);
    if (list == nullptr) return nullptr;
    if (list->is_array() && list->size() <= max) return list;
    root_.Fail(reason::kTooManyItems, key, *list, absl::StrFormat("is no list of at most %d items", max));
    return nullptr;
  }

  void ReadSpecs() {
    specs_ = root_.Require("specs");
    if (specs_ == nullptr) return;
    if (!specs_->is_object() || specs_->size() > static_cast<std::size_t>(vllm::kEngineLayersMax)) {
      root_.Fail(reason::kTooManyItems, "specs", *specs_,
                 absl::StrFormat("is no object of at most %d specs", vllm::kEngineLayersMax));
      return;
    }
    for (const auto& [id, node] : specs_->items()) {
      if (!error_.ok()) return;
      if (!IsName(id)) {
        root_.FailText(reason::kBadName, "specs", "has a name that is not 1 to 256 printable characters");
        return;
      }
      spec_of_id_.emplace(id, static_cast<std::int32_t>(case_.specs.size()));
      case_.specs.push_back(ReadEngineSpec(node, "specs." + id, error_));
    }
  }

  void ReadLayers() {
    const nlohmann::json* const list = List("layers", static_cast<std::size_t>(vllm::kEngineLayersMax), true);
    if (list == nullptr) return;
    for (const nlohmann::json& node : *list) {
      if (!error_.ok()) return;
      const std::string path = absl::StrFormat("layers[%d]", case_.layers.size());
      CaseObject layer(node, path, error_);
      const std::string name = layer.MaybeText("name").value_or("");
      const std::string spec = layer.MaybeText("spec").value_or("");
      layer.RefuseUnread();
      if (!IsName(name)) layer.FailText(reason::kBadName, "name", "is not 1 to 256 printable characters");
      const auto id = spec_of_id_.find(spec);
      if (id == spec_of_id_.end()) {
        layer.FailText(reason::kUnknownValue, "spec",
                       absl::StrFormat("is \"%s\", which is no key of specs", spec.substr(0, 64)));
        return;
      }
      if (!layer_of_name_.emplace(name, static_cast<std::int32_t>(case_.layers.size())).second) {
        layer.FailText(reason::kDuplicateItem, "name",
                       absl::StrFormat("\"%s\" is an earlier layer's name, too", name));
      }
      spec_names_.push_back(spec);
      case_.layers.push_back({name, id->second});
    }
  }

  void ReadWorkers() {
    const auto max = static_cast<std::size_t>(vllm::kEngineWorkersMax);
    const nlohmann::json* const memory = List("available_memory_bytes", max, true);
    if (memory == nullptr) return;
    if (memory->empty()) {
      root_.FailText(reason::kMissingField, "available_memory_bytes",
                     "is empty; give the bytes of each worker");
      return;
    }
    for (const nlohmann::json& bytes : *memory) {
      const std::optional<std::int64_t> value = IntIn(bytes, kMemory);
      if (!value.has_value()) {
        root_.Fail(reason::kValueOutOfRange, "available_memory_bytes", bytes,
                   "is no whole number within 2^60");
        return;
      }
      case_.workers.emplace_back();
      case_.workers.back().available_bytes = *value;
    }
    if (case_.workers.size() * case_.layers.size() > kWorkerLayersMax) {
      root_.FailText(
          reason::kTooManyItems, "available_memory_bytes",
          absl::StrFormat("makes %d workers of %d layers; give equal ranks once, so that at most 2^18 "
                          "layers of all workers are planned",
                          case_.workers.size(), case_.layers.size()));
      return;
    }
    ReadWorkerLayers();
    ReadWorkerOverrides();
  }

  // One item a worker, null for "as the others"; nullptr where the key is absent.
  const nlohmann::json* PerWorker(std::string_view key) {
    const nlohmann::json* const list = List(key, static_cast<std::size_t>(vllm::kEngineWorkersMax), false);
    if (list == nullptr || list->size() == case_.workers.size()) return list;
    root_.FailText(
        reason::kConflictingFields, key,
        absl::StrFormat("has %d items for %d workers; give one each", list->size(), case_.workers.size()));
    return nullptr;
  }

  std::optional<std::int32_t> LayerNamed(const std::string& name, std::string_view key) {
    const auto layer = layer_of_name_.find(name);
    if (layer != layer_of_name_.end()) return layer->second;
    root_.FailText(reason::kUnknownValue, key,
                   absl::StrFormat("\"%s\" is no layer of the case", name.substr(0, 64)));
    return std::nullopt;
  }

  void ReadWorkerLayers() {
    const nlohmann::json* const lists = PerWorker("worker_layers");
    if (lists == nullptr) return;
    for (std::size_t w = 0; w < lists->size() && error_.ok(); ++w) {
      const nlohmann::json& names = (*lists)[w];
      if (names.is_null()) continue;
      if (!names.is_array() || names.size() > case_.layers.size()) {
        root_.Fail(reason::kTooManyItems, "worker_layers", names, "is no list of distinct layer names");
        return;
      }
      std::vector<std::int32_t> layers;
      std::vector<bool> seen(case_.layers.size());
      for (const nlohmann::json& name : names) {
        const auto layer = LayerNamed(name.is_string() ? name.get<std::string>() : "", "worker_layers");
        if (!layer.has_value()) return;
        if (seen[static_cast<std::size_t>(*layer)]) {
          root_.Fail(reason::kDuplicateItem, "worker_layers", name, "is listed twice for one worker");
          return;
        }
        seen[static_cast<std::size_t>(*layer)] = true;
        layers.push_back(*layer);
      }
      case_.workers[w].layers = std::move(layers);
    }
  }

  // An override is the layer's spec with some fields changed: a spec of its own.
  void ReadWorkerOverrides() {
    const nlohmann::json* const lists = PerWorker("worker_overrides");
    if (lists == nullptr) return;
    for (std::size_t w = 0; w < lists->size() && error_.ok(); ++w) {
      const nlohmann::json& changes = (*lists)[w];
      if (changes.is_null()) continue;
      if (!changes.is_object()) {
        root_.Fail(reason::kMalformedMessage, "worker_overrides", changes, "is no object of layer names");
        return;
      }
      for (const auto& [name, fields] : changes.items()) {
        const auto layer = LayerNamed(name, "worker_overrides");
        if (!layer.has_value() || !error_.ok()) return;
        nlohmann::json spec = (*specs_)[spec_names_[static_cast<std::size_t>(*layer)]];
        if (fields.is_object()) spec.update(fields);
        case_.workers[w].overrides.push_back({*layer, static_cast<std::int32_t>(case_.specs.size())});
        case_.specs.push_back(
            ReadEngineSpec(fields.is_object() ? spec : fields, "worker_overrides." + name, error_));
        if (case_.specs.size() > 2 * static_cast<std::size_t>(vllm::kEngineLayersMax)) {
          root_.FailText(reason::kTooManyItems, "worker_overrides", "changes more than 4096 layers");
          return;
        }
      }
    }
  }

  absl::Status error_;
  CaseObject root_;
  EngineCase case_;
  const nlohmann::json* specs_ = nullptr;
  Index spec_of_id_;
  Index layer_of_name_;
  std::vector<std::string> spec_names_;  // of each layer
};

}  // namespace

absl::StatusOr<EngineCase> ReadEngineCase(const nlohmann::json& node) { return CaseReader(node).Read(); }

absl::StatusOr<EngineCase> ReadEngineCaseJson(std::string_view json) {
  if (json.size() > kEngineCaseBytesMax) {
    return FieldError(
        reason::kMalformedMessage, "",
        absl::StrFormat("the text has %d bytes; at most %d are read", json.size(), kEngineCaseBytesMax));
  }
  if (EngineCaseNestsTooDeep(json)) {
    return FieldError(reason::kMalformedMessage, "", "the text nests deeper than 16 brackets");
  }
  const nlohmann::json document = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) {
    return FieldError(reason::kMalformedMessage, "",
                      "the text is not JSON; docs/formats/engine_specs.md has an example");
  }
  return ReadEngineCase(document);
}

bool EngineCaseNestsTooDeep(std::string_view json) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDepthMax) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace kvasir
