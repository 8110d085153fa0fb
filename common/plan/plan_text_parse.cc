// The strict reader of the grammar in plan_text.cc. What it accepts it writes back and compares, so that
// exactly the canonical bytes are accepted, however lenient a single field's reading might be.
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/plan/plan_text.h"
#include "common/plan/plan_text_fields.h"

namespace kvasir {
namespace {

constexpr std::size_t kShownBytes = 60;

// A part of the input for a message: short, and ASCII whatever the peer sent.
std::string Shown(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, kShownBytes)) out += (c >= ' ' && c <= '~') ? c : '?';
  if (text.size() > kShownBytes) out += "...";
  out += '\'';
  return out;
}

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<std::string> Decode(std::string_view value) {
  std::string out;
  out.reserve(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '%') {
      out += value[i];
      continue;
    }
    if (i + 2 >= value.size()) return std::nullopt;
    const std::optional<int> high = HexDigit(value[i + 1]);
    const std::optional<int> low = HexDigit(value[i + 2]);
    if (!high.has_value() || !low.has_value()) return std::nullopt;
    out += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return out;
}

std::optional<std::int64_t> ParseInteger(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Walks over lines and over the fields of the current one. The first error sticks; later calls do nothing.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  // Takes the next line if it starts with `keyword`.
  bool Take(std::string_view keyword) {
    if (!status_.ok() || !rest_.starts_with(keyword)) return false;
    if (rest_.size() > keyword.size() && rest_[keyword.size()] != ' ' && rest_[keyword.size()] != '\n')
      return false;
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(keyword.size(), end == std::string_view::npos ? end : end - keyword.size());
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++number_;
    return true;
  }
  // The same, where nothing else may stand.
  void Expect(std::string_view keyword) {
    if (!status_.ok() || Take(keyword)) return;
    ++number_;
    Fail(absl::StrFormat("expected the line '%s'", keyword), rest_.substr(0, rest_.find('\n')));
  }
  // Nothing may follow on the current line.
  void EndLine() {
    if (status_.ok() && !line_.empty()) Fail("expected the end of the line", line_);
  }
  void EndText() {
    if (status_.ok() && !rest_.empty()) Fail("expected the end of the text", rest_);
  }

  void Integer(std::string_view name, std::int64_t& value) {
    Number(name, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), value);
  }
  void Flag(std::string_view name, bool& value) {
    std::int64_t number = 0;
    Number(name, 0, 1, number);
    value = number == 1;
  }
  void Quantity(std::string_view name, Bytes& value) {
    std::int64_t number = 0;
    Integer(name, number);
    value = Bytes(number);
  }
  template <class IdType>
  void Id(std::string_view name, IdType& id) {
    using Rep = decltype(id.value());
    std::int64_t number = 0;
    Number(name, std::numeric_limits<Rep>::min(), std::numeric_limits<Rep>::max(), number);
    id = IdType(static_cast<Rep>(number));
  }
  template <class E, std::size_t N>
  void Word(std::string_view name, E& value, const plan_text::Words<E, N>& words) {
    const std::string_view word = Field(name);
    if (!status_.ok()) return;
    for (const E candidate : words.values) {
      if (words.name(candidate) == word) {
        value = candidate;
        return;
      }
    }
    Fail(absl::StrFormat("field '%s' is an unknown word", name), word);
  }
  void Layer(std::string_view name, LayerId& id) {
    const std::string_view word = Field(name);
    if (!status_.ok()) return;
    const std::optional<LayerId> parsed = ParseLayerId(word);
    if (!parsed.has_value()) return Fail(absl::StrFormat("field '%s' must be like target.3", name), word);
    id = *parsed;
  }
  void Text(std::string_view name, std::string& value) {
    const std::string_view word = Field(name);
    if (!status_.ok()) return;
    std::optional<std::string> decoded = Decode(word);
    if (!decoded.has_value()) return Fail(absl::StrFormat("field '%s' has a bad %%XX", name), word);
    if (static_cast<std::int64_t>(decoded->size()) > kNameBytesMax) {
      return Fail(absl::StrFormat("field '%s' must have at most %d bytes", name, kNameBytesMax), word);
    }
    value = *std::move(decoded);
  }
  void Ids(std::string_view name, std::vector<GroupId>& ids) {
    std::string_view list = Field(name);
    if (!status_.ok() || list.empty()) return;
    while (true) {
      const std::size_t comma = list.find(',');
      const std::optional<std::int64_t> id = ParseInteger(list.substr(0, comma));
      if (!id.has_value() || *id < 0 || *id > std::numeric_limits<std::int32_t>::max()) {
        return Fail(absl::StrFormat("field '%s' must be a list of group ids", name), list);
      }
      ids.push_back(GroupId(static_cast<std::int32_t>(*id)));
      if (comma == std::string_view::npos) return;
      list.remove_prefix(comma + 1);
    }
  }

  void Fail(const std::string& expected, std::string_view found) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        absl::StrFormat("plan text line %d: %s, found %s", number_, expected, Shown(found)));
  }
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  // The value of the next field, which must be `name`.
  std::string_view Field(std::string_view name) {
    if (!status_.ok()) return {};
    const std::string_view line = line_;
    if (line.size() < name.size() + 2 || line[0] != ' ' || line.substr(1, name.size()) != name ||
        line[name.size() + 1] != '=') {
      Fail(absl::StrFormat("expected the field '%s='", name), line);
      return {};
    }
    line_.remove_prefix(name.size() + 2);
    const std::string_view value = line_.substr(0, line_.find(' '));
    line_.remove_prefix(value.size());
    return value;
  }

  void Number(std::string_view name, std::int64_t min, std::int64_t max, std::int64_t& value) {
    const std::string_view word = Field(name);
    if (!status_.ok()) return;
    const std::optional<std::int64_t> number = ParseInteger(word);
    if (!number.has_value() || *number < min || *number > max) {
      return Fail(absl::StrFormat("field '%s' must be an integer from %d to %d", name, min, max), word);
    }
    value = *number;
  }

  std::string_view rest_;  // from the next line on
  std::string_view line_;  // what is left of the current line
  std::int64_t number_ = 0;
  absl::Status status_;
};

