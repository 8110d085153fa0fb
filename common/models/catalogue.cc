// Collects the families' parts (catalogue_parts.h). The models' published shapes are written as facts of
// ours; a test compares them with public configurations where those are at hand.
#include "common/models/catalogue.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/edit_distance.h"
#include "common/base/error_reasons.h"
#include "common/base/typed_error.h"
#include "common/models/catalogue_parts.h"
#include "common/models/config_error.h"
#include "common/models/model_fields.h"

namespace kvasir {
namespace {

// All entries, by name.
std::vector<catalogue::Entry> SortedEntries() {
  std::vector<catalogue::Entry> out;
  for (const auto part :
       {catalogue::DeepseekModels(), catalogue::DemoModels(), catalogue::DraftModels(),
        catalogue::GemmaModels(), catalogue::GlmModels(), catalogue::HybridModels(), catalogue::KimiModels(),
        catalogue::LlamaModels(), catalogue::MoeModels(), catalogue::QwenModels()}) {
    out.insert(out.end(), part.begin(), part.end());
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

const std::vector<catalogue::Entry>& Entries() {
  static const std::vector<catalogue::Entry> entries = SortedEntries();
  return entries;
}

ModelDescription MakeEntry(const catalogue::Entry& entry) {
  ModelDescription model = entry.make();
  model.name = entry.hub_name;
  return model;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// "window 128", "attention", "mla", "no mixer": what people call the kind.
std::string KindWord(const MixerShape& shape) {
  if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
    if (attention->window > 0) return absl::StrFormat("window %d", attention->window);
    if (attention->chunk > 0) return absl::StrFormat("chunk %d", attention->chunk);
  }
  if (const auto* mla = std::get_if<MlaShape>(&shape)) {
    if (mla->window > 0) return absl::StrFormat("mla window %d", mla->window);
    if (mla->ratio > 1) return absl::StrFormat("mla 1:%d", mla->ratio);
  }
  return std::holds_alternative<NoMixer>(shape) ? "no mixer" : std::string(MixerKind(shape));
}

// "69 kda, 24 mla; 896 experts", kinds in the order of their first layer.
std::string Summary(const ModelDescription& model) {
  std::vector<std::pair<std::string, int>> counts;
  const auto count = [&counts](const MixerShape& shape) {
    const std::string word = KindWord(shape);
    for (auto& [known, number] : counts) {
      if (known == word) {
        ++number;
        return;
      }
    }
    counts.emplace_back(word, 1);
  };
  std::int64_t experts = 0;
  for (const ModelLayer& layer : model.layers) {
    count(layer.mixer);
    for (const MixerShape& extra : layer.extra) {
      // Compressors go with the cache that they feed.
      if (!std::holds_alternative<CompressorShape>(extra)) count(extra);
    }
    experts = std::max(experts, layer.mlp.experts);
  }
  std::string out;
  for (const auto& [word, number] : counts)
    out += absl::StrFormat("%s%d %s", out.empty() ? "" : ", ", number, word);
  if (experts > 0) out += absl::StrFormat("; %d experts", experts);
  if (model.draft.has_value()) out += absl::StrFormat("; drafts by %s", DraftMethodName(model.draft->method));
  return out;
}

absl::Status NotFound(std::string_view name) {
  const std::string wanted = Lower(name.substr(0, 64));
  const std::vector<catalogue::Entry>& entries = Entries();
  std::vector<std::pair<std::size_t, std::string_view>> near;
  near.reserve(entries.size());
  for (const catalogue::Entry& entry : entries)
    near.emplace_back(EditDistance(wanted, entry.name), entry.name);
  std::sort(near.begin(), near.end());
  TypedError error;
  error.code = absl::StatusCode::kNotFound;
  error.reason = reason::kModelUnknown;
  error.message = absl::StrFormat("model \"%s\" is not in the catalogue; nearest: %s, %s, %s",
                                  ShownText(name, 64), near[0].second, near[1].second, near[2].second);
  error.metadata = {{"model", ShownText(name, 64)}, {"nearest", std::string(near[0].second)}};
  return MakeError(error);
}

}  // namespace

std::vector<CatalogueEntry> ListCatalogue() {
  std::vector<CatalogueEntry> out;
  for (const catalogue::Entry& entry : Entries()) {
    const ModelDescription model = MakeEntry(entry);
    out.push_back({std::string(entry.name), model.name, model.draft.has_value(), Summary(model)});
  }
  return out;
}

absl::StatusOr<ModelDescription> FindInCatalogue(std::string_view name) {
  const std::string wanted = Lower(name);
  for (const catalogue::Entry& entry : Entries()) {
    if (wanted == entry.name || wanted == Lower(entry.hub_name)) return MakeEntry(entry);
  }
  return NotFound(name);
}

}  // namespace kvasir
