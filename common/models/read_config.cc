#include "common/models/read_config.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/models/adapters.h"
#include "common/models/check_model.h"
#include "common/models/config_error.h"
#include "common/models/config_object.h"

namespace kvasir {
namespace {

constexpr std::array kAdapters = {
    Adapter{"DeepseekV2ForCausalLM", ReadDeepseek, false},
    Adapter{"DeepseekV3ForCausalLM", ReadDeepseek, false},
    Adapter{"K3DSparkModel", ReadK3Dspark, false},
    Adapter{"KimiK25ForConditionalGeneration", ReadDeepseek, true},
    Adapter{"KimiK3ForConditionalGeneration", ReadKimiLinear, true},
    Adapter{"KimiLinearForCausalLM", ReadKimiLinear, false},
    Adapter{"LlamaForCausalLM", ReadLlama, false},
    Adapter{"MistralForCausalLM", ReadLlama, false},
    Adapter{"NemotronHForCausalLM", ReadNemotronH, false},
    Adapter{"Qwen2ForCausalLM", ReadLlama, false},
    Adapter{"Qwen3ForCausalLM", ReadLlama, false},
};

// Real configurations nest five deep and take some tens of kilobytes.
constexpr int kDepthMax = 32;

// Whether brackets outside strings nest deeper than kDepthMax: known before any parser sees the text.
bool TooDeep(std::string_view json) {
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

absl::Status NotJson(std::string fix, std::string_view name) {
  return ToStatus({ConfigFault::kNotJson, "", "", std::move(fix)}, name);
}

std::string KnownArchitectures() {
  std::string out;
  for (const Adapter& adapter : kAdapters)
    out += (out.empty() ? "" : ", ") + std::string(adapter.architecture);
  return out;
}

const Adapter* FindAdapter(const ConfigObject& root) {
  const std::vector<std::string> names = root.TextList("architectures");
  if (!root.ok()) return nullptr;
  for (const Adapter& adapter : kAdapters) {
    if (!names.empty() && names.front() == adapter.architecture) return &adapter;
  }
  root.FailValue(ConfigFault::kUnknownArchitecture, "architectures", names.empty() ? "[]" : names.front(),
                 "unknown architecture; known: " + KnownArchitectures());
  return nullptr;
}

void Read(const ConfigObject& root, ModelDescription& model) {
  const Adapter* adapter = FindAdapter(root);
  if (adapter == nullptr) return;
  model.architecture = adapter->architecture;
  if (!adapter->in_text_config) {
    adapter->read(root, model);
    return;
  }
  const std::optional<ConfigObject> text = root.Object("text_config");
  if (text.has_value()) adapter->read(*text, model);
}

// The last component of a path, with what canonical text cannot hold replaced.
std::string NameOfPath(const std::filesystem::path& folder) {
  std::string name = folder.filename().string();
  for (char& c : name) {
    if (!IsModelName(std::string_view(&c, 1))) c = '-';
  }
  if (name.size() > static_cast<std::size_t>(kNameBytesMax))
    name.resize(static_cast<std::size_t>(kNameBytesMax));
  return IsModelName(name) && name != "." && name != ".." ? name : "model";
}

absl::StatusOr<std::string> ReadBounded(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrFormat("%s: cannot be opened", path.string()));
  std::string text(static_cast<std::size_t>(kPlanTextBytesMax) + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

std::span<const Adapter> Adapters() { return kAdapters; }

absl::StatusOr<ModelDescription> ReadConfigJson(std::string_view json, std::string_view name) {
  if (!IsModelName(name)) {
    return ToStatus({ConfigFault::kOutOfLimit, "name", std::string(name.substr(0, 64)),
                     "expected 1 to 256 letters, digits or ._/+:@-"},
                    "model");
  }
  if (json.size() > static_cast<std::size_t>(kPlanTextBytesMax)) {
    return NotJson(absl::StrFormat("%d bytes; at most %d are read", json.size(), kPlanTextBytesMax), name);
  }
  if (TooDeep(json)) return NotJson(absl::StrFormat("nested deeper than %d levels", kDepthMax), name);
  const nlohmann::json document = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) {
    return NotJson("the text is not valid JSON (NaN, Infinity and comments are not JSON either)", name);
  }
  if (!document.is_object()) return NotJson("expected a JSON object, the content of a config.json", name);

  std::optional<ConfigError> error;
  ModelDescription model;
  model.name = name;
  Read(ConfigObject(document, "", error), model);
  if (!error.has_value()) error = FindModelFault(model);
  if (error.has_value()) return ToStatus(*error, name);
  return model;
}

absl::StatusOr<ModelDescription> ReadConfigPath(std::string_view path) {
  std::error_code ec;
  std::filesystem::path file = std::filesystem::absolute(std::string(path), ec).lexically_normal();
  if (!ec && !file.has_filename()) file = file.parent_path();  // "dir/"
  if (std::filesystem::is_directory(file, ec)) file /= "config.json";
  if (!std::filesystem::is_regular_file(file, ec)) {
    return absl::NotFoundError(absl::StrFormat("%s: no such config.json or directory that holds one", path));
  }
  absl::StatusOr<std::string> text = ReadBounded(file);
  if (!text.ok()) return text.status();
  const bool is_config = file.filename() == "config.json";
  return ReadConfigJson(*text, NameOfPath(is_config ? file.parent_path() : file.stem()));
}

}  // namespace kvasir
