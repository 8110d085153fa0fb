// Lists a model's tensors by family; behind expected_tensors.h.
#ifndef KVASIR_COMMON_CHECKPOINT_TENSOR_FAMILIES_H_
#define KVASIR_COMMON_CHECKPOINT_TENSOR_FAMILIES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/checkpoint/expected_tensors.h"
#include "common/models/model_description.h"

namespace kvasir {

// What spells names alike.
enum class TensorFamily : std::int8_t {
  kDeepseek,    // DeepSeek-V2 and V3, Kimi-K2
  kKimiLinear,  // its own spelling of experts
  kKimiK3,      // the same inside a multimodal model, with attention over residuals
  kK3Dspark,    // drafts with MLA layers
  kBlockDraft,  // drafts with Qwen3's layers: DFlash, DSpark
};

class TensorList {
 public:
  // `model` outlives the list.
  TensorList(const ModelDescription& model, TensorFamily family);

  void AddModel();
  void AddLayer(const ModelLayer& layer);
  // The first thing that has no names here; empty where everything has.
  [[nodiscard]] const std::string& unsupported() const { return unsupported_; }
  [[nodiscard]] std::vector<ExpectedTensor> Take() { return std::move(tensors_); }

 private:
  // `name` continues the prefix of the model or of the layer at hand, and ends without ".weight".
  ExpectedTensor& Add(TensorKind kind, std::string_view name, TensorShape shape);
  // The same, with nothing behind the name.
  ExpectedTensor& AddPlain(TensorKind kind, std::string_view name, TensorShape shape);
  // A matrix and its two companions.
  void AddMlp(std::string_view name, std::int64_t width, TensorKind gate, TensorKind up, TensorKind down);
  void Unsupported(std::string what);

  void AddDraft(const DraftShape& draft);
  // A module of multi-token prediction lies in the target's checkpoint, as one layer more.
  void AddMtp();
  [[nodiscard]] bool mtp() const {
    return model_.draft.has_value() && model_.draft->method == DraftMethod::kMtp;
  }
  [[nodiscard]] std::string LayerPrefix(std::int32_t layer) const;
  void AddMla(const MlaShape& mla);
  void AddKda(const KdaShape& kda);
  void AddAttention(const AttentionShape& attention);
  void AddExperts(const MlpShape& mlp);

  [[nodiscard]] bool kimi() const {
    return family_ == TensorFamily::kKimiLinear || family_ == TensorFamily::kKimiK3;
  }
  [[nodiscard]] bool draft() const {
    return family_ == TensorFamily::kK3Dspark || family_ == TensorFamily::kBlockDraft;
  }

  const ModelDescription& model_;
  TensorFamily family_;
  std::string wrapper_;  // "language_model." or ""
  std::string body_;     // of everything but the head: "model." behind the wrapper, or ""
  std::string prefix_;   // of what is added now
  std::int32_t layer_ = -1;
  std::int32_t expert_ = -1;
  std::vector<ExpectedTensor> tensors_;
  std::string unsupported_;
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_CHECKPOINT_TENSOR_FAMILIES_H_
