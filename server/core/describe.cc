// Says what inputs, messages and results are.
#include "server/core/describe.h"

#include <string_view>
#include <utility>

#include "storage/format/row_key.h"

namespace gyre {
namespace {

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

constexpr size_t kShownMax = 40;

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text.substr(0, kShownMax)) quoted.push_back(c >= ' ' && c <= '~' ? c : '?');
  return quoted + (text.size() > kShownMax ? "...\"" : "\"");
}

std::string KeyOf(std::string_view keyspace, std::string_view key) {
  return (keyspace.empty() ? "default" : std::string(keyspace)) + "/" + Quoted(key);
}

std::string DescribeCount(const char* name, const std::optional<ReplicaCount>& count) {
  if (!count) return {};
  constexpr const char* kNames[] = {"quorum", "one", "all"};
  const auto how = static_cast<size_t>(count->how);
  return std::string(" ") + name + "=" + (how < 3 ? kNames[how] : std::to_string(count->count));
}

std::string DescribeCode(absl::StatusCode code) { return absl::StatusCodeToString(code); }
std::string DescribeStatus(const absl::Status& status) {
  return status.ok() ? "OK" : DescribeCode(status.code()) + ": " + std::string(status.message());
}

std::string DescribeValues(const std::vector<ReadValue>& values) {
  std::string list;
  for (const ReadValue& value : values) list += (list.empty() ? "" : ", ") + Quoted(value.value);
  return "[" + list + "]";
}

std::string DescribeFrom(NodeId node) { return node ? ToString(node) : "nobody"; }

}  // namespace

std::string DescribeRowKey(const std::string& row_key) {
  RowKeyParts parts;
  if (!ParseRowKey(row_key, parts)) return "broken row key " + Quoted(row_key);
  return std::to_string(parts.keyspace) + "/" + Quoted(parts.key);
}

std::string DescribeRecord(const RecordBytes& bytes) {
  if (bytes == nullptr) return "nothing";
  const absl::StatusOr<Record> record = DecodeRecord(*bytes);
  if (!record.ok()) return "broken record";
  std::string text = "{";
  for (const Version& version : record->versions) {
    text += Quoted(version.value) + (version.retried ? " retried " : " ") + ToString(version.dot) + ", ";
  }
  return text + "seen " + ToString(record->seen) +
         (record->superseded.empty()
              ? "}"
              : ", " + std::to_string(record->superseded.size()) + " retries superseded}");
}

std::string Describe(const Call& call) {
  return std::visit(Overloaded{
                        [](const PutCall& put) {
                          return "put " + KeyOf(put.keyspace, put.key) + "=" + Quoted(put.value) +
                                 DescribeCount("w", put.w) + (put.context ? " with context" : "") +
                                 (put.retry ? " again" : "");
                        },
                        [](const GetCall& get) {
                          return "get " + KeyOf(get.keyspace, get.key) + DescribeCount("r", get.r);
                        },
                        [](const DeleteCall& del) {
                          return "delete " + KeyOf(del.keyspace, del.key) + DescribeCount("w", del.w) +
                                 (del.context ? " with context" : "");
                        },
                        [](const ScanCall& scan) {
                          return "scan " + KeyOf(scan.keyspace, scan.prefix) + DescribeCount("r", scan.r) +
                                 (scan.cursor.empty() ? "" : " from " + DescribeRowKey(scan.cursor));
                        },
                    },
                    call);
}

std::string Describe(const CallResult& result) {
  if (!result.status.ok()) return DescribeStatus(result.status);
  return std::visit(
      Overloaded{
          [](std::monostate) { return std::string("OK"); },
          [](const WriteResult& write) { return "OK, on " + std::to_string(write.acks) + " replicas"; },
          [](const GetResult& get) { return "OK " + DescribeValues(get.values); },
          [](const ScanResult& scan) {
            return "OK " + std::to_string(scan.rows.size()) + " rows" +
                   (scan.next_cursor.empty() ? ", complete" : " up to " + DescribeRowKey(scan.next_cursor));
          },
      },
      result.result);
}

