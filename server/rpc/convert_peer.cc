// Between the peers' protocol and the core's messages.
#include "server/rpc/convert_peer.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "ring/token.h"
#include "server/rpc/convert_kv.h"
#include "storage/format/row_key.h"

namespace gyre {
namespace {

absl::Status Refused(const char* why) {
  return absl::InvalidArgumentError(std::string("peer message: ") + why);
}

// A row at a token that is not its key's could never be found again, except by scans.
bool GoodRowKey(const std::string& row_key) {
  RowKeyParts parts;
  return row_key.size() <= kRowKeyBytesMax && ParseRowKey(row_key, parts) && !parts.key.empty() &&
         parts.token == TokenOf(parts.key).value;
}

RecordBytes ToRecord(std::string&& bytes) {
  return bytes.empty() ? nullptr : std::make_shared<const std::string>(std::move(bytes));
}

void FromRecord(const RecordBytes& record, std::string& to) {
  if (record) to = *record;
}

void FromRows(std::vector<Row>& rows, google::protobuf::RepeatedPtrField<v1::Row>& to) {
  to.Reserve(static_cast<int>(rows.size()));
  for (Row& row : rows) {
    v1::Row& out = *to.Add();
    out.set_row_key(std::move(row.row_key));
    FromRecord(row.record, *out.mutable_record());
  }
}

absl::Status ToRows(google::protobuf::RepeatedPtrField<v1::Row>& from, std::vector<Row>& to) {
  to.reserve(static_cast<size_t>(from.size()));
  for (v1::Row& row : from) {
    if (!GoodRowKey(row.row_key())) return Refused("a row key of a page is not one");
    if (!to.empty() && row.row_key() <= to.back().row_key) return Refused("a page is not in order");
    if (row.record().empty()) return Refused("a row of a page has no record");
    to.push_back({std::move(*row.mutable_row_key()), ToRecord(std::move(*row.mutable_record()))});
  }
  return absl::OkStatus();
}

absl::StatusOr<peer::Forward> ToForward(v1::ForwardCall&& from) {
  if (from.call_case() == v1::ForwardCall::CALL_NOT_SET) return Refused("a forwarded call is empty");
  absl::StatusOr<Call> call =
      from.has_put() ? ToCall(std::move(*from.mutable_put())) : ToCall(std::move(*from.mutable_delete_()));
  if (!call.ok()) return call.status();
  return peer::Forward{*std::move(call), Millis(from.timeout_ms())};
}

absl::StatusOr<peer::FetchPageReply> ToPageReply(v1::FetchPageReply&& from) {
  peer::FetchPageReply reply = {.code = static_cast<absl::StatusCode>(from.code()),
                                .complete = from.complete(),
                                .skipped = from.skipped(),
                                .cut = from.cut()};
  if (absl::Status status = ToRows(*from.mutable_rows(), reply.rows); !status.ok()) return status;
  return reply;
}

bool GoodSpan(const std::string& after, const std::string& end) {
  return after.size() <= kRowKeyBytesMax + 1 && end.size() <= kRowKeyBytesMax + 1 && after < end;
}

absl::StatusOr<peer::CompareSums> ToCompareSums(const v1::CompareSums& from) {
  if (static_cast<size_t>(from.slices_size()) > peer::CompareSums::kSlicesMax) {
    return Refused("too many sums to compare");
  }
  peer::CompareSums to;
  to.slices.reserve(static_cast<size_t>(from.slices_size()));
  to.sums.reserve(static_cast<size_t>(from.slices_size()));
  for (const v1::Slice& slice : from.slices()) {
    to.slices.push_back({slice.keyspace_id(), Token{slice.begin()}, Token{slice.end()}});
    to.sums.push_back({slice.sum_high(), slice.sum_low()});
  }
  return to;
}

absl::StatusOr<peer::CompareRows> ToCompareRows(v1::CompareRows&& from) {
  peer::CompareRows to = {std::move(*from.mutable_after()), std::move(*from.mutable_end())};
  if (!GoodSpan(to.after, to.end)) return Refused("rows to compare end before they begin");
  if (static_cast<size_t>(from.rows_size()) > ScanCall::kRowsMax) return Refused("too many rows to compare");
  to.give_only = from.give_only();
  to.rows.reserve(static_cast<size_t>(from.rows_size()));
  for (v1::RowDigest& row : *from.mutable_rows()) {
    const std::string& last = to.rows.empty() ? to.after : to.rows.back().row_key;
    if (!GoodRowKey(row.row_key()) || row.row_key() <= last || row.row_key() >= to.end) {
      return Refused("rows to compare are not in order");
    }
    to.rows.push_back({std::move(*row.mutable_row_key()), {row.hash_high(), row.hash_low()}, row.newest()});
  }
  return to;
}

struct ToWire {
  v1::PeerMessage& to;

