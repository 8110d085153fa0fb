#include "planner/request/engine_parallelism.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"

namespace kvasir {
namespace {

constexpr std::string_view kTp = "--tensor-parallel-size";
constexpr std::string_view kDcp = "--decode-context-parallel-size";

absl::Status Refuse(std::string_view flag, std::string message) {
  return FieldError(reason::kValueOutOfRange, flag, std::move(message));
}

struct Heads {
  std::int64_t queries = 0;
  std::int64_t kv = 0;
};

// Of the first layer with attention: the engine reads one number for the whole model.
std::optional<Heads> HeadsOf(const ModelDescription& model) {
  for (const ModelLayer& layer : model.layers) {
    if (const auto* s = std::get_if<AttentionShape>(&layer.mixer)) return Heads{s->heads, s->kv_heads};
    if (const auto* s = std::get_if<MlaShape>(&layer.mixer)) return Heads{s->heads, 1};
  }
  return std::nullopt;
}

// Rows of keys and values are sharded over ranks that would hold copies of the same heads otherwise.
absl::Status CheckShardedHeads(const Heads& heads, const EngineSettings& settings) {
  if (settings.tp <= heads.kv) {
    return Refuse(kDcp, absl::StrFormat("%s %d needs %s above the model's %d KV heads, and it is %d; the "
                                        "engine raises ValueError; use more ranks, or %s 1",
                                        kDcp, settings.dcp, kTp, heads.kv, settings.tp, kDcp));
  }
  const std::int64_t most = settings.tp / heads.kv;
  if (settings.dcp > most) {
    return Refuse(kDcp, absl::StrFormat("%s %d is over %d, the ranks that share one of the model's %d KV "
                                        "heads; the engine raises ValueError; use at most %d",
                                        kDcp, settings.dcp, most, heads.kv, most));
  }
  const std::int64_t queries = heads.queries / heads.kv;
  if (queries % settings.dcp != 0) {
    return Refuse(kDcp, absl::StrFormat("%s %d does not divide the %d query heads of one KV head; the engine "
                                        "raises ValueError; use a divisor of %d",
                                        kDcp, settings.dcp, queries, queries));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckParallelism(const EngineLaunch& launch, const EngineSettings& settings) {
  if (settings.pcp > 1) {
    const std::int64_t all = settings.tp * settings.pcp;
    if (settings.dcp != 1 && settings.dcp != settings.pcp && settings.dcp != all) {
      return Refuse(kDcp,
                    absl::StrFormat("%s %d beside --prefill-context-parallel-size %d; the engine raises "
                                    "ValueError; use 1, %d or %d",
                                    kDcp, settings.dcp, settings.pcp, settings.pcp, all));
    }
  } else if (settings.tp % settings.dcp != 0) {
    return Refuse(kDcp, absl::StrFormat("%s %d does not divide %s %d; the engine raises ValueError; use a "
                                        "divisor of %d",
                                        kDcp, settings.dcp, kTp, settings.tp, settings.tp));
  }
  const auto layers = static_cast<std::int64_t>(launch.target.layers.size());
  if (settings.pp > layers) {
    return Refuse(
        "--pipeline-parallel-size",
        absl::StrFormat("--pipeline-parallel-size %d is more than the model's %d layers; use fewer stages",
                        settings.pp, layers));
  }
  const std::optional<Heads> heads = HeadsOf(launch.target);
  if (!heads.has_value()) return absl::OkStatus();
  if (heads->queries % settings.tp != 0) {
    return Refuse(kTp, absl::StrFormat("%s %d does not divide the model's %d attention heads; the engine "
                                       "raises ValueError; use a divisor of %d",
                                       kTp, settings.tp, heads->queries, heads->queries));
  }
  if (settings.dcp > 1 && !HasLatent(launch.target)) return CheckShardedHeads(*heads, settings);
  return absl::OkStatus();
}

absl::Status CheckInterleave(const EngineLaunch& launch, const EngineSettings& settings) {
  const std::int64_t dcp_run = launch.options.dcp_interleave.value_or(1);
  const std::int64_t run = dcp_run > 1 ? dcp_run : launch.options.cp_interleave.value_or(1);
  if (settings.dcp <= 1 || settings.block % run == 0 || HasStates(launch.target)) return absl::OkStatus();
  const std::string_view flag =
      dcp_run > 1 ? "--dcp-kv-cache-interleave-size" : "--cp-kv-cache-interleave-size";
  return Refuse(flag, absl::StrFormat("%s %d does not divide blocks of %d tokens; the engine raises "
                                      "AssertionError; use a divisor of %d, or another --block-size",
                                      flag, run, settings.block, settings.block));
}

}  // namespace kvasir
