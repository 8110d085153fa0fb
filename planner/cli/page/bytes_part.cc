// Every byte of the arena by owner, as a bar that opens to its parts.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "planner/cli/page/html_text.h"
#include "planner/cli/page/page_parts.h"
#include "planner/cli/quantity.h"

namespace kvasir::cli {
namespace {

// The owners of planner/core/assembled.h, in the order of the bar.
struct Kind {
  std::string_view owner;  // before the dot
  std::string_view name;
  std::string_view what;
};
constexpr std::array kKinds = {
    Kind{"payload", "payload", "rows of tokens and committed states"},
    Kind{"speculative", "speculative", "snapshots, or rings for replay: what rejected tokens need"},
    Kind{"padding", "padding",
         "rows of a block without a token, bytes between pages, parts shorter than the longest"},
    Kind{"prefill", "prefill", "blocks kept for the prefill chunk in flight"},
    Kind{"slack", "slack", "from the end of a block to the next"},
    Kind{"partial_parent", "partial parents", "blocks of a pool's last parent that no request needs"},
    Kind{"free_parents", "free parents", "parents that no further request of this length could use"},
    Kind{"null_parent", "null parent", "parent 0, where empty entries of every block table point"},
    Kind{"unassigned", "unassigned", "what is left of the arena after whole parents"},
};

struct Owned {
  std::string owner;
  std::string kind;  // class
  std::int64_t bytes = 0;
};

std::string_view KindOf(std::string_view owner) { return owner.substr(0, owner.find('.')); }

// The colour of what owns: a group's, a pool's, or the kind's own.
std::string ClassOf(const Plan& plan, std::string_view owner) {
  const std::string_view kind = KindOf(owner);
  if (kind == "null_parent") return "null";
  if (kind == "free_parents") return "free";
  if (kind == "unassigned") return "rest";
  const std::string_view name = owner.substr(std::min(kind.size() + 1, owner.size()));
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    if (plan.pools[i].name == name) return "over";
    for (std::size_t g = 0; g < plan.pools[i].groups.size(); ++g) {
      if (plan.pools[i].groups[g].name == name)
        return GroupClass(i, g) + (kind == "speculative" ? " dotted" : "");
    }
  }
  return "over";
}

// Of one kind, largest first.
std::vector<Owned> OwnersOf(const Plan& plan, std::string_view kind) {
  std::vector<Owned> out;
  for (const OwnedBytes& owned : plan.attribution) {
    if (KindOf(owned.owner) == kind)
      out.push_back({owned.owner, ClassOf(plan, owned.owner), owned.bytes.value()});
  }
  std::sort(out.begin(), out.end(), [](const Owned& a, const Owned& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.owner < b.owner;
  });
  return out;
}

std::int64_t Sum(const std::vector<Owned>& owners) {
  std::int64_t sum = 0;
  for (const Owned& owned : owners) sum += owned.bytes;
  return sum;
}

std::string Segments(const std::vector<Owned>& owners, std::int64_t whole) {
  std::string out;
  for (const Owned& owned : owners) {
    if (owned.bytes <= 0) continue;
    out += Filled("<i class=\"{{kind}}\" style=\"width:{{width}}\" title=\"{{text}}\"></i>",
                  {Text("kind", owned.kind), Text("width", Share(owned.bytes, whole)),
                   Text("text", absl::StrFormat("%s: %s bytes, %s", owned.owner, Thousands(owned.bytes),
                                                PercentText(owned.bytes, whole)))});
  }
  return out;
}

std::string OwnerRows(const std::vector<Owned>& owners, std::int64_t arena) {
  std::string out;
  for (const Owned& owned : owners) {
    out += Filled(
        "<tr><th scope=\"row\"><i class=\"swatch {{kind}}\"></i><code>{{owner}}</code></th><td "
        "class=\"n size\">{{text}}</td><td class=\"n\">{{share}}</td><td class=\"n "
        "exact\">{{bytes}}</td></tr>\n",
        {Text("kind", owned.kind), Text("owner", owned.owner), Text("text", BytesText(owned.bytes)),
         Text("share", PercentText(owned.bytes, arena)), Text("bytes", Thousands(owned.bytes))});
  }
  return out;
}

std::string KindDetails(const Plan& plan, const Kind& kind) {
  const std::vector<Owned> owners = OwnersOf(plan, kind.owner);
  if (owners.empty()) return "";
  const std::int64_t arena = plan.arena_bytes.value();
  const std::int64_t sum = Sum(owners);
  return Filled(
      "<details class=\"kind\"{{open}}><summary><i class=\"swatch {{swatch}}\"></i><b>{{name}}</b><span "
      "class=\"what\">{{what}}</span><span class=\"n\">{{share}}</span><span class=\"n "
      "size\">{{size}}</span></summary>\n"
      "<div class=\"stack\" aria-hidden=\"true\">{{bar}}</div>\n<div "
      "class=\"scroll\"><table>\n<thead><tr><th "
      "scope=\"col\">Owner</th><th scope=\"col\" class=\"n size\">Size</th><th scope=\"col\" class=\"n\">Of "
      "the "
      "arena</th><th scope=\"col\" "
      "class=\"n\">Bytes</th></tr></thead>\n<tbody>\n{{rows}}</tbody></table></div></details>\n",
      {Markup("open", kind.owner == "payload" ? " open" : ""), Text("swatch", owners.front().kind),
       Text("name", kind.name), Text("what", kind.what), Text("share", PercentText(sum, arena)),
       Text("size", BytesText(sum)), Markup("bar", Segments(owners, std::max<std::int64_t>(sum, 1))),
       Markup("rows", OwnerRows(owners, arena))});
}

}  // namespace

std::string BytesPart(const Plan& plan) {
  const std::int64_t arena = plan.arena_bytes.value();
  if (arena <= 0) return "";
  std::string bar;
  std::string details;
  for (const Kind& kind : kKinds) {
    bar += Segments(OwnersOf(plan, kind.owner), arena);
    details += KindDetails(plan, kind);
  }
  return Section(
      "bytes", "Every byte",
      absl::StrFormat("Who owns the %s bytes of a rank's arena at the planned load.", Thousands(arena)),
      Filled("<div class=\"stack tall\" role=\"img\" aria-label=\"Bytes of the arena by owner, to scale; "
             "the list below has the numbers\">{{bar}}</div>\n<div class=\"kinds\">\n{{details}}</div>\n"
             "<p class=\"sum\"><span>in all</span> <b>{{bytes}}</b> bytes = {{size}}</p>\n",
             {Markup("bar", bar), Markup("details", details), Text("bytes", Thousands(arena)),
              Text("size", BytesText(arena))}));
}

}  // namespace kvasir::cli
