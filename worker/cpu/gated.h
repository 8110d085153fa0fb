// The activation of gated MLPs, for one element.
#ifndef KVASIR_WORKER_CPU_GATED_H_
#define KVASIR_WORKER_CPU_GATED_H_

#include <cmath>

#include "worker/engine/launch_experts.h"

namespace kvasir::cpu {

[[nodiscard]] inline float Sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

[[nodiscard]] inline float Gated(const GatedActivation& act, float gate, float up) {
  if (act.situ_beta == 0.0F) return gate * Sigmoid(gate) * up;
  if (act.situ_linear_beta > 0.0F) up = act.situ_linear_beta * std::tanh(up / act.situ_linear_beta);
  return act.situ_beta * std::tanh(gate / act.situ_beta) * Sigmoid(gate) * up;
}

}  // namespace kvasir::cpu

#endif  // KVASIR_WORKER_CPU_GATED_H_
