#include "common/plan/keys.h"

#include <charconv>
#include <system_error>

namespace kvasir {
namespace {

// Tensors inside a state or a ring start at multiples of this, so that vector loads of any dtype are aligned.
constexpr std::int64_t kTensorAlignment = 16;

std::int64_t TensorBytes(const StateTensor& tensor, std::int64_t rows) {
  const std::int64_t bytes = tensor.elements * DTypeBytes(tensor.dtype) * rows;
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

// A non-negative decimal number without sign or leading zeros that fills `text`.
std::optional<std::int32_t> ParseIndex(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return value;
}

}  // namespace

std::string LayerIdText(const LayerId& id) {
  std::string text(RoleName(id.role));
  text += '.';
  text += std::to_string(id.index);
  if (id.cache != 0) {
    text += '.';
    text += std::to_string(id.cache);
  }
  return text;
}

std::optional<LayerId> ParseLayerId(std::string_view text) {
  LayerId id;
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view role = text.substr(0, dot);
  if (role == RoleName(Role::kDraft)) {
    id.role = Role::kDraft;
  } else if (role != RoleName(Role::kTarget)) {
    return std::nullopt;
  }
  const std::string_view numbers = text.substr(dot + 1);
  const std::size_t second = numbers.find('.');
  const std::optional<std::int32_t> index = ParseIndex(numbers.substr(0, second));
  if (!index.has_value()) return std::nullopt;
  id.index = *index;
  if (second == std::string_view::npos) return id;
  const std::optional<std::int32_t> cache = ParseIndex(numbers.substr(second + 1));
  if (!cache.has_value() || *cache == 0) return std::nullopt;
  id.cache = *cache;
  return id;
}

std::int64_t RowBytes(const LayoutKey& layout) {
  if (layout.kind == LayoutKind::kState) return 0;
  return layout.heads * (layout.key_dim + layout.value_dim) * DTypeBytes(layout.dtype);
}

std::int64_t StateBytes(const LayoutKey& layout) {
  std::int64_t bytes = 0;
  for (const StateTensor& tensor : layout.states) bytes += TensorBytes(tensor, 1);
  return bytes;
}

std::int64_t RingBytes(const LayoutKey& layout, std::int64_t tokens) {
  std::int64_t bytes = 0;
  for (const StateTensor& tensor : layout.ring) bytes += TensorBytes(tensor, tokens);
  return bytes;
}

std::int64_t StateTensorOffset(const LayoutKey& layout, std::size_t index) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index; ++i) offset += TensorBytes(layout.states[i], 1);
  return offset;
}

std::int64_t RingTensorOffset(const LayoutKey& layout, std::size_t index, std::int64_t tokens) {
  std::int64_t offset = StateBytes(layout);
  for (std::size_t i = 0; i < index; ++i) offset += TensorBytes(layout.ring[i], tokens);
  return offset;
}

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kTarget:
      return "target";
    case Role::kDraft:
      return "draft";
  }
  return "invalid";
}

std::string_view LayoutKindName(LayoutKind kind) {
  switch (kind) {
    case LayoutKind::kKeyValue:
      return "key_value";
    case LayoutKind::kLatent:
      return "latent";
    case LayoutKind::kState:
      return "state";
  }
  return "invalid";
}

std::string_view MixerName(Mixer mixer) {
  switch (mixer) {
    case Mixer::kAttention:
      return "attention";
    case Mixer::kRecurrent:
      return "recurrent";
  }
  return "invalid";
}

std::string_view LifetimeKindName(LifetimeKind kind) {
  switch (kind) {
    case LifetimeKind::kPerToken:
      return "per_token";
    case LifetimeKind::kBoundedWindow:
      return "bounded_window";
    case LifetimeKind::kPerSequence:
      return "per_sequence";
  }
  return "invalid";
}

}  // namespace kvasir