  void operator()(peer::CompareSums& from) const {
    v1::CompareSums& question = *to.mutable_compare_sums();
    for (size_t i = 0; i < from.slices.size(); ++i) {
      v1::Slice& slice = *question.add_slices();
      slice.set_keyspace_id(from.slices[i].keyspace);
      slice.set_begin(from.slices[i].begin.value);
      slice.set_end(from.slices[i].end.value);
      slice.set_sum_high(from.sums[i].high);
      slice.set_sum_low(from.sums[i].low);
    }
  }
  void operator()(peer::CompareSumsReply& from) const {
    v1::CompareSumsReply& reply = *to.mutable_compare_sums_reply();
    reply.mutable_unequal()->Assign(from.unequal.begin(), from.unequal.end());
    reply.set_in_doubt(from.in_doubt);
    reply.set_filling(from.filling);
  }
  void operator()(peer::CompareRows& from) const {
    v1::CompareRows& question = *to.mutable_compare_rows();
    question.set_after(std::move(from.after));
    question.set_end(std::move(from.end));
    question.set_give_only(from.give_only);
    for (peer::RowDigest& row : from.rows) {
      v1::RowDigest& out = *question.add_rows();
      out.set_row_key(std::move(row.row_key));
      out.set_hash_high(row.hash.high);
      out.set_hash_low(row.hash.low);
      out.set_newest(row.newest);
    }
  }
  void operator()(peer::CompareRowsReply& from) const {
    v1::CompareRowsReply& reply = *to.mutable_compare_rows_reply();
    reply.set_code(static_cast<uint32_t>(from.code));
    reply.set_covered_to(std::move(from.covered_to));
    for (std::string& row_key : from.wanted) reply.add_wanted(std::move(row_key));
    FromRows(from.rows, *reply.mutable_rows());
    reply.set_cut(from.cut);
  }
  void operator()(peer::CutState& from) const {
    v1::CutState& state = *to.mutable_cut_state();
    state.set_wall_ms(from.wall_ms);
    state.set_ready(from.ready);
    state.set_confirmed(from.confirmed);
    state.set_exchanged(from.exchanged);
    state.set_cut(from.cut);
    state.set_all(from.all);
    state.set_filling(from.filling);
  }

