// Changes of a layout.
#include "server/core/membership_change.h"

#include <algorithm>

namespace gyre {
namespace {

KeyspaceSpec Edited(KeyspaceSpec keyspace, const LayoutChange::Set& set) {
  keyspace.r = set.r.value_or(keyspace.r);
  keyspace.w = set.w.value_or(keyspace.w);
  keyspace.ttl_ms = set.ttl_ms.value_or(keyspace.ttl_ms);
  keyspace.strict = set.strict.value_or(keyspace.strict);
  return keyspace;
}

struct Applier {
  const Layout& base;

  absl::StatusOr<Layout> operator()(const LayoutChange::Create& create) const {
    return WithKeyspace(base, create.keyspace);
  }
  absl::StatusOr<Layout> operator()(const LayoutChange::Set& set) const {
    const auto found = std::ranges::find(base.keyspaces, set.name, &KeyspaceSpec::name);
    if (found == base.keyspaces.end()) return absl::NotFoundError("there is no keyspace '" + set.name + "'");
    return WithKeyspaceChanged(base, Edited(*found, set));
  }
  absl::StatusOr<Layout> operator()(const LayoutChange::Drop& drop) const {
    return WithoutKeyspace(base, drop.name);
  }
};

struct Shower {
  const View& view;

  bool operator()(const LayoutChange::Create& create) const {
    const KeyspaceSpec* const found = view.Keyspace(create.keyspace.name);
    if (found == nullptr) return false;
    KeyspaceSpec asked = create.keyspace;
    asked.id = found->id;
    return *found == asked;
  }
  bool operator()(const LayoutChange::Set& set) const {
    const KeyspaceSpec* const found = view.Keyspace(set.name);
    return found != nullptr && *found == Edited(*found, set);
  }
  bool operator()(const LayoutChange::Drop& drop) const { return view.Keyspace(drop.name) == nullptr; }
};

}  // namespace

absl::StatusOr<Layout> Apply(const Layout& base, const LayoutChange::What& what) {
  return std::visit(Applier{base}, what);
}

bool Shows(const View& view, const LayoutChange::What& what) { return std::visit(Shower{view}, what); }

}  // namespace gyre
