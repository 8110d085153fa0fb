#include "planner/request/weight_bytes.h"

#include <algorithm>
#include <array>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/geometry/dtype.h"

namespace kvasir {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// Numbers of weights; doubles, since a trillion of them times bits is near the end of 64 bits and nobody
// needs the last digit.
struct Count {
  double shared = 0;      // divided over tensor-parallel ranks
  double replicated = 0;  // on every rank
};

struct MixerCount {
  double hidden = 0;
  double tp = 1;

  Count operator()(const AttentionShape& s) const {
    const double gate = s.output_gate ? Product(s.heads, s.value_dim) : 0;
    const double kv = s.shares_with.has_value() ? 0 : Product(KvHeads(s.kv_heads), s.head_dim + s.value_dim);
    return {hidden * (Product(s.heads, s.head_dim + s.value_dim) + gate + kv), 0};
  }
  Count operator()(const CrossAttentionShape& s) const {
    return {hidden * (Product(s.heads, s.head_dim + s.value_dim) +
                      Product(KvHeads(s.kv_heads), s.head_dim + s.value_dim)),
            0};
  }
  Count operator()(const MlaShape& s) const {
    const double queries = Product(s.heads, s.nope_dim + s.rope_dim);
    const double from = s.q_lora_rank > 0 ? Real(s.q_lora_rank) : hidden;
    Count count = {queries * from, hidden * Real(s.q_lora_rank + s.kv_lora_rank + s.rope_dim)};
    count.shared += Real(s.kv_lora_rank) * Product(s.heads, s.nope_dim + s.value_dim);
    const double out = Product(s.heads, s.value_dim);
    count.shared +=
        s.o_lora_rank > 0 ? Real(s.o_lora_rank) * (out + Real(s.o_groups) * hidden) : out * hidden;
    if (s.output_gate) count.shared += out * hidden;
    return count;
  }
  Count operator()(const IndexerShape& s) const {
    return {0, hidden * Real(s.head_dim + s.heads) + hidden / 4 * Product(s.heads, s.head_dim)};
  }
  Count operator()(const CompressorShape& s) const { return {0, hidden * Real(s.width)}; }
  Count operator()(const KdaShape& s) const {
    const double width = Product(s.heads, s.head_dim);
    const double gate = s.full_rank_gate ? hidden * width : (hidden + width) * Real(s.head_dim);
    return {hidden * width * 4 + 2 * gate + hidden * Real(s.heads), 0};
  }
  Count operator()(const GatedDeltaShape& s) const {
    const double keys = Product(s.key_heads, s.key_dim);
    const double values = Product(s.value_heads, s.value_dim);
    return {hidden * (2 * keys + 3 * values + 2 * Real(s.value_heads)), 0};
  }
  Count operator()(const Mamba1Shape& s) const {
    const double inner = Real(s.inner);
    return {3 * hidden * inner + inner * Real(2 * s.step_rank + 2 * s.state_dim), 0};
  }
  Count operator()(const Mamba2Shape& s) const {
    const double inner = Product(s.heads, s.head_dim);
    return {hidden * (3 * inner + 2 * Product(s.groups, s.state_dim) + Real(s.heads)), 0};
  }
  Count operator()(const LightningShape& s) const { return {5 * hidden * Product(s.heads, s.head_dim), 0}; }
  Count operator()(const ShortConvShape& s) const { return {4 * hidden * Real(s.width), 0}; }
  Count operator()(const NoMixer& s) const { return {s.linear ? hidden * hidden : 0, 0}; }
  Count operator()(const EncoderAttentionShape& s) const {
    return {hidden * 2 * Product(s.heads + s.kv_heads, s.head_dim), 0};
  }
  Count operator()(const HiddenStateShape&) const { return {}; }

 private:
  static double Real(std::int64_t value) { return static_cast<double>(value); }
  static double Product(std::int64_t a, std::int64_t b) { return Real(a) * Real(b); }
  // Fewer heads than ranks are repeated; as a share of the whole that is one head a rank.
  [[nodiscard]] std::int64_t KvHeads(std::int64_t kv) const {
    return std::max(kv, static_cast<std::int64_t>(tp));
  }
};

double BytesPerWeight(const WeightFormat& format, DType dtype) {
  const double bits =
      format.bits > 0 ? static_cast<double>(format.bits) : 8.0 * static_cast<double>(DTypeBytes(dtype));
  const double scale =
      format.group > 0 ? static_cast<double>(format.scale_bits) / static_cast<double>(format.group) : 0;
  return (bits + scale) / 8;
}

class Counter {
 public:
  Counter(const ModelDescription& model, const WeightSplit& split)
      : model_(model), tp_(static_cast<double>(split.tp)), hidden_(static_cast<double>(model.hidden)) {}

  // Bytes of one layer on one rank.
  [[nodiscard]] double Layer(const ModelLayer& layer) const {
    double bytes = Mixer(layer.mixer) + Mlp(layer.mlp);
    for (const MixerShape& extra : layer.extra) bytes += Mixer(extra);
    return bytes;
  }
  // The token table, and the head where it is a matrix of its own.
  [[nodiscard]] double Embedding() const { return Table() * static_cast<double>(DTypeBytes(model_.dtype)); }
  [[nodiscard]] double Head() const {
    return model_.tied_embedding ? 0 : Table() * BytesPerWeight(model_.quantisation.head, model_.dtype);
  }
  // Of these, what a draft shares with its target; an engine may hold it twice until it has noticed.
  [[nodiscard]] double Shared() const {
    if (!model_.draft.has_value()) return 0;
    return (model_.draft->own_embedding ? 0 : Embedding()) + (model_.draft->own_head ? 0 : Head());
  }
  [[nodiscard]] double LayerTables() const {
    return static_cast<double>(model_.layer_embedding) * static_cast<double>(model_.vocab) *
           static_cast<double>(model_.layers.size()) * static_cast<double>(DTypeBytes(model_.dtype)) / tp_;
  }

