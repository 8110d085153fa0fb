#include "tests/tools/engine_plan_json.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "planner/rulesets/vllm/need_bytes.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::testing {
namespace {

using nlohmann::json;
using vllm::EngineGroup;
using vllm::EngineSpec;
using vllm::EngineVersion;
using vllm::SpecKind;

json ErrorJson(const vllm::EngineFailure& failure) {
  return {{"type", std::string(EngineErrorKindName(failure.kind))}, {"message", failure.message}};
}

template <class T>
json OrNull(const std::optional<T>& value) {
  return value.has_value() ? json(*value) : json(nullptr);
}

std::string UpperCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

class PlanJson {
 public:
  PlanJson(const vllm::EngineCase& engine_case, const vllm::EnginePlan& plan)
      : case_(engine_case), plan_(plan), table_(plan.version) {
    for (const EngineSpec& spec : plan.specs) static_cast<void>(table_.Intern(spec));
  }

  [[nodiscard]] json Whole() const {
    json out = {{"ok", !plan_.failure.has_value()}, {"attention_free", plan_.attention_free}};
    out["is_spec_uniform"] = OrNull(plan_.is_spec_uniform);
    out["is_type_uniform"] = OrNull(plan_.is_type_uniform);
    if (plan_.failure.has_value()) {
      out["stage"] = std::string(EngineStageName(plan_.failure->stage));
      out["error"] = ErrorJson(*plan_.failure);
    }
    if (plan_.grouped) {
      out["groups"] = json::array();
      for (const EngineGroup& group : plan_.groups) out["groups"].push_back(GroupJson(group));
      out["per_worker"] = PerWorker();
    }
    if (!plan_.workers.empty()) AddWorkers(out);
    if (plan_.max_concurrency.has_value()) out["max_concurrency"] = *plan_.max_concurrency;
    if (plan_.kv_cache_size_tokens.has_value()) out["kv_cache_size_tokens"] = *plan_.kv_cache_size_tokens;
    if (plan_.scheduler_block_size.has_value()) out["scheduler_block_size"] = *plan_.scheduler_block_size;
    if (plan_.hash_block_size.has_value()) out["hash_block_size"] = *plan_.hash_block_size;
    return out;
  }

 private:
  [[nodiscard]] const std::string& Name(std::int32_t layer) const {
    return case_.layers[static_cast<std::size_t>(layer)].name;
  }

  [[nodiscard]] json Names(const std::vector<std::int32_t>& layers) const {
    json names = json::array();
    for (const std::int32_t layer : layers) names.push_back(Name(layer));
    return names;
  }

  [[nodiscard]] json RequestJson(std::int32_t id) const {
    vllm::EngineConfig config = case_.config;
    const auto bytes = RequestBytes(table_, id, config, plan_.max_model_len);
    if (bytes.ok()) return *bytes;
    return {{"error", std::string(EngineErrorKindName(bytes.failure().kind))}};
  }

  void AddAttention(json& out, const EngineSpec& spec, bool later) const {
    out["num_kv_heads"] = spec.num_kv_heads;
    out["head_size"] = spec.head_size;
    out["head_size_v"] = spec.head_size_v;
    out["dtype"] = std::string(ElementTypeName(spec.dtype));
    out["kv_quant_mode"] = std::string(QuantModeName(spec.kv_quant_mode));
    out["num_head_slots"] = OrNull(spec.num_head_slots);
    out["state_content_bytes"] = OrNull(spec.state_content_bytes);
    if (!later) out["indexes_kv_by_block_stride"] = spec.indexes_kv_by_block_stride;
    if (later || vllm::IsMlaKind(spec.kind) || spec.kind == SpecKind::kSlidingMla) {
      out[later ? "tokens_per_state" : "compress_ratio"] = spec.tokens_per_state.tokens;
    }
    const auto unpadded = UnpaddedPageBytes(spec);
    if (unpadded.ok()) out["unpadded_page_size_bytes"] = *unpadded;
  }

