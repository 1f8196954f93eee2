// A node driven by hand, and the disk that it believes in.
#pragma once

#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/core/node.h"
#include "storage/format/row_key.h"
#include "tests/server/core/turns.h"

namespace gyre {

inline constexpr uint64_t kWallMs = 1'700'000'000'000;
inline constexpr uint32_t kDefault = 1;  // the keyspace

// Node A of three. Its disk is empty, and commits what it is asked to unless told otherwise.
struct NodeTest : testing::Test {
  NodeLimits limits;
  Now now = {.steady = Seconds(1), .wall_ms = kWallMs};
  std::map<std::string, RecordBytes> disk;
  std::optional<Node> node;
  Outbox out;
  uint64_t tickets = 0;
  bool filling = false;
  CutMarks cuts;            // as an earlier life left them
  peer::CutState cut_said;  // the last that this node said

  void SetUp() override { Restart(std::nullopt); }
  void Restart(std::optional<ActorState> state, std::shared_ptr<const View> view = ThreeNodes()) {
    out = {};
    node.emplace(Node::Config{.self = kA, .limits = limits, .filling = filling, .cuts = cuts},
                 ActorClock(kA.value, state, kWallMs));
    Step(NewLayouts{{std::move(view)}});
    Step(PeerUp{kB});
    Step(PeerUp{kC});
    Tick();
    Commit();
    out = {};
  }
  void Step(Input input) { node->Step(now, std::move(input), out); }
  void Tick() { node->Tick(now, out); }
  void TickAfter(Micros time) {
    now.steady = now.steady + time;
    Tick();
    Settle();
  }

  // Does all that is asked of this node itself but commits.
  void Settle() {
    for (bool more = true; more;) {
      more = false;
      for (const std::string& row_key : std::exchange(out.reads, {})) {
        const auto row = disk.find(row_key);
        Step(RowRead{row_key, row == disk.end() ? nullptr : row->second});
        more = true;
      }
      for (PageRequest& request : std::exchange(out.page_reads, {})) {
        peer::FetchPageReply page = {.complete = true};
        for (auto row = disk.upper_bound(request.page.after);
             row != disk.end() && row->first < request.page.end; ++row) {
          if (row->second != nullptr) page.rows.push_back({row->first, row->second});
        }
        Step(PageRead{std::move(request), std::move(page)});
        more = true;
      }
      for (Outbox::Send& send : std::exchange(out.sends, {})) {
        if (const auto* state = std::get_if<peer::CutState>(&send.message.body)) {
          cut_said = *state;  // the same to everyone, and nobody's answer
          continue;
        }
        if (send.to != kA) {
          sent.push_back(std::move(send));
          continue;
        }
        Step(FromPeer{kA, {1}, std::move(send.message)});
        more = true;
      }
    }
  }
  // One batch.
  void Commit(absl::Status status = absl::OkStatus()) {
    Settle();
    Committed batch = {std::move(status), std::exchange(out.commits, {}),
                       std::exchange(out.actor, std::nullopt), std::exchange(out.cuts, std::nullopt)};
    if (batch.status.ok()) {
      for (const RowCommit& row : batch.rows) disk[row.row_key] = row.after;
    }
    Step(std::move(batch));
    Settle();
  }
  void Call(gyre::Call call, Micros timeout = Seconds(1)) {
    Step(ClientCall{{++tickets}, std::move(call), now.steady + timeout});
    Settle();
  }
  // The one reply since the last time.
  CallResult Reply() {
    EXPECT_EQ(out.replies.size(), 1u);
    if (out.replies.empty()) return {.status = absl::InternalError("no reply")};
    EXPECT_EQ(out.replies[0].ticket.value, tickets);
    CallResult result = std::move(out.replies[0].result);
    out.replies.clear();
    return result;
  }
  std::vector<Outbox::Send> Sent() { return std::exchange(sent, {}); }
  void Answer(NodeId from, OpId op, auto body) {
    Step(FromPeer{from, {1}, {op, std::move(body)}});
    Settle();
  }
  // The first node that something was sent to answers.
  void AnswerFirst(auto body) {
    const Outbox::Send first = Sent().at(0);
    Answer(first.to, first.message.op, std::move(body));
  }
  static std::string RowKeyOf(const std::string& key) {
    return MakeRowKey(kDefault, TokenOf(key).value, key);
  }
  Record OnDisk(const std::string& key) {
    const RecordBytes& bytes = disk[RowKeyOf(key)];
    return bytes ? *DecodeRecord(*bytes) : Record{};
  }
  // A put that ends well on A and B. Returns its context.
  std::string Put(PutCall put) {
    Sent();
    Call(std::move(put));
    const OpId op = sent.at(0).message.op;
    Sent();
    Commit();
    Answer(kB, op, peer::StoreReply{});
    return std::get<WriteResult>(Reply().result).context;
  }

  std::vector<Outbox::Send> sent;  // to other nodes
};

}  // namespace gyre
