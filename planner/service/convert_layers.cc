#include "planner/service/convert_layers.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "common/geometry/dtype.h"
#include "planner/request/explicit_layers.h"
#include "planner/service/check_field.h"

namespace kvasir {
namespace {

constexpr std::int64_t kTensorsMax = 16;

absl::StatusOr<DType> DTypeFromWord(std::string_view field, const std::string& word) {
  const std::optional<DType> dtype = ParseDType(word);
  if (dtype.has_value()) {
    return *dtype;
  }
  return FieldError(reason::kUnknownValue, field,
                    absl::StrFormat("%s is \"%s\"; give bf16, f16, f32 or fp8_e4m3", field,
                                    word.substr(0, static_cast<std::size_t>(kNameBytesMax))));
}

absl::StatusOr<Role> RoleFromProto(plan::v1::ModelRole role) {
  switch (role) {
    case plan::v1::MODEL_ROLE_TARGET:
      return Role::kTarget;
    case plan::v1::MODEL_ROLE_DRAFT:
      return Role::kDraft;
    case plan::v1::MODEL_ROLE_UNSPECIFIED:
      return MissingField("role", "MODEL_ROLE_TARGET or MODEL_ROLE_DRAFT");
    default:
      return FieldError(
          reason::kUnknownValue, "role",
          absl::StrFormat("role is %d; give MODEL_ROLE_TARGET or MODEL_ROLE_DRAFT", static_cast<int>(role)));
  }
}

absl::StatusOr<KeyValueCache> KeyValueFromProto(const plan::v1::AttentionSpec& spec) {
  KVASIR_RETURN_IF_ERROR(CheckRange("head_count", spec.head_count(), 1, kHeadsMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("kv_head_count", spec.kv_head_count(), 1, spec.head_count()));
  KVASIR_RETURN_IF_ERROR(CheckRange("key_dim", spec.key_dim(), 1, kDimMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("value_dim", spec.value_dim(), 1, kDimMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("window_tokens", spec.window_tokens(), 0, kContextTokensMax));
  if (spec.head_count() % spec.kv_head_count() != 0) {
    return FieldError(reason::kConflictingFields, "kv_head_count",
                      absl::StrFormat("kv_head_count %d does not divide head_count %d", spec.kv_head_count(),
                                      spec.head_count()));
  }
  return KeyValueCache{spec.head_count(), spec.kv_head_count(), spec.key_dim(), spec.value_dim(),
                       spec.window_tokens()};
}

absl::StatusOr<LatentCache> LatentFromProto(const plan::v1::LatentSpec& spec) {
  KVASIR_RETURN_IF_ERROR(CheckRange("head_count", spec.head_count(), 1, kHeadsMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("latent_dim", spec.latent_dim(), 1, kDimMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("rope_dim", spec.rope_dim(), 0, kDimMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("window_tokens", spec.window_tokens(), 0, kContextTokensMax));
  return LatentCache{spec.head_count(), spec.latent_dim(), spec.rope_dim(), spec.window_tokens()};
}

template <class Tensors>
absl::StatusOr<std::vector<StateTensor>> TensorsFromProto(const std::string& name, const Tensors& tensors,
                                                          std::int64_t heads) {
  KVASIR_RETURN_IF_ERROR(CheckCount(name, tensors.size(), kTensorsMax));
  std::vector<StateTensor> out;
  for (int i = 0; i < tensors.size(); ++i) {
    const std::string path = absl::StrFormat("%s[%d]", name, i);
    const plan::v1::StateTensorSpec& tensor = tensors[i];
    if (tensor.name().empty()) {
      return MissingField(path + ".name", "a name");
    }
    KVASIR_RETURN_IF_ERROR(CheckTextBytes(path + ".name", tensor.name(), kNameBytesMax));
    KVASIR_RETURN_IF_ERROR(CheckRange(path + ".element_count", tensor.element_count(), 1, kStateElementsMax));
    if (tensor.element_count() % heads != 0) {
      return FieldError(
          reason::kConflictingFields, path + ".element_count",
          absl::StrFormat("element_count %d is no multiple of head_count %d", tensor.element_count(), heads));
    }
    KVASIR_ASSIGN_OR_RETURN(const DType dtype, DTypeFromWord(path + ".dtype", tensor.dtype()));
    for (const StateTensor& other : out) {
      if (other.name == tensor.name()) {
        return FieldError(reason::kDuplicateItem, path + ".name",
                          absl::StrFormat("two tensors have the name \"%s\"", tensor.name()));
      }
    }
    out.push_back({tensor.name(), tensor.element_count(), dtype});
  }
  return out;
}

absl::StatusOr<StateCache> StateFromProto(const plan::v1::StateSpec& spec) {
  KVASIR_RETURN_IF_ERROR(CheckRange("head_count", spec.head_count(), 1, kHeadsMax));
  if (spec.states().empty()) {
    return MissingField("states", "at least one tensor");
  }
  StateCache cache;
  cache.heads = spec.head_count();
  KVASIR_ASSIGN_OR_RETURN(cache.states, TensorsFromProto("states", spec.states(), cache.heads));
  KVASIR_ASSIGN_OR_RETURN(cache.ring, TensorsFromProto("ring", spec.ring(), cache.heads));
  return cache;
}

// A StatusOr of one cache into the layer, with the oneof's name before the field.
template <class Cache>
absl::Status TakeCache(std::string_view name, absl::StatusOr<Cache> cache, CacheLayer& layer) {
  if (!cache.ok()) {
    return WithinField(name, cache.status());
  }
  layer.cache = *std::move(cache);
  return absl::OkStatus();
}

absl::Status TakeMixer(const plan::v1::LayerSpec& spec, CacheLayer& layer) {
  switch (spec.mixer_case()) {
    case plan::v1::LayerSpec::kAttention:
      return TakeCache("attention", KeyValueFromProto(spec.attention()), layer);
    case plan::v1::LayerSpec::kLatent:
      return TakeCache("latent", LatentFromProto(spec.latent()), layer);
    case plan::v1::LayerSpec::kState:
      return TakeCache("state", StateFromProto(spec.state()), layer);
    case plan::v1::LayerSpec::MIXER_NOT_SET:
      break;
  }
  return MissingField("mixer", "one of attention, latent and state");
}

absl::StatusOr<CacheLayer> LayerFromProto(const plan::v1::LayerSpec& spec, Role wanted) {
  CacheLayer layer;
  KVASIR_ASSIGN_OR_RETURN(layer.id.role, RoleFromProto(spec.role()));
  if (layer.id.role != wanted) {
    return FieldError(reason::kConflictingFields, "role",
                      absl::StrFormat("a %s layer stands in the list of the %s", RoleName(layer.id.role),
                                      RoleName(wanted)));
  }
  KVASIR_RETURN_IF_ERROR(CheckRange("index", spec.index(), 0, kLayersMax - 1));
  KVASIR_RETURN_IF_ERROR(CheckRange("cache", spec.cache(), 0, kLayersMax - 1));
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("name", spec.name(), kNameBytesMax));
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("backend", spec.backend(), kNameBytesMax));
  layer.id.index = spec.index();
  layer.id.cache = spec.cache();
  layer.name = spec.name();
  layer.backend = spec.backend();
  if (spec.has_registration_index()) {
    KVASIR_RETURN_IF_ERROR(CheckRange("registration_index", spec.registration_index(), 0, kLayersMax - 1));
    layer.registration_index = spec.registration_index();
  }
  KVASIR_RETURN_IF_ERROR(TakeMixer(spec, layer));
  if (!spec.dtype().empty()) {
    KVASIR_ASSIGN_OR_RETURN(layer.dtype, DTypeFromWord("dtype", spec.dtype()));
  }
  if (spec.has_causal()) {
    layer.causal = spec.causal();
  }
  return layer;
}

}  // namespace

absl::StatusOr<ModelInput> LayersFromProto(const plan::v1::LayerSpecList& list, Role role) {
  if (list.anchor_predicts_nothing() && role == Role::kTarget) {
    return FieldError(reason::kConflictingFields, "anchor_predicts_nothing",
                      "anchor_predicts_nothing is set in the target's list; only a draft has an anchor");
  }
  if (list.layers().empty()) {
    return MissingField("layers", "at least one layer");
  }
  KVASIR_RETURN_IF_ERROR(CheckCount("layers", list.layers_size(), kLayersMax));
  KVASIR_RETURN_IF_ERROR(CheckTextBytes("name", list.name(), kNameBytesMax));
  KVASIR_RETURN_IF_ERROR(CheckRange("context_tokens", list.context_tokens(), 0, kContextTokensMax));
  std::vector<CacheLayer> layers;
  for (int i = 0; i < list.layers_size(); ++i) {
    absl::StatusOr<CacheLayer> layer = LayerFromProto(list.layers(i), role);
    if (!layer.ok()) {
      return WithinField(absl::StrFormat("layers[%d]", i), layer.status());
    }
    layers.push_back(*std::move(layer));
  }
  return ExplicitInput(role, list.name(), std::move(layers), list.context_tokens(),
                       list.anchor_predicts_nothing());
}

}  // namespace kvasir