  static void AddLatent(json& out, const EngineSpec& spec, bool later) {
    out["cache_dtype_str"] = OrNull(spec.cache_dtype_str);
    out["alignment"] = OrNull(spec.alignment);
    out["model_version"] = OrNull(spec.model_version);
    if (spec.kind == SpecKind::kSlidingMla) {
      if (later) out["bounded_replay"] = spec.bounded_replay;
      return;
    }
    out["non_causal_multi_token_decode"] = spec.non_causal_multi_token_decode;
    if (!later) return;
    out["cache_role"] = spec.cache_role == vllm::CacheRole::kSparse ? "SPARSE" : "INDEXER";
    out["is_index_group_leader"] = spec.is_index_group_leader;
    out["storage_block_size"] = OrNull(spec.storage_block_size);
  }

  static void AddMamba(json& out, const EngineSpec& spec, bool later) {
    out["shapes"] = spec.shapes;
    out["dtypes"] = json::array();
    for (const vllm::ElementType type : spec.dtypes)
      out["dtypes"].push_back(std::string(ElementTypeName(type)));
    out["mamba_type"] = UpperCase(spec.mamba_type);
    out["mamba_cache_mode"] = std::string(MambaCacheModeName(spec.mamba_cache_mode));
    out["num_speculative_blocks"] = spec.num_speculative_blocks;
    if (!later) return;
    out["num_prefill_checkpoint_blocks"] = spec.num_prefill_checkpoint_blocks;
    out["prefill_checkpoint_alignment"] = OrNull(spec.prefill_checkpoint_alignment);
    out["tp_replicated"] = spec.tp_replicated;
    out["num_heads"] = 1;
    out["tokens_per_state"] = -1;
  }

  [[nodiscard]] json SpecJson(std::int32_t id) const {
    const EngineSpec& spec = table_[id];
    const bool later = plan_.version == EngineVersion::k2026_11;
    json out = {{"type", std::string(SpecClassName(spec.kind))}};
    const auto page = table_.Page(id);
    if (!page.ok()) {
      out["error"] = ErrorJson(page.failure());
      return out;
    }
    out["block_size"] = spec.block_size;
    out["page_size_padded"] = OrNull(spec.page_size_padded);
    out["page_size_bytes"] = *page;
    out["max_memory_usage_bytes"] = RequestJson(id);
    if (later) {
      out["dcp_sharded"] = spec.dcp_sharded;
      out["block_stride_alignment"] = OrNull(spec.block_stride_alignment);
    }
    if (spec.kind == SpecKind::kMamba) {
      AddMamba(out, spec, later);
      return out;
    }
    AddAttention(out, spec, later);
    if (vllm::IsFullKind(spec.kind)) {
      out["sliding_window"] = OrNull(spec.sliding_window);
      out["attention_chunk_size"] = OrNull(spec.attention_chunk_size);
      out["non_causal"] = spec.non_causal;
    }
    if (vllm::IsMlaKind(spec.kind) || spec.kind == SpecKind::kSlidingMla) AddLatent(out, spec, later);
    if (vllm::IsSlidingKind(spec.kind)) {
      out["sliding_window"] = OrNull(spec.sliding_window);
      out["extra_retained_tokens"] = spec.extra_retained_tokens;
    }
    if (spec.kind == SpecKind::kChunkedLocal) out["attention_chunk_size"] = OrNull(spec.attention_chunk_size);
    if (spec.kind == SpecKind::kRswa) out["rswa_window"] = spec.rswa_window;
    if (spec.kind == SpecKind::kSinkFull) out["sink_len"] = OrNull(spec.sink_len);
    return out;
  }

  [[nodiscard]] json GroupPageJson(const EngineGroup& group) const {
    const auto page = GroupPage(table_, group);
    return page.ok() ? json(*page) : json{{"error", ErrorJson(page.failure())}};
  }

