#include "tests/tools/soak_script.h"

#include <random>

#include "tests/tools/soak_questions.h"

namespace kvasir::soak {
namespace {

using std::chrono::milliseconds;

// The standard's distributions differ between libraries; these do not.
class Dice {
 public:
  Dice(std::uint64_t seed, std::int64_t number)
      : random_(seed * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(number)) {}
  // Of first .. last.
  std::int64_t Number(std::int64_t first, std::int64_t last) {
    return first + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(last - first + 1));
  }
  milliseconds Time(std::int64_t first, std::int64_t last) { return milliseconds(Number(first, last)); }
  bool Percent(std::int64_t chance) { return Number(1, 100) <= chance; }
  std::size_t Index(std::size_t count) {
    return static_cast<std::size_t>(Number(0, static_cast<std::int64_t>(count) - 1));
  }

 private:
  std::mt19937_64 random_;
};

// The first streams have one of each kind, so that a short run has them too.
StreamKind KindOf(std::int64_t number, Dice& dice) {
  if (number < static_cast<std::int64_t>(kStreamKinds)) return static_cast<StreamKind>(number);
  const std::int64_t draw = dice.Number(1, 100);
  if (draw <= 50) return StreamKind::kReads;
  if (draw <= 70) return StreamKind::kPauses;
  if (draw <= 84) return StreamKind::kDrops;
  return draw <= 96 ? StreamKind::kDeadline : StreamKind::kDeaf;
}

std::vector<std::int32_t> StopsOf(Dice& dice) {
  if (dice.Percent(60)) return {};
  if (dice.Percent(50)) return {kEndOfText};
  if (dice.Percent(50)) return {kEndOfText, '.'};
  return {dice.Percent(50) ? 'e' : ' '};
}

RequestScript RequestOf(bool patient, Dice& dice) {
  RequestScript request;
  request.prompt = dice.Index(Prompts().size());
  request.way = dice.Index(Ways().size());
  // Now and then a long one, which takes the room of several.
  request.limit = !Ways()[request.way].greedy() ? kSampledTokens
                  : dice.Percent(30)            ? kGreedyTokens
                                                : dice.Number(1, 40);
  request.stops = StopsOf(dice);
  request.logprobs = dice.Percent(30);
  request.wait = dice.Percent(60) && patient;
  if (dice.Percent(12)) request.timeout = dice.Time(1, 2500);
  request.pause = dice.Percent(40) ? milliseconds(0) : dice.Time(1, 600);
  if (dice.Percent(10)) {
    request.cancel_after_events = dice.Number(1, 30);
  } else if (dice.Percent(10)) {
    request.cancel_after_time = dice.Time(0, 1500);
  }
  return request;
}

}  // namespace

StreamScript WriteScript(std::uint64_t seed, std::int64_t number) {
  Dice dice(seed, number);
  StreamScript script{.number = number, .kind = KindOf(number, dice), .own_connection = dice.Percent(50)};
  // A connection's windows grow with what it carries, and a shared one's would take in all that a queue
  // holds.
  script.own_connection |= script.kind == StreamKind::kDeaf;
  if (script.kind == StreamKind::kPauses) {
    script.after_events = dice.Number(1, 60);
    script.time = dice.Time(500, 4000);
  } else if (script.kind == StreamKind::kDrops) {
    script.after_events = dice.Number(1, 80);
    if (dice.Percent(50)) script.time = dice.Time(1, 3000);
  } else if (script.kind == StreamKind::kDeadline) {
    script.time = dice.Time(20, 3000);
  }
  // While others wait, a request that does not is refused for their sake; so at times nobody waits.
  const bool patient = number / 32 % 4 != 3;
  const std::int64_t requests = dice.Number(1, 8);
  for (std::int64_t i = 0; i < requests; ++i) script.requests.push_back(RequestOf(patient, dice));
  return script;
}

}  // namespace kvasir::soak
