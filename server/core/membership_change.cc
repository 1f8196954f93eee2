// Changes of a layout.
#include "server/core/membership_change.h"

#include <algorithm>

#include "server/core/layout_line.h"

namespace gyre {
namespace {

KeyspaceSpec Edited(KeyspaceSpec keyspace, const LayoutChange::Set& set) {
  keyspace.r = set.r.value_or(keyspace.r);
  keyspace.w = set.w.value_or(keyspace.w);
  keyspace.ttl_ms = set.ttl_ms.value_or(keyspace.ttl_ms);
  keyspace.strict = set.strict.value_or(keyspace.strict);
  return keyspace;
}

std::string NameOf(uint64_t epoch, uint64_t digest) {
  return (epoch == 0 ? "" : "epoch " + std::to_string(epoch) + ", ") + "digest " + ToString(Token{digest});
}

// REQUIRES: no data moves, or the change is an abort.
struct Applier {
  const ChangeBase& base;
  const Layout& newest = base.newest.layout;

  absl::StatusOr<Layout> operator()(const LayoutChange::Create& create) const {
    return WithKeyspace(newest, create.keyspace);
  }
  absl::StatusOr<Layout> operator()(const LayoutChange::Set& set) const {
    const auto found = std::ranges::find(newest.keyspaces, set.name, &KeyspaceSpec::name);
    if (found == newest.keyspaces.end())
      return absl::NotFoundError("there is no keyspace '" + set.name + "'");
    return WithKeyspaceChanged(newest, Edited(*found, set));
  }
  absl::StatusOr<Layout> operator()(const LayoutChange::Drop& drop) const {
    return WithoutKeyspace(newest, drop.name);
  }
  absl::StatusOr<Layout> operator()(const LayoutChange::Members& members) const {
    if (newest.voters != MembersOf(newest)) {
      return absl::FailedPreconditionError("the last change is just being finished, try again");
    }
    absl::StatusOr<Layout> next = WithMembers(newest, members.changes);
    if (!next.ok()) return next;
    if (absl::Status status = CheckSuccessor(newest, *next); !status.ok()) return status;
    return next;
  }
  absl::StatusOr<Layout> operator()(const LayoutChange::Abort& abort) const {
    if (base.other == nullptr) {
      return absl::FailedPreconditionError("no data moves: there is nothing to go back from");
    }
    if (newest.abort) return absl::FailedPreconditionError("it goes back already: " + base.progress);
    Layout next = AbortOf(newest, base.other->layout, abort.lost);
    if (IsAbortOf(newest, base.other->layout, next)) return next;
    return absl::InvalidArgumentError(
        "lost: only nodes that came with the newest layout may be given up, sorted by id");
  }
  absl::StatusOr<Layout> operator()(const LayoutChange::Finish& finish) const {
    return Finished(newest, finish.renew);
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
  // Whoever missed layouts cannot tell.
  bool operator()(const LayoutChange::Members&) const { return false; }
  bool operator()(const LayoutChange::Abort&) const { return false; }
  bool operator()(const LayoutChange::Finish&) const { return false; }
};

}  // namespace

absl::StatusOr<Layout> Apply(const ChangeBase& base, const LayoutChange::What& what) {
  const auto* const members = std::get_if<LayoutChange::Members>(&what);
  if (members != nullptr && members->base_digest != base.newest.digest) {
    return absl::FailedPreconditionError("the layout has changed since the plan was made (it was of " +
                                         NameOf(members->base_epoch, members->base_digest) + ", now " +
                                         NameOf(base.newest.layout.epoch, base.newest.digest) +
                                         "): plan again");
  }
  if (base.other != nullptr && !std::holds_alternative<LayoutChange::Abort>(what)) {
    return absl::FailedPreconditionError(base.progress + "; until that is over nothing can be changed, but " +
                                         "gyre cluster moves abort goes back");
  }
  return std::visit(Applier{base}, what);
}

bool Shows(const View& view, const LayoutChange::What& what) { return std::visit(Shower{view}, what); }

}  // namespace gyre
