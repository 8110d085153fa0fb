#include "worker/engine/choose_verify_rows.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace kvasir {
namespace {

struct Row {
  double worth = 0;
  std::size_t index = 0;  // of the drafted token
  std::size_t request = 0;
};

// Worth falls along a request, so that its rows come in order; equal worths: earlier tokens, then requests.
bool Before(const Row& a, const Row& b) {
  return std::tuple(-a.worth, a.index, a.request) < std::tuple(-b.worth, b.index, b.request);
}

double Clamped(double confidence) {
  if (!(confidence > 0)) return 0;  // NaN too
  return std::min(confidence, 1.0);
}

}  // namespace

std::vector<std::int64_t> ChooseVerifyRows(std::span<const std::vector<double>> confidences,
                                           const std::function<double(std::int64_t)>& steps_per_second) {
  std::vector<Row> rows;
  for (std::size_t request = 0; request < confidences.size(); ++request) {
    double worth = 1;
    for (std::size_t index = 0; index < confidences[request].size(); ++index) {
      worth *= Clamped(confidences[request][index]);
      rows.push_back({worth, index, request});
    }
  }
  std::sort(rows.begin(), rows.end(), Before);
  std::vector<std::int64_t> chosen(confidences.size(), 0);
  auto batch = static_cast<std::int64_t>(confidences.size());
  double tokens = static_cast<double>(batch);
  double best = tokens * steps_per_second(batch);
  for (const Row& row : rows) {
    const double rate = (tokens + row.worth) * steps_per_second(batch + 1);
    if (!(rate > best)) break;
    best = rate;
    tokens += row.worth;
    ++batch;
    ++chosen[row.request];
  }
  return chosen;
}

}  // namespace kvasir
