// The MLP of one row of a transformer, dense or a mixture of experts, in double from the formulas alone.
#ifndef KVASIR_TESTS_TESTING_EXPANDED_EXPERTS_H_
#define KVASIR_TESTS_TESTING_EXPANDED_EXPERTS_H_

#include <vector>

#include "worker/engine/role_model.h"

namespace kvasir::testing {

// mlp(normed); `layer` holds whole, unsharded weights, and `eps` is that of the model's norms.
[[nodiscard]] std::vector<double> ExpandedMlp(const RoleLayer& layer, double eps,
                                              const std::vector<double>& normed);

}  // namespace kvasir::testing

#endif  // KVASIR_TESTS_TESTING_EXPANDED_EXPERTS_H_
