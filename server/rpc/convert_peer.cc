// Between the peers' protocol and the core's messages.
#include "server/rpc/convert_peer.h"

#include <algorithm>
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

absl::StatusOr<peer::Forward> ToForward(v1::ForwardCall&& from) {
  if (from.call_case() == v1::ForwardCall::CALL_NOT_SET) return Refused("a forwarded call is empty");
  absl::StatusOr<Call> call =
      from.has_put() ? ToCall(std::move(*from.mutable_put())) : ToCall(std::move(*from.mutable_delete_()));
  if (!call.ok()) return call.status();
  return peer::Forward{*std::move(call), Millis(from.timeout_ms())};
}

absl::StatusOr<peer::FetchPageReply> ToPageReply(v1::FetchPageReply&& from) {
  peer::FetchPageReply reply = {.code = static_cast<absl::StatusCode>(from.code()),
                                .complete = from.complete()};
  reply.rows.reserve(static_cast<size_t>(from.rows_size()));
  for (v1::Row& row : *from.mutable_rows()) {
    if (!GoodRowKey(row.row_key())) return Refused("a row key of a page is not one");
    if (!reply.rows.empty() && row.row_key() <= reply.rows.back().row_key)
      return Refused("a page is not in order");
    reply.rows.push_back({std::move(*row.mutable_row_key()), ToRecord(std::move(*row.mutable_record()))});
  }
  return reply;
}

struct ToWire {
  v1::PeerMessage& to;

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
    store.set_hint_for(from.hint_for.value);
    store.set_repair(from.repair);
  }
  void operator()(peer::StoreReply& from) const {
    to.mutable_store_reply()->set_code(static_cast<uint32_t>(from.code));
  }
  void operator()(peer::FetchRow& from) const { to.mutable_fetch()->set_row_key(std::move(from.row_key)); }
  void operator()(peer::FetchReply& from) const {
    v1::FetchReply& reply = *to.mutable_fetch_reply();
    reply.set_code(static_cast<uint32_t>(from.code));
    FromRecord(from.record, *reply.mutable_record());
  }
  void operator()(peer::FetchPage& from) const {
    v1::FetchPage& page = *to.mutable_fetch_page();
    page.set_after(std::move(from.after));
    page.set_end(std::move(from.end));
    page.set_rows_max(from.rows_max);
    page.set_bytes_max(from.bytes_max);
  }
  void operator()(peer::FetchPageReply& from) const {
    v1::FetchPageReply& reply = *to.mutable_fetch_page_reply();
    reply.set_code(static_cast<uint32_t>(from.code));
    reply.set_complete(from.complete);
    reply.mutable_rows()->Reserve(static_cast<int>(from.rows.size()));
    for (Row& row : from.rows) {
      v1::Row& out = *reply.add_rows();
      out.set_row_key(std::move(row.row_key));
      FromRecord(row.record, *out.mutable_record());
    }
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
      message.body =
          peer::StoreRow{std::move(*store.mutable_row_key()), ToRecord(std::move(*store.mutable_record())),
                         NodeId{store.hint_for()}, store.repair()};
      return message;
    }
    case v1::PeerMessage::kStoreReply:
      message.body = peer::StoreReply{static_cast<absl::StatusCode>(from.store_reply().code())};
      return message;
    case v1::PeerMessage::kFetch:
      if (!GoodRowKey(from.fetch().row_key())) return Refused("the row key of a fetch is not one");
      message.body = peer::FetchRow{std::move(*from.mutable_fetch()->mutable_row_key())};
      return message;
    case v1::PeerMessage::kFetchReply: {
      v1::FetchReply& reply = *from.mutable_fetch_reply();
      message.body = peer::FetchReply{static_cast<absl::StatusCode>(reply.code()),
                                      ToRecord(std::move(*reply.mutable_record()))};
      return message;
    }
    case v1::PeerMessage::kFetchPage: {
      v1::FetchPage& page = *from.mutable_fetch_page();
      if (page.end() <= page.after()) return Refused("a page ends before it begins");
      message.body = peer::FetchPage{std::move(*page.mutable_after()), std::move(*page.mutable_end()),
                                     page.rows_max(), page.bytes_max()};
      return message;
    }
    case v1::PeerMessage::kFetchPageReply: {
      absl::StatusOr<peer::FetchPageReply> reply = ToPageReply(std::move(*from.mutable_fetch_page_reply()));
      if (!reply.ok()) return reply.status();
      message.body = *std::move(reply);
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
  if (const auto* page = std::get_if<peer::FetchPageReply>(&message.body)) {
    size_t bytes = kSmall;
    for (const Row& row : page->rows)
      bytes += kSmall + row.row_key.size() + (row.record ? row.record->size() : 0);
    return bytes;
  }
  return kSmall + kRowKeyBytesMax;
}

}  // namespace gyre
