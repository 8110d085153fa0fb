// kvasir decode: prompts in, tokens out, all prompts at once.
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "planner/cli/remote/decode_stream.h"
#include "planner/cli/remote/deployment_view.h"
#include "planner/cli/remote/prompts.h"
#include "planner/cli/remote/remote_commands.h"
#include "planner/cli/remote/session.h"

namespace kvasir::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPromptsMax = 256;

constexpr std::array kFlags = {
    Flag{"max-tokens", "N", "tokens to emit at most, for each prompt (64)"},
    Flag{"tokens", "", "the words are token ids: 1,2,3"},
    Flag{"tokenizer", "NAME", "how text becomes tokens; bytes is the only one (bytes)"},
    Flag{"ignore-end", "", "do not stop at the end token"},
    Flag{"stop", "IDS", "token ids that end the output too: 10,46"},
    Flag{"temperature", "T", "0: the likeliest token always; up to 100 (0)"},
    Flag{"top-k", "K", "only among the K likeliest; 0: all (0)"},
    Flag{"top-p", "P", "only among the likeliest that have P of the probability together (1)"},
    Flag{"seed", "N", "of the random draws: prompt i draws with N + i; without it, the worker picks"},
    Flag{"logprobs", "", "say the log-probability of each token"},
    Flag{"wait", "", "wait for room instead of being refused"},
    Flag{"no-speculate", "", "decode without the draft"},
    Flag{"stats", "", "say how many tokens were drafted and accepted"},
    Flag{"leader", "HOST:PORT", "rank 0's worker, instead of asking the planner for it"},
};

struct Request {
  Session session;
  std::vector<DecodeAsk> asks;
  bool as_tokens = false;
  bool stats = false;
};

// A number like 0.7; the worker knows what is allowed.
absl::StatusOr<std::optional<double>> NumberOf(const CommandLine& line, std::string_view flag) {
  const std::optional<std::string> text = line.Value(flag);
  if (!text.has_value()) return std::optional<double>();
  double value = 0;
  const char* end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, value);
  if (error == std::errc() && rest == end && std::isfinite(value)) return std::optional(value);
  return absl::InvalidArgumentError(absl::StrFormat("--%s %s: write a number like 0.7", flag, *text));
}

absl::Status ReadSampling(const CommandLine& line, DecodeAsk& ask) {
  KVASIR_ASSIGN_OR_RETURN(const std::optional<double> temperature, NumberOf(line, "temperature"));
  ask.temperature = temperature.value_or(0);
  KVASIR_ASSIGN_OR_RETURN(ask.top_p, NumberOf(line, "top-p"));
  KVASIR_ASSIGN_OR_RETURN(ask.top_k, line.IntOr("top-k", 0));
  if (line.Has("seed")) {
    KVASIR_ASSIGN_OR_RETURN(const std::int64_t seed, line.IntOr("seed", 0));
    if (seed < 0) return absl::InvalidArgumentError(absl::StrFormat("--seed %d: want 0 or more", seed));
    ask.seed = static_cast<std::uint64_t>(seed);
  }
  ask.logprobs = line.Has("logprobs");
  return absl::OkStatus();
}

absl::StatusOr<Request> ReadRequest(const Console& console, const CommandLine& line) {
  Request request;
  KVASIR_ASSIGN_OR_RETURN(request.session, OpenSession(console, line));
  if (const std::string name = line.ValueOr("tokenizer", "bytes"); name != "bytes") {
    return absl::InvalidArgumentError(
        absl::StrFormat("--tokenizer %s: only bytes is known; give token ids with --tokens", name));
  }
  request.as_tokens = line.Has("tokens");
  request.stats = line.Has("stats");
  DecodeAsk common;
  KVASIR_ASSIGN_OR_RETURN(common.max_tokens, line.IntOr("max-tokens", 64));
  common.speculate = !line.Has("no-speculate");
  common.wait = line.Has("wait");
  if (line.Has("stop")) {
    KVASIR_ASSIGN_OR_RETURN(common.stop_tokens, ParseTokenIds(line.ValueOr("stop", "")));
  }
  if (!line.Has("ignore-end") && !request.as_tokens) common.stop_tokens.push_back(kEndToken);
  KVASIR_RETURN_IF_ERROR(ReadSampling(line, common));
  for (const std::string& word : line.words()) {
    DecodeAsk ask = common;
    // Equal prompts shall not get equal answers.
    if (ask.seed.has_value()) *ask.seed += request.asks.size();
    if (request.as_tokens) {
      KVASIR_ASSIGN_OR_RETURN(ask.prompt, ParseTokenIds(word));
    } else {
      ask.prompt = BytesPrompt(word);
    }
    request.asks.push_back(std::move(ask));
  }
  return request;
}

absl::StatusOr<std::string> FindLeader(const Request& request, const CommandLine& line) {
  if (line.Has("leader")) return line.ValueOr("leader", "");
  KVASIR_ASSIGN_OR_RETURN(const planner::v1::Deployment deployment, GetDeployment(request.session));
  if (deployment.leader_address().empty()) {
    return absl::FailedPreconditionError(absl::StrFormat("deployment %s serves nothing: it is %s",
                                                         deployment.name(),
                                                         DeploymentStateName(deployment.state())));
  }
  return deployment.leader_address();
}

