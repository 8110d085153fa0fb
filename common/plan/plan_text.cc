// The text of a plan. Lines end in LF; a line is a keyword and its fields, separated by one space each, every
// field always there and always in this order (plan_text_fields.h has the fields of each line):
//
//   text     = "kvasir-plan 1" ruleset topology target draft limits arena
//              {layout {state} {ring}} {pool {group {layer}}} {graph} {owned} "end"
//   field    = name "=" value
//   integer  = ["-"] digits without leading zeros        flag = "0" | "1"
//   word     = one of the words of common/plan/keys.h and plan.h
//   text     = bytes; all but A-Z a-z 0-9 . _ / : + @ - are written %XX, upper-case hex; may be empty
//   ids      = group ids joined by ","; may be empty
//
// Layouts are listed once, in the order of LayoutKey, and layers name them by their place; a `state` or
// `ring` line is a tensor of the layout above it; a group belongs to the pool above it, a layer to the group
// above it. Pools, groups, layers, graphs and owners stand in the plan's own order, which VerifyPlan checks.
#include "common/plan/plan_text.h"

#include <algorithm>
#include <charconv>

#include "common/base/sha256.h"
#include "common/plan/plan_text_fields.h"

namespace kvasir {
namespace {

bool IsPlain(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '/' || c == ':' || c == '+' || c == '@' || c == '-';
}

class Writer {
 public:
  void Line(std::string_view keyword) {
    if (!out_.empty()) out_ += '\n';
    out_ += keyword;
  }

  void Integer(std::string_view name, std::int64_t value) {
    Name(name);
    Number(value);
  }
  void Flag(std::string_view name, bool value) { Integer(name, value ? 1 : 0); }
  void Quantity(std::string_view name, Bytes value) { Integer(name, value.value()); }
  template <class IdType>
  void Id(std::string_view name, IdType id) {
    Integer(name, id.value());
  }
  template <class E, std::size_t N>
  void Word(std::string_view name, E value, const plan_text::Words<E, N>& words) {
    Name(name);
    out_ += words.name(value);
  }
  void Layer(std::string_view name, const LayerId& id) {
    Name(name);
    out_ += LayerIdText(id);
  }
  void Text(std::string_view name, std::string_view value) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    Name(name);
    for (const char c : value) {
      if (IsPlain(c)) {
        out_ += c;
        continue;
      }
      const auto byte = static_cast<unsigned char>(c);
      out_ += '%';
      out_ += kHex[byte >> 4];
      out_ += kHex[byte & 15];
    }
  }
  void Ids(std::string_view name, const std::vector<GroupId>& ids) {
    Name(name);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (i != 0) out_ += ',';
      Number(ids[i].value());
    }
  }

  std::string Finish() {
    out_ += '\n';
    return std::move(out_);
  }

 private:
  void Name(std::string_view name) {
    out_ += ' ';
    out_ += name;
    out_ += '=';
  }
  void Number(std::int64_t value) {
    char digits[24];
    const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), value);
    out_.append(digits, end);
  }

  std::string out_;
};

// The distinct layouts of a plan, in their own order.
std::vector<const LayoutKey*> LayoutTable(const Plan& plan) {
  std::vector<const LayoutKey*> table;
  for (const PlanPool& pool : plan.pools) {
    for (const PlanGroup& group : pool.groups) {
      for (const PlanLayer& layer : group.layers) {
        // Neighbours mostly repeat one layout; skipping them here keeps the sort small.
        if (table.empty() || *table.back() != layer.layout) table.push_back(&layer.layout);
      }
    }
  }
  std::sort(table.begin(), table.end(), [](const auto* a, const auto* b) { return *a < *b; });
  const auto last =
      std::unique(table.begin(), table.end(), [](const auto* a, const auto* b) { return *a == *b; });
  table.erase(last, table.end());
  return table;
}

std::int64_t PlaceIn(const std::vector<const LayoutKey*>& table, const LayoutKey& layout) {
  const auto at =
      std::lower_bound(table.begin(), table.end(), layout,
                       [](const LayoutKey* entry, const LayoutKey& value) { return *entry < value; });
  return at - table.begin();
}

void WriteLayouts(Writer& out, const std::vector<const LayoutKey*>& table) {
  for (const LayoutKey* layout : table) {
    out.Line("layout");
    plan_text::LayoutFields(out, *layout);
    for (const StateTensor& tensor : layout->states) {
      out.Line("state");
      plan_text::TensorFields(out, tensor);
    }
    for (const StateTensor& tensor : layout->ring) {
      out.Line("ring");
      plan_text::TensorFields(out, tensor);
    }
  }
}

void WritePools(Writer& out, const Plan& plan, const std::vector<const LayoutKey*>& table) {
  for (const PlanPool& pool : plan.pools) {
    out.Line("pool");
    plan_text::PoolFields(out, pool);
    for (const PlanGroup& group : pool.groups) {
      out.Line("group");
      plan_text::GroupFields(out, group);
      for (const PlanLayer& layer : group.layers) {
        const std::int64_t layout = PlaceIn(table, layer.layout);
        out.Line("layer");
        plan_text::LayerFields(out, layer, layout);
      }
    }
  }
}

}  // namespace

std::string PlanToText(const Plan& plan) {
  Writer out;
  out.Line(plan_text::kFirstLine);
  out.Line("ruleset");
  out.Text("name", plan.ruleset);
  out.Line("topology");
  plan_text::TopologyFields(out, plan.topology);
  out.Line("target");
  plan_text::ModelFields(out, plan.target);
  out.Line("draft");
  plan_text::ModelFields(out, plan.draft);
  out.Line("limits");
  plan_text::LimitsFields(out, plan);
  out.Line("arena");
  plan_text::ArenaFields(out, plan);
  const std::vector<const LayoutKey*> table = LayoutTable(plan);
  WriteLayouts(out, table);
  WritePools(out, plan, table);
  for (const PlanGraph& graph : plan.graphs) {
    out.Line("graph");
    plan_text::GraphFields(out, graph);
  }
  for (const OwnedBytes& owned : plan.attribution) {
    out.Line("owned");
    plan_text::OwnedFields(out, owned);
  }
  out.Line(plan_text::kLastLine);
  return out.Finish();
}

std::string PlanId(std::string_view canonical_text) { return Sha256Hex(canonical_text); }

}  // namespace kvasir
