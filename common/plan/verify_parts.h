// The topics of VerifyPlan, in the order they run: a later one relies on what the earlier ones have shown.
// Private to verify*.cc.
#ifndef KVASIR_COMMON_PLAN_VERIFY_PARTS_H_
#define KVASIR_COMMON_PLAN_VERIFY_PARTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/plan/plan.h"

namespace kvasir::verify {

// The path of a field, for messages. Put together only when a check fails: a plan has thousands of checks,
// and building their names would cost more than all of them. Refers to the strings it was made from.
class Field {
 public:
  constexpr Field(const char* text) : Field(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)
  constexpr explicit Field(std::string_view text) { *this = *this + text; }
  [[nodiscard]] constexpr Field operator+(std::string_view text) const {
    Field out = *this;
    if (out.count_ < out.parts_.size()) out.parts_[out.count_++] = text;
    return out;
  }
  [[nodiscard]] constexpr Field operator+(const char* text) const { return *this + std::string_view(text); }
  [[nodiscard]] Field operator+(const std::string& text) const { return *this + std::string_view(text); }
  Field operator+(std::string&& temporary) const = delete;
  [[nodiscard]] std::string Text() const {
    std::string text;
    for (const std::string_view part : parts_) text += part;
    return text;
  }

 private:
  std::array<std::string_view, 12> parts_ = {};
  std::size_t count_ = 0;
};

// InvalidArgument "<field> is <value>, must be <rule>".
[[nodiscard]] absl::Status Broken(const Field& field, const std::string& value, const std::string& rule);
[[nodiscard]] absl::Status CheckEqual(const Field& field, std::int64_t value, std::int64_t want,
                                      std::string_view reason);
[[nodiscard]] absl::Status CheckRange(const Field& field, std::int64_t value, std::int64_t min,
                                      std::int64_t max);
[[nodiscard]] absl::Status CheckName(const Field& field, const std::string& name);

// Groups: ids, names, layers, keys, roles, block rows, rollback. After it, sizes of layouts are within
// limits.
[[nodiscard]] absl::Status Groups(const Plan& plan);
// Pools: lifetimes, geometry, pages inside blocks, blocks inside parents.
[[nodiscard]] absl::Status Pools(const Plan& plan);
// Graphs: exactly the passes and buckets that the plan's limits call for, over the groups of the pass's role.
[[nodiscard]] absl::Status Graphs(const Plan& plan);
// Attribution: owners that exist, sorted, summing to the arena.
[[nodiscard]] absl::Status Attribution(const Plan& plan);

}  // namespace kvasir::verify

#endif  // KVASIR_COMMON_PLAN_VERIFY_PARTS_H_
