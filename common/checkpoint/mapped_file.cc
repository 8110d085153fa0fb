#include "common/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/checkpoint/checkpoint_error.h"

namespace kvasir {
namespace {

absl::Status Unreadable(const std::string& path, std::string fix) {
  return ToStatus({.reason = reason::kCheckpointUnreadable, .file = path, .fix = std::move(fix)});
}

absl::Status OutsideRoot(std::string_view root, std::string path) {
  return ToStatus({.reason = reason::kCheckpointPath,
                   .file = std::move(path),
                   .fix = absl::StrFormat("it does not lie below %s, the worker's checkpoint root", root)});
}

// Where an open file really lies.
std::string PathOf(int descriptor) {
  std::array<char, 4096> path{};
  const std::string link = absl::StrFormat("/proc/self/fd/%d", descriptor);
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return size < 0 ? std::string() : std::string(path.data(), static_cast<std::size_t>(size));
}

}  // namespace

bool IsBelow(std::string_view root, std::string_view path) {
  while (root.ends_with('/')) root.remove_suffix(1);
  if (!path.starts_with(root)) return false;
  return path.size() == root.size() || path[root.size()] == '/';
}

absl::StatusOr<ResolvedDirectory> ResolveBelow(const std::string& root, const std::string& directory) {
  namespace fs = std::filesystem;
  if (root.empty()) {
    return ToStatus({.reason = reason::kCheckpointPath,
                     .file = directory,
                     .fix = "this worker reads no checkpoints; start it with --checkpoint-root DIRECTORY"});
  }
  std::error_code error;
  const fs::path real_root = fs::canonical(root, error);
  if (error) {
    return ToStatus(
        {.reason = reason::kCheckpointNotFound, .file = root, .fix = "there is no such checkpoint root"});
  }
  // Before the system is asked: what lies outside is not told from what is not there.
  const fs::path wanted = (real_root / directory).lexically_normal();
  const bool by_root =
      IsBelow(fs::path(root).lexically_normal().string(), fs::path(directory).lexically_normal().string());
  if (!by_root && !IsBelow(real_root.string(), wanted.string())) return OutsideRoot(root, directory);
  const fs::path real = fs::canonical(wanted, error);
  if (error || !fs::is_directory(real, error)) {
    return ToStatus({.reason = reason::kCheckpointNotFound,
                     .file = directory,
                     .fix = absl::StrFormat("there is no such directory below %s", root)});
  }
  if (!IsBelow(real_root.string(), real.string())) return OutsideRoot(root, directory);
  return ResolvedDirectory{real_root.string(), real.string()};
}

absl::StatusOr<MappedFile> MappedFile::Open(std::string path, std::string_view root) {
  // First only the place: opening a device or a pipe can do something, or wait.
  const int place = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (place < 0 && errno == ENOENT) {
    return ToStatus({.reason = reason::kCheckpointNotFound, .file = path, .fix = "there is no such file"});
  }
  if (place < 0) return Unreadable(path, absl::StrFormat("cannot be opened: %s", std::strerror(errno)));
  MappedFile file(std::move(path), place, {});
  if (!root.empty() && !IsBelow(root, PathOf(place))) return OutsideRoot(root, file.path_);
  struct stat info{};
  if (::fstat(place, &info) != 0) {
    return Unreadable(file.path_, absl::StrFormat("has no size: %s", std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode) || info.st_size == 0) {
    return ToStatus({.reason = reason::kCheckpointInvalid,
                     .file = file.path_,
                     .fix = S_ISREG(info.st_mode) ? "the file is empty" : "expected a regular file"});
  }
  const int descriptor = ::open(absl::StrFormat("/proc/self/fd/%d", place).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return Unreadable(file.path_, absl::StrFormat("cannot be opened: %s", std::strerror(errno)));
  }
  ::close(std::exchange(file.descriptor_, descriptor));
  const auto size = static_cast<std::size_t>(info.st_size);
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (at == MAP_FAILED) return Unreadable(file.path_, absl::StrFormat("mmap: %s", std::strerror(errno)));
  file.bytes_ = std::string_view(static_cast<const char*>(at), size);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.data() != nullptr) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  if (descriptor_ >= 0) ::close(descriptor_);
}

absl::Status MappedFile::CheckUnchanged() const {
  struct stat info{};
  if (::fstat(descriptor_, &info) != 0) {
    return Unreadable(path_, absl::StrFormat("has no size: %s", std::strerror(errno)));
  }
  if (static_cast<std::size_t>(info.st_size) >= bytes_.size()) return absl::OkStatus();
  return Unreadable(path_, absl::StrFormat("it had %d bytes when it was opened and has %d now; give the "
                                           "checkpoint a directory that nobody writes to",
                                           bytes_.size(), info.st_size));
}

}  // namespace kvasir
