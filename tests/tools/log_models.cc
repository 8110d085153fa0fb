#include "tests/tools/log_models.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/edit_distance.h"
#include "common/models/catalogue.h"
#include "common/models/read_config.h"
#include "planner/request/plain_model_name.h"

namespace kvasir {
namespace {

ModelDescription Named(std::string name, std::int64_t context) {
  ModelDescription model;
  model.name = std::move(name);
  model.context = context;
  return model;
}

void Append(ModelDescription& model, MixerShape mixer) {
  ModelLayer layer;
  layer.index = static_cast<std::int32_t>(model.layers.size());
  layer.mixer = std::move(mixer);
  model.layers.push_back(std::move(layer));
}

ModelDescription Uniform(const std::string& name, int layers, std::int64_t kv_heads, std::int64_t dim) {
  ModelDescription model = Named(name, 1 << 20);
  for (int i = 0; i < layers; ++i) {
    Append(model,
           AttentionShape{.heads = kv_heads * 4, .kv_heads = kv_heads, .head_dim = dim, .value_dim = dim});
  }
  return model;
}

ModelDescription Latent(const std::string& name, int layers, std::int64_t lora, std::int64_t rope) {
  ModelDescription model = Named(name, 1 << 20);
  for (int i = 0; i < layers; ++i)
    Append(model, MlaShape{.heads = 64, .kv_lora_rank = lora, .rope_dim = rope});
  return model;
}

// Full attention in every `every`-th layer, gated delta nets between; one MTP layer of full attention.
ModelDescription Gated(const std::string& name, int layers, int every, std::int64_t kv_heads,
                       std::int64_t value_heads) {
  const AttentionShape full{.heads = kv_heads * 6, .kv_heads = kv_heads, .head_dim = 256, .value_dim = 256};
  ModelDescription model = Named(name, 1 << 20);
  for (int i = 0; i < layers; ++i) {
    if ((i + 1) % every == 0) {
      Append(model, full);
    } else {
      Append(model, GatedDeltaShape{.key_heads = 16,
                                    .value_heads = value_heads,
                                    .key_dim = 128,
                                    .value_dim = 128,
                                    .conv_kernel = 4,
                                    .state_dtype = DType::kF32});
    }
  }
  ModelLayer mtp;
  mtp.mixer = full;
  model.mtp_layers.push_back(mtp);
  model.mtp_depth = 1;
  return model;
}

ModelDescription NemotronNano4b() {
  ModelDescription model = Named("nemotron-3-nano-4b", 1 << 20);
  for (int i = 0; i < 25; ++i) {
    if (i % 6 == 5) {
      Append(model, AttentionShape{.heads = 32, .kv_heads = 8, .head_dim = 128, .value_dim = 128});
    } else {
      Append(model,
             Mamba2Shape{.heads = 96, .head_dim = 80, .state_dim = 128, .groups = 8, .conv_kernel = 4});
    }
  }
  return model;
}

// Models that logs name and whose configuration is in no folder of ours: facts of their model cards.
struct Shape {
  std::string_view name;
  ModelDescription (*make)();
};
constexpr std::array kShapes = {
    Shape{"kimi-k2", [] { return Latent("kimi-k2", 61, 512, 64); }},
    Shape{"mistral-7b", [] { return Uniform("mistral-7b", 32, 8, 128); }},
    Shape{"mistral-small-3.2-24b", [] { return Uniform("mistral-small-3.2-24b", 40, 8, 128); }},
    Shape{"mistral-small-4-119b", [] { return Latent("mistral-small-4-119b", 36, 256, 64); }},
    Shape{"nvidia-nemotron-3-nano-4b", NemotronNano4b},
    Shape{"qwen2-7b", [] { return Uniform("qwen2-7b", 28, 4, 128); }},
    Shape{"qwen2.5-7b", [] { return Uniform("qwen2.5-7b", 28, 4, 128); }},
    Shape{"qwen2.5-14b", [] { return Uniform("qwen2.5-14b", 48, 8, 128); }},
    Shape{"qwen2.5-32b", [] { return Uniform("qwen2.5-32b", 64, 8, 128); }},
    Shape{"qwen2.5-72b", [] { return Uniform("qwen2.5-72b", 80, 8, 128); }},
    Shape{"qwen3-235b-a22b", [] { return Uniform("qwen3-235b-a22b", 94, 4, 128); }},
    Shape{"qwen3.5-9b", [] { return Gated("qwen3.5-9b", 32, 4, 4, 32); }},
    Shape{"qwen3.5-27b", [] { return Gated("qwen3.5-27b", 64, 4, 4, 48); }},
    Shape{"llama-3.3-70b", [] { return Uniform("llama-3.3-70b", 80, 8, 128); }},
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether two names differ in one digit after a point: releases of one shape, "qwen3.6-27b" and
// "qwen3.5-27b".
bool SamePointRelease(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  std::size_t differences = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const bool after_point = i > 0 && a[i - 1] == '.' && IsDigit(a[i]) && IsDigit(b[i]);
    if (!after_point || ++differences > 1) return false;
  }
  return differences == 1;
}

}  // namespace

LogModels::LogModels(const std::string& configs) {
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(configs, ec)) {
    const std::string folder = entry.path().filename().string();
    const std::size_t split = folder.find("__");
    if (split == std::string::npos || !std::filesystem::exists(entry.path() / "config.json", ec)) continue;
    Add(folder.substr(split + 2), {"", entry.path().string(), ""});
  }
  for (const CatalogueEntry& entry : ListCatalogue()) Add(entry.hub_name, {"", "", entry.name});
  for (const Shape& shape : kShapes) Add(shape.name, {});
  // Files first where a name is there twice; shorter paths and names first, so that the choice is the same
  // anywhere.
  std::stable_sort(known_.begin(), known_.end(), [](const Known& a, const Known& b) {
    const auto rank = [](const Known& k) { return k.path.empty() ? (k.catalogue.empty() ? 2 : 1) : 0; };
    return std::tuple(a.key, rank(a), a.path, a.catalogue) < std::tuple(b.key, rank(b), b.path, b.catalogue);
  });
}

