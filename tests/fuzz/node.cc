// A node with calls and comparisons under way, to which its peers say anything: it goes on, and answers each
// call once.
#include "server/core/node.h"

#include <absl/container/flat_hash_set.h>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "server/rpc/convert_peer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/placed.h"
#include "tests/server/core/turns.h"

namespace gyre {
namespace {

constexpr uint64_t kWallMs = 1'700'000'000'000;
constexpr Micros kPatience = Seconds(2);  // of each call

// Node A of three, and the disk that it believes in.
class World {
 public:
  World() {
    static const std::shared_ptr<const View> view =
        ThreeNodes({{.name = "last", .conflict = ConflictRule::kLastWriteWins}});
    Step(NewLayouts{{view}});
    for (const NodeId peer : {kB, kC}) Step(PeerUp{peer});
    Advance({});
    Hear(kB, 1, peer::CutState{.wall_ms = kWallMs, .ready = 1});  // so that it may mint
    Call(PutCall{.key = "cart", .value = "milk"});
    Call(PutCall{.keyspace = "last", .key = "cart", .value = "bread", .write_id = {1, 1}, .retry = true});
    Call(DeleteCall{.key = "cart"});
    Call(GetCall{.key = "cart"});
    Call(ScanCall{});
    Step(RepairNow{Ticket{++calls_}, now_.steady + kPatience});
    Advance(Seconds(1));
  }

  // What a peer says. An answer is one to something that this node asked.
  void Hear(Message message) {
    if (asked_.empty()) return;
    const auto& [to, op] = asked_[message.op % asked_.size()];
    Hear(to, op, std::move(message.body));
  }

  // Long after all that was asked was given up, each call was answered.
  void End() {
    for (int i = 0; i < 4; ++i) Advance(kPatience);
    assert(answered_.size() == calls_);
  }

 private:
  void Step(Input input) { node_.Step(now_, std::move(input), out_); }
  void Call(gyre::Call call) { Step(ClientCall{{++calls_}, std::move(call), now_.steady + kPatience}); }
  void Hear(NodeId from, OpId op, auto body) {
    Step(FromPeer{from, {1}, {op, std::move(body)}});
    Settle();
  }
  void Advance(Micros time) {
    now_ = {now_.steady + time, now_.wall_ms + static_cast<uint64_t>(time.value) / 1000};
    node_.Tick(now_, out_);
    Settle();
  }

  peer::FetchPageReply PageOf(const peer::FetchPage& page) const {
    peer::FetchPageReply reply = {.complete = true};
    for (auto row = disk_.upper_bound(page.after); row != disk_.end() && row->first < page.end; ++row) {
      reply.rows.push_back({row->first, row->second});
    }
    return reply;
  }

  // Does what the node asks of its own disk, and takes down what it asks of others.
  void Settle() {
    for (bool more = true; more;) {
      const Outbox out = std::exchange(out_, {});
      for (const std::string& key : out.reads) Step(RowRead{key, disk_.contains(key) ? disk_[key] : nullptr});
      for (const PageRequest& request : out.page_reads) Step(PageRead{request, PageOf(request.page)});
      for (const SumRequest& request : out.sum_reads) {
        Step(SumsRead{request, std::vector<std::optional<RowHash>>(request.slices.size(), RowHash{})});
      }
      for (const Outbox::Send& send : out.sends) {
        if (send.to == kA) {
          Step(FromPeer{kA, {1}, send.message});
        } else {
          asked_.emplace_back(send.to, send.message.op);
        }
      }
      for (const RowCommit& row : out.commits) {
        assert(row.after == nullptr || DecodeRecord(*row.after).ok());
        if (row.after == nullptr) {
          disk_.erase(row.row_key);
        } else {
          disk_[row.row_key] = row.after;
        }
      }
      if (!out.commits.empty() || out.actor || out.cuts)
        Step(Committed{{}, out.commits, out.actor, out.cuts});
      for (const Outbox::Reply& reply : out.replies) assert(answered_.insert(reply.ticket).second);
      more = !out.reads.empty() || !out.page_reads.empty() || !out.sum_reads.empty() || !out.sends.empty() ||
             !out.commits.empty() || out.actor || out.cuts;
    }
  }

  Now now_ = {.steady = Seconds(1), .wall_ms = kWallMs};
  Node node_{{.self = kA}, ActorClock(kA.value, std::nullopt, kWallMs)};
  Outbox out_;
  std::map<std::string, RecordBytes> disk_;
  std::vector<std::pair<NodeId, OpId>> asked_;
  absl::flat_hash_set<Ticket> answered_;
  uint64_t calls_ = 0;
};

}  // namespace
}  // namespace gyre

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  v1::Frame frame;
  if (!frame.ParseFromArray(data, static_cast<int>(size))) return 0;
  World world;
  for (v1::PeerMessage& wire : *frame.mutable_messages()) {
    fuzz::Place(wire);
    absl::StatusOr<Message> message = ToMessage(std::move(wire));
    if (message.ok()) world.Hear(*std::move(message));
  }
  world.End();
  return 0;
}
