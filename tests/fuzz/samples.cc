// Writes a corpus, the same each time: valid bytes, and what once was taken for such. What is text was
// written by hand and is not made here.
//
// Usage: fuzz_samples tests/fuzz/corpus
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "server/core/membership_codec.h"
#include "server/core/movement_task.h"
#include "server/rpc/convert_control.h"
#include "server/rpc/convert_kv.h"
#include "server/rpc/convert_peer.h"
#include "storage/format/backup_chunk.h"
#include "storage/format/context_codec.h"
#include "storage/format/meta_codec.h"
#include "storage/format/row_key.h"
#include "storage/sums_codec.h"

namespace gyre::fuzz {
namespace {

constexpr uint64_t kNow = uint64_t{1'700'000'000'000} << kCounterSequenceBits;
constexpr Actor kA{1, 1};
constexpr Actor kB{2, 3};
constexpr NodeId kOne{1};
constexpr NodeId kTwo{2};

std::filesystem::path folder;

void Write(const std::string& target, const std::string& name, const std::string& bytes) {
  std::filesystem::create_directories(folder / target);
  std::ofstream(folder / target / name, std::ios::binary) << bytes;
}

std::string KeyOf(const std::string& key, uint32_t keyspace = 1) {
  return MakeRowKey(keyspace, TokenOf(key).value, key);
}

RecordBytes Shared(const Record& record) { return std::make_shared<const std::string>(EncodeRecord(record)); }

Record OneValue(Actor actor, uint64_t counter) {
  Record record;
  ApplyPut(record, {.dot = {actor, counter}, .write_id = {1, counter}, .value = "milk"}, nullptr);
  return record;
}

// Two siblings, one of which expires, and a retry that was superseded.
Record Siblings() {
  const CausalContext nothing;
  Record record;
  ApplyPut(record, {.dot = {kA, kNow}, .write_id = {3, 4}, .retried = true, .value = "old"}, &nothing);
  ApplyPut(record, {.dot = {kB, kNow + 1}, .expires_ms = 1'800'000'000'000, .value = "bread"}, nullptr);
  ApplyPut(record, {.dot = {kA, kNow + 2}, .write_id = {5, 6}, .retried = true, .value = ""}, &nothing);
  return record;
}

Record Tombstone() {
  Record record = OneValue(kA, kNow);
  ApplyDelete(record, {kB, kNow + 1}, {.seen = record.seen});
  return record;
}

void Storage() {
  const std::string records[] = {EncodeRecord({}), EncodeRecord(OneValue(kA, kNow)), EncodeRecord(Siblings()),
                                 EncodeRecord(Tombstone())};
  const char* const names[] = {"empty", "value", "siblings", "tombstone"};
  for (size_t i = 0; i < std::size(records); ++i) {
    Write("record", names[i], records[i]);
    for (size_t j = 0; j < std::size(records); ++j) {
      const std::string header = {static_cast<char>(records[i].size()), 50};
      Write("merge", std::string(names[i]) + "-" + names[j], header + records[i] + records[j]);
    }
  }
  Write("row_key", "row", KeyOf("cart"));
  Write("row_key", "hint", MakeHintKey(2, KeyOf("cart")));
  Write("row_key", "collect", MakeCollectKey(KeyOf("cart"), kNow));
  Write("row_key", "floor", RowKeyFloor(UINT32_MAX, UINT64_MAX));
  Write("row_key", "beginning-of-hint", "\xff\xff\xff\xff\x01");
  const VersionVector seen = Siblings().seen;
  Write("context", "seen", EncodeContext({.seen = seen}, 1, "cart"));
  Write("context", "own", EncodeContext({.seen = seen, .has_own = true, .own = {kB, kNow + 9}}, 1, "cart"));
  Write("context", "other-key", EncodeContext({.seen = seen}, 1, "card"));
  Write("meta", "actor", EncodeActorState({.incarnation = 7, .leased_counter = kNow, .clean = true}));
  Write("meta", "cut", EncodeCutMarks({.confirmed = kNow, .cut = kNow - 1}));
  ChunkWriter chunk(kChunkRowsMin);
  chunk.Add(MakeRowKey(1, 2, "a"), records[1]);
  chunk.Add(MakeRowKey(1, 3, "b"), records[2]);
  Write("chunk", "rows", chunk.Finish());

  KeyspaceNote changed = {.keyspace = 1, .deltas = {{0, {1, 2}}, {65'535, {0, 9}}}, .in_doubt = {}};
  KeyspaceNote doubted = {.keyspace = 2, .deltas = {}, .in_doubt = {0, 1, 300}};
  Write("sums_note", "empty", EncodeSumsNote({.number = 1, .previous = 0, .keyspaces = {}}));
  Write("sums_note", "two", EncodeSumsNote({.number = 12, .previous = 9, .keyspaces = {changed, doubted}}));
  MerkleTree tree;
  tree.Add(7, {1, 2});
  tree.Add(60'000, {3, 4});
  tree.Doubt(8);
  Write("sums_snapshot", "sums", EncodeSumsSnapshot({.sequence = 5, .number = 6}, tree, LeafSet()));
  Write("sums_snapshot", "empty", EncodeSumsSnapshot({}, MerkleTree(), LeafSet()));
}

Layout First() {
  Layout layout = FirstLayout({{kOne, "a", 1}, {kTwo, "", 2}});
  layout.members[0].tokens = {Token{3}, Token{UINT64_MAX}};
  layout.members[1].tokens = {Token{9}};
  return layout;
}

Layout Moving() {
  Layout layout = *WithKeyspace(First(), {.name = "sessions",
                                          .n = 2,
                                          .r = {ReplicaCount::How::kOne},
                                          .w = {ReplicaCount::How::kCount, 2},
                                          .conflict = ConflictRule::kLastWriteWins,
                                          .ttl_ms = 60'000,
                                          .strict = true});
  layout.epoch = layout.fence = 7;
  layout.abort = true;
  layout.lost = {NodeId{3}};
  layout.removed = {NodeId{3}, NodeId{4}};
  return layout;
}

NodeInfoValue Info(NodeId id) {
  return {.id = id,
          .address = "127.0.0.1:7400",
          .peer_address = "127.0.0.1:7401",
          .zone = "a",
          .weight = 1,
          .generation = 1'700'000'000'000,
          .heartbeat = 4,
          .facts = {.keys = 5,
                    .bytes = 6,
                    .rows = {{1, {7, 8}}},
                    .hints_for = {{kOne, 9}, {kTwo, 1}},
                    .collectible = 2,
                    .unequal_ranges = 3,
                    .filling = true,
                    .dropping = true,
                    .layout_epoch = 7,
                    .version = "0.1.0"}};
}

void Control(const std::string& name, control::Body body) {
  v1::ControlMessage wire;
  FromControl({.cluster_id = 5, .from = kOne, .from_address = "127.0.0.1:7401", .body = std::move(body)},
              wire);
  Write("control", name, wire.SerializeAsString());
}

// What a node of two hears from the other, each with its length before it: it forms a cluster, and goes on.
void Conversation() {
  NodeInfoValue one = {
      .id = kOne, .address = "127.0.0.1:7400", .peer_address = "127.0.0.1:7401", .generation = 1};
  NodeInfoValue two = {
      .id = kTwo, .address = "127.0.0.1:7410", .peer_address = "127.0.0.1:7411", .generation = 2};
  const Layout first = FirstLayout({{kOne, "", 1}, {kTwo, "", 1}});
  Layout next = *WithKeyspace(first, {.name = "carts"});
  Layout moving = first;
  moving.epoch = moving.fence = 2;
  moving.base_digest = DigestOf(first);
  moving.members.push_back({.id = NodeId{3}, .tokens = {Token{1}}});
  const Ballot ballot = {4, kTwo};
  const auto write = [&](const std::string& name, std::vector<control::Body> bodies) {
    std::string bytes;
    for (control::Body& body : bodies) {
      v1::ControlMessage wire;
      FromControl({first.cluster_id, kTwo, "127.0.0.1:7411", std::move(body)}, wire);
      const std::string message = wire.SerializeAsString();
      bytes += {static_cast<char>(message.size() >> 8), static_cast<char>(message.size())};
      bytes += message;
    }
    Write("members", name, bytes);
  };
  const control::Hello hello = {
      .bootstrap_expect = 2, .known = {two}, .beats = {}, .answer_wanted = true, .steps = {}};
  const control::FormationPromise promise = {2, {one, two}};
  const control::LayoutPush formed = {first, std::nullopt, {}};
  const control::LayoutPush moves = {moving, first, {{kTwo, MoveStep::kAck}, {NodeId{3}, MoveStep::kSync}}};
  const uint64_t base = DigestOf(first);
  write("formation", {hello, promise, hello});
  write("vote", {formed, control::Prepare{1, base, ballot}, control::Accept{1, base, ballot, next}});
  write("vote-to-move",
        {formed, control::Prepare{1, base, ballot}, control::Accept{1, base, ballot, moving}});
  write("push-of-no-layout", {control::LayoutPush{}});
  write("vote-under-no-ballot",
        {formed, control::Prepare{1, base, {0, kTwo}}, control::Accept{1, base, {0, kTwo}, next}});
  write("movement", {formed, moves, hello});
  write("retired", {formed, moves, control::LayoutPush{moving, std::nullopt, {}}});
}

void Members() {
  const std::vector<NodeInfoValue> nodes = {Info(kOne), Info(kTwo)};
  const std::vector<control::MemberStep> steps = {{kOne, MoveStep::kDone}, {kTwo, MoveStep::kAck}};
  const AcceptorState voted = {
      .base = {6, 99}, .promised = {4, kTwo}, .accepted_ballot = {3, kOne}, .accepted = Moving()};
  Write("membership", "layout", EncodeLayout(First()));
  Write("membership", "layout-that-moves", EncodeLayout(Moving()));
  Layout counts = First();
  counts.keyspaces[0].r = {ReplicaCount::How::kOne, 2};
  Write("membership", "layout-with-a-name-and-a-number", EncodeLayout(counts));
  Write("membership", "promise", EncodePromise({2, nodes}));
  Write("membership", "acceptor", EncodeAcceptor(voted));
  Write("membership", "acceptor-new", EncodeAcceptor({}));
  Write("membership", "nodes", EncodeNodes(nodes));
  Write("membership", "round", EncodeRound(300));
  Write("membership", "other", EncodeOther({2, First()}));
  Write("membership", "steps", EncodeSteps({7, steps}));
  Write("membership", "abstention", EncodeAbstention({9, true}));
  MoveState moves = {.fence = 7, .digest = 8, .ready = true, .control = {true, 1 << 20}, .progress = {}};
  Write("move_state", "begun", EncodeMoveState(moves));
  moves.progress = {
      {.after = KeyOf("cart"), .source = kOne, .mixed = true, .compared = {}, .keys = 3, .bytes = 300},
      {.after = {}, .source = kTwo, .fetched = true, .compared = {kOne, kTwo}, .done = true}};
  Write("move_state", "under-way", EncodeMoveState(moves));

  std::string odd = EncodeMoveState(moves);
  odd[1 + 1 + 8] = 2;  // neither ready nor not
  Write("move_state", "odd-switch", odd);

  Control("hello", control::Hello{.bootstrap_expect = 3,
                                  .known = nodes,
                                  .beats = {{kTwo, 1, 2, true}},
                                  .layout_epoch = 7,
                                  .layout_digest = 8,
                                  .answer_wanted = true,
                                  .steps = steps});
  Control("promise", control::FormationPromise{2, nodes});
  Control("prepare", control::Prepare{6, 99, {4, kTwo}});
  Control("prepared", control::Prepared{6, 99, {4, kTwo}, true, {4, kTwo}, {3, kOne}, Moving()});
  Control("accept", control::Accept{6, 99, {4, kTwo}, Moving()});
  Control("accepted", control::Accepted{6, 99, {4, kTwo}, true, {4, kTwo}});
  Control("push", control::LayoutPush{Moving(), First(), steps});
  Control("wanted", control::LayoutWanted{});
}

void Peer(const std::string& name, auto body) {
  v1::PeerMessage wire;
  FromMessage({.op = 1, .body = std::move(body)}, wire);
  Write("peer", name, wire.SerializeAsString());
  // To a node: the same to each of the first things that it asked.
  v1::Frame frame;
  for (uint64_t op = 0; op < 24; ++op) {
    wire.set_op(op);
    *frame.add_messages() = wire;
  }
  Write("node", name, frame.SerializeAsString());
}

void Peers() {
  const std::string context = EncodeContext({.seen = Siblings().seen}, 1, "cart");
  const PutCall put = {.keyspace = "default",
                       .key = "cart",
                       .value = "milk",
                       .w = ReplicaCount{ReplicaCount::How::kCount, 2},
                       .strict = true,
                       .context = context,
                       .ttl_ms = 60'000,
                       .expires_ms = 0,
                       .write_id = {1, 2},
                       .retry = true};
  const DeleteCall gone = {.keyspace = {}, .key = "cart", .w = ReplicaCount{}, .context = ""};
  const RecordBytes record = Shared(Siblings());
  const std::string after = RowKeyFloor(1, 0);
  const std::string end = RowKeyCeiling(1, UINT64_MAX);
  const std::vector<Row> rows = {{KeyOf("cart"), record}};
  Peer("forward-put", peer::Forward{put, Millis(500)});
  Peer("forward-delete", peer::Forward{gone, Millis(500)});
  Peer("forward-reply", peer::ForwardReply{{.status = {}, .result = WriteResult{context, 2, 1, false}}});
  Peer("forward-deleted", peer::ForwardReply{{.status = {}, .result = WriteResult{context, 2, 1, true}}});
  Peer("forward-refused", peer::ForwardReply{{.status = absl::UnavailableError("no"), .result = {}}});
  Peer("store", peer::StoreRow{KeyOf("cart"), record, kNow, kTwo, true, true});
  Peer("store-reply", peer::StoreReply{absl::StatusCode::kOutOfRange, true});
  Peer("fetch", peer::FetchRow{KeyOf("cart"), kTwo});
  Peer("fetch-reply", peer::FetchReply{{}, record, kNow});
  Peer("fetch-page", peer::FetchPage{after, end, 100, 1 << 16, false, true});
  Peer("fetch-page-reply", peer::FetchPageReply{{}, rows, true, true, kNow});
  Peer("compare-sums",
       peer::CompareSums{{{1, Token{1}, Token{2}}, {1, Token{2}, Token{1}}}, {{1, 2}, {3, 4}}});
  Peer("compare-sums-reply", peer::CompareSumsReply{{0, 1}, true, true});
  Peer("compare-rows", peer::CompareRows{after, end, {{KeyOf("cart"), {1, 2}, kNow}}, true});
  Peer("compare-rows-reply", peer::CompareRowsReply{{}, end, {KeyOf("cart")}, rows, kNow});
  Peer("row-without-record", peer::FetchPageReply{{}, {{KeyOf("cart"), nullptr}}, true});
  Peer("unequal-slice-twice", peer::CompareSumsReply{{1, 1}, false, false});
  Peer("cut-state", peer::CutState{1'700'000'000'000, kNow, kNow, kNow, kNow, kNow, true});

  const auto request = [](const std::string& name, auto fill) {
    v1::SessionRequest wire;
    wire.set_id(7);
    wire.set_timeout_ms(500);
    fill(wire);
    Write("request", name, wire.SerializeAsString());
  };
  request("put", [&](v1::SessionRequest& to) { FromCall(PutCall(put), *to.mutable_put()); });
  request("delete", [&](v1::SessionRequest& to) { FromCall(DeleteCall(gone), *to.mutable_delete_()); });
  request("get", [&](v1::SessionRequest& to) {
    to.mutable_get()->set_key("cart");
    to.mutable_get()->add_contexts(context);
    to.mutable_get()->mutable_r()->set_name(v1::Replicas::ALL);
  });
  request("scan", [&](v1::SessionRequest& to) {
    to.mutable_scan()->set_prefix("ca");
    to.mutable_scan()->set_cursor(KeyOf("cart"));
    to.mutable_scan()->set_limit(10);
    to.mutable_scan()->set_keys_only(true);
  });
  Write("cursor", "row", KeyOf("cart"));
  Write("cursor", "first", RowKeyFloor(1, 0));
  Write("cursor", "last-token", MakeRowKey(1, UINT64_MAX, "k"));
  Write("cursor", "edge-of-range", RowKeyFloor(1, uint64_t{1} << 61));
  Write("cursor", "other-keyspace", KeyOf("cart", 2));
}

}  // namespace
}  // namespace gyre::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_samples FOLDER\n");
    return 2;
  }
  gyre::fuzz::folder = argv[1];
  gyre::fuzz::Storage();
  gyre::fuzz::Members();
  gyre::fuzz::Conversation();
  gyre::fuzz::Peers();
  return 0;
}
