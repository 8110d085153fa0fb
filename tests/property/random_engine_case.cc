#include "tests/property/random_engine_case.h"

#include <random>
#include <string>
#include <vector>

#include "tests/testing/engine_cases.h"

namespace kvasir::testing {
namespace {

using vllm::EngineSpec;

class Dice {
 public:
  explicit Dice(std::uint32_t seed) : engine_(seed) {}
  // From [0, n).
  std::int64_t Below(std::int64_t n) { return static_cast<std::int64_t>(engine_()) % n; }
  bool OneIn(std::int64_t n) { return Below(n) == 0; }

 private:
  std::mt19937 engine_;
};

EngineSpec RandomSpec(Dice& dice) {
  const std::int64_t heads = std::int64_t{1} << dice.Below(4);
  EngineSpec spec;
  switch (dice.Below(9)) {
    case 0:
    case 1:
      spec = FullSpec(heads);
      break;
    case 2:
    case 3:
      spec = SlidingSpec(std::int64_t{512} << dice.Below(3), heads);
      break;
    case 4:
      spec = ChunkedSpec();
      break;
    case 5:
      spec = MlaSpec(dice.OneIn(3) ? 288 : 576);
      break;
    case 6:
      spec = SlidingMlaSpec(128, dice.OneIn(3) ? 288 : 576);
      break;
    case 7:
      spec = MambaSpec(std::int64_t{4096} << dice.Below(3));
      break;
    default:
      spec = HiddenSpec(1, 1024);
      break;
  }
  if (dice.OneIn(8)) spec.block_size *= 2;
  if (dice.OneIn(8)) spec.indexes_kv_by_block_stride = true;
  if (dice.OneIn(8)) spec.dcp_sharded = false;
  if (dice.OneIn(16)) spec.block_stride_alignment = 4096;
  return spec;
}

void Configure(Dice& dice, vllm::EngineConfig& config) {
  config.max_num_batched_tokens = std::int64_t{512} << dice.Below(5);
  config.kv_cache_layout = static_cast<vllm::KvLayout>(dice.Below(6));
  config.disable_hybrid_kv_cache_manager = dice.OneIn(6);
  if (dice.OneIn(6)) config.dcp = 2;
  if (dice.OneIn(6)) config.kv_connector = config.cross_layer_blocks = true;
  config.mamba_cache_mode = static_cast<vllm::MambaCacheMode>(dice.Below(3));
  if (dice.OneIn(3))
    config.speculative = vllm::EngineSpeculative{dice.OneIn(2) ? "mtp" : "dspark", 3, 2, false};
}

}  // namespace

vllm::EngineCase RandomEngineCase(std::uint32_t seed) {
  Dice dice(seed);
  CaseBuilder builder(std::int64_t{256} << dice.Below(8), (std::int64_t{1} << 24) << dice.Below(10));
  std::vector<EngineSpec> specs(static_cast<std::size_t>(1 + dice.Below(3)));
  for (EngineSpec& spec : specs) spec = RandomSpec(dice);
  const std::int64_t layers = 1 + dice.Below(24);
  for (std::int64_t i = 0; i < layers; ++i) {
    builder.Layer("model.layers." + std::to_string(i),
                  specs[static_cast<std::size_t>(dice.Below(static_cast<std::int64_t>(specs.size())))]);
  }
  Configure(dice, builder.config());
  if (dice.OneIn(4) && layers > 1) {
    const auto cut = static_cast<std::int32_t>(1 + dice.Below(layers - 1));
    const std::int64_t memory = builder.engine_case().workers[0].available_bytes;
    builder.Stages({0, cut, static_cast<std::int32_t>(layers)}, {memory, memory / 2});
  } else if (dice.OneIn(4)) {
    builder.Worker(builder.engine_case().workers[0].available_bytes / 3);
  }
  return builder.engine_case();
}

}  // namespace kvasir::testing
