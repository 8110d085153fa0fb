// The kernel families that a plan or a launch may name, as data: what each reads, its page sizes, which
// multi-token passes it can run, what its log-sum-exp means. Facts of other projects' kernels come from their
// documentation and sources, which each row names; where those are silent the table says no.
// docs/generated/backends.md is the table in print.
#ifndef KVASIR_PLANNER_REQUEST_BACKENDS_H_
#define KVASIR_PLANNER_REQUEST_BACKENDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/core/plan_request.h"

namespace kvasir {

// Our own CPU backend, which workers of this repository run.
inline constexpr std::string_view kDefaultBackend = "reference";
// Recurrent layers of a model whose attention backend keeps no state run on this one.
inline constexpr std::string_view kRecurrentBackend = "fla";

enum class LseBase : std::int8_t { kNone, kNatural, kLog2 };
// Which batches a captured graph may hold.
enum class GraphClass : std::int8_t { kNever, kSingleToken, kUniform, kAlways };

[[nodiscard]] std::string_view LseBaseName(LseBase base);          // "natural"
[[nodiscard]] std::string_view GraphClassName(GraphClass graphs);  // "uniform batches"

// Where kernels run: on NVIDIA's devices of these compute capabilities (major * 10 + minor), on AMD's.
struct BackendHardware {
  std::string_view words;  // "SM90"
  std::int32_t sm_least = 0;
  std::int32_t sm_most = 0;  // 0: on none of NVIDIA's
  bool cdna = false;
};

struct BackendRow {
  BackendFacts facts;
  std::string_view engine;  // the names that vLLM's --attention-backend takes, with spaces between
  BackendHardware hardware;
  std::int64_t page_multiple = 0;  // the kernels take any multiple of it; 0: only the sizes listed
  LseBase lse = LseBase::kNone;
  std::string_view empty_row;  // what a row without keys returns; empty: not known
  GraphClass graphs = GraphClass::kNever;
  // What vLLM's metadata builder lets a block draft's method do over a sharded context (2026-08): it raises
  // ValueError otherwise, whatever the kernel could.
  bool engine_causal_dcp = false;
  bool engine_non_causal_dcp = false;
  std::string_view source;
};

// Every row, by name.
[[nodiscard]] const std::vector<BackendRow>& BackendRows();

// The facts of the whole table, by name.
[[nodiscard]] std::vector<BackendFacts> BackendTable();

// The table with its page sizes narrowed to `block_tokens`, where a backend's kernels take that size; 0
// narrows nothing. A backend that cannot take it is left with no page size, which the planner refuses by
// name.
[[nodiscard]] std::vector<BackendFacts> BackendsWithBlock(std::int64_t block_tokens);

// Whether the named backend keeps recurrent state.
[[nodiscard]] bool KeepsState(std::string_view backend);

// The rows that vLLM's name stands for, in any case: FLASHINFER_MLA is trtllm-gen or cute-dsl, by its heads.
[[nodiscard]] std::vector<const BackendRow*> RowsOfEngine(std::string_view engine_name);
// vLLM's names of backends that read `kind`, sorted.
[[nodiscard]] std::vector<std::string> EngineBackends(LayoutKind kind);

// The smallest page of the kernels, and the block that vLLM takes where nobody asks for one: 16 tokens if the
// kernels take them, else the smallest page.
[[nodiscard]] std::int64_t SmallestPage(const BackendRow& row);
[[nodiscard]] std::int64_t PreferredBlock(const BackendRow& row);

// docs/generated/backends.md; `tools/golden` rewrites it.
[[nodiscard]] std::string BackendPage();

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_BACKENDS_H_
