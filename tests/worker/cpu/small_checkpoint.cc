#include "tests/worker/cpu/small_checkpoint.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/geometry/bf16.h"
#include "common/models/read_config.h"
#include "worker/engine/rope_table.h"

namespace kvasir::testing {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class T>
std::vector<float> Elements(std::string_view bytes, float (*to_float)(T)) {
  std::vector<float> values;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T element = 0;
    std::memcpy(&element, bytes.data() + at, sizeof(T));
    values.push_back(to_float(element));
  }
  return values;
}

std::vector<float> ToFloats(std::string_view dtype, std::string_view bytes) {
  if (dtype == "BF16") return Elements<std::uint16_t>(bytes, [](std::uint16_t x) { return Bf16ToFloat(x); });
  if (dtype == "I32") {
    return Elements<std::int32_t>(bytes, [](std::int32_t x) { return static_cast<float>(x); });
  }
  KVASIR_CHECK(dtype == "F32");
  return Elements<float>(bytes, [](float x) { return x; });
}

class Binder {
 public:
  Binder(SmallCheckpoint& checkpoint, RoleModel* model) : c_(checkpoint), model_(*model) {}

  void Bind() {
    model_.embedding = At("model.embed_tokens.weight");
    model_.final_norm = At("model.norm.weight");
    model_.head = At("lm_head.weight");
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      prefix_ = absl::StrFormat("model.layers.%d.", i);
      Attention(model_.layers[i]);
      Mlp(model_.layers[i]);
    }
  }

 private:
  const float* At(const std::string& name) {
    KVASIR_CHECK(c_.tensors.contains(name));
    return c_.tensors[name].data();
  }
  const float* Weight(const std::string& name) { return At(prefix_ + name + ".weight"); }

  void Attention(RoleLayer& layer) {
    layer.weights.attention_norm = Weight("input_layernorm");
    MlaLayer& mla = std::get<MlaLayer>(layer.mixer);
    MlaWeights& w = mla.weights;
    const bool low_rank = mla.shape.q_lora_rank > 0;
    if (low_rank) {
      w.q_down = Weight("self_attn.q_a_proj");
      w.q_norm = Weight("self_attn.q_a_layernorm");
    }
    w.q_up = Weight(low_rank ? "self_attn.q_b_proj" : "self_attn.q_proj");
    w.kv_down = Weight("self_attn.kv_a_proj_with_mqa");
    w.kv_norm = Weight("self_attn.kv_a_layernorm");
    w.out = Weight("self_attn.o_proj");
    std::vector<float>& frequencies = c_.tensors[prefix_ + "frequencies"];
    if (frequencies.empty()) frequencies = RopeFrequencies(c_.description.rope, mla.shape.rope_dim);
    w.frequencies = frequencies.data();
    w.w_uk = Rows("self_attn.kv_b_proj", mla.shape, 0, mla.shape.nope_dim);
    w.w_uv = Rows("self_attn.kv_b_proj", mla.shape, mla.shape.nope_dim, mla.shape.value_dim);
  }

  // Of each head `count` rows from `first` on.
  const float* Rows(const std::string& name, const MlaShape& mla, std::int64_t first, std::int64_t count) {
    const float* all = Weight(name);
    std::vector<float>& rows = c_.tensors[absl::StrFormat("%s%s.%d", prefix_, name, first)];
    if (!rows.empty()) return rows.data();
    for (std::int64_t head = 0; head < mla.heads; ++head) {
      const float* begin = all + (head * (mla.nope_dim + mla.value_dim) + first) * mla.kv_lora_rank;
      rows.insert(rows.end(), begin, begin + count * mla.kv_lora_rank);
    }
    return rows.data();
  }

  void Mlp(RoleLayer& layer) {
    LayerWeights& w = layer.weights;
    w.mlp_norm = Weight("post_attention_layernorm");
    const bool routed = layer.mlp.experts > 0;
    const std::string dense = routed ? "mlp.shared_experts." : "mlp.";
    w.mlp_gate = Weight(dense + "gate_proj");
    w.mlp_up = Weight(dense + "up_proj");
    w.mlp_down = Weight(dense + "down_proj");
    if (!routed) return;
    w.router = Weight("mlp.gate");
    if (layer.mlp.correction_bias) w.router_bias = At(prefix_ + "mlp.gate.e_score_correction_bias");
    w.expert_gate = Stacked("gate_proj", layer.mlp.experts);
    w.expert_up = Stacked("up_proj", layer.mlp.experts);
    w.expert_down = Stacked("down_proj", layer.mlp.experts);
  }

  const float* Stacked(const std::string& name, std::int64_t experts) {
    std::vector<float>& all = c_.tensors[prefix_ + name];
    if (!all.empty()) return all.data();
    for (std::int64_t e = 0; e < experts; ++e) {
      Weight(absl::StrFormat("mlp.experts.%d.%s", e, name));
      const std::vector<float>& one =
          c_.tensors[absl::StrFormat("%smlp.experts.%d.%s.weight", prefix_, e, name)];
      all.insert(all.end(), one.begin(), one.end());
    }
    return all.data();
  }

  SmallCheckpoint& c_;
  RoleModel& model_;
  std::string prefix_;
};

}  // namespace

TensorMap ReadTensors(const std::string& path) {
  const std::string file = ReadFile(path);
  std::uint64_t header_bytes = 0;
  KVASIR_CHECK(file.size() > sizeof(header_bytes));
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  const std::string_view data = std::string_view(file).substr(sizeof(header_bytes) + header_bytes);
  TensorMap tensors;
  const auto header = nlohmann::json::parse(file.substr(sizeof(header_bytes), header_bytes));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const std::size_t begin = entry.at("data_offsets").at(0).get<std::size_t>();
    const std::size_t end = entry.at("data_offsets").at(1).get<std::size_t>();
    tensors[name] = ToFloats(entry.at("dtype").get<std::string>(), data.substr(begin, end - begin));
  }
  return tensors;
}

SmallCheckpoint ReadSmallCheckpoint(const std::string& name) {
  const std::string folder = std::string(KVASIR_TEST_DATA_DIR "/checkpoints/") + name;
  SmallCheckpoint checkpoint;
  const auto description = ReadConfigJson(ReadFile(folder + "/config.json"), "test/" + name);
  KVASIR_CHECK(description.ok());
  checkpoint.description = *description;
  checkpoint.tensors = ReadTensors(folder + "/model.safetensors");
  TensorMap reference = ReadTensors(folder + "/reference.safetensors");
  for (const float token : reference["tokens"]) checkpoint.tokens.push_back(static_cast<std::int32_t>(token));
  checkpoint.logits = reference["logits"];
  return checkpoint;
}

void BindWeights(SmallCheckpoint& checkpoint, RoleModel* model) { Binder(checkpoint, model).Bind(); }

}  // namespace kvasir::testing
