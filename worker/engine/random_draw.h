// Random numbers as a pure function of what they are for, so that every rank computes the same ones without
// asking and a request's draws never depend on what runs beside it.
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011): a keyed bijection of 128-bit counters. The key is the request's seed; the counter holds
// position, purpose and index, so two draws of one request share bits only if all three are equal.
#ifndef KVASIR_WORKER_ENGINE_RANDOM_DRAW_H_
#define KVASIR_WORKER_ENGINE_RANDOM_DRAW_H_

#include <array>
#include <cstdint>

namespace kvasir {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// Ten rounds.
[[nodiscard]] PhiloxCounter Philox(PhiloxCounter counter, PhiloxKey key);

// What a draw decides. Part of the meaning of a seed: add, never renumber.
enum class DrawPurpose : std::uint32_t {
  kToken =
      0,  // the token emitted at `position`: plain decoding, the replacement of a rejected draft, the bonus
  kDraft = 1,   // drafted token `index` of the block whose anchor stands at `position`
  kAccept = 2,  // whether that token passes verification
};

// Drafts are keyed by their block's anchor and not by their own position: one position may be drafted in
// several blocks, and a draft that was rejected together with its successors must not lend its draws to the
// next block (block verification looks at all of them before it decides).
struct DrawKey {
  std::uint64_t seed = 0;
  std::int64_t position = 0;
  DrawPurpose purpose = DrawPurpose::kToken;
  std::uint32_t index = 0;
};

// A multiple of 2^-53 in [0, 1).
[[nodiscard]] double UniformDraw(const DrawKey& key);

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_RANDOM_DRAW_H_