  void operator()(peer::Forward& from) const {
    v1::ForwardCall& call = *to.mutable_forward();
    call.set_timeout_ms(static_cast<uint32_t>(std::max<int64_t>(from.timeout.value / 1000, 1)));
    if (auto* put = std::get_if<PutCall>(&from.call)) return FromCall(std::move(*put), *call.mutable_put());
    FromCall(std::get<DeleteCall>(std::move(from.call)), *call.mutable_delete_());
  }
  void operator()(peer::ForwardReply& from) const {
    FromResult(std::move(from.result), *to.mutable_forward_reply()->mutable_reply());
  }
  void operator()(peer::StoreRow& from) const {
    v1::StoreRow& store = *to.mutable_store();
    store.set_row_key(std::move(from.row_key));
    FromRecord(from.record, *store.mutable_record());
    store.set_cut(from.cut);
    store.set_hint_for(from.hint_for.value);
    store.set_repair(from.repair);
    store.set_return_more(from.return_more);
  }
  void operator()(peer::StoreReply& from) const {
    to.mutable_store_reply()->set_code(static_cast<uint32_t>(from.code));
    to.mutable_store_reply()->set_more(from.more);
  }
  void operator()(peer::FetchRow& from) const {
    to.mutable_fetch()->set_row_key(std::move(from.row_key));
    to.mutable_fetch()->set_hint_for(from.hint_for.value);
  }
  void operator()(peer::FetchReply& from) const {
    v1::FetchReply& reply = *to.mutable_fetch_reply();
    reply.set_code(static_cast<uint32_t>(from.code));
    FromRecord(from.record, *reply.mutable_record());
    reply.set_cut(from.cut);
  }
  void operator()(peer::FetchPage& from) const {
    v1::FetchPage& page = *to.mutable_fetch_page();
    page.set_after(std::move(from.after));
    page.set_end(std::move(from.end));
    page.set_rows_max(from.rows_max);
    page.set_bytes_max(from.bytes_max);
    page.set_move(from.move);
  }
  void operator()(peer::FetchPageReply& from) const {
    v1::FetchPageReply& reply = *to.mutable_fetch_page_reply();
    reply.set_code(static_cast<uint32_t>(from.code));
    reply.set_complete(from.complete);
    reply.set_skipped(from.skipped);
    reply.set_cut(from.cut);
    FromRows(from.rows, *reply.mutable_rows());
  }
};

}  // namespace

absl::StatusOr<Message> ToMessage(v1::PeerMessage&& from) {
  Message message = {.op = from.op()};
  switch (from.body_case()) {
    case v1::PeerMessage::kForward: {
      absl::StatusOr<peer::Forward> forward = ToForward(std::move(*from.mutable_forward()));
      if (!forward.ok()) return forward.status();
      message.body = *std::move(forward);
      return message;
    }
    case v1::PeerMessage::kForwardReply:
      message.body = peer::ForwardReply{ToResult(std::move(*from.mutable_forward_reply()->mutable_reply()))};
      return message;
    case v1::PeerMessage::kStore: {
      v1::StoreRow& store = *from.mutable_store();
      if (!GoodRowKey(store.row_key())) return Refused("the row key of a store is not one");
      if (store.record().empty()) return Refused("a store has no record");
      message.body = peer::StoreRow{std::move(*store.mutable_row_key()),
                                    ToRecord(std::move(*store.mutable_record())),
                                    store.cut(),
                                    NodeId{store.hint_for()},
                                    store.repair(),
                                    store.return_more()};
      return message;
    }
    case v1::PeerMessage::kStoreReply:
      message.body = peer::StoreReply{static_cast<absl::StatusCode>(from.store_reply().code()),
                                      from.store_reply().more()};
      return message;
    case v1::PeerMessage::kFetch:
      if (!GoodRowKey(from.fetch().row_key())) return Refused("the row key of a fetch is not one");
      message.body = peer::FetchRow{std::move(*from.mutable_fetch()->mutable_row_key()),
                                    NodeId{from.fetch().hint_for()}};
      return message;
    case v1::PeerMessage::kFetchReply: {
      v1::FetchReply& reply = *from.mutable_fetch_reply();
      message.body = peer::FetchReply{static_cast<absl::StatusCode>(reply.code()),
                                      ToRecord(std::move(*reply.mutable_record())), reply.cut()};
      return message;
    }
    case v1::PeerMessage::kFetchPage: {
      v1::FetchPage& page = *from.mutable_fetch_page();
      if (!GoodSpan(page.after(), page.end())) return Refused("a page ends before it begins");
      message.body = peer::FetchPage{std::move(*page.mutable_after()),
                                     std::move(*page.mutable_end()),
                                     page.rows_max(),
                                     page.bytes_max(),
                                     /*skip_damage=*/false,
                                     page.move()};
      return message;
    }
    case v1::PeerMessage::kFetchPageReply: {
      absl::StatusOr<peer::FetchPageReply> reply = ToPageReply(std::move(*from.mutable_fetch_page_reply()));
      if (!reply.ok()) return reply.status();
      message.body = *std::move(reply);
      return message;
    }
    case v1::PeerMessage::kCompareSums: {
      absl::StatusOr<peer::CompareSums> sums = ToCompareSums(from.compare_sums());
      if (!sums.ok()) return sums.status();
      message.body = *std::move(sums);
      return message;
    }
    case v1::PeerMessage::kCompareSumsReply: {
      const v1::CompareSumsReply& reply = from.compare_sums_reply();
      // Each slice once: the asker looks into all of them.
      if (static_cast<size_t>(reply.unequal_size()) > peer::CompareSums::kSlicesMax ||
          std::ranges::adjacent_find(reply.unequal(), std::greater_equal<>()) != reply.unequal().end()) {
        return Refused("unequal slices are not in order");
      }
      message.body = peer::CompareSumsReply{
          {reply.unequal().begin(), reply.unequal().end()}, reply.in_doubt(), reply.filling()};
      return message;
    }
    case v1::PeerMessage::kCompareRows: {
      absl::StatusOr<peer::CompareRows> rows = ToCompareRows(std::move(*from.mutable_compare_rows()));
      if (!rows.ok()) return rows.status();
      message.body = *std::move(rows);
      return message;
    }
    case v1::PeerMessage::kCompareRowsReply: {
      v1::CompareRowsReply& reply = *from.mutable_compare_rows_reply();
      peer::CompareRowsReply to = {static_cast<absl::StatusCode>(reply.code()),
                                   std::move(*reply.mutable_covered_to())};
      if (static_cast<size_t>(reply.wanted_size()) > ScanCall::kRowsMax)
        return Refused("too many rows wanted");
      for (std::string& row_key : *reply.mutable_wanted()) to.wanted.push_back(std::move(row_key));
      if (absl::Status status = ToRows(*reply.mutable_rows(), to.rows); !status.ok()) return status;
      to.cut = reply.cut();
      message.body = std::move(to);
      return message;
    }
    case v1::PeerMessage::kCutState: {
      const v1::CutState& state = from.cut_state();
      if (std::max({state.ready(), state.confirmed(), state.exchanged(), state.cut(), state.all()}) >
              kCounterMax ||
          state.wall_ms() > MillisOfCounter(kCounterMax)) {
        return Refused("a counter or a clock is beyond all time");
      }
      message.body = peer::CutState{.wall_ms = state.wall_ms(),
                                    .ready = state.ready(),
                                    .confirmed = state.confirmed(),
                                    .exchanged = state.exchanged(),
                                    .cut = state.cut(),
                                    .all = state.all(),
                                    .filling = state.filling()};
      return message;
    }
    case v1::PeerMessage::BODY_NOT_SET:
      break;
  }
  return Refused("it is of a kind that this version does not know");
}

void FromMessage(Message&& from, v1::PeerMessage& to) {
  to.set_op(from.op);
  std::visit(ToWire{to}, from.body);
}

LayoutMark LayoutOf(const v1::Frame& frame) {
  return {frame.layout_epoch(), frame.fence(), frame.reads_other()};
}

size_t WireBytes(const Message& message) {
  constexpr size_t kSmall = 64;
  if (const auto* store = std::get_if<peer::StoreRow>(&message.body)) {
    return kSmall + store->row_key.size() + (store->record ? store->record->size() : 0);
  }
  if (const auto* reply = std::get_if<peer::FetchReply>(&message.body)) {
    return kSmall + (reply->record ? reply->record->size() : 0);
  }
  if (const auto* forward = std::get_if<peer::Forward>(&message.body)) {
    const auto* put = std::get_if<PutCall>(&forward->call);
    return kSmall + kKeyBytesMax + (put ? put->value.size() : 0);
  }
  const auto rows_bytes = [](const std::vector<Row>& rows) {
    size_t bytes = kSmall;
    for (const Row& row : rows) bytes += kSmall + row.row_key.size() + (row.record ? row.record->size() : 0);
    return bytes;
  };
  if (const auto* page = std::get_if<peer::FetchPageReply>(&message.body)) return rows_bytes(page->rows);
  if (const auto* compared = std::get_if<peer::CompareRowsReply>(&message.body)) {
    size_t bytes = rows_bytes(compared->rows) + kRowKeyBytesMax;
    for (const std::string& row_key : compared->wanted) bytes += kSmall + row_key.size();
    return bytes;
  }
  if (const auto* compare = std::get_if<peer::CompareRows>(&message.body)) {
    size_t bytes = kSmall + 2 * kRowKeyBytesMax;
    for (const peer::RowDigest& row : compare->rows) bytes += kSmall + row.row_key.size();
    return bytes;
  }
  if (const auto* sums = std::get_if<peer::CompareSums>(&message.body))
    return kSmall * (1 + sums->slices.size());
  return kSmall + kRowKeyBytesMax;
}

}  // namespace gyre
