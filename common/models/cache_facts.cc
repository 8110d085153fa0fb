#include "common/models/cache_facts.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace kvasir {
namespace {

// One f32 scale for so many lanes of an fp8 key.
constexpr std::int64_t kLanesPerScale = 128;

struct FactsOf {
  DType dtype;
  std::int64_t tp;
  absl::Status& status;

  CacheFacts operator()(const AttentionShape& s) const {
    if (s.shares_with.has_value()) return {};
    Share("heads", s.heads);
    return Rows(KeyValueHeads(s.kv_heads) * (s.head_dim + s.value_dim), std::max(s.window, s.chunk));
  }
  CacheFacts operator()(const CrossAttentionShape& s) const {
    Share("heads", s.heads);
    return Rows(KeyValueHeads(s.kv_heads) * (s.head_dim + s.value_dim), s.encoder_tokens);
  }
  CacheFacts operator()(const MlaShape& s) const {
    Share("heads", s.heads);
    CacheFacts facts = Rows(s.kv_lora_rank + s.rope_dim, s.window);
    facts.tokens_per_row = s.ratio;
    return facts;
  }
  CacheFacts operator()(const IndexerShape& s) const {
    CacheFacts facts = Rows(s.head_dim, 0);
    if (s.fp8_keys) {
      facts.row_bytes =
          s.head_dim + (s.head_dim + kLanesPerScale - 1) / kLanesPerScale * DTypeBytes(DType::kF32);
    }
    facts.tokens_per_row = s.ratio;
    return facts;
  }
  CacheFacts operator()(const CompressorShape& s) const {
    CacheFacts facts;
    facts.row_bytes = s.width * DTypeBytes(DType::kF32);
    facts.tokens_kept = s.window;
    return facts;
  }
  CacheFacts operator()(const HiddenStateShape& s) const { return Rows(s.taps * s.width, 0); }
  CacheFacts operator()(const EncoderAttentionShape&) const { return {}; }
  CacheFacts operator()(const NoMixer&) const { return {}; }

  CacheFacts operator()(const KdaShape& s) const {
    const std::int64_t heads = Share("heads", s.heads);
    return States({{"conv", {s.conv_kernel - 1, 3 * heads * s.head_dim}, dtype},
                   {"recurrent", {heads, s.head_dim, s.head_dim}, DType::kF32}});
  }
  CacheFacts operator()(const GatedDeltaShape& s) const {
    const std::int64_t keys = Share("key_heads", s.key_heads) * s.key_dim;
    const std::int64_t heads = Share("value_heads", s.value_heads);
    return States({{"conv", {s.conv_kernel - 1, 2 * keys + heads * s.value_dim}, dtype},
                   {"recurrent", {heads, s.value_dim, s.key_dim}, s.state_dtype.value_or(dtype)}});
  }
  CacheFacts operator()(const Mamba2Shape& s) const {
    const std::int64_t heads = Share("heads", s.heads);
    const std::int64_t groups = (s.groups % tp == 0 ? s.groups : tp) / tp;
    return States({{"conv", {s.conv_kernel - 1, heads * s.head_dim + 2 * groups * s.state_dim}, dtype},
                   {"recurrent", {heads, s.head_dim, s.state_dim}, s.state_dtype.value_or(dtype)}});
  }
  CacheFacts operator()(const Mamba1Shape& s) const {
    const std::int64_t inner = Share("inner", s.inner);
    return States({{"conv", {s.conv_kernel - 1, inner}, dtype},
                   {"recurrent", {inner, s.state_dim}, s.state_dtype.value_or(dtype)}});
  }
  CacheFacts operator()(const LightningShape& s) const {
    return States({{"recurrent", {Share("heads", s.heads), s.head_dim, s.head_dim}, dtype}});
  }
  CacheFacts operator()(const ShortConvShape& s) const {
    return States({{"conv", {s.conv_kernel - 1, Share("width", s.width)}, dtype}});
  }

  [[nodiscard]] CacheFacts Rows(std::int64_t elements, std::int64_t tokens_kept) const {
    CacheFacts facts;
    facts.row_bytes = elements * DTypeBytes(dtype);
    facts.tokens_kept = tokens_kept;
    return facts;
  }
  static CacheFacts States(std::vector<StateFact> states) {
    CacheFacts facts;
    facts.states = std::move(states);
    return facts;
  }

  // A rank's part of `count`.
  std::int64_t Share(std::string_view what, std::int64_t count) const {
    if (count % tp != 0 && status.ok()) {
      status = absl::InvalidArgumentError(absl::StrFormat(
          "%s = %d cannot be shared evenly by %d ranks; use a divisor of %d", what, count, tp, count));
    }
    return count / tp;
  }
  [[nodiscard]] std::int64_t KeyValueHeads(std::int64_t heads) const {
    if (heads % tp != 0 && tp % heads != 0) Share("kv_heads", heads);
    return std::max<std::int64_t>(1, heads / tp);
  }
};

}  // namespace

std::int64_t StateFact::bytes() const {
  std::int64_t elements = 1;
  for (const std::int64_t side : shape) elements *= side;
  return elements * DTypeBytes(dtype);
}

std::int64_t CacheFacts::fixed_bytes() const {
  std::int64_t bytes = tokens_kept * row_bytes;
  for (const StateFact& state : states) bytes += state.bytes();
  return bytes;
}

absl::StatusOr<CacheFacts> CacheFactsOf(const MixerShape& shape, DType dtype, std::int64_t tp) {
  absl::Status status;
  CacheFacts facts = std::visit(FactsOf{dtype, tp, status}, shape);
  if (!status.ok()) return status;
  return facts;
}

}  // namespace kvasir
