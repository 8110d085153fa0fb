// soak [--seconds N] [--seed N]: real processes under a random load for N seconds (1800), reproducible from
// the seed (1). A line every 10 s; the last one says "soak: ok" or "soak: FAILED", and so does the exit code.
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/tools/soak_learn.h"
#include "tests/tools/soak_memory.h"
#include "tests/tools/soak_room.h"
#include "tests/tools/soak_servers.h"
#include "tests/tools/soak_stream.h"

namespace kvasir::soak {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kClients = 10;
constexpr std::int64_t kFaultsMax = 20;  // then the rest would say nothing new
constexpr std::chrono::seconds kSampleInterval{1};
constexpr int kSamplesPerLine = 10;
constexpr std::chrono::seconds kVarietyTime{600};  // by then every end of a request has occurred

struct Flags {
  std::chrono::seconds time{1800};
  std::uint64_t seed = 1;
};

std::optional<Flags> ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size()) return std::nullopt;
    if (name == "--seconds") {
      flags.time = std::chrono::seconds(number);
    } else if (name == "--seed") {
      flags.seed = number;
    } else {
      return std::nullopt;
    }
  }
  return argc % 2 == 1 ? std::optional(flags) : std::nullopt;
}

void Say(const std::string& line) {
  std::printf("soak: %s\n", line.c_str());
  std::fflush(stdout);
}

class Load {
 public:
  Load(SoakServers& servers, std::uint64_t seed, const Answers& answers, Tally& tally)
      : servers_(servers), seed_(seed), answers_(answers), tally_(tally) {
    for (int i = 0; i < kClients; ++i) clients_.emplace_back([this] { BeClients(); });
  }
  ~Load() {
    stop_ = true;
    for (std::thread& client : clients_) client.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  // One after the other, until the run ends; each plays its script to its end.
  void BeClients() {
    while (!stop_ && tally_.counts().faults < kFaultsMax) {
      const StreamScript script = WriteScript(seed_, next_++);
      const auto own = script.own_connection ? servers_.OwnConnection() : nullptr;
      SoakStream(own != nullptr ? *own : *servers_.leader().stub, script, &answers_, tally_).Play();
    }
  }

  SoakServers& servers_;
  const std::uint64_t seed_;
  const Answers& answers_;
  Tally& tally_;
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> clients_;
};

void Watch(std::chrono::seconds time, const Tally& tally, MemoryWatch& memory) {
  const Clock::time_point begin = Clock::now();
  std::int64_t tokens = tally.counts().tokens;
  for (int sample = 1; sample * kSampleInterval <= time; ++sample) {
    std::this_thread::sleep_until(begin + sample * kSampleInterval);
    memory.Sample();
    const Counts counts = tally.counts();
    if (counts.faults >= kFaultsMax) return;
    if (sample % kSamplesPerLine != 0) continue;
    Say(absl::StrFormat("%d s, %s, %d tokens/s, %s", sample, CountsText(counts),
                        (counts.tokens - tokens) / kSamplesPerLine, memory.NowText()));
    tokens = counts.tokens;
  }
}

void CheckRoom(SoakServers& servers, const std::string& before, Tally& tally) {
  if (const absl::Status idle = servers.CheckIdle(); !idle.ok()) tally.Fault(idle.ToString());
  const absl::StatusOr<std::string> after = MeasureRoom(*servers.leader().stub);
  if (!after.ok()) {
    tally.Fault("no room measured: " + after.status().ToString());
  } else if (*after != before) {
    tally.Fault(absl::StrFormat("blocks are lost: \"%s\" was admitted at the end, \"%s\" at the start",
                                *after, before));
  }
}

void CheckMemory(const MemoryWatch& memory, Tally& tally) {
  Say(absl::StrFormat("resident memory after the warm-up -> at the end, MiB, may grow by %d: %s",
                      kGrowthBytesMax >> 20, memory.GrowthText()));
  if (!memory.Flat()) tally.Fault("memory is not flat");
}

// A soak that did not do what it is for has shown nothing.
void CheckVariety(std::chrono::seconds time, Tally& tally) {
  const Counts counts = tally.counts();
  for (const std::int64_t streams : counts.streams) {
    if (streams == 0) tally.Fault("a kind of stream did not occur: " + StreamsText(counts));
  }
  if (time < kVarietyTime) return;
  for (const End end : {End::kLength, End::kStopToken, End::kCancelled, End::kTimeout, End::kNoSlot,
                        End::kNoBlocks, End::kCut}) {
    if (counts.ends[static_cast<std::size_t>(end)] == 0)
      tally.Fault("an end did not occur: " + CountsText(counts));
  }
}

int Finish(const Flags& flags, const Tally& tally) {
  const Counts counts = tally.counts();
  Say(absl::StrFormat("%s; drafted %d, accepted %d in %d target steps; longest wait for an event %d ms",
                      StreamsText(counts), counts.drafted, counts.accepted, counts.target_steps,
                      counts.longest_wait.count()));
  Say(absl::StrFormat("%s seed %d, %d s, %s, %d tokens, %d faults", counts.faults == 0 ? "ok" : "FAILED",
                      flags.seed, flags.time.count(), CountsText(counts), counts.tokens, counts.faults));
  return counts.faults == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int Main(const Flags& flags) {
  Say(absl::StrFormat("seed %d, %d s, %d clients", flags.seed, flags.time.count(), kClients));
  Tally tally;
  const absl::StatusOr<std::unique_ptr<SoakServers>> started = SoakServers::Start();
  if (!started.ok()) {
    tally.Fault("the servers did not come up: " + started.status().ToString());
    return Finish(flags, tally);
  }
  SoakServers& servers = **started;
  const absl::StatusOr<std::string> room = MeasureRoom(*servers.leader().stub);
  if (!room.ok()) tally.Fault("no room measured: " + room.status().ToString());
  const Answers answers = LearnAnswers(*servers.leader().stub, tally);
  Say(absl::StrFormat("room for %s; learnt from %s", room.value_or("nothing"), CountsText(tally.counts())));
  MemoryWatch memory(kSampleInterval);
  memory.Add("planner", servers.planner().process->pid());
  memory.Add("worker-0", servers.leader().process->pid());
  memory.Add("worker-1", servers.follower().process->pid());
  if (tally.counts().faults == 0) {
    const Load load(servers, flags.seed, answers, tally);
    Watch(flags.time, tally, memory);
  }
  CheckVariety(flags.time, tally);
  CheckRoom(servers, room.value_or(""), tally);
  CheckMemory(memory, tally);
  if (const absl::Status stopped = servers.Stop(); !stopped.ok()) tally.Fault(stopped.ToString());
  if (tally.counts().faults > 0) std::printf("%s\n", servers.Logs().c_str());
  return Finish(flags, tally);
}

}  // namespace
}  // namespace kvasir::soak

int main(int argc, char** argv) {
  const auto flags = kvasir::soak::ParseFlags(argc, argv);
  if (!flags.has_value()) {
    std::fprintf(stderr, "usage: soak [--seconds N] [--seed N]\n");
    return 2;
  }
  return kvasir::soak::Main(*flags);
}
