#include "planner/request/engine_backends.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "planner/request/backends.h"
#include "planner/request/engine_backend_choice.h"

namespace kvasir {
namespace {

bool AnyRow(const std::vector<const BackendRow*>& rows, const BackendTest& test) {
  return std::any_of(rows.begin(), rows.end(), [&](const BackendRow* row) { return test(*row); });
}

// One backend that the launch names, or that the engine takes, and the layers it is for.
struct Named {
  std::string flag;
  std::string backend;
  bool draft = false;
  bool said = true;
};

struct Judge;
// Whether the backend takes everything that is said, as the one that the judge is about does not.
bool TakesAll(const Judge& judge, const std::string& backend);

// What judges one of them.
struct Judge {
  const EngineLaunch& launch;
  const EngineSettings& settings;
  const Named& named;
  BackendLayers layers;
  bool advises = true;  // false: what would do instead is not looked for

  [[nodiscard]] bool Reads(const BackendRow& row) const {
    return kvasir::Reads(row, layers) && RunsOn(row, launch.device);
  }
  // Of the layers that are judged: a draft may say its own.
  [[nodiscard]] std::string CacheDtype() const {
    const std::string said = launch.options.spec_kv_cache_dtype.value_or("auto");
    return named.draft && said != "auto" ? said : settings.cache_dtype;
  }
  // With the backends that pass the test, and all others.
  [[nodiscard]] absl::Status Refuse(const std::string& cannot, const BackendTest& test) const {
    if (!advises) return absl::InvalidArgumentError(cannot);
    std::string list;
    for (const std::string& name : EngineBackends(layers.kind)) {
      if (AnyRow(RowsOfEngine(name), test) && TakesAll(*this, name))
        list += (list.empty() ? "" : ", ") + name;
    }
    const std::string fix =
        list.empty() ? "no backend does, with all else that is said" : "use one of " + list;
    const std::string about =
        named.said ? named.flag + " " + named.backend
                   : absl::StrFormat("%s is not said, and the engine's choice %s", named.flag, named.backend);
    return FieldError(reason::kUnknownValue, named.flag,
                      absl::StrFormat("%s %s; the engine raises ValueError; %s", about, cannot, fix));
  }
};

std::optional<DType> DtypeOf(const std::string& word) {
  if (word == "bfloat16") return DType::kBf16;
  if (word == "float16") return DType::kF16;
  if (word == "float32") return DType::kF32;
  if (word == "fp8" || word == "fp8_e4m3") return DType::kFp8E4M3;
  return std::nullopt;  // packed rows: their backends are chosen with them
}

absl::Status CheckDevice(const Judge& judge, const std::vector<const BackendRow*>& rows) {
  const auto& device = judge.launch.device;
  const BackendTest runs = [&](const BackendRow& row) { return RunsOn(row, device); };
  if (AnyRow(rows, runs)) return absl::OkStatus();
  const BackendTest reads = [&](const BackendRow& row) { return judge.Reads(row); };
  return judge.Refuse(absl::StrFormat("does not run on %s: its kernels are for %s",
                                      std::string(device->title), std::string(rows.front()->hardware.words)),
                      reads);
}

absl::Status CheckCache(const Judge& judge, const std::vector<const BackendRow*>& rows) {
  const EngineSettings& settings = judge.settings;
  const std::string cache_dtype = judge.CacheDtype();
  if (const std::optional<DType> dtype = DtypeOf(cache_dtype)) {
    const BackendTest stores = [&](const BackendRow& row) {
      const auto& dtypes = row.facts.cache_dtypes;
      return judge.Reads(row) && std::find(dtypes.begin(), dtypes.end(), *dtype) != dtypes.end();
    };
    if (!AnyRow(rows, stores)) return judge.Refuse("does not read a cache of " + cache_dtype, stores);
  }
  if (!settings.block_was_said) return absl::OkStatus();
  const BackendTest pages = [&](const BackendRow& row) {
    return judge.Reads(row) && settings.block % SmallestPage(row) == 0;
  };
  if (AnyRow(rows, pages)) return absl::OkStatus();
  return judge.Refuse(
      absl::StrFormat("does not take --block-size %d, which is no multiple of its pages", settings.block),
      pages);
}

// Whether what the ranks read of a sharded context can be put together.
absl::Status CheckShardedContext(const Judge& judge, const std::vector<const BackendRow*>& rows) {
  const EngineSettings& settings = judge.settings;
  if (settings.dcp <= 1) return absl::OkStatus();
  const BackendTest combines = [&](const BackendRow& row) { return judge.Reads(row) && row.facts.lse; };
  if (!AnyRow(rows, combines)) {
    return judge.Refuse(
        absl::StrFormat("returns no log-sum-exp, by which %d ranks of a sharded context combine "
                        "what they read",
                        settings.dcp),
        combines);
  }
  if (settings.spec_method != "dspark" || judge.layers.kind != LayoutKind::kLatent) return absl::OkStatus();
  const EngineLaunch& launch = judge.launch;
  const bool causal = !judge.named.draft || !launch.draft.has_value() || !launch.draft->draft.has_value() ||
                      launch.draft->draft->causal;
  const BackendTest drafts = [&](const BackendRow& row) {
    return judge.Reads(row) && (causal ? row.engine_causal_dcp : row.engine_non_causal_dcp);
  };
  if (AnyRow(rows, drafts)) return absl::OkStatus();
  return judge.Refuse(
      absl::StrFormat("does not run %s blocks of a DSpark draft over a context that is sharded over %d ranks",
                      causal ? "causal" : "non-causal", settings.dcp),
      drafts);
}

// Whether rows of a drafted block see those behind them.
bool IsNonCausal(const EngineLaunch& launch) {
  return launch.draft.has_value() && launch.draft->draft.has_value() && !launch.draft->draft->causal;
}

absl::Status CheckAll(const Judge& judge, const std::vector<const BackendRow*>& rows) {
  const EngineLaunch& launch = judge.launch;
  const Named& named = judge.named;
  const ModelDescription& model = named.draft && launch.draft.has_value() ? *launch.draft : launch.target;
  KVASIR_RETURN_IF_ERROR(CheckDevice(judge, rows));
  const BackendTest reads = [&](const BackendRow& row) { return judge.Reads(row); };
  if (!AnyRow(rows, reads)) {
    return judge.Refuse(
        absl::StrFormat("does not read the %s%s rows of %s", judge.layers.sparse ? "sparse " : "",
                        LayoutKindName(judge.layers.kind), model.name),
        reads);
  }
  KVASIR_RETURN_IF_ERROR(CheckCache(judge, rows));
  if (named.draft && IsNonCausal(launch)) {
    const BackendTest runs = [&](const BackendRow& row) {
      return judge.Reads(row) && row.facts.non_causal_multi_token;
    };
    if (!AnyRow(rows, runs)) {
      return judge.Refuse("does not run the non-causal blocks of " + launch.draft->name, runs);
    }
  }
  return CheckShardedContext(judge, rows);
}

// A DSpark draft takes the target's backend unless it names its own; others choose theirs.
bool SharesBackend(const EngineLaunch& launch, const EngineSettings& settings) {
  return settings.spec_method == "dspark" && !launch.options.spec_attention_backend.has_value() &&
         launch.draft.has_value();
}

bool TakesAll(const Judge& judge, const std::string& backend) {
  const auto takes = [&](bool draft) {
    Named named = judge.named;
    named.backend = backend;
    named.draft = draft;
    const BackendLayers layers = draft == judge.named.draft
                                     ? judge.layers
                                     : BackendLayersOf(draft ? *judge.launch.draft : judge.launch.target);
    const Judge other{judge.launch, judge.settings, named, layers, /*advises=*/false};
    return CheckAll(other, RowsOfEngine(backend)).ok();
  };
  return takes(judge.named.draft) &&
         (!SharesBackend(judge.launch, judge.settings) || takes(!judge.named.draft));
}

absl::Status CheckOne(const EngineLaunch& launch, const EngineSettings& settings, const Named& named) {
  const std::vector<const BackendRow*> rows = RowsOfEngine(named.backend);
  if (rows.empty()) return absl::OkStatus();
  const ModelDescription& model = named.draft && launch.draft.has_value() ? *launch.draft : launch.target;
  return CheckAll(Judge{launch, settings, named, BackendLayersOf(model)}, rows);
}

// Whether any layer keeps rows that an attention backend reads.
bool HasCachedAttention(const ModelDescription& model) {
  return std::any_of(model.layers.begin(), model.layers.end(), [](const ModelLayer& layer) {
    return std::holds_alternative<AttentionShape>(layer.mixer) ||
           std::holds_alternative<MlaShape>(layer.mixer);
  });
}

// What the engine takes where nobody names a backend, on the device that the launch is for.
absl::Status CheckUnsaid(const EngineLaunch& launch, const EngineSettings& settings) {
  if (!launch.device.has_value() || launch.did_start) return absl::OkStatus();
  const bool looked_for = !settings.backend.empty() || !HasCachedAttention(launch.target);
  if (!looked_for && !settings.of_one_size) {
    return FieldError(
        reason::kConflictingFields, "--attention-backend",
        absl::StrFormat(
            "no attention backend of the engine takes %s with a cache of %s%s on %s; the engine raises "
            "ValueError; change one of them (docs/generated/backends.md)",
            launch.target.name, settings.cache_dtype,
            settings.block_was_said ? absl::StrFormat(" and blocks of %d", settings.block) : "",
            std::string(launch.device->title)));
  }
  if (!settings.backend.empty()) {
    const Named named{"--attention-backend", settings.backend, /*draft=*/false, /*said=*/false};
    const Judge judge{launch, settings, named, BackendLayersOf(launch.target)};
    KVASIR_RETURN_IF_ERROR(CheckShardedContext(judge, RowsOfEngine(settings.backend)));
  }
  const bool latent = IsNonCausal(launch) && HasLatent(*launch.draft);
  if (!latent || launch.options.spec_attention_backend.has_value() || settings.dcp <= 1)
    return absl::OkStatus();
  if (!NonCausalDraftBackendUnsaid(launch).empty()) return absl::OkStatus();
  return FieldError(
      reason::kConflictingFields, "--speculative-config.attention_backend",
      absl::StrFormat(
          "no backend on %s with a cache of %s runs the non-causal blocks of %s over a context that is "
          "sharded over %d ranks; the engine raises ValueError; use --decode-context-parallel-size 1, or "
          "a device and a --kv-cache-dtype that one of them takes (docs/generated/backends.md)",
          std::string(launch.device->title), settings.cache_dtype, launch.draft->name, settings.dcp));
}

}  // namespace

absl::Status CheckEngineBackends(const EngineLaunch& launch, const EngineSettings& settings) {
  std::vector<Named> names;
  const bool drafts = !settings.spec_method.empty();
  if (launch.options.attention_backend.has_value()) {
    names.push_back({"--attention-backend", *launch.options.attention_backend, false});
    if (SharesBackend(launch, settings)) {
      names.push_back({"--attention-backend", *launch.options.attention_backend, true});
    }
  }
  if (drafts && launch.options.spec_attention_backend.has_value()) {
    names.push_back({"--speculative-config.attention_backend", *launch.options.spec_attention_backend, true});
  }
  for (const Named& named : names) KVASIR_RETURN_IF_ERROR(CheckOne(launch, settings, named));
  return launch.options.attention_backend.has_value() ? absl::OkStatus() : CheckUnsaid(launch, settings);
}

}  // namespace kvasir
