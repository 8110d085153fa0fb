// capacity_check [--configs DIR] [--differences] FILE...: recomputes rows in the format of
// ../shared/data/capacity_logs.jsonl, one line a row, "N passed, N failed" last; rows that state too few
// inputs are counted apart. --configs: folders <org>__<name> with a config.json (default: configs beside the
// first file, else $KVASIR_SHARED_DATA/configs). --differences prints the rows that differ as a table
// instead.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/tools/check_capacity.h"

namespace {

struct Counts {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
};

std::string ConfigsFor(const std::string& file) {
  const std::filesystem::path beside = std::filesystem::path(file).parent_path() / "configs";
  std::error_code ec;
  if (std::filesystem::is_directory(beside, ec)) return beside.string();
  const char* shared = std::getenv("KVASIR_SHARED_DATA");
  return shared == nullptr ? "" : std::string(shared) + "/configs";
}

void CheckLine(const std::string& line, const std::string& place, const kvasir::LogModels& models, bool table,
               Counts& counts) {
  const auto row = kvasir::ReadLogRow(line);
  if (!row.ok()) {
    ++counts.failed;
    std::cout << "failed   " << place << ": " << row.status().message() << "\n";
    return;
  }
  const kvasir::CapacityAnswer answer = kvasir::CheckCapacity(*row, models);
  const char* word = "skipped";
  switch (answer.verdict) {
    case kvasir::CapacityVerdict::kPassed:
      ++counts.passed;
      word = "passed ";
      break;
    case kvasir::CapacityVerdict::kFailed:
      ++counts.failed;
      word = "failed ";
      break;
    case kvasir::CapacityVerdict::kSkipped:
      ++counts.skipped;
      break;
  }
  if (!table) {
    std::cout << word << "  " << row->id << "  " << answer.text << "\n";
  } else if (answer.verdict == kvasir::CapacityVerdict::kFailed) {
    std::cout << "| " << row->id << " | " << row->model << " | " << answer.text << " |\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files;
  std::string configs;
  bool table = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--configs" && i + 1 < argc) {
      configs = argv[++i];
    } else if (word == "--differences") {
      table = true;
    } else {
      files.push_back(word);
    }
  }
  if (files.empty()) {
    std::cerr << "usage: capacity_check [--configs DIR] [--differences] FILE...\n";
    return 2;
  }
  const kvasir::LogModels models(configs.empty() ? ConfigsFor(files.front()) : configs);
  Counts counts;
  for (const std::string& file : files) {
    std::ifstream in(file);
    if (!in) {
      std::cerr << file << ": cannot be read\n";
      return 2;
    }
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      CheckLine(line, absl::StrFormat("%s:%d", file, number), models, table, counts);
    }
  }
  if (table) return 0;
  std::cout << absl::StrFormat("%d skipped\n", counts.skipped);
  std::cout << absl::StrFormat("%d passed, %d failed\n", counts.passed, counts.failed);
  return counts.failed == 0 ? 0 : 1;
}