void ReadHead(Reader& in, Plan& plan) {
  in.Expect(plan_text::kFirstLine);
  in.EndLine();
  in.Expect("ruleset");
  in.Text("name", plan.ruleset);
  in.EndLine();
  in.Expect("topology");
  plan_text::TopologyFields(in, plan.topology);
  in.EndLine();
  in.Expect("target");
  plan_text::ModelFields(in, plan.target);
  in.EndLine();
  in.Expect("draft");
  plan_text::ModelFields(in, plan.draft);
  in.EndLine();
  in.Expect("limits");
  plan_text::LimitsFields(in, plan);
  in.EndLine();
  in.Expect("arena");
  plan_text::ArenaFields(in, plan);
  in.EndLine();
}

void ReadTensors(Reader& in, std::string_view keyword, std::vector<StateTensor>& tensors) {
  while (in.Take(keyword)) {
    if (static_cast<std::int64_t>(tensors.size()) >= kStateTensorsMax) {
      return in.Fail(absl::StrFormat("expected at most %d tensors", kStateTensorsMax), keyword);
    }
    plan_text::TensorFields(in, tensors.emplace_back());
    in.EndLine();
  }
}

std::vector<LayoutKey> ReadLayouts(Reader& in) {
  std::vector<LayoutKey> table;
  while (in.Take("layout")) {
    LayoutKey& layout = table.emplace_back();
    plan_text::LayoutFields(in, layout);
    in.EndLine();
    ReadTensors(in, "state", layout.states);
    ReadTensors(in, "ring", layout.ring);
  }
  return table;
}

// `layers_left` bounds the layers of all groups together: each copies a layout, so a short text could ask for
// much memory otherwise.
void ReadLayers(Reader& in, const std::vector<LayoutKey>& table, std::int64_t& layers_left,
                std::vector<PlanLayer>& layers) {
  while (in.Take("layer")) {
    if (--layers_left < 0) return in.Fail(absl::StrFormat("expected at most %d layers", kLayersMax), "layer");
    PlanLayer& layer = layers.emplace_back();
    std::int64_t layout = 0;
    plan_text::LayerFields(in, layer, layout);
    in.EndLine();
    if (!in.status().ok()) return;
    if (layout < 0 || layout >= static_cast<std::int64_t>(table.size())) {
      return in.Fail(absl::StrFormat("field 'layout' must name one of %d layouts", table.size()),
                     std::to_string(layout));
    }
    layer.layout = table[static_cast<std::size_t>(layout)];
  }
}

void ReadPools(Reader& in, const std::vector<LayoutKey>& table, std::vector<PlanPool>& pools) {
  std::int64_t layers_left = kLayersMax;
  while (in.Take("pool")) {
    PlanPool& pool = pools.emplace_back();
    plan_text::PoolFields(in, pool);
    in.EndLine();
    while (in.Take("group")) {
      PlanGroup& group = pool.groups.emplace_back();
      plan_text::GroupFields(in, group);
      in.EndLine();
      ReadLayers(in, table, layers_left, group.layers);
    }
  }
}

void ReadTail(Reader& in, Plan& plan) {
  while (in.Take("graph")) {
    plan_text::GraphFields(in, plan.graphs.emplace_back());
    in.EndLine();
  }
  while (in.Take("owned")) {
    plan_text::OwnedFields(in, plan.attribution.emplace_back());
    in.EndLine();
  }
  in.Expect(plan_text::kLastLine);
  in.EndLine();
  in.EndText();
}

// The number of the first line in which two different texts differ.
std::int64_t FirstDifference(std::string_view a, std::string_view b) {
  std::int64_t line = 1;
  for (std::size_t i = 0; i < a.size() && i < b.size() && a[i] == b[i]; ++i) line += a[i] == '\n' ? 1 : 0;
  return line;
}

}  // namespace

absl::StatusOr<Plan> PlanFromText(std::string_view text) {
  if (static_cast<std::int64_t>(text.size()) > kPlanTextBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("plan text has %d bytes, at most %d are accepted", text.size(), kPlanTextBytesMax));
  }
  Plan plan;
  Reader in(text);
  ReadHead(in, plan);
  const std::vector<LayoutKey> table = ReadLayouts(in);
  ReadPools(in, table, plan.pools);
  ReadTail(in, plan);
  KVASIR_RETURN_IF_ERROR(in.status());
  const std::string canonical = PlanToText(plan);
  if (canonical != text) {
    return absl::InvalidArgumentError(
        absl::StrFormat("plan text line %d is not in canonical form", FirstDifference(text, canonical)));
  }
  return plan;
}

}  // namespace kvasir
