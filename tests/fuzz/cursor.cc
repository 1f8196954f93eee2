// Cursors of scans that clients bring back: refused, or a scan that goes on behind them and comes to an end.
#include "server/core/node.h"
#include "storage/format/row_key.h"
#include "tests/fuzz/fuzz.h"

namespace gyre {
namespace {

constexpr Now kNow = {.steady = Seconds(1), .wall_ms = 1'700'000'000'000};
constexpr NodeId kSelf{1};
constexpr uint32_t kDefault = 1;  // the keyspace

// Five nodes with two tokens each, so that the ring is ranges of different replicas.
std::shared_ptr<const View> FiveNodes() {
  Layout layout = FirstLayout({{kSelf}, {NodeId{2}}, {NodeId{3}}, {NodeId{4}}, {NodeId{5}}});
  for (Member& member : layout.members) {
    member.tokens = {Token{member.id.value << 60 | 1}, Token{member.id.value << 61}};
  }
  return *MakeView(std::move(layout));
}

// The cursor after one page of empty rows: "" at the end of the scan.
absl::StatusOr<std::string> Next(Node& node, const std::string& cursor) {
  Outbox out;
  node.Step(kNow, ClientCall{{1}, ScanCall{.cursor = cursor}, kNow.steady + Seconds(1)}, out);
  const std::vector<Outbox::Send> asked = std::exchange(out.sends, {});
  for (const Outbox::Send& send : asked) {
    const auto& page = std::get<peer::FetchPage>(send.message.body);
    assert(page.after < page.end);
    assert(page.after == (cursor.empty() ? RowKeyFloor(kDefault, 0) : cursor));
    node.Step(kNow, FromPeer{send.to, {1}, {send.message.op, peer::FetchPageReply{.complete = true}}}, out);
  }
  assert(out.replies.size() == 1);
  const CallResult& reply = out.replies[0].result;
  if (!reply.status.ok()) return reply.status;
  return std::get<ScanResult>(reply.result).next_cursor;
}

}  // namespace
}  // namespace gyre

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  static const std::shared_ptr<const View> view = FiveNodes();
  Outbox ignored;
  Node node({.self = kSelf}, ActorClock(kSelf.value, std::nullopt, kNow.wall_ms));
  node.Step(kNow, NewLayouts{{view}}, ignored);
  for (const Member& member : view->layout.members) node.Step(kNow, PeerUp{member.id}, ignored);

  std::string cursor(fuzz::Text(data, size));
  RowKeyParts parts;
  const bool good = cursor.empty() || (ParseRowKey(cursor, parts) && parts.keyspace == kDefault &&
                                       cursor.size() <= kRowKeyBytesMax);
  absl::StatusOr<std::string> next = Next(node, cursor);
  assert(next.ok() == good);
  size_t pages = 1;
  while (next.ok() && !next->empty()) {
    assert(cursor < *next);
    assert(++pages <= view->ring.arc_count() + 1);
    cursor = *next;
    next = Next(node, cursor);
  }
  assert(next.ok() || absl::IsInvalidArgument(next.status()));
  return 0;
}
