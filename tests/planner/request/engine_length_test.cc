#include "planner/request/engine_length.h"

#include <optional>
#include <string>
#include <vector>

#include "common/base/limits.h"
#include "common/base/typed_error.h"
#include "common/models/catalogue.h"
#include "planner/request/catalogued_model.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct LengthCase {
  std::string what;
  Rope rope;
  std::int64_t limit;
  std::int64_t unsaid;
};

TEST(EngineLengthTest, FollowsTheRotaryEmbedding) {
  const Rope plain;
  const Rope yarn{.factor = 4.0, .original_context = 32768};
  const Rope linear{.factor = 2.5, .kind = RopeKind::kLinear};
  const Rope llama{.factor = 8.0, .original_context = 8192, .kind = RopeKind::kLlama3};
  const Rope longrope{.original_context = 4096, .kind = RopeKind::kLongrope};
  const Rope huge{.factor = 1e6, .kind = RopeKind::kDynamic};
  for (const LengthCase& c :
       {LengthCase{"plain", plain, 40960, 40960}, LengthCase{"yarn", yarn, 131072, 131072},
        LengthCase{"linear", linear, 102400, 102400}, LengthCase{"llama3", llama, 40960, 40960},
        LengthCase{"longrope", longrope, 40960, 4096},
        LengthCase{"beyond all limits", huge, kContextTokensMax, kContextTokensMax}}) {
    SCOPED_TRACE(c.what);
    ModelDescription model = FindInCatalogue("qwen3-8b").value();
    ASSERT_EQ(model.context, 40960);
    model.rope = c.rope;
    EXPECT_EQ(EngineLengthLimit(model), c.limit);
    EXPECT_EQ(EngineLengthUnsaid(model), c.unsaid);
    model.architecture = "Gemma3ForCausalLM";  // its claim is stretched already
    EXPECT_EQ(EngineLengthLimit(model), 40960);
  }
}

// A stretched model's own claim and its embedding say the same.
TEST(EngineLengthTest, AgreesWithWhatModelsClaim) {
  for (const CatalogueEntry& entry : ListCatalogue()) {
    const ModelDescription model = FindInCatalogue(entry.name).value();
    if (model.rope.kind != RopeKind::kYarn || entry.draft) continue;
    EXPECT_EQ(EngineLengthLimit(model), model.context) << entry.name;
  }
}

TEST(EngineLengthTest, OverridesStretchACataloguedModel) {
  std::vector<std::string> notes;
  const std::optional<std::string> overrides =
      R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
          "num_hidden_layers": 3})";
  EngineLaunch launch;
  const auto model = FindCataloguedModel("someone/Qwen3-8B-AWQ", overrides, notes);
  KVASIR_ASSERT_OK(model);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("is taken for Qwen/Qwen3-8B"),
                                 HasSubstr("--hf-overrides num_hidden_layers is not used")));
  EXPECT_TRUE(model->is_copy);
  launch.target = model->model;
  EngineSettings settings;
  KVASIR_ASSERT_OK(SetEngineLength(launch, settings));
  EXPECT_EQ(settings.max_model_len, 131072);
  EXPECT_THAT(settings.assumed, IsEmpty());
  launch.options.max_model_len = 131073;
  EXPECT_THAT(ErrorOf(SetEngineLength(launch, settings)).message, HasSubstr("use at most 131072"));
  launch.options.allow_long_model_len = true;
  KVASIR_EXPECT_OK(SetEngineLength(launch, settings));
}

TEST(EngineLengthTest, LongRopeIsNotStretchedUnasked) {
  EngineLaunch launch;
  launch.target = FindInCatalogue("qwen3-8b").value();
  launch.target.rope = {.original_context = 4096, .kind = RopeKind::kLongrope};
  EngineSettings settings;
  KVASIR_ASSERT_OK(SetEngineLength(launch, settings));
  EXPECT_EQ(settings.max_model_len, 4096);
  EXPECT_THAT(settings.assumed, ElementsAre(HasSubstr("--max-model-len 4096")));
  launch.options.max_model_len = 40960;
  KVASIR_ASSERT_OK(SetEngineLength(launch, settings));
  EXPECT_EQ(settings.max_model_len, 40960);
}

}  // namespace
}  // namespace kvasir
