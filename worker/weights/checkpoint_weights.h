// Weights from checkpoint directories: each rank reads the bytes of its own part only, and gets them as fp32.
#ifndef KVASIR_WORKER_WEIGHTS_CHECKPOINT_WEIGHTS_H_
#define KVASIR_WORKER_WEIGHTS_CHECKPOINT_WEIGHTS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/check_tensors.h"
#include "common/checkpoint/checkpoint.h"
#include "common/models/model_description.h"
#include "worker/engine/weight_source.h"

namespace kvasir {

// A model and the directory that holds its tensors.
struct ModelDirectory {
  const ModelDescription* model = nullptr;  // outlives Open only
  std::string directory;
  std::string root = {};  // resolved; where it is not empty, every file must lie below it
};

class CheckpointWeights final : public WeightSource {
 public:
  // Maps the files and checks every tensor. The errors of Checkpoint::Open and of CheckTensors.
  static absl::StatusOr<std::unique_ptr<CheckpointWeights>> Open(const ModelDirectory& target,
                                                                 const std::optional<ModelDirectory>& draft);

  // SHA-256 over name, type, shape and the first bytes of every tensor but experts': tells other weights of
  // the same shapes, without reading them all. DataLoss (CHECKPOINT_UNREADABLE) where a file has shrunk.
  [[nodiscard]] absl::StatusOr<std::string> Digest() const;

  // InvalidArgument (CHECKPOINT_MISMATCH) where the tensor's shape is not the spec's or it is not there,
  // DataLoss (CHECKPOINT_UNREADABLE) where its file has shrunk.
  [[nodiscard]] absl::StatusOr<std::vector<float>> Read(const WeightSpec& spec,
                                                        const TensorPart& part) const override;

 private:
  struct Role {
    Checkpoint checkpoint;
    ModelTensors tensors;  // they point into `checkpoint`
  };

  CheckpointWeights() = default;
  static absl::StatusOr<Role> OpenRole(const ModelDirectory& model);

  std::optional<Role> target_;
  std::optional<Role> draft_;
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_WEIGHTS_CHECKPOINT_WEIGHTS_H_
