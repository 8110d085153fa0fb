#include "planner/core/stage_text.h"

#include "absl/strings/str_format.h"

namespace kvasir {
namespace {

std::string TensorsText(const std::vector<StateTensor>& tensors) {
  std::string text;
  for (const StateTensor& tensor : tensors) {
    text += absl::StrFormat(" %s:%s[%d]", tensor.name, DTypeName(tensor.dtype), tensor.elements);
  }
  return text;
}

}  // namespace

std::string LayoutText(const LayoutKey& layout) {
  if (layout.kind == LayoutKind::kState) {
    const std::string ring = layout.ring.empty() ? "" : " ring" + TensorsText(layout.ring);
    return absl::StrFormat("state%s%s align %d", TensorsText(layout.states), ring, layout.alignment_bytes);
  }
  return absl::StrFormat("%s %s %d x (%d + %d) align %d", LayoutKindName(layout.kind),
                         DTypeName(layout.dtype), layout.heads, layout.key_dim, layout.value_dim,
                         layout.alignment_bytes);
}

std::string BehaviourText(const BehaviourKey& behaviour) {
  const std::string window = behaviour.window == 0 ? "" : absl::StrFormat(" window %d", behaviour.window);
  return absl::StrFormat("%s %s %s%s rows %d backend %s", RoleName(behaviour.role),
                         MixerName(behaviour.mixer), behaviour.causal ? "causal" : "non-causal", window,
                         behaviour.block_rows, behaviour.backend);
}

std::string LifetimeText(const LifetimeKey& lifetime) {
  std::string text(LifetimeKindName(lifetime.kind));
  if (lifetime.kind == LifetimeKind::kBoundedWindow) text += absl::StrFormat(" %d", lifetime.window);
  if (lifetime.kind == LifetimeKind::kPerSequence) text += absl::StrFormat(" x %d", lifetime.copies);
  return text;
}

std::string LayerIdsText(std::span<const LayerId> ids) {
  std::string text;
  for (std::size_t i = 0; i < ids.size();) {
    std::size_t last = i;
    while (last + 1 < ids.size() && ids[i].cache == 0 && ids[last + 1].cache == 0 &&
           ids[last + 1].role == ids[i].role && ids[last + 1].index == ids[last].index + 1) {
      ++last;
    }
    const bool new_role = i == 0 || ids[i].role != ids[i - 1].role;
    if (i != 0) text += ',';
    if (new_role) {
      text += LayerIdText(ids[i]);
    } else {
      text += LayerIdText(ids[i]).substr(RoleName(ids[i].role).size() + 1);
    }
    if (last > i) text += absl::StrFormat("-%d", ids[last].index);
    i = last + 1;
  }
  return text;
}

std::string NumbersText(std::span<const std::int64_t> numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  return text;
}

std::string JoinedText(std::span<const std::string> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : ", ") + words[i];
  return text;
}

}  // namespace kvasir
