// What the engine raises, as a value. A ruleset that predicts an engine must also predict how it fails, so
// each failure carries the engine's own kind beside a message of ours.
#ifndef KVASIR_PLANNER_RULESETS_VLLM_ENGINE_FAILURE_H_
#define KVASIR_PLANNER_RULESETS_VLLM_ENGINE_FAILURE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace kvasir::vllm {

// Where planning stopped.
enum class EngineStage : std::int8_t {
  kInput,        // a spec's constructor
  kPlan,         // grouping, memory checks, tensors
  kConcurrency,  // the printed capacity
  kBlockSizes,   // the scheduler's and the prefix hash's block size
};
[[nodiscard]] std::string_view EngineStageName(EngineStage stage);  // "plan"

// The Python exception, and two kinds of our own.
enum class EngineErrorKind : std::int8_t {
  kValueError,
  kAssertionError,  // absent under python -O
  kNotImplementedError,
  kZeroDivisionError,
  kTypeError,
  kAttributeError,
  kStopIteration,
  kNotInVersion,  // ours: the version has no such spec kind
  kTooLarge,      // ours: a size beyond 2^62 bytes, which Python's integers would carry on
};
[[nodiscard]] std::string_view EngineErrorKindName(EngineErrorKind kind);  // "ValueError"

struct EngineFailure {
  EngineStage stage = EngineStage::kPlan;
  EngineErrorKind kind = EngineErrorKind::kValueError;
  std::string message = {};  // ours: what was wrong with which values, then what to do
  friend bool operator==(const EngineFailure&, const EngineFailure&) = default;
};

[[nodiscard]] inline EngineFailure PlanFailure(EngineErrorKind kind, std::string message) {
  return {EngineStage::kPlan, kind, std::move(message)};
}

// A value or the engine's failure.
template <class T>
class [[nodiscard]] EngineResult {
 public:
  EngineResult(T value) : state_(std::in_place_index<0>, std::move(value)) {}                  // NOLINT
  EngineResult(EngineFailure failure) : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  // Requires ok().
  [[nodiscard]] const T& operator*() const& { return *std::get_if<0>(&state_); }
  [[nodiscard]] T& operator*() & { return *std::get_if<0>(&state_); }
  [[nodiscard]] T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  [[nodiscard]] const T* operator->() const { return std::get_if<0>(&state_); }
  [[nodiscard]] T* operator->() { return std::get_if<0>(&state_); }
  // Requires !ok().
  [[nodiscard]] const EngineFailure& failure() const& { return *std::get_if<1>(&state_); }
  [[nodiscard]] EngineFailure&& failure() && { return std::move(*std::get_if<1>(&state_)); }
  // For KVASIR_ASSIGN_OR_RETURN (common/base/status_macros.h).
  [[nodiscard]] EngineFailure&& status() && { return std::move(*this).failure(); }

 private:
  std::variant<T, EngineFailure> state_;
};

}  // namespace kvasir::vllm

#endif  // KVASIR_PLANNER_RULESETS_VLLM_ENGINE_FAILURE_H_