 private:
  [[nodiscard]] double Table() const { return static_cast<double>(model_.vocab) * hidden_ / tp_; }
  [[nodiscard]] double Mixer(const MixerShape& mixer) const {
    const Count count = std::visit(MixerCount{hidden_, tp_}, mixer);
    return (count.shared / tp_ + count.replicated) * BytesPerWeight(model_.quantisation.mixers, model_.dtype);
  }
  [[nodiscard]] double Mlp(const MlpShape& mlp) const {
    const WeightQuantisation& stored = model_.quantisation;
    const double matrices = mlp.gated ? 3 : 2;
    const auto real = [](std::int64_t v) { return static_cast<double>(v); };
    const double width = mlp.latent > 0 ? real(mlp.latent) : hidden_;
    double bytes = matrices * hidden_ * real(mlp.intermediate) * BytesPerWeight(stored.dense, model_.dtype);
    bytes += real(mlp.experts) * matrices * width * real(mlp.expert_intermediate) *
             BytesPerWeight(stored.experts, model_.dtype);
    bytes += matrices * hidden_ * real(mlp.shared_width()) * BytesPerWeight(stored.shared, model_.dtype);
    const double router = hidden_ * real(mlp.experts) * 4;
    const double latent =
        mlp.latent > 0 ? 2 * hidden_ * real(mlp.latent) * real(DTypeBytes(model_.dtype)) : 0;
    return bytes / tp_ + router + latent;
  }

  const ModelDescription& model_;
  double tp_;
  double hidden_;
};

// Words of checkpoints' names and the bits of one weight with its share of a scale; longer words first.
struct NamedFormat {
  std::string_view word;
  double bits;
};
constexpr std::array kNamedFormats = {NamedFormat{"NVFP4", 4.5},  NamedFormat{"MXFP4", 4.25},
                                      NamedFormat{"MXFP8", 8.25}, NamedFormat{"FP8", 8.0},
                                      NamedFormat{"FP4", 4.5},    NamedFormat{"INT8", 8.0},
                                      NamedFormat{"W8A8", 8.0},   NamedFormat{"INT4", 4.0},
                                      NamedFormat{"AWQ", 4.0},    NamedFormat{"GPTQ", 4.0}};

const NamedFormat* FormatInName(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  for (const NamedFormat& format : kNamedFormats) {
    if (upper.find(format.word) != std::string::npos) return &format;
  }
  return nullptr;
}

}  // namespace

std::string_view UnstatedFormat(const ModelDescription& model, std::string_view name) {
  if (!model.quantisation.method.empty()) return "";
  const NamedFormat* format = FormatInName(name);
  if (format == nullptr) format = FormatInName(model.name);
  return format == nullptr ? "" : format->word;
}

BytesRange WeightBytesOf(const ModelDescription& model, const WeightSplit& split,
                         std::optional<std::int64_t> checkpoint_bytes) {
  const auto ranks = static_cast<double>(split.tp * split.pp);
  BytesRange range;
  if (checkpoint_bytes.has_value()) {
    const auto whole = static_cast<double>(*checkpoint_bytes);
    range.least = static_cast<std::int64_t>(whole / ranks);
    // Small matrices are repeated on every rank, and stages are not equal.
    range.most = split.tp * split.pp == 1 ? range.least : static_cast<std::int64_t>(whole / ranks * 1.05);
    range.basis =
        absl::StrFormat("the checkpoint's index: %.2f GiB over %d ranks", whole / kGiB, split.tp * split.pp);
    return range;
  }
  const Counter counter(model, split);
  double layers = 0;
  for (const ModelLayer& layer : model.layers) layers += counter.Layer(layer);
  double bytes = layers / static_cast<double>(split.pp) + counter.Head() + counter.LayerTables();
  if (split.pp == 1) bytes += counter.Embedding();
  if (split.with_mtp) {
    for (const ModelLayer& layer : model.mtp_layers) bytes += counter.Layer(layer);
  }
  // Packed weights are padded to the kernels' tiles, and files quantise a little more or less than they say.
  const WeightQuantisation& stored = model.quantisation;
  const bool packed = stored.mixers.bits + stored.dense.bits + stored.experts.bits > 0;
  const double shared = split.pp == 1 ? counter.Shared() : 0;
  range.least = static_cast<std::int64_t>((bytes - shared) * (packed ? 0.95 : 0.99));
  range.most = static_cast<std::int64_t>(bytes * (packed ? 1.14 : 1.04)) + (std::int64_t{256} << 20);
  range.basis = "shapes of the layers and the checkpoint's quantisation";
  if (const std::string_view word = UnstatedFormat(model, split.name); !word.empty()) {
    const double share = FormatInName(word)->bits / (8.0 * static_cast<double>(DTypeBytes(model.dtype)));
    range.least = static_cast<std::int64_t>(static_cast<double>(range.least) * std::min(share, 1.0));
    range.basis = absl::StrFormat(
        "an upper bound: the name says %s, the configuration gives no quantisation; from all weights in that "
        "format to none",
        std::string(word));
  }
  if (model.multimodal) {
    range.most += std::int64_t{3} << 30;
    range.basis += "; vision or audio parts of up to 3 GiB are not described";
  }
  return range;
}

}  // namespace kvasir
