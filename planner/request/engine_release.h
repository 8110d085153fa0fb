// Which engine it is, by the day of its sources, and what changed on which day. Release numbers and the texts
// of start-up logs are turned into days, so that every rule asks one question: is this younger than the
// change?
#ifndef KVASIR_PLANNER_REQUEST_ENGINE_RELEASE_H_
#define KVASIR_PLANNER_REQUEST_ENGINE_RELEASE_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "planner/rulesets/vllm/engine_spec.h"

namespace kvasir {

struct EngineRelease {
  std::int32_t day = 20261101;  // yyyymmdd

  // The printed tokens are concurrency x max_model_len; before: blocks // groups x the least block size.
  // vLLM e68fa1b90, which 0.20.1 does not have.
  [[nodiscard]] bool prints_concurrency_tokens() const { return day >= 20260428; }
  // Windows keep the tokens of every batch in flight, not of one. cd0de48d0.
  [[nodiscard]] bool counts_batches_in_flight() const { return day >= 20260708; }
  // Hybrids cache prefixes unless they are told not to. 95ed0feaa.
  [[nodiscard]] bool hybrids_cache_prefixes() const { return day >= 20260709; }
  // A recurrent state can be cached at block boundaries of a step ("align"). 5206e5e28.
  [[nodiscard]] bool has_align_mode() const { return day >= 20260123; }
  // "align" is the mode of every model that caches prefixes. f9c74b4b9.
  [[nodiscard]] bool always_aligns() const { return day >= 20260804; }
  // "align" for models that could do "all", where they draft. f819265a4.
  [[nodiscard]] bool aligns_with_drafts() const { return day >= 20260421; }
  // Layers with a window take the kernel's smallest block, whatever --block-size says. 67ff0ae30.
  [[nodiscard]] bool windows_take_smallest_block() const { return day >= 20260704; }
  // Blocks of hybrids with latent attention are multiples of it. aeeb36b1f.
  [[nodiscard]] std::int64_t latent_hybrid_unit() const { return day >= 20260730 ? 128 : 64; }
  // Two batches are in flight unless a flag says no. 3adffd5b9.
  [[nodiscard]] bool schedules_ahead() const { return day >= 20260109; }
  // --gpu-memory-utilization of 0.92 instead of 0.90, and graphs are profiled before the cache is sized.
  // 96a85c575.
  [[nodiscard]] bool profiles_graphs() const { return day >= 20260421; }
  // Sparse latent attention stores 656-byte rows unless it is told bfloat16; later: as --kv-cache-dtype says.
  [[nodiscard]] bool sparse_defaults_to_fp8() const { return day < 20260601; }

  [[nodiscard]] vllm::EngineVersion version() const {
    return day < 20261001 ? vllm::EngineVersion::k2026_08 : vllm::EngineVersion::k2026_11;
  }
  friend auto operator<=>(const EngineRelease&, const EngineRelease&) = default;
};

// The releases that the rulesets are named after.
[[nodiscard]] EngineRelease ReleaseOf(vllm::EngineVersion version);

// "0.19.2rc1.dev134+gfe9c3d6c5", "0.20.1.dev0+g1.d20260424", "vLLM 2026-08", "0.24.0": a day stands first,
// then a release number, then a month. nullopt where the text has none of them, or a number that is no
// release.
[[nodiscard]] std::optional<EngineRelease> ParseEngineRelease(std::string_view text);

// "2026-05-04", "2026-08", "2026-05 (doc)": the middle of a month where there is no day.
[[nodiscard]] std::optional<EngineRelease> ParseEngineDay(std::string_view text);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_ENGINE_RELEASE_H_
