// A file mapped for reading. Its size is that of the moment it was opened. A file that shrinks later loses
// pages under the mapping, and the kernel ends a process that touches one: CheckUnchanged, called before
// bytes are used, turns all of that into an error but a shrink during the read itself. Whoever serves a
// checkpoint must not truncate it; replacing a file by renaming another over it is safe.
#ifndef KVASIR_COMMON_CHECKPOINT_MAPPED_FILE_H_
#define KVASIR_COMMON_CHECKPOINT_MAPPED_FILE_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvasir {

class MappedFile {
 public:
  // A regular file of at least one byte; symbolic links are followed. NotFound (CHECKPOINT_NOT_FOUND),
  // InvalidArgument (CHECKPOINT_INVALID) for another kind of file, (CHECKPOINT_PATH) for one that does not
  // lie below `root`, a resolved path, unless that is empty; DataLoss (CHECKPOINT_UNREADABLE).
  static absl::StatusOr<MappedFile> Open(std::string path, std::string_view root = {});

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  // DataLoss (CHECKPOINT_UNREADABLE) where the file is shorter than it was.
  [[nodiscard]] absl::Status CheckUnchanged() const;

 private:
  MappedFile(std::string path, int descriptor, std::string_view bytes)
      : path_(std::move(path)), descriptor_(descriptor), bytes_(bytes) {}

  std::string path_;
  int descriptor_ = -1;
  std::string_view bytes_;
};

// Whether `path` is `root` or lies below it; both resolved.
[[nodiscard]] bool IsBelow(std::string_view root, std::string_view path);

// With symbolic links resolved.
struct ResolvedDirectory {
  std::string root;
  std::string directory;  // `root` or below it
};

// The directory that `directory` names, relative to `root` or absolute. InvalidArgument (CHECKPOINT_PATH)
// where it does not lie below `root` or there is no root; NotFound (CHECKPOINT_NOT_FOUND).
[[nodiscard]] absl::StatusOr<ResolvedDirectory> ResolveBelow(const std::string& root,
                                                             const std::string& directory);

}  // namespace kvasir

#endif  // KVASIR_COMMON_CHECKPOINT_MAPPED_FILE_H_
