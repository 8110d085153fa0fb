#include "common/models/draft_of.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "common/models/catalogue.h"
#include "common/models/check_model.h"
#include "common/models/model_text.h"
#include "tests/testing/matchers.h"

namespace kvasir::testing {
namespace {

ModelDescription Catalogued(std::string_view name) {
  auto model = FindInCatalogue(name);
  EXPECT_THAT(model, IsOk());
  return model.ok() ? *model : ModelDescription{};
}

TEST(MtpDraft, IsTheTargetsOwnLayers) {
  const ModelDescription target = Catalogued("deepseek-v3.2");
  const auto draft = MtpDraft(target);
  KVASIR_ASSERT_OK(draft);
  EXPECT_EQ(draft->name, "deepseek-ai/DeepSeek-V3.2-mtp");
  EXPECT_EQ(draft->layers, target.mtp_layers);
  EXPECT_TRUE(draft->mtp_layers.empty());
  ASSERT_TRUE(draft->draft.has_value());
  EXPECT_EQ(draft->draft->method, DraftMethod::kMtp);
  EXPECT_TRUE(draft->draft->causal);
  EXPECT_EQ(draft->draft->block, 1);
  EXPECT_EQ(draft->draft->target_layers, 61);
}

// Every model of the catalogue that predicts gives a draft that meets the limits and survives its text.
TEST(MtpDraft, HoldsForTheCatalogue) {
  int drafts = 0;
  for (const CatalogueEntry& entry : ListCatalogue()) {
    const ModelDescription target = Catalogued(entry.name);
    const auto draft = MtpDraft(target);
    EXPECT_EQ(draft.ok(), target.mtp_depth > 0) << entry.name;
    if (!draft.ok()) continue;
    ++drafts;
    EXPECT_FALSE(FindModelFault(*draft).has_value()) << entry.name;
    const auto again = ModelFromText(ModelToText(*draft));
    KVASIR_ASSERT_OK(again);
    EXPECT_EQ(*again, *draft);
  }
  EXPECT_GE(drafts, 10);
}

TEST(MtpDraft, SaysWhichModelHasNone) {
  EXPECT_THAT(MtpDraft(Catalogued("kimi-k3")),
              StatusIs(absl::StatusCode::kFailedPrecondition, "moonshotai/Kimi-K3"));
}

TEST(MtpDraft, LongNamesStayNames) {
  ModelDescription target = Catalogued("deepseek-v3");
  target.name = std::string(256, 'x');
  const auto draft = MtpDraft(target);
  KVASIR_ASSERT_OK(draft);
  EXPECT_TRUE(IsModelName(draft->name));
}

TEST(EagleDraft, TakesAPlainModelAsTheEngineIsTold) {
  const auto draft = EagleDraft(Catalogued("llama-3.1-8b"), DraftMethod::kEagle3);
  KVASIR_ASSERT_OK(draft);
  EXPECT_EQ(draft->draft->method, DraftMethod::kEagle3);
  EXPECT_FALSE(FindModelFault(*draft).has_value());
}

TEST(EagleDraft, KeepsADraftOfItsMethodAndRefusesAnother) {
  const ModelDescription eagle3 = Catalogued("qwen3-8b-eagle3");
  const auto same = EagleDraft(eagle3, DraftMethod::kEagle3);
  KVASIR_ASSERT_OK(same);
  EXPECT_EQ(*same, eagle3);
  EXPECT_THAT(EagleDraft(Catalogued("qwen3-8b-dflash"), DraftMethod::kEagle3),
              StatusIs(absl::StatusCode::kFailedPrecondition, "another method"));
}

// What a hand-written description may not say of a module.
TEST(DraftOf, AnMtpModuleHasNoTapsNoHeadsAndIsCausal) {
  const ModelDescription good = MtpDraft(FindInCatalogue("deepseek-v3").value()).value();
  ASSERT_FALSE(FindModelFault(good).has_value());
  const std::function<void(DraftShape&)> changes[] = {
      [](DraftShape& d) { d.target_taps = {0, 1}; },
      [](DraftShape& d) { d.markov_rank = 4; },
      [](DraftShape& d) { d.confidence_head = true; },
      [](DraftShape& d) { d.causal = false; },
  };
  for (const auto& change : changes) {
    ModelDescription bad = good;
    change(*bad.draft);
    EXPECT_TRUE(FindModelFault(bad).has_value());
  }
}

}  // namespace
}  // namespace kvasir::testing
