#include "tests/conformance/kda_rig.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace kvasir::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kAbsurd = std::int64_t{1} << 40;

std::vector<float> Random(std::size_t count, std::mt19937& random, float mean = 0, float deviation = 1) {
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::int64_t Aligned(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }

// What one request does in a pass: `rows` rows from `committed` on, of which `counts` are its own tokens; the
// others are as if drafted wrongly.
struct Part {
  std::size_t sequence = 0;
  std::int64_t rows = 0;
  std::int64_t counts = 0;
};

// The arena, the fixed buffers of one shape, and the passes over them.
class Rig {
 public:
  Rig(Backend& backend, const KdaData& data, const KdaOptions& options)
      : backend_(backend), c_(data.c), data_(data), options_(options), draws_(options.pattern) {}

  absl::StatusOr<KdaRun> Run() {
    KVASIR_RETURN_IF_ERROR(Prepare());
    for (std::size_t s = 0; s < data_.sequences.size(); ++s) {
      for (std::int64_t begin = 0; begin < c_.prompts[s]; begin += c_.chunk) {
        const std::int64_t rows = std::min(c_.chunk, c_.prompts[s] - begin);
        KVASIR_RETURN_IF_ERROR(RunPass({{s, rows, rows}}, rows, /*prefill=*/true));
      }
    }
    if (options_.together) {
      KVASIR_RETURN_IF_ERROR(DecodeAll({0, 1, 2}));
    } else {
      for (const std::size_t s : {0U, 1U, 2U}) KVASIR_RETURN_IF_ERROR(DecodeAll({s}));
    }
    KdaRun run;
    for (const auto& out : out_) run.out.push_back(out);
    run.fault = fault_ != 0;
    return run;
  }

 private:
  absl::Status Prepare() {
    const std::int64_t conv = Aligned(c_.history() * 3 * c_.width() * DTypeBytes(c_.dtype));
    const std::int64_t state = Aligned(c_.width() * c_.dim * DTypeBytes(DType::kF32));
    const std::int64_t decays = Aligned(c_.draft_tokens * c_.width() * DTypeBytes(DType::kF32));
    const std::int64_t betas = Aligned(c_.draft_tokens * c_.heads * DTypeBytes(DType::kF32));
    const std::int64_t begin = 48;  // some other layer's page
    stride_ = (begin + conv + state + decays + betas + 255) / 256 * 256;
    const auto at = [&](std::int64_t offset) {
      return StateGeometry{
          .stride_bytes = stride_, .offset_bytes = begin + offset, .part = c_.parts - 1, .parts = c_.parts};
    };
    conv_ = at(0);
    state_ = at(conv);
    decay_ = at(conv + state);
    ring_beta_ = at(conv + state + decays);
    const std::int64_t columns = c_.copies() * c_.parts;
    const std::int64_t blocks = static_cast<std::int64_t>(data_.sequences.size()) * columns + 1;
    KVASIR_ASSIGN_OR_RETURN(arena_, backend_.Allocate(Bytes(blocks * stride_)));
    const std::vector<std::byte> nans(static_cast<std::size_t>(blocks * stride_), std::byte{0xff});
    KVASIR_RETURN_IF_ERROR(backend_.Write(arena_->data(), nans));
    std::vector<std::int64_t> ids;
    for (std::int64_t id = 1; id < blocks; ++id) ids.push_back(id);
    std::mt19937 random(7);
    std::shuffle(ids.begin(), ids.end(), random);
    for (std::size_t s = 0; s < data_.sequences.size(); ++s) {
      const auto first = ids.begin() + static_cast<std::ptrdiff_t>(s) * columns;
      tables_.emplace_back(first, first + columns);
      out_.emplace_back(static_cast<std::size_t>(c_.tokens * c_.width()));
    }
    committed_.assign(data_.sequences.size(), 0);
    pending_.assign(data_.sequences.size(), 0);
    return absl::OkStatus();
  }

  absl::Status DecodeAll(const std::vector<std::size_t>& sequences) {
    for (;;) {
      std::vector<Part> parts;
      const std::int64_t query_rows = options_.pattern == 0 ? 1 : c_.draft_tokens + 1;
      for (const std::size_t s : sequences) {
        const std::int64_t left = c_.tokens - committed_[s];
        if (left == 0) continue;
        Part part{s, std::min(query_rows, left), 1};
        part.counts = 1 + static_cast<std::int64_t>(draws_() % static_cast<unsigned>(part.rows));
        parts.push_back(part);
      }
      if (parts.empty()) return absl::OkStatus();
      KVASIR_RETURN_IF_ERROR(RunPass(parts, query_rows, /*prefill=*/false));
    }
  }

  // The metadata as worker/engine/step_metadata.h describes it.
  void WriteMetadata(const std::vector<Part>& parts, std::int64_t query_rows, bool prefill) {
    const auto requests = parts.size() + 1;  // the last is padding
    const auto columns = static_cast<std::size_t>(c_.copies() * c_.parts);
    table_.assign(requests * columns, kAbsurd);
    bounds_.assign(requests * static_cast<std::size_t>(query_rows), 0);
    writes_.assign(bounds_.size(), -1);
    reads_.assign(requests, -1);
    replays_.assign(requests, 0);
    for (std::size_t b = 0; b < parts.size(); ++b) {
      const Part& part = parts[b];
      std::vector<bool> touched(static_cast<std::size_t>(c_.copies()), false);
      touched[0] = true;
      const std::int64_t in_state = committed_[part.sequence] - pending_[part.sequence];
      if (in_state > 0) {
        reads_[b] = in_state % c_.copies();
        touched[static_cast<std::size_t>(reads_[b])] = true;
      }
      replays_[b] = pending_[part.sequence];
      for (std::int64_t i = 0; i < part.rows; ++i) {
        const std::size_t r = b * static_cast<std::size_t>(query_rows) + static_cast<std::size_t>(i);
        bounds_[r] = committed_[part.sequence] + i + 1;
        const bool keeps = prefill ? i + 1 == part.rows : !c_.replays() || i == 0;
        if (!keeps) continue;
        writes_[r] = bounds_[r] % c_.copies();
        touched[static_cast<std::size_t>(writes_[r])] = true;
      }
      for (std::size_t column = 0; column < columns; ++column) {
        if (!touched[column / static_cast<std::size_t>(c_.parts)]) continue;
        table_[b * columns + column] = tables_[part.sequence][column];
      }
    }
  }

  void WriteInputs(const std::vector<Part>& parts, std::int64_t query_rows) {
    const auto width = static_cast<std::size_t>(c_.width());
    const auto heads = static_cast<std::size_t>(c_.heads);
    qkv_.assign(bounds_.size() * 3 * width, kNan);
    decay_in_.assign(bounds_.size() * width, kNan);
    beta_.assign(bounds_.size() * heads, kNan);
    pass_out_.assign(bounds_.size() * width, kNan);
    std::mt19937 wrong(static_cast<unsigned>(bounds_[0]));
    for (std::size_t b = 0; b < parts.size(); ++b) {
      const KdaSequence& sequence = data_.sequences[parts[b].sequence];
      for (std::int64_t i = 0; i < parts[b].rows; ++i) {
        const std::size_t r = b * static_cast<std::size_t>(query_rows) + static_cast<std::size_t>(i);
        const auto token = static_cast<std::size_t>(committed_[parts[b].sequence] + i);
        const auto fill = [&](const std::vector<float>& from, std::size_t count, std::vector<float>& to) {
          const auto out = to.begin() + static_cast<std::ptrdiff_t>(r * count);
          if (i < parts[b].counts) {
            std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(token * count), count, out);
          } else {
            const std::vector<float> noise = Random(count, wrong);
            std::copy(noise.begin(), noise.end(), out);
          }
        };
        fill(sequence.qkv, 3 * width, qkv_);
        fill(sequence.decay, width, decay_in_);
        fill(sequence.beta, heads, beta_);
      }
    }
  }

  [[nodiscard]] KdaReplayOp Replay(std::int64_t requests, std::int64_t query_rows) {
    const std::int64_t width = c_.width();
    return {.k_weight = data_.weight.data() + width * c_.kernel,
            .v_weight = data_.weight.data() + 2 * width * c_.kernel,
            .arena = arena_->data(),
            .conv = conv_,
            .dtype = c_.dtype,
            .kernel = c_.kernel,
            .history = c_.history(),
            .history_stride = 3 * width,
            .k_begin = width,
            .v_begin = 2 * width,
            .state = state_,
            .ring_decay = decay_,
            .ring_beta = ring_beta_,
            .block_table = table_.data(),
            .bounds = bounds_.data(),
            .reads = reads_.data(),
            .replays = replays_.data(),
            .requests = requests,
            .query_rows = query_rows,
            .heads = c_.heads,
            .dim = c_.dim,
            .table_width = c_.copies() * c_.parts,
            .eps = 1e-6F};
  }

  [[nodiscard]] LaunchList BuildList(std::int64_t query_rows, bool prefill) {
    LaunchList list;
    const auto requests = static_cast<std::int64_t>(reads_.size());
    const std::int64_t rows = requests * query_rows;
    const std::int64_t width = c_.width();
    const std::int64_t columns = c_.copies() * c_.parts;
    if (c_.replays() && !prefill) list.push_back(Replay(requests, query_rows));
    for (std::int64_t i = 0; i < 3; ++i) {
      list.push_back(ShortConvOp{.x = qkv_.data() + i * width,
                                 .weight = data_.weight.data() + i * width * c_.kernel,
                                 .arena = arena_->data(),
                                 .state = conv_,
                                 .dtype = c_.dtype,
                                 .block_table = table_.data(),
                                 .bounds = bounds_.data(),
                                 .requests = requests,
                                 .query_rows = query_rows,
                                 .channels = width,
                                 .row_stride = 3 * width,
                                 .kernel = c_.kernel,
                                 .history = c_.history(),
                                 .history_stride = 3 * width,
                                 .history_begin = i * width,
                                 .table_width = columns});
    }
    const float scale = 1.0F / std::sqrt(static_cast<float>(c_.dim));
    list.push_back(L2NormOp{qkv_.data(), rows, c_.heads, c_.dim, 3 * width, scale, 1e-6F});
    list.push_back(L2NormOp{qkv_.data() + width, rows, c_.heads, c_.dim, 3 * width, 1.0F, 1e-6F});
    list.push_back(KdaGateOp{decay_in_.data(), beta_.data(), data_.a_log.data(), data_.dt_bias.data(), rows,
                             c_.heads, c_.dim, c_.lower_bound});
    list.push_back(KdaStepOp{.q = qkv_.data(),
                             .k = qkv_.data() + width,
                             .v = qkv_.data() + 2 * width,
                             .decay = decay_in_.data(),
                             .beta = beta_.data(),
                             .out = pass_out_.data(),
                             .arena = arena_->data(),
                             .state = state_,
                             .ring_decay = decay_,
                             .ring_beta = ring_beta_,
                             .keeps_rows = c_.replays() && !prefill,
                             .dtype = c_.dtype,
                             .block_table = table_.data(),
                             .bounds = bounds_.data(),
                             .reads = reads_.data(),
                             .writes = writes_.data(),
                             .fault = &fault_,
                             .requests = requests,
                             .query_rows = query_rows,
                             .heads = c_.heads,
                             .dim = c_.dim,
                             .row_stride = 3 * width,
                             .table_width = columns});
    return list;
  }

  absl::Status RunPass(const std::vector<Part>& parts, std::int64_t query_rows, bool prefill) {
    WriteMetadata(parts, query_rows, prefill);
    WriteInputs(parts, query_rows);
    KVASIR_RETURN_IF_ERROR(Poison(parts));
    LaunchList list = BuildList(query_rows, prefill);
    if (options_.replay_graph) {
      KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, backend_.Capture(list));
      for (Launch& launch : list) launch = AddOp{};
      KVASIR_RETURN_IF_ERROR(graph->Replay());
    } else {
      KVASIR_RETURN_IF_ERROR(backend_.Run(list));
    }
    for (std::size_t r = 0; r < bounds_.size(); ++r) {
      const float* row = pass_out_.data() + r * static_cast<std::size_t>(c_.width());
      const bool zero = std::all_of(row, row + c_.width(), [](float x) { return x == 0; });
      if (bounds_[r] == 0 && !zero) return absl::InternalError(absl::StrFormat("padded row %d is not 0", r));
    }
    for (std::size_t b = 0; b < parts.size(); ++b) {
      const Part& part = parts[b];
      std::int64_t& committed = committed_[part.sequence];
      const auto from = pass_out_.begin() + static_cast<std::ptrdiff_t>(b) * query_rows * c_.width();
      std::copy_n(from, part.counts * c_.width(), out_[part.sequence].begin() + committed * c_.width());
      committed += part.counts;
      pending_[part.sequence] = c_.replays() && !prefill ? part.counts - 1 : 0;
    }
    return absl::OkStatus();
  }

  // NaN into one element of the state that sequence 0 reads next.
  absl::Status Poison(const std::vector<Part>& parts) {
    if (parts[0].sequence != 0 || options_.poison_token < 0) return absl::OkStatus();
    if (poisoned_ || committed_[0] < options_.poison_token || reads_[0] < 0) return absl::OkStatus();
    poisoned_ = true;
    std::byte* at = arena_->data() + StateOffset(state_, tables_[0].data(), reads_[0]) + 4 * (c_.dim + 1);
    return backend_.Write(at, std::as_bytes(std::span(&kNan, 1)));
  }

  Backend& backend_;
  const KdaCase& c_;
  const KdaData& data_;
  const KdaOptions& options_;
  std::mt19937 draws_;
  std::unique_ptr<DeviceMemory> arena_;
  std::int64_t stride_ = 0;
  StateGeometry conv_, state_, decay_, ring_beta_;
  std::vector<std::vector<std::int64_t>> tables_;
  std::vector<std::int64_t> committed_, pending_;
  std::vector<std::int64_t> table_, bounds_, reads_, replays_, writes_;
  std::vector<float> qkv_, decay_in_, beta_, pass_out_;
  std::vector<std::vector<float>> out_;
  std::int32_t fault_ = 0;
  bool poisoned_ = false;
};

}  // namespace

KdaData MakeKdaData(const KdaCase& c, unsigned seed) {
  std::mt19937 random(seed);
  const auto width = static_cast<std::size_t>(c.width());
  const auto tokens = static_cast<std::size_t>(c.tokens);
  KdaData data{.c = c, .weight = {}, .a_log = {}, .dt_bias = {}, .sequences = {}};
  data.weight = Random(3 * width * static_cast<std::size_t>(c.kernel), random, 0, 0.6F);
  data.a_log = Random(static_cast<std::size_t>(c.heads), random, 0, 0.5F);
  data.dt_bias = Random(width, random, -3);
  for (std::size_t s = 0; s < c.prompts.size(); ++s) {
    data.sequences.push_back({.qkv = Random(tokens * 3 * width, random),
                              .decay = Random(tokens * width, random),
                              .beta = Random(tokens * static_cast<std::size_t>(c.heads), random)});
  }
  return data;
}

absl::StatusOr<KdaRun> RunKda(Backend& backend, const KdaData& data, const KdaOptions& options) {
  return Rig(backend, data, options).Run();
}

}  // namespace kvasir::testing
