// The kernel families that a plan may name, as data: what each reads, its page sizes, and which multi-token
// passes it can run. Facts of other projects' kernels come from their documentation and sources
// (docs/formats/cli.md says which); where those are silent the table says no.
#ifndef KVASIR_PLANNER_REQUEST_BACKENDS_H_
#define KVASIR_PLANNER_REQUEST_BACKENDS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/core/plan_request.h"

namespace kvasir {

// Our own CPU backend, which workers of this repository run.
inline constexpr std::string_view kDefaultBackend = "reference";
// Recurrent layers of a model whose attention backend keeps no state run on this one.
inline constexpr std::string_view kRecurrentBackend = "fla";

// The whole table, by name.
[[nodiscard]] std::vector<BackendFacts> BackendTable();

// The table with its page sizes narrowed to `block_tokens`, where a backend's kernels take that size; 0
// narrows nothing. A backend that cannot take it is left with no page size, which the planner refuses by
// name.
[[nodiscard]] std::vector<BackendFacts> BackendsWithBlock(std::int64_t block_tokens);

// Whether the named backend keeps recurrent state.
[[nodiscard]] bool KeepsState(std::string_view backend);

}  // namespace kvasir

#endif  // KVASIR_PLANNER_REQUEST_BACKENDS_H_
