// How configurations spell rotary embeddings.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "common/models/read_config.h"
#include "tests/common/models/small_config.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

struct RopeCase {
  std::string what;
  std::string fields;
  Rope expected;
};
void PrintTo(const RopeCase& c, std::ostream* out) { *out << c.what; }

std::vector<RopeCase> Cases() {
  return {
      {"none", "", {}},
      {"plain", R"("rope_theta": 500000.0)", {.theta = 5e5}},
      {"default", R"("rope_scaling": {"rope_type": "default"})", {}},
      {"mrope turns text as ever", R"("rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]})", {}},
      {"yarn",
       R"("rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 512})",
       {.factor = 4, .original_context = 512}},
      {"llama3",
       R"("rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
           "original_max_position_embeddings": 8192})",
       {.factor = 8, .original_context = 8192, .kind = RopeKind::kLlama3, .high_freq_factor = 4}},
      {"linear",
       R"("rope_scaling": {"rope_type": "linear", "factor": 8})",
       {.factor = 8, .kind = RopeKind::kLinear}},
      {"dynamic",
       R"("rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0})",
       {.kind = RopeKind::kDynamic}},
      {"longrope",
       R"("rope_scaling": {"type": "su", "long_factor": [1.5], "short_factor": [1.0]})",
       {.kind = RopeKind::kLongrope}},
      {"part of the lanes", R"("partial_rotary_factor": 0.5)", {.partial = 0.5}},
      {"the newer form",
       R"("rope_parameters": {"rope_type": "default", "rope_theta": 1000000, "partial_rotary_factor": 0.25})",
       {.theta = 1e6, .partial = 0.25}},
      {"one for each kind of layer",
       R"("rope_parameters": {"full_attention": {"rope_theta": 1000000.0, "rope_type": "proportional",
           "partial_rotary_factor": 0.25}, "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}})",
       {.theta = 1e6, .kind = RopeKind::kProportional, .partial = 0.25, .local_theta = 1e4}},
      {"a list has one for each layer", R"("rope_theta": [5000000.0, 10000.0])", {}},
  };
}

class RopeTest : public ::testing::TestWithParam<RopeCase> {};

TEST_P(RopeTest, IsRead) {
  const auto model = ReadConfigJson(SmallConfig("LlamaForCausalLM", GetParam().fields), "org/small");
  KVASIR_ASSERT_OK(model);
  EXPECT_EQ(model->rope, GetParam().expected);
}
INSTANTIATE_TEST_SUITE_P(All, RopeTest, ::testing::ValuesIn(Cases()));

}  // namespace
}  // namespace kvasir::testing