Json ErrorJson(const DecodeError& error) {
  return {{"code", error.code}, {"reason", error.reason}, {"field", error.field}, {"message", error.message}};
}

std::string ResultsJson(const Request& request, const std::vector<DecodeResult>& results,
                        std::chrono::milliseconds took) {
  Json json;
  json["schema"] = "kvasir.decode/1";
  json["deployment"] = request.session.deployment;
  json["requests"] = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const DecodeResult& r = results[i];
    Json entry;
    entry["prompt_token_ids"] = request.asks[i].prompt;
    entry["token_ids"] = r.tokens;
    entry["finish"] = r.finish;
    entry["epoch"] = r.epoch;
    entry["plan_id"] = r.plan_id;
    entry["drafted_tokens"] = r.drafted;
    entry["accepted_tokens"] = r.accepted;
    entry["target_steps"] = r.target_steps;
    entry["prefill_steps"] = r.prefill_steps;
    entry["queue_us"] = r.queue_us;
    entry["prefill_us"] = r.prefill_us;
    entry["target_us"] = r.target_us;
    entry["target_max_us"] = r.target_max_us;
    if (request.asks[i].temperature > 0) entry["seed"] = r.seed;
    if (request.asks[i].logprobs) entry["logprobs"] = r.logprobs;
    entry["error"] = r.error.has_value() ? ErrorJson(*r.error) : Json(nullptr);
    json["requests"].push_back(std::move(entry));
  }
  json["milliseconds"] = took.count();
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

// "3.6" of two integers, rounded.
std::string Tenths(std::int64_t numerator, std::int64_t denominator) {
  if (denominator <= 0) return "-";
  const std::int64_t tenths = (numerator * 10 + denominator / 2) / denominator;
  return absl::StrFormat("%d.%d", tenths / 10, tenths % 10);
}

void ShowStats(const Console& console, const std::vector<DecodeResult>& results,
               std::chrono::milliseconds took) {
  DecodeResult sum;
  std::int64_t tokens = 0;
  std::int64_t first_tokens = 0;  // which come from the prompts, not from target steps
  for (const DecodeResult& r : results) {
    tokens += static_cast<std::int64_t>(r.tokens.size());
    first_tokens += r.tokens.empty() ? 0 : 1;
    sum.drafted += r.drafted;
    sum.accepted += r.accepted;
    sum.target_steps += r.target_steps;
  }
  console.out << absl::StrFormat(
      "%d tokens · %d target steps · %d drafted, %d accepted · %s tokens per step · %s tokens/s\n", tokens,
      sum.target_steps, sum.drafted, sum.accepted, Tenths(tokens - first_tokens, sum.target_steps),
      Tenths(tokens * 1000, took.count()));
}

// "logprobs -0.123 -4.500", in the order of the tokens.
std::string LogprobsText(const std::vector<float>& logprobs) {
  std::string text = "logprobs";
  for (const float logprob : logprobs) text += absl::StrFormat(" %.3f", logprob);
  return text;
}

void ShowResults(const Console& console, const Request& request, const std::vector<DecodeResult>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const DecodeResult& r = results[i];
    const std::string text = request.as_tokens ? TokenIdsText(r.tokens) : TokensAsText(r.tokens);
    if (results.size() > 1) console.out << absl::StrFormat("[%d] ", i + 1);
    console.out << text << "\n";
    if (request.asks[i].logprobs) console.out << LogprobsText(r.logprobs) << "\n";
    if (r.error.has_value()) {
      console.err << absl::StrFormat("decode failed   prompt %d: %s\n  %s\n", i + 1, r.error->reason,
                                     r.error->message);
    }
  }
}

int ExitCodeOf(const std::vector<DecodeResult>& results) {
  int code = kExitOk;
  for (const DecodeResult& r : results) {
    if (!r.error.has_value()) continue;
    const bool argument = r.error->code == static_cast<std::int32_t>(grpc::StatusCode::INVALID_ARGUMENT);
    code = std::max(code, argument ? kExitBadUsage : kExitServiceFailure);
  }
  return code;
}

}  // namespace

std::string DecodeHelp() { return FlagsHelp(WithSessionFlags(kFlags)); }

int RunDecode(const Console& console, Args args) {
  const absl::StatusOr<CommandLine> line =
      CommandLine::Parse(WithSessionFlags(kFlags), {1, kPromptsMax, "a prompt"}, args);
  if (!line.ok()) return BadUsage(console, "decode", line.status());
  const absl::StatusOr<Request> request = ReadRequest(console, *line);
  if (!request.ok()) return BadUsage(console, "decode", request.status());
  const absl::StatusOr<std::string> leader = FindLeader(*request, *line);
  if (!leader.ok()) return ServiceFailure(console, "decode", leader.status());

  const auto begin = std::chrono::steady_clock::now();
  std::vector<DecodeResult> results;
  const absl::Status status =
      DecodeAll(*leader, request->session.deployment, request->asks, request->session.timeout, {}, results);
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  if (request->session.output == "json") {
    console.out << ResultsJson(*request, results, took);
  } else {
    ShowResults(console, *request, results);
    if (request->stats) ShowStats(console, results, took);
  }
  if (!status.ok()) return ServiceFailure(console, "decode", status);
  return ExitCodeOf(results);
}

}  // namespace kvasir::cli
