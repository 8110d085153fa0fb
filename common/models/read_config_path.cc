// Finds the file and its name; read_config.cc reads what is in it.
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/models/check_model.h"
#include "common/models/read_config.h"

namespace kvasir {
namespace {

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
