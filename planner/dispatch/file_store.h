// Deployment records as files of one directory: <name>.deployment. A write goes to a temporary file, which is
// synced and renamed over the old one, and the directory is synced: after a crash there is the old record or
// the new one, never a part. One planner at a time: the directory is locked.
#ifndef KVASIR_PLANNER_DISPATCH_FILE_STORE_H_
#define KVASIR_PLANNER_DISPATCH_FILE_STORE_H_

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "planner/dispatch/deployment_store.h"

namespace kvasir {

class FileStore final : public DeploymentStore {
 public:
  // Makes the directory where there is none. FailedPrecondition when another planner has it; Internal
  // (STORE_UNWRITABLE) when it cannot be made or locked.
  static absl::StatusOr<std::unique_ptr<FileStore>> Open(const std::filesystem::path& directory);
  ~FileStore() override;
  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;

  absl::StatusOr<std::optional<DeploymentRecord>> Get(const std::string& name) override;
  absl::StatusOr<std::vector<DeploymentRecord>> List() override;
  absl::Status Put(const DeploymentRecord& record) override;

 private:
  FileStore(std::filesystem::path directory, int lock_fd);
  [[nodiscard]] std::filesystem::path PathOf(const std::string& name) const;

  const std::filesystem::path directory_;
  const int lock_fd_;
  std::mutex mutex_;
};

}  // namespace kvasir

#endif  // KVASIR_PLANNER_DISPATCH_FILE_STORE_H_
