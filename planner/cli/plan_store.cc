#include "planner/cli/plan_store.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/plan/plan_text.h"
#include "common/plan/verify.h"
#include "planner/cli/write_file.h"

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPrefixMin = 4;

absl::StatusOr<std::string> ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrFormat("%s: cannot be opened", path.string()));
  std::string text(static_cast<std::size_t>(kPlanTextBytesMax) + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

absl::StatusOr<StoredPlan> FromText(std::string text, const std::string& from) {
  absl::StatusOr<Plan> plan = PlanFromText(text);
  absl::Status status = plan.status();
  if (status.ok()) status = VerifyPlan(*plan);
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: %s", from, std::string(status.message())));
  }
  std::string id = PlanId(text);
  return StoredPlan{*std::move(plan), std::move(text), std::move(id)};
}

// The one stored plan whose id begins with `prefix`.
absl::StatusOr<fs::path> FindStored(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    const fs::path& path = it->path();
    if (path.extension() == ".txt" && path.filename().string().substr(0, prefix.size()) == prefix) {
      found.push_back(path);
    }
  }
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrFormat("no file and no stored plan \"%s\" (looked in %s)", prefix, folder.string()));
  }
  if (found.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d stored plans begin with \"%s\"; give more of the id", found.size(), prefix));
  }
  return found.front();
}

}  // namespace

absl::StatusOr<std::string> StateFolder(const Console& console) {
  if (const std::optional<std::string> state = console.variable("XDG_STATE_HOME")) return *state + "/kvasir";
  if (const std::optional<std::string> home = console.variable("HOME")) return *home + "/.local/state/kvasir";
  return absl::FailedPreconditionError("neither XDG_STATE_HOME nor HOME is set; plans cannot be stored");
}

absl::Status SaveText(const Console& console, const std::string& path, std::string_view text) {
  KVASIR_ASSIGN_OR_RETURN(const std::string folder, StateFolder(console));
  const fs::path file = fs::path(folder) / path;
  std::error_code ec;
  fs::create_directories(file.parent_path(), ec);  // what is wrong with it, the file's own failure says
  return WriteFile(file.string(), text);
}

absl::StatusOr<std::string> LoadText(const Console& console, const std::string& path) {
  KVASIR_ASSIGN_OR_RETURN(const std::string folder, StateFolder(console));
  return ReadFile(fs::path(folder) / path);
}

absl::Status SavePlan(const Console& console, std::string_view plan_id, std::string_view text) {
  return SaveText(console, absl::StrFormat("plans/%s.txt", plan_id), text);
}

absl::Status SaveModel(const Console& console, std::string_view digest, std::string_view text) {
  return SaveText(console, absl::StrFormat("models/%s.txt", digest), text);
}

absl::StatusOr<StoredPlan> LoadPlan(const Console& console, const std::string& word) {
  std::error_code ec;
  if (fs::is_regular_file(word, ec)) {
    KVASIR_ASSIGN_OR_RETURN(std::string text, ReadFile(word));
    return FromText(std::move(text), word);
  }
  if (word.size() < kPrefixMin || word.size() > 64 || !IsHex(word)) {
    return absl::NotFoundError(
        absl::StrFormat("\"%s\" is no file, and no beginning of a plan id (4 to 64 digits of 0-9a-f)", word));
  }
  KVASIR_ASSIGN_OR_RETURN(const std::string folder, StateFolder(console));
  KVASIR_ASSIGN_OR_RETURN(const fs::path path, FindStored(fs::path(folder) / "plans", word));
  KVASIR_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  KVASIR_ASSIGN_OR_RETURN(StoredPlan plan, FromText(std::move(text), path.string()));
  if (plan.plan_id != path.stem().string()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: the file was changed, its text has the id %s", path.string(), plan.plan_id));
  }
  return plan;
}

absl::StatusOr<std::string> LoadModelText(const Console& console, const std::string& digest) {
  KVASIR_ASSIGN_OR_RETURN(std::string text, LoadText(console, "models/" + digest + ".txt"));
  if (Sha256Hex(text) != digest) {
    return absl::DataLossError(absl::StrFormat("the stored model %s was changed; plan again", digest));
  }
  return text;
}

}  // namespace kvasir::cli
