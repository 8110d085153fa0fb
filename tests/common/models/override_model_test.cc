#include "common/models/override_model.h"

#include <string>

#include "common/models/catalogue.h"
#include "common/models/config_error.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(OverrideModelTest, LengthAndRotaryEmbedding) {
  ModelDescription model = FindInCatalogue("qwen3-8b").value();
  const ModelDescription before = model;
  const auto unused = OverrideModel(
      R"({"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
          "original_max_position_embeddings": 32768}})",
      model);
  KVASIR_ASSERT_OK(unused);
  EXPECT_THAT(*unused, IsEmpty());
  EXPECT_EQ(model.context, 131072);
  EXPECT_EQ(model.rope.kind, RopeKind::kYarn);
  EXPECT_EQ(model.rope.factor, 4.0);
  EXPECT_EQ(model.rope.original_context, 32768);
  EXPECT_EQ(model.layers, before.layers);
}

TEST(OverrideModelTest, WithinTheTextModelToo) {
  ModelDescription model = FindInCatalogue("gemma-3-27b").value();
  const auto unused =
      OverrideModel(R"({"text_config": {"max_position_embeddings": 4096, "num_hidden_layers": 2},
                                        "hidden_size": 8})",
                    model);
  KVASIR_ASSERT_OK(unused);
  EXPECT_THAT(*unused, ElementsAre("hidden_size", "text_config.num_hidden_layers"));
  EXPECT_EQ(model.context, 4096);
}

TEST(OverrideModelTest, WhatIsWrongChangesNothing) {
  ModelDescription model = FindInCatalogue("qwen3-8b").value();
  const ModelDescription before = model;
  for (const std::string text :
       {R"({"max_position_embeddings": 0})", R"({"max_position_embeddings": "long"})",
        R"({"rope_scaling": {"rope_type": "yarn"}})", R"({"rope_scaling": {"rope_type": "spiral"}})",
        R"({"text_config": 3})", "[]", "{"}) {
    SCOPED_TRACE(text);
    const auto unused = OverrideModel(text, model);
    EXPECT_TRUE(ConfigErrorOf(unused.status()).has_value());
    EXPECT_EQ(model, before);
  }
}

}  // namespace
}  // namespace kvasir
