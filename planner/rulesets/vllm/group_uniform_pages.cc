#include "planner/rulesets/vllm/group_uniform_pages.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "planner/rulesets/vllm/merge_layers.h"
#include "planner/rulesets/vllm/merge_specs.h"

namespace kvasir::vllm {
namespace {

struct Bucket {
  std::int32_t merged = 0;  // spec id of what the bucket's specs merge to so far
  LayerSpecs layers = {};
};

// One bucket a spec, in order of first appearance.
std::vector<Bucket> EqualBuckets(const LayerSpecs& layers) {
  std::vector<Bucket> equal;
  std::vector<std::int32_t> bucket_of_spec;  // by spec id; -1: none
  for (const UniformTypeSpecs::Member& member : layers) {
    const auto id = static_cast<std::size_t>(member.spec);
    if (id >= bucket_of_spec.size()) bucket_of_spec.resize(id + 1, -1);
    if (bucket_of_spec[id] < 0) {
      bucket_of_spec[id] = static_cast<std::int32_t>(equal.size());
      equal.push_back({member.spec, {}});
    }
    equal[static_cast<std::size_t>(bucket_of_spec[id])].layers.push_back(member);
  }
  return equal;
}

// Merges `bucket` into `home` if the engine would. Each of its rules compares every spec with the first or
// with what was merged before, so that asking what is merged so far and the new spec is asking all of them.
bool Joins(SpecTable& table, Bucket& home, const Bucket& bucket, GroupingNotes& notes) {
  const std::vector<std::int32_t> specs = {home.merged, bucket.merged};
  MergeResult result = MergeSpecs(table, specs);
  if (auto* const refusal = std::get_if<CannotMerge>(&result)) {
    refusal->first_layer = home.layers.front().layer;
    refusal->other_layer = bucket.layers.front().layer;
    notes.Refused(table, specs, *refusal);
  }
  auto* const merged = std::get_if<EngineSpec>(&result);
  if (merged == nullptr) return false;
  home.merged = table.Intern(std::move(*merged));
  home.layers.insert(home.layers.end(), bucket.layers.begin(), bucket.layers.end());
  return true;
}

// Each bucket of equal specs joins the first earlier one that it merges with. Where only equal specs merge,
// these never do; optimised Python has then gone another way already (2026-08), or refuses as well (2026-11).
std::vector<Bucket> Buckets(SpecTable& table, const LayerSpecs& layers, GroupingNotes& notes) {
  std::vector<Bucket> buckets;
  for (Bucket& bucket : EqualBuckets(layers)) {
    const bool joined = std::any_of(buckets.begin(), buckets.end(), [&](Bucket& home) {
      return RuleOf(table[home.merged].kind) != MergeRule::kEqual && Joins(table, home, bucket, notes);
    });
    if (!joined) buckets.push_back(std::move(bucket));
  }
  return buckets;
}

std::size_t GroupSize(const std::vector<Bucket>& buckets) {
  const auto [smallest, largest] =
      std::minmax_element(buckets.begin(), buckets.end(),
                          [](const Bucket& a, const Bucket& b) { return a.layers.size() < b.layers.size(); });
  const std::size_t min = smallest->layers.size();
  const std::size_t max = largest->layers.size();
  return 2 * max < 3 * min ? max : min;  // max < 1.5 min
}

// "%.2f" of 100 * part / whole, rounded half to even as a double's digits are at this size.
std::string Percent(std::size_t part, std::size_t whole) {
  const std::size_t hundredths = (20000 * part / whole + 1) / 2;
  return absl::StrFormat("%d.%02d%%", hundredths / 100, hundredths % 100);
}

void LogPadding(std::size_t layers, std::size_t group_size, GroupingNotes& notes) {
  if (layers % group_size == 0) return;
  const std::size_t padding = group_size - layers % group_size;
  notes.log.push_back(absl::StrFormat("Add %d padding layers, may waste at most %s KV cache memory", padding,
                                      Percent(padding, layers)));
}

}  // namespace

std::vector<std::int32_t> Strided(const std::vector<std::int32_t>& layers, std::size_t i,
                                  std::size_t stride) {
  std::vector<std::int32_t> taken;
  taken.reserve(layers.size() / stride + 1);
  for (std::size_t at = i; at < layers.size(); at += stride) taken.push_back(layers[at]);
  return taken;
}

EngineResult<std::vector<EngineGroup>> GroupUniformPages(SpecTable& table, const LayerSpecs& layers,
                                                         const std::vector<EngineLayer>& names,
                                                         GroupingNotes& notes) {
  const std::vector<Bucket> buckets = Buckets(table, layers, notes);
  if (buckets.empty()) return PlanFailure(EngineErrorKind::kValueError, "no layers are left to group");
  const std::size_t group_size = GroupSize(buckets);
  std::vector<EngineGroup> groups;
  for (const Bucket& bucket : buckets) {
    LogPadding(bucket.layers.size(), group_size, notes);
    const std::size_t count = (bucket.layers.size() + group_size - 1) / group_size;
    for (std::size_t i = 0; i < count; ++i) {
      EngineGroup group;
      LayerSpecs members;
      for (std::size_t at = i; at < bucket.layers.size(); at += count) {
        members.push_back(bucket.layers[at]);
        group.layers.push_back(bucket.layers[at].layer);
      }
      KVASIR_ASSIGN_OR_RETURN(group.spec, InternMerged(table, members, names));
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

}  // namespace kvasir::vllm
