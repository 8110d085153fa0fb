// A transformer with MLA in expanded form (keys and values per head, nothing absorbed) and KDA layers, in
// double, from the formulas alone. The oracle of the engine's passes; slow on purpose.
#ifndef KVASIR_TESTS_TESTING_EXPANDED_FORWARD_H_
#define KVASIR_TESTS_TESTING_EXPANDED_FORWARD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/geometry/dtype.h"
#include "common/models/model_description.h"
#include "worker/engine/role_model.h"

namespace kvasir::testing {

using Matrix = std::vector<std::vector<double>>;  // [rows][cols]

// weight [out_dim, in.size()] * in
[[nodiscard]] std::vector<double> Times(const float* weight, std::size_t out_dim,
                                        const std::vector<double>& in);

// Rotation of lane pairs by position * frequency, from the definition of YaRN; nothing of rope_table.cc.
class Rotation {
 public:
  Rotation(const Rope& rope, std::int64_t dim) : rope_(rope), dim_(static_cast<double>(dim)) {}
  // Rotates the `dim` lanes of *x from `begin` on.
  void Apply(std::vector<double>* x, std::size_t begin, std::int64_t position, bool halves = false) const;
  // What YaRN multiplies the softmax scale with.
  [[nodiscard]] double SoftmaxFactor() const;

 private:
  [[nodiscard]] double Mscale(double scale) const;
  // The lane that turns `turns` times within the original context.
  [[nodiscard]] double Lane(double turns) const;
  [[nodiscard]] double Frequency(double lane) const;

  Rope rope_;
  double dim_;
};

// A row of a layer's cache, as stored: latent and rotary key, or the keys and the values of all heads.
struct ExpandedRow {
  std::vector<double> latent;
  std::vector<double> rotary;
};

// A token's residual stream, and what the blocks of layers before left of it (Kimi-K3's attention over
// residuals).
struct Stream {
  std::vector<double> x;
  Matrix blocks = {};
};

class ExpandedForward {
 public:
  // `model` holds whole, unsharded weights and outlives the object. Cache rows are rounded to `cache_dtype`.
  ExpandedForward(const RoleModel& model, const ModelDescription& description, DType cache_dtype);

  [[nodiscard]] std::vector<double> Norm(const std::vector<double>& x, const float* weight) const;
  [[nodiscard]] ExpandedRow Row(const RoleLayer& layer, const std::vector<double>& hidden,
                                std::int64_t position) const;
  // What the layer's mixer reads, normed.
  [[nodiscard]] std::vector<double> MixerInput(const RoleLayer& layer, const Stream& stream) const;
  // Attention and mlp of one row, which sees the first `visible` rows of the MLA layer's cache.
  void Layer(const RoleLayer& layer, const std::vector<ExpandedRow>& cache, std::size_t visible,
             std::int64_t position, Stream* stream) const;
  // KDA and mlp of the rows of a whole sequence, from its first token on.
  void RecurrentLayer(const RoleLayer& layer, std::vector<Stream>* streams) const;
  [[nodiscard]] std::vector<double> Embedding(std::int32_t token) const;
  // What the head reads, normed; and its logits.
  [[nodiscard]] std::vector<double> HeadInput(const Stream& stream) const;
  [[nodiscard]] std::vector<double> Logits(const Stream& stream) const;

 private:
  [[nodiscard]] double Stored(double value) const;
  // The stream, or where blocks have residuals what attention over them and the stream makes of it.
  [[nodiscard]] std::vector<double> Mixture(const Stream& stream, const float* norm, const float* proj) const;
  // The stream takes in the mixer's output; before a block's first layer it starts anew.
  void AddMixer(const RoleLayer& layer, const std::vector<double>& out, Stream* stream) const;
  void Mlp(const RoleLayer& layer, Stream* stream) const;
  // One head of a KDA layer over all rows of its normed input: its columns of `out`.
  void RecurrentHead(const KdaLayer& layer, std::size_t head, const Matrix& in, Matrix* out) const;
  [[nodiscard]] ExpandedRow KeysAndValues(const GqaLayer& layer, const std::vector<double>& hidden,
                                          std::int64_t position) const;
  // The norm of each head of `dim`, then the rotation.
  [[nodiscard]] std::vector<double> NormedHeads(std::vector<double> x, const float* weight, std::size_t dim,
                                                std::int64_t position) const;
  [[nodiscard]] std::vector<double> GroupedAttention(const GqaLayer& layer, const std::vector<double>& normed,
                                                     const std::vector<ExpandedRow>& cache,
                                                     std::size_t visible, std::int64_t position) const;
  [[nodiscard]] std::vector<double> Attention(const RoleLayer& layer, const std::vector<double>& normed,
                                              const std::vector<ExpandedRow>& cache, std::size_t visible,
                                              std::int64_t position) const;
  // Head `h`: the key of a row is [w_uk * latent ; rotary], its value w_uv * latent.
  [[nodiscard]] std::vector<double> Head(const MlaLayer& layer, const double* query, std::size_t h,
                                         const std::vector<ExpandedRow>& cache, std::size_t visible) const;

  const RoleModel& model_;
  Rotation rope_;
  DType dtype_;
};

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_EXPANDED_FORWARD_H_
