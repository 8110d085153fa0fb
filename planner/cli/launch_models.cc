#include "planner/cli/launch_models.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/models/catalogue.h"
#include "common/models/read_config.h"
#include "planner/cli/plan_question.h"
#include "planner/request/catalogued_model.h"
#include "planner/request/checkpoint_json.h"

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kConfigBytesMax = std::size_t{4} << 20;
constexpr std::size_t kIndexBytesMax = std::size_t{64} << 20;

// The config.json that a word means, or empty.
fs::path ConfigOf(std::string_view word) {
  const fs::path path{std::string(word)};
  std::error_code ec;
  if (fs::is_directory(path, ec)) return path / "config.json";
  return fs::is_regular_file(path, ec) && path.extension() == ".json" ? path : fs::path();
}

// A rotary embedding that is laid over replaces the file's, however each is spelled.
void ReplaceRope(const nlohmann::json& patch, nlohmann::json& document) {
  if (!patch.is_object() || !document.is_object()) return;
  if (patch.contains("rope_scaling")) document.erase("rope_parameters");
  if (patch.contains("rope_parameters")) document.erase("rope_scaling");
  for (const char* part : {"text_config", "llm_config", "language_config"}) {
    if (patch.contains(part) && document.contains(part)) ReplaceRope(patch[part], document[part]);
  }
}

absl::StatusOr<ModelDescription> ReadWithOverrides(const fs::path& config, const std::string& overrides) {
  KVASIR_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(config.string(), kConfigBytesMax));
  nlohmann::json document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json patch = nlohmann::json::parse(overrides, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !patch.is_object()) {
    return absl::InvalidArgumentError(config.string() +
                                      ": not a JSON object that --hf-overrides can be laid over");
  }
  ReplaceRope(patch, document);
  document.merge_patch(patch);
  const std::string name = config.parent_path().filename().string();
  return ReadConfigJson(document.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace),
                        name.empty() ? "model" : name);
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, std::size_t bytes_max) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(path + ": cannot be opened");
  std::string text;
  std::string part(1 << 16, '\0');
  while (file && text.size() <= bytes_max) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part, 0, static_cast<std::size_t>(file.gcount()));
  }
  if (text.size() > bytes_max) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: more than %d bytes", path, bytes_max));
  }
  return text;
}

absl::StatusOr<LaunchModel> FindLaunchModel(std::string_view word,
                                            const std::optional<std::string>& overrides,
                                            std::vector<std::string>& notes) {
  LaunchModel found;
  const fs::path config = ConfigOf(word);
  const bool catalogued = FindInCatalogue(word).ok();
  if (!catalogued && !config.empty() && overrides.has_value()) {
    KVASIR_ASSIGN_OR_RETURN(found.model, ReadWithOverrides(config, *overrides));
  } else {
    absl::StatusOr<CataloguedModel> model = absl::NotFoundError("");
    if (catalogued || config.empty()) model = FindCataloguedModel(word, overrides, notes);
    if (absl::IsNotFound(model.status())) {
      // A file; or another form of name, whose reader says what was expected.
      KVASIR_ASSIGN_OR_RETURN(found.model, ReadModel(word));
    } else {
      if (!model.ok()) return model.status();
      found.model = std::move(model->model);
      found.is_copy = model->is_copy;
    }
  }
  if (!catalogued && !config.empty()) {
    const fs::path index = config.parent_path() / "model.safetensors.index.json";
    const absl::StatusOr<std::string> text = ReadWholeFile(index.string(), kIndexBytesMax);
    const absl::StatusOr<std::int64_t> bytes = text.ok() ? CheckpointBytes(*text) : text.status();
    if (bytes.ok()) found.checkpoint_bytes = *bytes;
  }
  return found;
}

}  // namespace kvasir::cli
