// What the planner counts of a model's weights against what our own worker declares of them, which is every
// tensor in fp32. Nothing is allocated.
#include <gtest/gtest.h>

#include "common/models/catalogue.h"
#include "planner/request/weight_bytes.h"
#include "tests/testing/cacheless_model.h"
#include "tests/testing/matchers.h"
#include "worker/engine/weight_set.h"

namespace kvasir::testing {
namespace {

class EngineWeightsTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, EngineWeightsTest,
                         ::testing::Values("demo-target", "deepseek-v2-lite", "deepseek-v3", "kimi-k2"));

TEST_P(EngineWeightsTest, AreWhatThePlannerCounts) {
  const auto found = FindInCatalogue(GetParam());
  KVASIR_ASSERT_OK(found);
  ModelDescription model = *found;
  model.dtype = DType::kF32;
  model.quantisation = {};
  RoleModel whole = WholeModel(Role::kTarget, model);
  WeightSet weights;
  DeclareWeights(model, {}, weights, &whole);
  const double declared = static_cast<double>(weights.bytes().value());
  const BytesRange counted = WeightBytesOf(model, {}, std::nullopt);
  // The range's lower end is the count less 1 %; norms and biases, which it leaves out, are less than that.
  EXPECT_GE(declared, static_cast<double>(counted.least));
  EXPECT_LE(declared, static_cast<double>(counted.least) * 1.02);
  EXPECT_LE(declared, static_cast<double>(counted.most));
}

}  // namespace
}  // namespace kvasir::testing
