// How a launch drafts: the engine's method, tokens per step, and the layers that the draft adds to the cache.
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_DRAFTING_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_DRAFTING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_description.h"
#include "planner/request/engine_settings.h"

namespace kvasir {

struct Drafting {
  std::string method;              // the engine's word; empty: no drafting
  std::int64_t tokens = 0;         // per step
  std::vector<ModelLayer> layers;  // of the draft, in order; none for n-grams
  bool causal = true;              // rows of a block without a window
  bool windowed_causal = true;     // rows of a block with one
  bool own_numbers = false;        // an independent model: its layers are not numbered on from the target's
};

// The engine's word for what a draft does.
[[nodiscard]] std::string_view EngineMethodOf(DraftMethod method);

// Methods whose drafts keep nothing between steps, by the engine's word: n-grams, suffixes, Medusa's heads.
[[nodiscard]] bool DraftsWithoutCache(std::string_view method);

// Whether the options name n-grams, which some write as a model; and whether what they draft with is no
// model's cache.
[[nodiscard]] bool IsNgram(const LaunchOptions& options);
[[nodiscard]] bool DraftsWithoutModel(const LaunchOptions& options);

// InvalidArgument: a method without its draft, a draft without a number of tokens, MTP without MTP layers.
[[nodiscard]] absl::StatusOr<Drafting> DraftingOf(const EngineLaunch& launch);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_DRAFTING_H_
