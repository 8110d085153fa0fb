#include "common/checkpoint/checkpoint.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_error.h"
#include "common/checkpoint/safetensors_index.h"

namespace kvasir {
namespace {

constexpr std::string_view kSingleName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Index and headers name the same tensors in the same files. `tensors` by name, each once.
absl::Status CheckIndex(const SafetensorsIndex& index, const std::vector<StoredTensor>& tensors,
                        const std::vector<MappedFile>& files, const std::string& path) {
  const auto invalid = [&path](const std::string& tensor, std::string value, std::string fix) {
    return ToStatus({reason::kCheckpointInvalid, path, tensor, std::move(value), std::move(fix)});
  };
  auto listed = index.file_of.begin();
  for (const StoredTensor& tensor : tensors) {
    const std::string file = BaseName(files[tensor.file].path());
    if (listed != index.file_of.end() && listed->first < tensor.entry.name) break;
    if (listed == index.file_of.end() || listed->first != tensor.entry.name) {
      return invalid(tensor.entry.name, "",
                     absl::StrFormat("%s holds it, weight_map does not name it", file));
    }
    if (listed->second != file) {
      return invalid(tensor.entry.name, "file \"" + listed->second + "\"",
                     absl::StrFormat("it lies in %s", file));
    }
    ++listed;
  }
  if (listed == index.file_of.end()) return absl::OkStatus();
  return invalid(listed->first, "file \"" + listed->second + "\"", "that file does not hold it");
}

}  // namespace

absl::Status Checkpoint::AddFile(const std::string& name) {
  KVASIR_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(directory_ + "/" + name, root_));
  KVASIR_ASSIGN_OR_RETURN(SafetensorsHeader header, ReadSafetensorsHeader(file.bytes(), file.path()));
  for (TensorEntry& entry : header.tensors) tensors_.push_back({std::move(entry), files_.size()});
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

absl::Status Checkpoint::Finish() {
  // By name, and equal names in the order of their files.
  std::sort(tensors_.begin(), tensors_.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.entry.name, a.file) < std::tie(b.entry.name, b.file);
  });
  const auto twice = std::adjacent_find(
      tensors_.begin(), tensors_.end(),
      [](const StoredTensor& a, const StoredTensor& b) { return a.entry.name == b.entry.name; });
  if (twice == tensors_.end()) return absl::OkStatus();
  return ToStatus({.reason = reason::kCheckpointInvalid,
                   .file = directory_,
                   .tensor = twice->entry.name,
                   .fix = absl::StrFormat("both %s and %s hold it", BaseName(files_[twice->file].path()),
                                          BaseName(files_[std::next(twice)->file].path()))});
}

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& directory, const std::string& root) {
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;
  checkpoint.root_ = root;
  const std::string index_path = absl::StrFormat("%s/%s", directory, kIndexName);
  const absl::StatusOr<MappedFile> index_file = MappedFile::Open(index_path, root);
  if (!index_file.ok() && !absl::IsNotFound(index_file.status())) return index_file.status();
  if (!index_file.ok()) {
    const absl::Status added = checkpoint.AddFile(std::string(kSingleName));
    if (absl::IsNotFound(added)) {
      return ToStatus({.reason = reason::kCheckpointNotFound,
                       .file = directory,
                       .fix = absl::StrFormat("it holds neither %s nor %s", kIndexName, kSingleName)});
    }
    KVASIR_RETURN_IF_ERROR(added);
    KVASIR_RETURN_IF_ERROR(checkpoint.Finish());
    return checkpoint;
  }
  KVASIR_ASSIGN_OR_RETURN(const SafetensorsIndex index,
                          ReadSafetensorsIndex(index_file->bytes(), index_path));
  for (const std::string& file : index.files) {
    // Many names may lead to one file; what it holds is not kept a second time.
    if (checkpoint.tensors_.size() > index.file_of.size()) {
      return ToStatus(
          {.reason = reason::kCheckpointInvalid,
           .file = index_path,
           .fix = absl::StrFormat("the files before %s hold more than the %d tensors of weight_map", file,
                                  index.file_of.size())});
    }
    KVASIR_RETURN_IF_ERROR(checkpoint.AddFile(file));
  }
  KVASIR_RETURN_IF_ERROR(checkpoint.Finish());
  KVASIR_RETURN_IF_ERROR(CheckIndex(index, checkpoint.tensors_, checkpoint.files_, index_path));
  return checkpoint;
}

const StoredTensor* Checkpoint::Find(std::string_view name) const {
  const auto at = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const StoredTensor& tensor, std::string_view wanted) { return tensor.entry.name < wanted; });
  return at != tensors_.end() && at->entry.name == name ? &*at : nullptr;
}

absl::StatusOr<std::string_view> Checkpoint::Bytes(const StoredTensor& tensor) const {
  const MappedFile& file = files_[tensor.file];
  KVASIR_RETURN_IF_ERROR(file.CheckUnchanged());
  return file.bytes().substr(static_cast<std::size_t>(tensor.entry.begin),
                             static_cast<std::size_t>(tensor.entry.end - tensor.entry.begin));
}

}  // namespace kvasir