void LogModels::Add(std::string_view name, Known known) {
  known.key = PlainModelName(name);
  known_.push_back(std::move(known));
}

absl::StatusOr<ModelDescription> LogModels::Find(std::string_view name) const {
  const std::string key = PlainModelName(name);
  const auto read = [](const Known& known) -> absl::StatusOr<ModelDescription> {
    if (!known.path.empty()) return ReadConfigPath(known.path);
    if (!known.catalogue.empty()) return FindInCatalogue(known.catalogue);
    for (const Shape& shape : kShapes) {
      if (PlainModelName(shape.name) == known.key) return shape.make();
    }
    return absl::InternalError("unreachable");
  };
  const std::vector<std::function<bool(const Known&)>> passes = {
      [&](const Known& k) { return k.key == key; },
      [&](const Known& k) { return SamePointRelease(k.key, key); },
      // "gemma-4-26b" is "gemma-4-26b-a4b"; "kimi-k2.6" is "kimi-k2".
      [&](const Known& k) {
        return k.key.size() > key.size() && k.key.substr(0, key.size() + 1) == key + "-";
      },
      [&](const Known& k) { return key.size() > k.key.size() && key.substr(0, k.key.size()) == k.key; },
  };
  for (const auto& fits : passes) {
    const Known* best = nullptr;
    for (const Known& known : known_) {
      if (!fits(known)) continue;
      // The longest of those that the name begins with; else the first.
      if (best == nullptr || (known.key.size() > best->key.size() && known.key.size() <= key.size()))
        best = &known;
    }
    if (best == nullptr) continue;
    absl::StatusOr<ModelDescription> model = read(*best);
    if (model.ok()) return model;
  }
  // "OmniCoder 9B (Qwen3.5-9B architecture, inferred)": the remark names what it is made like.
  const std::size_t open = name.find('(');
  if (open != std::string_view::npos) {
    const std::string_view remark = name.substr(open + 1);
    const std::string inner(remark.substr(0, remark.find_first_of(" ,)")));
    if (!inner.empty() && inner.find('(') == std::string::npos) return Find(inner);
  }
  return absl::NotFoundError(
      absl::StrFormat("model \"%s\" is not known (as \"%s\")", std::string(name), key));
}

}  // namespace kvasir