  // A wrapper's specs are given by layer, which is how they are compared.
  [[nodiscard]] json GroupSpecJson(const EngineGroup& group) const {
    if (const auto* const merged = std::get_if<std::int32_t>(&group.spec)) return SpecJson(*merged);
    const auto& wrapper = std::get<vllm::UniformTypeSpecs>(group.spec);
    json out = {{"type", "UniformTypeKVCacheSpecs"}, {"block_size", wrapper.block_size}};
    out["page_size_bytes"] = GroupPageJson(group);
    out["layer_specs"] = json::object();
    for (const auto& member : wrapper.members) out["layer_specs"][Name(member.layer)] = SpecJson(member.spec);
    const auto blocks = RequestBlocks(table_, group, case_.config, plan_.max_model_len);
    if (blocks.ok() && out["page_size_bytes"].is_number()) {
      out["max_memory_usage_bytes"] = *blocks * out["page_size_bytes"].get<std::int64_t>();
    }
    return out;
  }

  [[nodiscard]] json GroupJson(const EngineGroup& group) const {
    return {{"layer_names", Names(group.layers)},
            {"is_eagle_group", group.eagle},
            {"spec", GroupSpecJson(group)}};
  }

  [[nodiscard]] json PerWorker() const {
    json out = json::array();
    for (const vllm::EngineWorkerNumbers& numbers : plan_.per_worker) {
      json worker;
      worker["pool_bytes_per_block"] = OrNull(numbers.pool_bytes_per_block);
      worker["needed_bytes"] = OrNull(numbers.needed_bytes);
      worker["check_memory"] = OrNull(numbers.check_memory);
      worker["estimated_max_model_len"] = OrNull(numbers.estimated_max_model_len);
      out.push_back(std::move(worker));
    }
    return out;
  }

  [[nodiscard]] json TensorJson(const vllm::EngineTensor& tensor) const {
    json out = {{"size", tensor.size}, {"offset", tensor.offset}, {"block_stride", tensor.block_stride}};
    if (plan_.version == EngineVersion::k2026_11) {
      out["layers"] = Names(tensor.layers);
      out["layer_stride"] = tensor.layer_stride;
    } else {
      out["shared_by"] = Names(tensor.layers);
    }
    return out;
  }

  void AddWorkers(json& out) const {
    out["max_model_len"] = plan_.max_model_len;
    out["needs_kv_cache_zeroing"] = plan_.needs_kv_cache_zeroing;
    out["has_mixed_precision_kv_cache"] = plan_.has_mixed_precision_kv_cache;
    out["workers"] = json::array();
    for (const vllm::EngineWorkerPlan& worker : plan_.workers) {
      json node = {{"num_blocks", worker.num_blocks}, {"tensors", json::array()}, {"groups", json::array()}};
      for (const vllm::EngineTensor& tensor : worker.tensors) node["tensors"].push_back(TensorJson(tensor));
      for (const EngineGroup& group : worker.groups) {
        node["groups"].push_back({{"layer_names", Names(group.layers)},
                                  {"is_eagle_group", group.eagle},
                                  {"page_size_bytes", GroupPageJson(group)}});
      }
      out["workers"].push_back(std::move(node));
    }
    out["scheduler_groups"] = json::array();
    for (const std::int32_t id : plan_.scheduler_specs) {
      const json spec = SpecJson(id);
      out["scheduler_groups"].push_back({{"type", spec["type"]},
                                         {"block_size", spec["block_size"]},
                                         {"page_size_bytes", spec["page_size_bytes"]}});
    }
  }

  const vllm::EngineCase& case_;
  const vllm::EnginePlan& plan_;
  vllm::SpecTable table_;
};

}  // namespace

json EnginePlanJson(const vllm::EngineCase& engine_case, const vllm::EnginePlan& plan) {
  return PlanJson(engine_case, plan).Whole();
}

}  // namespace kvasir::testing
