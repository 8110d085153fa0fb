#include "planner/rulesets/vllm/engine_plan_text.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/sha256.h"
#include "planner/rulesets/vllm/spec_fields.h"
#include "planner/rulesets/vllm/spec_table.h"

namespace kvasir::vllm {
namespace {

constexpr std::string_view kFirstLine = "kvasir.engine_plan/1\n";

class TextWriter {
 public:
  TextWriter(const EngineCase& engine_case, const EnginePlan& plan)
      : case_(engine_case), plan_(plan), shown_(plan.specs.size(), -1) {}

  std::string Write() && {
    text_.reserve(64 * case_.layers.size() + 4096);
    text_ = kFirstLine;
    Line("engine", EngineVersionName(plan_.version));
    if (plan_.failure.has_value()) {
      Word("failure");
      Word(EngineStageName(plan_.failure->stage));
      Line("", EngineErrorKindName(plan_.failure->kind));
    }
    Line("max_model_len", plan_.max_model_len);
    for (std::size_t i = 0; i < case_.layers.size(); ++i) {
      Word("layer");
      Number(static_cast<std::int64_t>(i));
      Line("", case_.layers[i].name);
    }
    for (std::size_t g = 0; g < plan_.groups.size(); ++g) Group(g, plan_.groups[g]);
    Workers();
    Scheduler();
    return std::move(text_);
  }

 private:
  void Word(std::string_view word) {
    if (!text_.empty() && text_.back() != '\n') text_ += ' ';
    text_ += word;
  }
  void Number(std::int64_t value) {
    std::array<char, 24> digits{};
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    static_cast<void>(error);  // 24 characters hold any
    Word({digits.data(), static_cast<std::size_t>(end - digits.data())});
  }
  void Line(std::string_view word, std::string_view value) {
    if (!word.empty()) Word(word);
    Word(value);
    text_ += '\n';
  }
  void Line(std::string_view word, std::int64_t value) {
    Word(word);
    Number(value);
    text_ += '\n';
  }
  void Maybe(std::string_view word, const std::optional<std::int64_t>& value) {
    Word(word);
    if (value.has_value()) {
      Number(*value);
    } else {
      Word("none");
    }
  }

  // "0-88/4 92": runs of one step, each as first-last/step; single numbers and pairs of neighbours as they
  // are.
  template <class At>
  void Runs(std::size_t count, At at) {
    for (std::size_t begin = 0; begin < count;) {
      std::size_t end = begin + 1;
      const std::int64_t step = end < count ? at(end) - at(begin) : 0;
      while (end < count && step > 0 && at(end) - at(end - 1) == step) ++end;
      if (end - begin < 3) end = begin + 1;
      Number(at(begin));
      if (end - begin >= 3) {
        text_ += '-';
        text_ += std::to_string(at(end - 1));
        if (step != 1) text_ += '/' + std::to_string(step);
      }
      begin = end;
    }
  }
  void Layers(const std::vector<std::int32_t>& layers) {
    Word("layers");
    Runs(layers.size(), [&](std::size_t i) { return std::int64_t{layers[i]}; });
  }

  // Specs are numbered as they appear, each written before its first use.
  std::int64_t Spec(std::int32_t id) {
    std::int64_t& number = shown_[static_cast<std::size_t>(id)];
    if (number >= 0) return number;
    number = specs_++;
    const EngineSpec& spec = plan_.specs[static_cast<std::size_t>(id)];
    Word("spec");
    Number(number);
    Word(SpecKindWord(spec.kind));
    AppendFields(spec, text_);
    const auto page = PageBytes(spec);
    Maybe("page", page.ok() ? std::optional<std::int64_t>(*page) : std::nullopt);
    text_ += '\n';
    return number;
  }

