#include "planner/request/engine_backends.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "planner/request/backends.h"

namespace kvasir {
namespace {

using Test = std::function<bool(const BackendRow&)>;

bool AnyRow(const std::vector<const BackendRow*>& rows, const Test& test) {
  return std::any_of(rows.begin(), rows.end(), [&](const BackendRow* row) { return test(*row); });
}

absl::Status Refuse(const std::string& flag, const std::string& backend, const std::string& cannot,
                    LayoutKind kind, const Test& test) {
  std::string list;
  for (const std::string& name : EngineBackends(kind)) {
    if (AnyRow(RowsOfEngine(name), test)) list += (list.empty() ? "" : ", ") + name;
  }
  const std::string fix = list.empty() ? "no backend does" : "use one of " + list;
  return FieldError(
      reason::kUnknownValue, flag,
      absl::StrFormat("%s %s %s; the engine raises ValueError; %s", flag, backend, cannot, fix));
}

std::optional<DType> DtypeOf(const std::string& word) {
  if (word == "bfloat16") return DType::kBf16;
  if (word == "float16") return DType::kF16;
  if (word == "float32") return DType::kF32;
  if (word == "fp8" || word == "fp8_e4m3") return DType::kFp8E4M3;
  return std::nullopt;  // packed rows: their backends are chosen with them
}

// One backend that the launch names, and the layers it is for.
struct Named {
  std::string flag;
  std::string backend;
  bool draft = false;
};

absl::Status CheckOne(const EngineLaunch& launch, const EngineSettings& settings, const Named& named) {
  const std::vector<const BackendRow*> rows = RowsOfEngine(named.backend);
  if (rows.empty()) return absl::OkStatus();
  const ModelDescription& model = named.draft && launch.draft.has_value() ? *launch.draft : launch.target;
  const LayoutKind kind = HasLatent(model) ? LayoutKind::kLatent : LayoutKind::kKeyValue;
  // Backends of sparse attention read what an indexer picked, and nothing else.
  const bool sparse = IsSparse(model);
  const Test reads = [kind, sparse](const BackendRow& row) {
    const bool picks = row.engine.find("SPARSE") != std::string_view::npos;
    return picks == sparse &&
           std::find(row.facts.layouts.begin(), row.facts.layouts.end(), kind) != row.facts.layouts.end();
  };
  if (!AnyRow(rows, reads)) {
    return Refuse(named.flag, named.backend,
                  absl::StrFormat("does not read the %s%s rows of %s", sparse ? "sparse " : "",
                                  LayoutKindName(kind), model.name),
                  kind, reads);
  }
  if (const std::optional<DType> dtype = DtypeOf(settings.cache_dtype)) {
    const Test stores = [&](const BackendRow& row) {
      const auto& dtypes = row.facts.cache_dtypes;
      return reads(row) && std::find(dtypes.begin(), dtypes.end(), *dtype) != dtypes.end();
    };
    if (!AnyRow(rows, stores)) {
      return Refuse(named.flag, named.backend, "does not read a cache of " + settings.cache_dtype, kind,
                    stores);
    }
  }
  if (settings.block_was_said) {
    const Test pages = [&](const BackendRow& row) {
      return reads(row) && settings.block % SmallestPage(row) == 0;
    };
    if (!AnyRow(rows, pages)) {
      return Refuse(
          named.flag, named.backend,
          absl::StrFormat("does not take --block-size %d, which is no multiple of its pages", settings.block),
          kind, pages);
    }
  }
  if (settings.dcp > 1) {
    const Test combines = [&](const BackendRow& row) { return reads(row) && row.facts.lse; };
    if (!AnyRow(rows, combines)) {
      return Refuse(named.flag, named.backend,
                    absl::StrFormat("returns no log-sum-exp, by which %d ranks of a sharded context combine "
                                    "what they read",
                                    settings.dcp),
                    kind, combines);
    }
  }
  if (settings.spec_method != "dspark" || settings.dcp <= 1 || kind != LayoutKind::kLatent)
    return absl::OkStatus();
  const bool causal = !named.draft || !launch.draft.has_value() || !launch.draft->draft.has_value() ||
                      launch.draft->draft->causal;
  const Test drafts = [causal](const BackendRow& row) {
    return causal ? row.engine_causal_dcp : row.engine_non_causal_dcp;
  };
  if (AnyRow(rows, drafts)) return absl::OkStatus();
  return Refuse(
      named.flag, named.backend,
      absl::StrFormat("does not run %s blocks of a DSpark draft over a context that is sharded over %d ranks",
                      causal ? "causal" : "non-causal", settings.dcp),
      kind, drafts);
}

}  // namespace

absl::Status CheckEngineBackends(const EngineLaunch& launch, const EngineSettings& settings) {
  std::vector<Named> names;
  const bool drafts = !settings.spec_method.empty();
  if (launch.options.attention_backend.has_value()) {
    names.push_back({"--attention-backend", *launch.options.attention_backend, false});
    // The draft takes the target's unless it names its own.
    if (drafts && !launch.options.spec_attention_backend.has_value() && launch.draft.has_value() &&
        HasLatent(*launch.draft) == HasLatent(launch.target)) {
      names.push_back({"--attention-backend", *launch.options.attention_backend, true});
    }
  }
  if (drafts && launch.options.spec_attention_backend.has_value()) {
    names.push_back({"--speculative-config.attention_backend", *launch.options.spec_attention_backend, true});
  }
  for (const Named& named : names) {
    absl::Status status = CheckOne(launch, settings, named);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kvasir
