#include "planner/cli/write_file.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_format.h"

namespace kvasir::cli {
namespace {

namespace fs = std::filesystem;

absl::Status Failure(const fs::path& path, const std::error_code& why) {
  return absl::UnavailableError(absl::StrFormat("%s: cannot be written: %s", path.string(), why.message()));
}

std::error_code Put(const fs::path& path, std::string_view text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file) return {};
  return {errno == 0 ? EIO : errno, std::generic_category()};
}

// Where a chain of links ends, which may not be there yet.
fs::path EndOfLinks(const fs::path& path, std::error_code& ec) {
  constexpr int kLinksMax = 40;  // as the system follows
  fs::path at = path;
  for (int i = 0; i < kLinksMax; ++i) {
    std::error_code none;  // of what is not there
    if (!fs::is_symlink(fs::symlink_status(at, none))) return at;
    const fs::path next = fs::read_symlink(at, ec);
    if (ec) return at;
    at = at.parent_path() / next;
  }
  ec = std::make_error_code(std::errc::too_many_symbolic_link_levels);
  return at;
}

}  // namespace

absl::Status WriteFile(const std::string& path, std::string_view text) {
  std::error_code ec;
  const bool exists = fs::exists(path, ec);
  if (exists && !fs::is_regular_file(path, ec)) {
    const std::error_code failed = Put(path, text);
    return failed ? Failure(path, failed) : absl::OkStatus();
  }
  if (ec) return Failure(path, ec);
  const fs::path target = EndOfLinks(path, ec);
  if (ec) return Failure(path, ec);
  const fs::path part = target.string() + absl::StrFormat(".%d.part", getpid());
  std::error_code failed = Put(part, text);
  if (!failed && exists) fs::permissions(part, fs::status(target).permissions(), failed);
  if (!failed) fs::rename(part, target, failed);
  if (!failed) return absl::OkStatus();
  fs::remove(part, ec);
  return Failure(path, failed);
}

}  // namespace kvasir::cli