std::string Describe(const Message& message) {
  return "op " + std::to_string(message.op) + " " +
         std::visit(
             Overloaded{
                 [](const peer::Forward& forward) {
                   return "forward within " + std::to_string(forward.timeout.value) +
                          " us: " + Describe(forward.call);
                 },
                 [](const peer::ForwardReply& reply) { return "forwarded: " + Describe(reply.result); },
                 [](const peer::StoreRow& store) {
                   return (store.repair ? "repair " : "store ") + DescribeRowKey(store.row_key) +
                          (store.cut > 0 ? " at cut " + std::to_string(store.cut) : "") +
                          (store.hint_for ? " for " + ToString(store.hint_for) : "") + " " +
                          DescribeRecord(store.record);
                 },
                 [](const peer::StoreReply& reply) { return "stored: " + DescribeCode(reply.code); },
                 [](const peer::FetchRow& fetch) {
                   return "fetch " + DescribeRowKey(fetch.row_key) +
                          (fetch.hint_for ? " for " + ToString(fetch.hint_for) : "");
                 },
                 [](const peer::FetchReply& reply) {
                   return "fetched: " + (reply.code == absl::StatusCode::kOk ? DescribeRecord(reply.record)
                                                                             : DescribeCode(reply.code));
                 },
                 [](const peer::FetchPage& fetch) {
                   return "fetch " + std::to_string(fetch.rows_max) + " rows after " +
                          DescribeRowKey(fetch.after);
                 },
                 [](const peer::FetchPageReply& reply) {
                   return "fetched: " + DescribeCode(reply.code) + " " + std::to_string(reply.rows.size()) +
                          " rows" + (reply.complete ? ", complete" : "");
                 },
                 [](const peer::CompareSums& asked) {
                   return "compare " + std::to_string(asked.slices.size()) + " sums";
                 },
                 [](const peer::CompareSumsReply& reply) {
                   return std::to_string(reply.unequal.size()) + " sums unequal" +
                          (reply.in_doubt ? ", in doubt" : "");
                 },
                 [](const peer::CompareRows& asked) {
                   return "compare " + std::to_string(asked.rows.size()) + " rows after " +
                          DescribeRowKey(asked.after);
                 },
                 [](const peer::CompareRowsReply& reply) {
                   return "compared: " + DescribeCode(reply.code) + " " +
                          std::to_string(reply.wanted.size()) + " wanted, " +
                          std::to_string(reply.rows.size()) + " sent";
                 },
                 [](const peer::CutState& state) {
                   return "ready to " + std::to_string(state.ready) + ", confirmed " +
                          std::to_string(state.confirmed) + ", exchanged " + std::to_string(state.exchanged) +
                          ", holds " + std::to_string(state.cut) + (state.filling ? ", filling" : "");
                 },
             },
             message.body);
}

std::string Describe(const Input& input) {
  return std::visit(
      Overloaded{
          [](const ClientCall& call) {
            return "client's call " + std::to_string(call.ticket.value) + ": " + Describe(call.call);
          },
          [](const FromPeer& message) {
            return "from " + ToString(message.from) + " " + Describe(message.message);
          },
          [](const RowRead& read) {
            return "read " + DescribeRowKey(read.row_key) + ": " +
                   (read.record.ok() ? DescribeRecord(*read.record) : DescribeStatus(read.record.status()));
          },
          [](const PageRead& read) {
            return "read a page of " + std::to_string(read.reply.rows.size()) + " rows";
          },
          [](const Committed& batch) {
            return "committed " + std::to_string(batch.rows.size()) + " rows" +
                   (batch.actor ? " and the clock: " : ": ") + DescribeStatus(batch.status);
          },
          [](const PeerUp& peer) { return "peer up " + ToString(peer.node); },
          [](const PeerDown& peer) { return "peer down " + ToString(peer.node); },
          [](const NewLayouts& next) {
            return "layout " + std::to_string(next.layouts.view->layout.epoch) +
                   (next.layouts.moving() ? ", moving" : "");
          },
          [](const StoreHealth& health) { return "disk: " + DescribeStatus(health.status); },
          [](const Drain&) { return std::string("drain"); },
          [](const SumsRead& read) { return "read " + std::to_string(read.sums.size()) + " sums"; },
          [](const RepairNow&) { return std::string("compare with all replicas"); },
          [](const ResumeWrite& resume) { return "resume op " + std::to_string(resume.op); },
          [](const AwaitHints&) { return std::string("tell when all hints are delivered"); },
          [](const ResumeHint& resume) { return "resume hint " + std::to_string(resume.op); },
          [](const ResumeDrop& resume) { return "resume drop " + std::to_string(resume.op); },
          [](const ControlMoves&) { return std::string("control movement"); },
          [](const ResumeCollect& resume) { return "resume collection " + std::to_string(resume.op); },
      },
      input);
}

std::string Describe(const Outbox& out) {
  std::string text;
  for (const Outbox::Send& send : out.sends)
    text += "send " + ToString(send.to) + " " + Describe(send.message) + "\n";
  for (const std::string& row_key : out.reads) text += "read " + DescribeRowKey(row_key) + "\n";
  for (const SumRequest& request : out.sum_reads) {
    text += "read " + std::to_string(request.slices.size()) + " sums for " + DescribeFrom(request.asked_by) +
            "\n";
  }
  for (const PageRequest& request : out.page_reads) {
    text += "read a page after " + DescribeRowKey(request.page.after) + " for " +
            DescribeFrom(request.asked_by) + "\n";
  }
  for (const RowCommit& row : out.commits) {
    text += "commit " + DescribeRowKey(row.row_key) + " " + DescribeRecord(row.after) + " for " +
            DescribeFrom(row.asked_by) + "\n";
  }
  if (out.actor) text += "commit the clock, incarnation " + std::to_string(out.actor->incarnation) + "\n";
  if (out.cuts) {
    text += "commit that " + std::to_string(out.cuts->confirmed) + " is confirmed and " +
            std::to_string(out.cuts->cut) + " held\n";
  }
  for (const Outbox::Reply& reply : out.replies) {
    text += "answer call " + std::to_string(reply.ticket.value) + ": " + Describe(reply.result) + "\n";
  }
  if (out.layout_wanted_from) text += "fetch a newer layout\n";
  return text;
}

}  // namespace gyre
