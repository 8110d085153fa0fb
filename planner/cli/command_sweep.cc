// kvasir sweep: a grid of questions in one table, the points that nothing beats marked.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/typed_error.h"
#include "planner/cli/command_line.h"
#include "planner/cli/commands.h"
#include "planner/cli/plan_question.h"
#include "planner/cli/quantity.h"
#include "planner/cli/show_sweep.h"
#include "planner/questions/sweep.h"

namespace kvasir::cli {
namespace {

// A line of progress for each tenth of a grid that takes a while.
constexpr std::int64_t kPointsWorthProgress = 5'000;

constexpr std::array kOwnFlags = {
    Flag{"gpu", "LIST",
         "devices, like h100,h200, instead of --kv-memory: what each leaves for caches at least"},
    Flag{"front", "", "only the points that no other point of that length beats"},
};
// Flags of `plan` that take a list here, each value a point of the grid.
constexpr std::array<std::string_view, 9> kAxes = {
    "tp",      "dcp",     "block-tokens", "draft-tokens", "kv-cache-dtype", "state-rollback",
    "ruleset", "context", "kv-memory"};

bool IsAxis(std::string_view flag) { return std::find(kAxes.begin(), kAxes.end(), flag) != kAxes.end(); }

std::vector<Flag> AllFlags() {
  std::vector<Flag> flags;
  for (Flag flag : PlanFlags()) {
    if (flag.name == "output") flag.help = "table, csv or json (table)";
    if (flag.name == "context")
      flag.help = "lengths, each planned for itself (8k,32k,128k as far as the model goes)";
    if (flag.name == "kv-memory") flag.help = "memory for caches per rank, like 46.8GiB";
    if (IsAxis(flag.name)) flag.value = "LIST";
    flags.push_back(flag);
  }
  flags.insert(flags.end(), kOwnFlags.begin(), kOwnFlags.end());
  return flags;
}

std::vector<std::string> WordsOf(const std::string& list) {
  std::vector<std::string> out(1);
  for (const char c : list) {
    if (c == ',') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

absl::Status ReadNumbers(const CommandLine& line, std::string_view flag, std::vector<std::int64_t>& axis) {
  const std::optional<std::string> list = line.Value(flag);
  if (!list.has_value()) return absl::OkStatus();
  for (const std::string& word : WordsOf(*list)) {
    const std::optional<std::int64_t> value = ParseInt(word);
    if (!value.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("--%s %s: expected integers with commas between", flag, *list));
    }
    axis.push_back(*value);
  }
  return absl::OkStatus();
}

void ReadTexts(const CommandLine& line, std::string_view flag, std::vector<std::string>& axis) {
  if (const std::optional<std::string> list = line.Value(flag)) axis = WordsOf(*list);
}

absl::StatusOr<SweepAxes> ReadAxes(const CommandLine& line) {
  SweepAxes axes;
  KVASIR_RETURN_IF_ERROR(ReadNumbers(line, "tp", axes.tp));
  KVASIR_RETURN_IF_ERROR(ReadNumbers(line, "dcp", axes.dcp));
  KVASIR_RETURN_IF_ERROR(ReadNumbers(line, "block-tokens", axes.block_tokens));
  KVASIR_RETURN_IF_ERROR(ReadNumbers(line, "draft-tokens", axes.draft_tokens));
  for (const std::int64_t tokens : axes.draft_tokens) KVASIR_RETURN_IF_ERROR(CheckDraftTokens(tokens));
  ReadTexts(line, "ruleset", axes.rulesets);
  ReadTexts(line, "state-rollback", axes.state_rollbacks);
  ReadTexts(line, "kv-cache-dtype", axes.cache_dtypes);
  std::replace(axes.cache_dtypes.begin(), axes.cache_dtypes.end(), std::string("fp8"),
               std::string("fp8_e4m3"));
  if (const std::optional<std::string> list = line.Value("context")) {
    KVASIR_ASSIGN_OR_RETURN(axes.contexts, ParseContexts(*list));
  }
  if (const std::optional<std::string> list = line.Value("kv-memory")) {
    KVASIR_ASSIGN_OR_RETURN(axes.kv_memory_bytes, ParseBytesList(*list));
  }
  if (line.Has("gpu") && line.Has("kv-memory"))
    return absl::InvalidArgumentError("--gpu and --kv-memory both say how much memory there is; give one");
  if (!line.Has("gpu")) return axes;
  for (const std::string& name : WordsOf(line.ValueOr("gpu", ""))) {
    const absl::StatusOr<GpuRow> row = FindGpu(name);
    if (!row.ok()) return absl::InvalidArgumentError("--gpu: " + std::string(row.status().message()));
    axes.devices.push_back(*row);
  }
  return axes;
}

// The question of `plan` with the first value of each list.
absl::StatusOr<PlanQuestion> ReadBase(const CommandLine& line) {
  std::vector<std::string> words;
  for (const Flag& flag : PlanFlags()) {
    const std::optional<std::string> value = line.Value(flag.name);
    if (!value.has_value() || flag.name == "output") continue;
    words.push_back(absl::StrFormat("--%s=%s", flag.name, IsAxis(flag.name) ? WordsOf(*value)[0] : *value));
  }
  KVASIR_ASSIGN_OR_RETURN(const CommandLine base, CommandLine::Parse(PlanFlags(), {0, 0}, words));
  return ReadQuestion(base, /*needs_memory=*/!line.Has("gpu"));
}

// As `plan` reports it, without the model's limit: a grid is for comparing.
void SetUsualContexts(const PlanQuestion& base, SweepAxes& axes) {
  if (!axes.contexts.empty()) return;
  for (const std::int64_t context : {8192, 32768, 131072}) {
    if (context <= base.target.context) axes.contexts.push_back(context);
  }
  if (axes.contexts.empty()) axes.contexts = {0};
}

SweepStep Progress(const Console& console) {
  return [&console](const SweepPoint& /*point*/, const SweepProgress& at) {
    const std::int64_t tenth = at.points / 10;
    if (at.points >= kPointsWorthProgress && at.done % tenth == 0)
      console.err << absl::StrFormat("sweep   %d of %d points\n", at.done, at.points);
    return true;
  };
}

}  // namespace

std::string SweepHelp() { return FlagsHelp(AllFlags()); }

int RunSweep(const Console& console, Args args) {
  const std::vector<Flag> flags = AllFlags();
  const absl::StatusOr<CommandLine> line = CommandLine::Parse(flags, {0, 0}, args);
  if (!line.ok()) return BadUsage(console, "sweep", line.status());
  const std::string form = line->ValueOr("output", "table");
  if (form != "table" && form != "csv" && form != "json") {
    return BadUsage(console, "sweep",
                    absl::InvalidArgumentError("--output " + form + ": expected table, csv or json"));
  }
  absl::StatusOr<SweepAxes> axes = ReadAxes(*line);
  if (!axes.ok()) return BadUsage(console, "sweep", axes.status());
  const absl::StatusOr<PlanQuestion> base = ReadBase(*line);
  if (!base.ok()) return BadUsage(console, "sweep", base.status());
  SetUsualContexts(*base, *axes);
  const absl::StatusOr<std::int64_t> points = CountPoints(*base, *axes);
  if (!points.ok()) return BadUsage(console, "sweep", points.status());
  std::vector<SweepPoint> found = Sweep(*base, *axes, Progress(console));
  if (line->Has("front")) std::erase_if(found, [](const SweepPoint& point) { return !point.on_front; });
  if (form == "csv") {
    console.out << SweepCsv(found);
  } else if (form == "json") {
    console.out << SweepJson(found);
  } else {
    ShowSweep(console, *base, *axes, found);
  }
  const bool fits = std::any_of(found.begin(), found.end(),
                                [](const SweepPoint& point) { return point.verdict == SweepVerdict::kFits; });
  return fits ? kExitOk : kExitDoesNotFit;
}

}  // namespace kvasir::cli
