#include "planner/dispatch/file_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

constexpr char kExtension[] = ".deployment";

absl::Status Unwritable(const std::filesystem::path& path, std::string_view what, int error) {
  return MakeError({.code = absl::StatusCode::kInternal,
                    .reason = reason::kStoreUnwritable,
                    .message = absl::StrFormat("cannot %s %s: %s", what, path.string(), std::strerror(error)),
                    .metadata = {{"path", path.string()}}});
}

// A file descriptor that closes itself.
class File {
 public:
  File(const std::filesystem::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~File() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int fd() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

absl::Status WriteDurably(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path temporary = path.string() + ".new";
  {
    const File file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.fd() < 0 || !WriteAll(file.fd(), text) || ::fsync(file.fd()) != 0) {
      return Unwritable(temporary, "write", errno);
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return Unwritable(path, "rename onto", errno);
  }
  const File directory(path.parent_path(), O_RDONLY | O_DIRECTORY);
  if (directory.fd() < 0 || ::fsync(directory.fd()) != 0) {
    return Unwritable(path.parent_path(), "sync", errno);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<DeploymentRecord>> ReadRecord(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    if (!std::filesystem::exists(path)) {
      return std::optional<DeploymentRecord>();
    }
    return Unwritable(path, "read", errno);
  }
  std::ostringstream text;
  text << in.rdbuf();
  absl::StatusOr<DeploymentRecord> record = RecordFromText(text.str());
  if (!record.ok()) {
    TypedError error = ErrorOf(record.status());
    error.metadata["path"] = path.string();
    error.message =
        absl::StrFormat("%s: %s; move the file away to forget the deployment, then release its workers",
                        path.string(), error.message);
    return MakeError(error);
  }
  return std::optional<DeploymentRecord>(*std::move(record));
}

}  // namespace

FileStore::FileStore(std::filesystem::path directory, int lock_fd)
    : directory_(std::move(directory)), lock_fd_(lock_fd) {}

FileStore::~FileStore() { ::close(lock_fd_); }

absl::StatusOr<std::unique_ptr<FileStore>> FileStore::Open(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return Unwritable(directory, "make", error.value());
  }
  File lock(directory / "lock", O_RDWR | O_CREAT);
  if (lock.fd() < 0) {
    return Unwritable(directory / "lock", "open", errno);
  }
  if (::flock(lock.fd(), LOCK_EX | LOCK_NB) != 0) {
    return MakeError(
        {.code = absl::StatusCode::kFailedPrecondition,
         .reason = reason::kStoreLocked,
         .message = absl::StrFormat("%s is used by another planner; stop it or give another --state-dir",
                                    directory.string()),
         .field = "state-dir"});
  }
  return std::unique_ptr<FileStore>(new FileStore(directory, lock.Release()));
}

std::filesystem::path FileStore::PathOf(const std::string& name) const {
  return directory_ / (name + kExtension);
}

absl::StatusOr<std::optional<DeploymentRecord>> FileStore::Get(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return ReadRecord(PathOf(name));
}

absl::StatusOr<std::vector<DeploymentRecord>> FileStore::List() {
  const std::lock_guard lock(mutex_);
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    if (entry.path().extension() == kExtension) {
      paths.push_back(entry.path());
    }
  }
  if (error) {
    return Unwritable(directory_, "list", error.value());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<DeploymentRecord> records;
  for (const std::filesystem::path& path : paths) {
    KVASIR_ASSIGN_OR_RETURN(std::optional<DeploymentRecord> record, ReadRecord(path));
    if (record.has_value()) {
      records.push_back(*std::move(record));
    }
  }
  return records;
}

absl::Status FileStore::Put(const DeploymentRecord& record) {
  const std::lock_guard lock(mutex_);
  const std::filesystem::path path = PathOf(record.name);
  KVASIR_ASSIGN_OR_RETURN(const std::optional<DeploymentRecord> old, ReadRecord(path));
  const std::int64_t version = old.has_value() ? old->version : 0;
  if (version != record.version) {
    return MakeError(
        {.code = absl::StatusCode::kAborted,
         .reason = reason::kApplySuperseded,
         .message = absl::StrFormat("deployment %s was changed meanwhile: version %d, expected %d",
                                    record.name, version, record.version)});
  }
  DeploymentRecord next = record;
  ++next.version;
  return WriteDurably(path, RecordToText(next));
}

}  // namespace kvasir
