// The demo pair is ours: small enough to decode on a laptop, of the same kinds as Kimi-K3 and its draft.
#include "common/models/catalogue_parts.h"

namespace kvasir::catalogue {
namespace {

// Equal in target and draft, so that the two differ in behaviour only.
constexpr MlaShape kMla{
    .heads = 8, .q_lora_rank = 48, .kv_lora_rank = 64, .nope_dim = 32, .rope_dim = 16, .value_dim = 32};

ModelDescription Target() {
  ModelDescription m =
      Make({.architecture = "DeepseekV3ForCausalLM", .hidden = 128, .vocab = 512, .context = 4096});
  Add(m, 4, kMla, Dense(256));
  return m;
}

ModelDescription Dspark() {
  ModelDescription m = Make({.architecture = "K3DSparkModel", .hidden = 128, .vocab = 512, .context = 4096});
  m.rope = {.factor = 4, .original_context = 1024, .mscale = 1, .mscale_all_dim = 1};
  Add(m, 2, kMla, Dense(256));
  m.draft = DraftShape{.target_taps = {0, 2, 3},
                       .target_hidden = 128,
                       .target_layers = 4,
                       .mask_token = 258,
                       .markov_rank = 16};
  return m;
}

constexpr Entry kEntries[] = {
    {"demo-dspark", "kvasir/demo-dspark", Dspark},
    {"demo-target", "kvasir/demo-target", Target},
};

}  // namespace

std::span<const Entry> DemoModels() { return kEntries; }

}  // namespace kvasir::catalogue
