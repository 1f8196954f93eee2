// Sentences and sums that the coordinator's files share.
#include "server/core/coordinator_ops.h"

#include <bit>

#include "server/core/acks.h"
#include "storage/format/row_key.h"

namespace gyre {
namespace {

const std::string kDefaultKeyspace = "default";

Acks CountsOf(const Quorum& quorum) { return {quorum.acks(), quorum.need()}; }

std::string CountText(const Quorum& quorum) {
  return std::to_string(quorum.acks()) + " of " + std::to_string(quorum.need()) + " replicas ";
}

// For each of `slots` that cannot be reached, the next of the layout's preference list that can.
void StandIn(const Turn& turn, const View& view, Token token, Quorum::Slots slots, ReplicaSet& set) {
  const std::span<const MemberIndex> preferences = view.ring.Preferences(token);
  size_t next = 0;
  for (int slot = 0; slot < set.size(); ++slot) {
    if ((slots >> slot & 1) == 0 || turn.Up(set[slot])) continue;
    const auto id = [&] { return view.ring.members()[preferences[next]].id; };
    while (next < preferences.size() && (!turn.Up(id()) || set.SlotOf(id()) >= 0)) ++next;
    if (next == preferences.size()) return;
    set.StandIn(slot, id());
  }
}

}  // namespace

absl::Status OutcomeUnknown(const std::string& why) {
  return absl::UnknownError("outcome unknown: " + why +
                            "; the write may still take effect. Read the key to see");
}

absl::Status WriteTimedOut(const Quorum& quorum, int need) {
  if (quorum.replicas() == 0) {
    return WithAcks(absl::UnavailableError("the write was not begun in time; nothing was changed. Try again"),
                    {0, need});
  }
  return WithAcks(OutcomeUnknown(CountText(quorum) + "confirmed the write in time"), CountsOf(quorum));
}

absl::Status WriteLost(const Quorum& quorum) {
  return WithAcks(OutcomeUnknown(CountText(quorum) + "confirmed the write and too many of the others failed"),
                  CountsOf(quorum));
}

absl::Status NotSeenYet() {
  return absl::UnavailableError(
      "no replica that can be reached has seen what the context of this read has; ask again when more "
      "replicas are up, "
      "or read without it");
}

absl::Status ReadTimedOut(const Quorum& quorum) {
  return WithAcks(absl::UnavailableError(CountText(quorum) + "answered the read in time"), CountsOf(quorum));
}

absl::StatusOr<int> NeededReplicas(const char* field, const std::optional<ReplicaCount>& asked,
                                   const ReplicaCount& usual, const KeyspaceSpec& keyspace, int replicas) {
  const ReplicaCount& count = asked ? *asked : usual;
  if (CountOf(count, keyspace.n) == 0) {
    return absl::InvalidArgumentError(std::string(field) + " is " + std::to_string(count.count) +
                                      " but must be 1 to " + std::to_string(keyspace.n) +
                                      ", the replicas of keyspace \"" + keyspace.name +
                                      "\", or one, quorum or all");
  }
  const int need = CountOf(count, replicas);
  if (need == 0) {
    return WithAcks(absl::UnavailableError(std::string(field) + " is " + std::to_string(count.count) +
                                           " but the cluster has " + std::to_string(replicas) +
                                           " node(s); add nodes or ask for fewer replicas"),
                    {0, CountOf(count, keyspace.n)});
  }
  return need;
}

const KeyspaceSpec& AsRead(const Turn& turn, const KeyspaceSpec& keyspace) {
  const KeyspaceSpec* const read = turn.reads()->Keyspace(keyspace.id);
  return read == nullptr ? keyspace : *read;
}

ReplicaSet ReadersOf(const Turn& turn, const KeyspaceSpec& keyspace, Token token, bool strict) {
  ReplicaSet readers = ReplicaSet::Of(*turn.reads(), AsRead(turn, keyspace), token);
  if (!strict && !keyspace.strict) StandIn(turn, *turn.reads(), token, readers.first(), readers);
  return readers;
}

ReplicaSet HoldersOf(const Turn& turn, const KeyspaceSpec& keyspace, Token token, bool strict) {
  ReplicaSet holders = ReplicaSet::Of(*turn.view(), keyspace, token);
  const bool sloppy = !strict && !keyspace.strict;
  const View* const other = turn.layouts.other.get();
  if (const KeyspaceSpec* there = other == nullptr ? nullptr : other->Keyspace(keyspace.id)) {
    holders.Join(ReplicaSet::Of(*other, *there, token));
    if (sloppy) StandIn(turn, *other, token, static_cast<Quorum::Slots>(~holders.first()), holders);
  }
  if (sloppy) StandIn(turn, *turn.view(), token, holders.first(), holders);
  return holders;
}

absl::Status CheckKey(const std::string& key) {
  if (key.empty()) return absl::InvalidArgumentError("key is empty; it must have 1 to 4096 bytes");
  if (key.size() > kKeyBytesMax) {
    return absl::InvalidArgumentError("key has " + std::to_string(key.size()) + " bytes; it must have 1 to " +
                                      std::to_string(kKeyBytesMax));
  }
  return absl::OkStatus();
}

absl::StatusOr<const KeyspaceSpec*> FindKeyspace(const View& view, const std::string& name) {
  const std::string& wanted = name.empty() ? kDefaultKeyspace : name;
  const KeyspaceSpec* keyspace = view.Keyspace(wanted);
  if (keyspace == nullptr) {
    return absl::InvalidArgumentError("keyspace \"" + wanted +
                                      "\" does not exist; create it with: gyre keyspace create");
  }
  return keyspace;
}

std::string DescribeMissing(const Turn& turn, const ReplicaSet& replicas, int need) {
  return DescribeMissing(
      turn, replicas, {static_cast<Quorum::Slots>((1u << replicas.size()) - 1), static_cast<uint8_t>(need)});
}

std::string DescribeMissing(const Turn& turn, const ReplicaSet& replicas, Quorum::Group group) {
  const int need = group.need;
  const std::string size = std::to_string(std::popcount(group.slots));
  int reachable = 0;
  int fallbacks = 0;
  std::string missing;
  for (int slot = 0; slot < replicas.size(); ++slot) {
    if ((group.slots >> slot & 1) == 0) continue;
    const NodeId node = replicas.primary(slot);
    if (turn.Up(node)) {
      ++reachable;
      continue;
    }
    if (replicas.hint_for(slot) && turn.Up(replicas[slot])) ++fallbacks;
    missing += (missing.empty() ? "" : ", ") + ToString(node);
  }
  if (reachable >= need) {
    return std::to_string(need) + " of " + size +
           " replicas are needed, and too few of those that can be reached could answer: a node that fills a "
           "lost store answers no reads, nor does one whose disk fails" +
           (missing.empty() ? std::string() : " (down: " + missing + ")");
  }
  return std::to_string(need) + " of " + size + " replicas are needed but only " + std::to_string(reachable) +
         " can be reached" +
         (fallbacks > 0 ? ", and " + std::to_string(fallbacks) + " in their place" : std::string()) +
         " (down: " + missing + ")";
}

}  // namespace gyre
