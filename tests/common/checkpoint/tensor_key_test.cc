#include "common/checkpoint/tensor_key.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kvasir {
namespace {

TEST(TensorKey, EveryKindHasAWordThatReadsBack) {
  std::set<std::string> texts;
  int read = 0;
  for (int i = 0; i <= static_cast<int>(TensorKind::kExpertDown); ++i) {
    for (const TensorKey& key :
         {TensorKey{static_cast<TensorKind>(i)}, TensorKey{static_cast<TensorKind>(i), 12},
          TensorKey{static_cast<TensorKind>(i), 12, 345}}) {
      const auto back = ParseKey(KeyText(key));
      if (back != key) continue;  // a kind has one scope: the model, a layer, an expert
      ++read;
      EXPECT_TRUE(texts.insert(KeyText(key)).second) << KeyText(key);
    }
  }
  EXPECT_EQ(read, static_cast<int>(TensorKind::kExpertDown) + 1);
}

TEST(TensorKey, WritesTheTextOfEachScope) {
  EXPECT_EQ(KeyText({TensorKind::kEmbedding}), "embedding");
  EXPECT_EQ(KeyText({TensorKind::kQUp, 3}), "layers.3.q_up");
  EXPECT_EQ(KeyText({TensorKind::kExpertDown, 3, 17}), "layers.3.experts.17.down");
}

TEST(TensorKey, RefusesOtherText) {
  for (const char* text :
       {"", "q_up", "layers.3", "layers.3.", "layers..q_up", "layers.-1.q_up", "layers.03.q_up",
        "layers.3.embedding", "layers.3.experts.1.q_up", "layers.3.experts.down", "experts.1.down",
        "layers.99999999999.q_up", "layers.3.q_up.weight"}) {
    EXPECT_EQ(ParseKey(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace kvasir
