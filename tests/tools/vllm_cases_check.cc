// vllm_cases_check FILE...: replays files in the format of vllm_cases against both vllm rulesets. One line a
// case and version, "N passed, N failed" last; exit 1 if any failed, 2 if a file cannot be read.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tests/tools/compare_engine_plan.h"

namespace {

constexpr std::size_t kDifferencesShown = 3;

std::optional<std::string> ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

void Print(const kvasir::testing::CaseVerdict& verdict) {
  if (verdict.skipped) {
    std::printf("skip %s %s: no answer for this version\n", verdict.id.c_str(), verdict.version.c_str());
    return;
  }
  std::printf("%s %s %s\n", verdict.differences.empty() ? "pass" : "FAIL", verdict.id.c_str(),
              verdict.version.c_str());
  for (std::size_t i = 0; i < verdict.differences.size() && i < kDifferencesShown; ++i) {
    std::printf("     %s\n", verdict.differences[i].c_str());
  }
  if (verdict.differences.size() > kDifferencesShown) {
    std::printf("     and %zu more\n", verdict.differences.size() - kDifferencesShown);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: vllm_cases_check FILE...\n");
    return 2;
  }
  int passed = 0;
  int failed = 0;
  for (int i = 1; i < argc; ++i) {
    const std::optional<std::string> text = ReadFile(argv[i]);
    const auto verdicts = text.has_value() ? kvasir::testing::CheckCaseFile(*text) : std::nullopt;
    if (!verdicts.has_value()) {
      std::fprintf(stderr, "%s: not a readable list of records with \"case\" and \"expected\"\n", argv[i]);
      return 2;
    }
    for (const auto& verdict : *verdicts) {
      Print(verdict);
      if (!verdict.skipped) ++(verdict.differences.empty() ? passed : failed);
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
