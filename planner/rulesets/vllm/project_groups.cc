#include "planner/rulesets/vllm/project_groups.h"

#include <algorithm>
#include <utility>

namespace kvasir::vllm {

std::vector<EngineGroup> ProjectGroups(const std::vector<EngineGroup>& groups,
                                       const LayerSpecs& worker_layers, std::size_t layers_total) {
  std::vector<bool> here(layers_total);
  for (const UniformTypeSpecs::Member& member : worker_layers)
    here[static_cast<std::size_t>(member.layer)] = true;
  const auto is_here = [&](std::int32_t layer) { return here[static_cast<std::size_t>(layer)]; };

  std::vector<EngineGroup> projected;
  projected.reserve(groups.size());
  for (const EngineGroup& group : groups) {
    EngineGroup own;
    own.layers.reserve(group.layers.size());
    std::copy_if(group.layers.begin(), group.layers.end(), std::back_inserter(own.layers), is_here);
    own.spec = group.spec;
    if (auto* const wrapper = std::get_if<UniformTypeSpecs>(&own.spec);
        wrapper != nullptr && !own.layers.empty()) {
      auto& members = wrapper->members;
      members.erase(std::remove_if(members.begin(), members.end(),
                                   [&](const auto& member) { return !is_here(member.layer); }),
                    members.end());
    }
    own.eagle = group.eagle && !own.layers.empty();
    projected.push_back(std::move(own));
  }
  return projected;
}

}  // namespace kvasir::vllm