  void Group(std::size_t index, const EngineGroup& group) {
    if (const auto* const merged = std::get_if<std::int32_t>(&group.spec)) {
      const std::int64_t spec = Spec(*merged);
      GroupHead(index, group);
      Word("spec");
      Number(spec);
      Layers(group.layers);
      text_ += '\n';
      return;
    }
    const auto& wrapper = std::get<UniformTypeSpecs>(group.spec);
    for (const std::int32_t id : SpecsOf(group)) static_cast<void>(Spec(id));
    GroupHead(index, group);
    Word("uniform");
    Number(wrapper.block_size);
    Layers(group.layers);
    text_ += '\n';
    for (const std::int32_t id : SpecsOf(group)) {
      std::vector<std::int32_t> members;
      for (const auto& member : wrapper.members) {
        if (member.spec == id) members.push_back(member.layer);
      }
      Word("member");
      Number(static_cast<std::int64_t>(index));
      Word("spec");
      Number(Spec(id));
      Layers(members);
      text_ += '\n';
    }
  }

  void GroupHead(std::size_t index, const EngineGroup& group) {
    Word("group");
    Number(static_cast<std::int64_t>(index));
    if (group.eagle) Word("eagle");
  }

  bool SameWorker(std::size_t a, std::size_t b) const {
    return plan_.per_worker[a] == plan_.per_worker[b] &&
           (plan_.workers.empty() || plan_.workers[a] == plan_.workers[b]);
  }

  void Workers() {
    for (std::size_t begin = 0; begin < plan_.per_worker.size();) {
      std::size_t end = begin + 1;
      while (end < plan_.per_worker.size() && SameWorker(begin, end)) ++end;
      Word("workers");
      Number(static_cast<std::int64_t>(begin));
      if (end - begin > 1) text_ += '-' + std::to_string(end - 1);
      Worker(begin);
      begin = end;
    }
  }

  void Worker(std::size_t index) {
    const EngineWorkerNumbers& numbers = plan_.per_worker[index];
    Maybe("block_bytes", numbers.pool_bytes_per_block);
    Maybe("needed", numbers.needed_bytes);
    Maybe("check", numbers.check_memory);
    Maybe("fits", numbers.estimated_max_model_len);
    if (plan_.workers.empty()) {
      text_ += '\n';
      return;
    }
    const EngineWorkerPlan& worker = plan_.workers[index];
    Line("blocks", worker.num_blocks);
    if (worker.groups != plan_.groups) {
      for (std::size_t g = 0; g < worker.groups.size(); ++g) {
        Word("own");
        Number(static_cast<std::int64_t>(g));
        if (worker.groups[g].eagle) Word("eagle");
        Layers(worker.groups[g].layers);
        text_ += '\n';
      }
    }
    for (const EngineTensor& tensor : worker.tensors) Tensor(tensor);
  }

  void Tensor(const EngineTensor& tensor) {
    Word("tensor");
    Number(tensor.size);
    Word("offset");
    Number(tensor.offset);
    Word("block");
    Number(tensor.block_stride);
    if (plan_.version == EngineVersion::k2026_11) {
      Word("layer");
      Number(tensor.layer_stride);
    }
    Layers(tensor.layers);
    text_ += '\n';
  }

  void Scheduler() {
    if (plan_.workers.empty()) return;
    Maybe("scheduler_block", plan_.scheduler_block_size);
    Maybe("hash_block", plan_.hash_block_size);
    Word("zeroing");
    Word(plan_.needs_kv_cache_zeroing ? "yes" : "no");
    Word("mixed_precision");
    Line("", plan_.has_mixed_precision_kv_cache ? "yes" : "no");
    if (!plan_.max_concurrency.has_value()) return;
    Word("capacity");
    Word(absl::StrFormat("%.17g", *plan_.max_concurrency));
    Maybe("tokens", plan_.kv_cache_size_tokens);
    text_ += '\n';
  }

  const EngineCase& case_;
  const EnginePlan& plan_;
  std::string text_;
  std::vector<std::int64_t> shown_;  // by spec id: its number in the text; -1: not yet
  std::int64_t specs_ = 0;
};

}  // namespace

std::string ToText(const EngineCase& engine_case, const EnginePlan& plan) {
  return TextWriter(engine_case, plan).Write();
}

std::string EnginePlanId(const std::string& text) { return Sha256Hex(text); }

}  // namespace kvasir::vllm
