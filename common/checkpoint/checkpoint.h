// A checkpoint directory: `model.safetensors`, or `model.safetensors.index.json` and the files it names, all
// mapped. Nothing is read but headers until somebody asks for a tensor's bytes.
#ifndef KVASIR_COMMON_CHECKPOINT_CHECKPOINT_H_
#define KVASIR_COMMON_CHECKPOINT_CHECKPOINT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/mapped_file.h"
#include "common/checkpoint/safetensors_header.h"

namespace kvasir {

struct StoredTensor {
  TensorEntry entry;
  std::size_t file = 0;  // of the checkpoint's files
};

class Checkpoint {
 public:
  // NotFound (CHECKPOINT_NOT_FOUND): neither file is there, or one that the index names. InvalidArgument
  // (CHECKPOINT_INVALID): a header or the index is not well formed, they do not name the same tensors.
  // DataLoss (CHECKPOINT_UNREADABLE): the system cannot read a file.
  // With a `root`, a resolved path, every file must really lie below it (CHECKPOINT_PATH).
  static absl::StatusOr<Checkpoint> Open(const std::string& directory, const std::string& root = {});

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return tensors_; }  // by name
  // Null where there is none of that name.
  [[nodiscard]] const StoredTensor* Find(std::string_view name) const;
  // Row-major, little-endian, unaligned; valid while the checkpoint lives. DataLoss
  // (CHECKPOINT_UNREADABLE) where its file has shrunk (mapped_file.h says what remains of that).
  [[nodiscard]] absl::StatusOr<std::string_view> Bytes(const StoredTensor& tensor) const;

 private:
  absl::Status AddFile(const std::string& name);
  absl::Status Finish();

  std::string directory_;
  std::string root_;
  std::vector<MappedFile> files_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_CHECKPOINT_CHECKPOINT_H_
