// What may follow what.
#include "server/core/layout_line.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace gyre {
namespace {

absl::Status Invalid(const char* why) { return absl::InvalidArgumentError(std::string("layout: ") + why); }

absl::Status CheckMoving(const Layout& base, const Layout& next) {
  if (next.voters != base.voters) return Invalid("it moves data and has other voters than its base");
  if (next.abort) {
    return base.moves() && !base.abort ? absl::OkStatus() : Invalid("it goes back from nothing");
  }
  if (base.voters != MembersOf(base)) return Invalid("the change before it is not finished");
  if (!std::ranges::includes(next.removed, base.removed)) return Invalid("it forgets who left");
  if (!std::ranges::includes(MembersOf(base), next.lost)) return Invalid("it gives up who is no member");
  return absl::OkStatus();
}

}  // namespace

std::vector<NodeId> MembersOf(const Layout& layout) {
  std::vector<NodeId> members;
  members.reserve(layout.members.size());
  for (const Member& member : layout.members) members.push_back(member.id);
  return members;
}

absl::Status CheckSuccessor(const Layout& base, const Layout& next) {
  if (absl::Status status = CheckLayout(next); !status.ok()) return status;
  if (next.epoch != base.epoch + 1 || next.base_digest != DigestOf(base)) return Invalid("of another base");
  if (next.cluster_id != base.cluster_id) return Invalid("of another cluster");
  if (next.keyspace_ids_used < base.keyspace_ids_used) return Invalid("it forgets which ids were used");
  if (next.moves()) return CheckMoving(base, next);
  if (next.fence != base.fence) return Invalid("it forgets which layout moved data");
  if (next.voters != base.voters && next.voters != MembersOf(next))
    return Invalid("its voters are strangers");
  if (!std::ranges::includes(next.removed, base.removed)) return Invalid("it forgets who left");
  return absl::OkStatus();
}

Layout AbortOf(const Layout& aborted, const Layout& before, std::vector<NodeId> lost) {
  assert(aborted.moves());
  assert(!aborted.abort);
  Layout next = before;
  next.epoch = aborted.epoch + 1;
  next.base_digest = DigestOf(aborted);
  next.fence = next.epoch;
  next.voters = aborted.voters;
  next.abort = true;
  next.lost = std::move(lost);
  return next;
}

bool IsAbortOf(const Layout& aborted, const Layout& before, const Layout& next) {
  return aborted.moves() && !aborted.abort && std::ranges::includes(MembersOf(aborted), next.lost) &&
         next == AbortOf(aborted, before, next.lost) && CheckSuccessor(aborted, next).ok();
}

absl::StatusOr<Layout> Finished(const Layout& base, bool renew) {
  Layout next = base;
  next.epoch = base.epoch + 1;
  next.base_digest = DigestOf(base);
  next.abort = false;
  next.lost.clear();
  next.voters = MembersOf(base);
  if (next.voters == base.voters && !renew) {
    return absl::FailedPreconditionError("the members are the voters already: nothing is to be finished");
  }
  return next;
}

}  // namespace gyre
