// Which class of weights a module's name, or a pattern over such names, belongs to.
#ifndef KVASIR_COMMON_MODELS_WEIGHT_CLASS_H_
#define KVASIR_COMMON_MODELS_WEIGHT_CLASS_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/models/model_description.h"

namespace kvasir {

enum class WeightClass : std::int8_t { kMixers, kDense, kExperts, kShared, kHead };
inline constexpr std::size_t kWeightClasses = 5;

// nullopt for norms, embeddings, routers and whatever lies outside the text model.
[[nodiscard]] std::optional<WeightClass> WeightClassOf(std::string_view module);

// The member of `quantisation` that describes the class.
[[nodiscard]] WeightFormat& FormatOf(WeightClass weights, WeightQuantisation& quantisation);

// Counts, over modules, for which layers each class is named.
class ModuleCount {
 public:
  explicit ModuleCount(const std::vector<ModelLayer>& layers);
  void Add(std::string_view module);
  // Named without a layer, or for at least half of the layers that have such weights.
  [[nodiscard]] bool Covers(WeightClass weights) const;

 private:
  using Layers = std::set<std::int64_t>;
  std::array<Layers, kWeightClasses> have_;
  std::array<Layers, kWeightClasses> named_;
  std::array<bool, kWeightClasses> all_{};
};

// The format that most modules of each class have.
class FormatVote {
 public:
  void Add(std::string_view module, const WeightFormat& format);
  // Overwrites the classes that have a vote.
  void Decide(WeightQuantisation& quantisation) const;

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  std::array<std::map<Key, std::int64_t>, kWeightClasses> votes_;
};

}  // namespace kvasir

#endif  // KVASIR_COMMON_MODELS_WEIGHT_CLASS_H_
