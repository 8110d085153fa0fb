#include "planner/request/launch_remedies.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "planner/request/backends.h"
#include "planner/request/engine_answer.h"
#include "planner/request/engine_length.h"
#include "planner/request/engine_specs.h"
#include "planner/rulesets/vllm/plan_engine.h"

namespace kvasir {
namespace {

constexpr std::size_t kOffered = 12;
constexpr std::int64_t kDraftTokensTried = 8;

struct Change {
  std::string flags;
  std::function<void(EngineLaunch&)> apply;
};

class Changes {
 public:
  explicit Changes(const EngineLaunch& launch) : launch_(launch), said_(launch.options) {}

  std::vector<Change> All() && {
    Backends();
    Parallelism();
    Cache();
    Drafting();
    return std::move(changes_);
  }

 private:
  void Add(std::string flags, std::function<void(LaunchOptions&)> apply) {
    changes_.push_back({std::move(flags), [apply = std::move(apply)](EngineLaunch& l) { apply(l.options); }});
  }

  void Backends() {
    const LayoutKind kind = HasLatent(launch_.target) ? LayoutKind::kLatent : LayoutKind::kKeyValue;
    for (const std::string& name : EngineBackends(kind)) {
      if (said_.attention_backend.has_value() && said_.attention_backend != name)
        Add("--attention-backend " + name, [name](LaunchOptions& o) { o.attention_backend = name; });
    }
    if (!launch_.draft.has_value() || !said_.spec_attention_backend.has_value()) return;
    const LayoutKind draft = HasLatent(*launch_.draft) ? LayoutKind::kLatent : LayoutKind::kKeyValue;
    for (const std::string& name : EngineBackends(draft)) {
      if (said_.spec_attention_backend == name) continue;
      Add("--speculative-config.attention_backend " + name,
          [name](LaunchOptions& o) { o.spec_attention_backend = name; });
    }
  }

  void Parallelism() {
    const std::int64_t tp = said_.tensor_parallel.value_or(1);
    const std::int64_t dcp = said_.decode_context_parallel.value_or(1);
    for (std::int64_t n = std::min<std::int64_t>(tp, 64); n >= 1; --n) {
      if (n == dcp || tp % n != 0) continue;
      Add("--decode-context-parallel-size " + std::to_string(n),
          [n](LaunchOptions& o) { o.decode_context_parallel = n; });
    }
    for (std::int64_t n = 1; n <= 64; n *= 2) {
      if (n != tp)
        Add("--tensor-parallel-size " + std::to_string(n), [n](LaunchOptions& o) { o.tensor_parallel = n; });
    }
    if (said_.pipeline_parallel.value_or(1) > 1)
      Add("--pipeline-parallel-size 1", [](LaunchOptions& o) { o.pipeline_parallel = 1; });
  }

  void Cache() {
    for (const std::string_view word : {"auto", "bfloat16", "fp8"}) {
      const std::string name(word);
      if (said_.kv_cache_dtype.value_or("auto") != name)
        Add("--kv-cache-dtype " + name, [name](LaunchOptions& o) { o.kv_cache_dtype = name; });
    }
    for (const std::int64_t block : {16, 32, 64, 128, 256}) {
      if (said_.block_size.has_value() && said_.block_size != block)
        Add("--block-size " + std::to_string(block), [block](LaunchOptions& o) { o.block_size = block; });
    }
    const std::int64_t limit = EngineLengthLimit(launch_.target);
    if (said_.max_model_len.value_or(limit) > limit)
      Add("--max-model-len " + std::to_string(limit), [limit](LaunchOptions& o) { o.max_model_len = limit; });
    if (said_.cudagraph_mode.has_value()) {
      Add("--compilation-config.cudagraph_mode PIECEWISE",
          [](LaunchOptions& o) { o.cudagraph_mode = "PIECEWISE"; });
    }
    for (const bool newer : {true, false}) {
      if ((newer ? said_.dcp_interleave : said_.cp_interleave).value_or(1) <= 1) continue;
      Add(newer ? "--dcp-kv-cache-interleave-size 1" : "--cp-kv-cache-interleave-size 1",
          [newer](LaunchOptions& o) { (newer ? o.dcp_interleave : o.cp_interleave) = 1; });
    }
  }

  void Drafting() {
    if (!said_.spec_method.has_value() && !said_.spec_model.has_value() && !said_.spec_tokens.has_value())
      return;
    for (std::int64_t n = 1; n <= kDraftTokensTried; ++n) {
      if (said_.spec_tokens != n) {
        Add("--speculative-config.num_speculative_tokens " + std::to_string(n),
            [n](LaunchOptions& o) { o.spec_tokens = n; });
      }
    }
    changes_.push_back({"no --speculative-config", [](EngineLaunch& l) {
                          l.options.spec_method.reset();
                          l.options.spec_model.reset();
                          l.options.spec_tokens.reset();
                          l.draft.reset();
                        }});
  }

  const EngineLaunch& launch_;
  const LaunchOptions& said_;
  std::vector<Change> changes_;
};

}  // namespace

bool EngineTakes(const EngineLaunch& launch) {
  const absl::StatusOr<EngineQuestion> question = EngineCaseOf(launch, {kAmpleBytes});
  return question.ok() &&
         !vllm::PlanEngine(question->engine_case, launch.release.version()).failure.has_value();
}

std::vector<std::string> AcceptedInstead(const EngineLaunch& launch) {
  std::vector<std::string> found;
  if (EngineTakes(launch)) return found;
  for (const Change& change : Changes(launch).All()) {
    if (found.size() == kOffered) break;
    EngineLaunch changed = launch;
    change.apply(changed);
    if (EngineTakes(changed)) found.push_back(change.flags);
  }
  return found;
}

}  // namespace kvasir
