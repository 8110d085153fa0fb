// How a config.json spells the rotary embedding.
#include <optional>
#include <string>

#include "common/models/config_fields.h"

namespace kvasir {
namespace {

constexpr RealRange kThetaRange{1.0, 1e12};
constexpr RealRange kFactorRange{1.0, 1e6};

void ReadYarn(const ConfigObject& scaling, Rope& rope) {
  rope.factor = scaling.Real("factor", kFactorRange);
  rope.original_context = scaling.Int("original_max_position_embeddings", kTokensRange);
  rope.beta_fast = scaling.RealOr("beta_fast", {0.0, 1e6}, rope.beta_fast);
  rope.beta_slow = scaling.RealOr("beta_slow", {0.0, 1e6}, rope.beta_slow);
  rope.mscale = scaling.RealOr("mscale", {0.0, 1e3}, rope.mscale);
  rope.mscale_all_dim = scaling.RealOr("mscale_all_dim", {0.0, 1e3}, rope.mscale_all_dim);
}

void ReadLlama3(const ConfigObject& scaling, Rope& rope) {
  rope.kind = RopeKind::kLlama3;
  rope.factor = scaling.Real("factor", kFactorRange);
  rope.low_freq_factor = scaling.Real("low_freq_factor", {0.0, 1e6});
  rope.high_freq_factor = scaling.Real("high_freq_factor", {0.0, 1e6});
  rope.original_context = scaling.Int("original_max_position_embeddings", kTokensRange);
}

// The scaling's fields, or a plain embedding. mrope and its sections say where an image's tokens stand; the
// angles of text are the plain ones.
void ReadScaling(const ConfigObject& scaling, Rope& rope) {
  const std::string_view field = scaling.FirstOf({"rope_type", "type"});
  const std::string type = scaling.TextOr(field, "default");
  rope.partial = scaling.RealOr("partial_rotary_factor", {0.0, 1.0}, rope.partial);
  const auto other = [&](RopeKind kind) {
    rope.kind = kind;
    rope.factor = scaling.RealOr("factor", kFactorRange, 1.0);
    rope.original_context = scaling.IntOr("original_max_position_embeddings", kTokensRange, 0);
  };
  if (type == "default" || type == "mrope") return;
  if (type == "yarn" || type == "deepseek_yarn") return ReadYarn(scaling, rope);
  if (type == "llama3") return ReadLlama3(scaling, rope);
  if (type == "linear") return other(RopeKind::kLinear);
  if (type == "dynamic") return other(RopeKind::kDynamic);
  if (type == "longrope" || type == "su") return other(RopeKind::kLongrope);
  if (type == "proportional") return other(RopeKind::kProportional);
  scaling.Fail(
      ConfigFault::kUnsupported, field,
      "this rotary embedding is not described; known: default, mrope, yarn, llama3, linear, dynamic, "
      "longrope, proportional");
}

// rope_parameters may hold one object for each kind of layer; then the full layers' is the model's.
Rope ReadParameters(const ConfigObject& parameters, const Rope& base) {
  Rope rope = base;
  const std::optional<ConfigObject> full = parameters.ObjectIf("full_attention");
  const ConfigObject& own = full.has_value() ? *full : parameters;
  rope.theta = own.RealOr("rope_theta", kThetaRange, base.theta);
  ReadScaling(own, rope);
  if (const auto sliding = parameters.ObjectIf("sliding_attention")) {
    const double theta = sliding->RealOr("rope_theta", kThetaRange, rope.theta);
    if (theta != rope.theta) rope.local_theta = theta;
  }
  return rope;
}

// LongRoPE's models say beside the scaling how long a sequence they were trained for.
void FillTrainedLength(const ConfigObject& config, Rope& rope) {
  if (rope.kind != RopeKind::kLongrope || rope.original_context != 0) return;
  rope.original_context = config.IntOr("original_max_position_embeddings", kTokensRange, 0);
}

}  // namespace

Rope ReadRope(const ConfigObject& config) {
  Rope rope;
  // A list has one entry a layer; the first stands for the model.
  if (!config.IsList("rope_theta")) rope.theta = config.RealOr("rope_theta", kThetaRange, rope.theta);
  rope.partial = config.RealOr("partial_rotary_factor", {0.0, 1.0}, rope.partial);
  Rope scaled = rope;
  if (const auto scaling = config.ObjectIf("rope_scaling")) ReadScaling(*scaling, scaled);
  FillTrainedLength(config, scaled);
  const std::optional<ConfigObject> parameters = config.ObjectIf("rope_parameters");
  if (!parameters.has_value()) return scaled;
  Rope named = ReadParameters(*parameters, rope);
  FillTrainedLength(config, named);
  if (config.Has("rope_theta") && named.theta != rope.theta) {
    config.Fail(ConfigFault::kContradiction, "rope_theta",
                "rope_parameters.rope_theta differs; give one value");
  }
  scaled.theta = named.theta;
  if (config.Has("rope_scaling") && !(scaled == named)) {
    config.Fail(ConfigFault::kContradiction, "rope_scaling",
                "rope_parameters says otherwise; remove one of the two");
  }
  return named;
}

}  // namespace kvasir
