// The trace of a planning run: after each stage its name and its text. The debug dump, the source of
// explanations and the golden trace are this one thing.
#ifndef KVASIR_PLANNER_CORE_TRACE_H_
#define KVASIR_PLANNER_CORE_TRACE_H_

#include <functional>
#include <string_view>

namespace kvasir {

// Empty: nothing is traced and no text is made. Stage names: canonical, validated, grouped, packed, sized,
// graphed, plan.
using TraceSink = std::function<void(std::string_view stage, std::string_view text)>;

}  // namespace kvasir

#endif  // KVASIR_PLANNER_CORE_TRACE_H_
