// The invariants: checks on records as they are made, stored and acknowledged.
#include "tests/sim/invariants.h"

#include <algorithm>

#include "server/core/describe.h"
#include "server/core/replica_set.h"
#include "storage/format/context_codec.h"
#include "storage/format/row_key.h"

namespace gyre::sim {
namespace {

Record Decode(const RecordBytes& bytes) {
  if (bytes == nullptr) return {};
  absl::StatusOr<Record> record = DecodeRecord(*bytes);
  return record.ok() ? *std::move(record) : Record{};
}

// No layout gives the row to this node, or it is given it anew.
bool MayDrop(const SimNode& node, const std::string& row_key) {
  const Node& core = node.lane().node();
  RowKeyParts parts;
  ParseRowKey(row_key, parts);
  const KeyspaceSpec* const keyspace = core.layouts().view->Keyspace(parts.keyspace);
  return keyspace == nullptr || !core.movement().ready() ||
         ReplicaSet::Of(*core.layouts().view, *keyspace, Token{parts.token}).SlotOf(node.id()) < 0;
}

}  // namespace

void Invariants::Fail(const SimNode& node, const std::string& sentence) {
  world_.Violated(node.name() + ": " + sentence);
}

void Invariants::RecordSeen(const SimNode& node, const std::string& row_key, const RecordBytes& bytes) {
  for (const auto& [key, known] : seen_) {
    if (known == bytes && key == row_key) return;
  }
  seen_.push_back({row_key, bytes});
  if (bytes == nullptr) return Fail(node, "passes on a record that is none, of " + DescribeRowKey(row_key));
  const absl::StatusOr<Record> record = DecodeRecord(*bytes);
  if (!record.ok()) return Fail(node, "made bytes that are no record, of " + DescribeRowKey(row_key));
  if (EncodeRecord(*record) != *bytes)
    return Fail(node, "made bytes that are not canonical, of " + DescribeRowKey(row_key));
  for (const Version& version : record->versions) {
    const auto [known, is_new] =
        written_.try_emplace(version.dot, Written{row_key, version.value, version.write_id});
    if (is_new) {
      if (version.dot.actor.node != node.id().value) {
        Fail(node, "is the first to show the dot " + ToString(version.dot) +
                       ", which another node must have minted");
      }
      dots_of_[version.value].push_back(version.dot);
    } else if (known->second.row_key != row_key || known->second.value != version.value ||
               known->second.write_id != version.write_id) {
      Fail(node, "uses the dot " + ToString(version.dot) + " for " + version.value + " of " +
                     DescribeRowKey(row_key) + ", but it is that of " + known->second.value + " of " +
                     DescribeRowKey(known->second.row_key));
    }
  }
}

void Invariants::TurnEnded(const SimNode& node) {
  const ActorClock& clock = node.lane().node().replica().clock();
  uint64_t& highest = highest_[clock.actor()];
  if (clock.last_counter() < highest) {
    Fail(node, "its clock went back from " + std::to_string(highest) + " to " +
                   std::to_string(clock.last_counter()));
  }
  highest = clock.last_counter();
  seen_.clear();
}

void Invariants::RowDurable(const SimNode& node, const std::string& row_key, const RecordBytes& before,
                            const RecordBytes& after) {
  if (before == nullptr || (after == nullptr && MayDrop(node, row_key))) return;
  const uint64_t cut = node.lane().node().replica().cuts().all;
  const RecordBytes lasts = Collected(before, cut);
  if (lasts != before) world_.Add(Count::kCollected);
  if (!Decode(after).seen.Covers(Decode(lasts).seen)) {
    Fail(node, "forgot something of " + DescribeRowKey(row_key) + ": it held " + DescribeRecord(before) +
                   " and now holds " + DescribeRecord(after));
  }
}

void Invariants::Acknowledged(const Event& event, const WriteResult& result, uint32_t keyspace,
                              const std::string& row_key, int w, const std::vector<SimNode*>& replicas,
                              const std::vector<SimNode*>& nodes) {
  const absl::StatusOr<CausalContext> context = DecodeContext(result.context, keyspace, event.key.name);
  if (!context.ok())
    return world_.Violated("the context of a write cannot be read: " + context.status().ToString());
  // The dot that it minted, or, of a retry, that of an earlier attempt.
  std::vector<Dot> dots = {context->has_own ? context->own : context->seen.Highest()};
  if (!event.is_delete) {
    for (const Dot& dot : dots_of_[event.value]) {
      if (context->Covers(dot)) dots.push_back(dot);
    }
  }
  const auto holds = [&](SimNode* node, const Dot& dot) {
    const auto covers = [&](const std::string& key) { return Decode(node->Durable(key)).seen.Covers(dot); };
    if (std::ranges::find(replicas, node) != replicas.end() && covers(row_key)) return true;
    return std::ranges::any_of(
        replicas, [&](SimNode* replica) { return covers(MakeHintKey(replica->id().value, row_key)); });
  };
  int most = 0;
  for (const Dot& dot : dots) {
    most = std::max(most, static_cast<int>(
                              std::ranges::count_if(nodes, [&](SimNode* node) { return holds(node, dot); })));
  }
  if ((most < w && event.lost == 0) || result.acks < w) {
    world_.Violated((event.is_delete ? "a delete of " : "the put of " + event.value + " to ") +
                    DescribeRowKey(row_key) + " was acknowledged with W=" + std::to_string(w) +
                    " but is durable on " + std::to_string(most) + " nodes only, hints included");
  }
}

void Invariants::Converged(const std::string& row_key, const std::vector<SimNode*>& replicas) {
  // What one has collected already the others are about to.
  uint64_t cut = 0;
  for (SimNode* replica : replicas) cut = std::max(cut, replica->lane().node().replica().cuts().all);
  const RecordBytes first = Collected(replicas.front()->Durable(row_key), cut);
  for (SimNode* replica : replicas) {
    const RecordBytes other = Collected(replica->Durable(row_key), cut);
    const bool same_bytes = first == nullptr || other == nullptr ? first == other : *first == *other;
    if (same_bytes != (Decode(first) == Decode(other))) {
      Fail(*replica, "equal records with unequal bytes, or the reverse, of " + DescribeRowKey(row_key));
    }
    if (!same_bytes) {
      Fail(*replica, "after all faults were over and every replica was read, holds of " +
                         DescribeRowKey(row_key) + " " + DescribeRecord(other) + " but " +
                         replicas.front()->name() + " holds " + DescribeRecord(first));
    }
  }
}

void Invariants::SumsAreRight(SimNode& node) {
  while (node.store().RecountSome(1'000'000)) {
  }
  const absl::StatusOr<Store::Verification> verification = node.store().Verify();
  if (!verification.ok()) return Fail(node, "cannot verify its sums: " + verification.status().ToString());
  if (verification->differences > 0) {
    Fail(node, std::to_string(verification->differences) + " Merkle leaves do not agree with the rows");
  }
}

}  // namespace gyre::sim
