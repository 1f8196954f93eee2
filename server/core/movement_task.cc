// Tasks of a movement, and the bytes of their progress.
#include "server/core/movement_task.h"

#include <absl/status/status.h>
#include <algorithm>
#include <limits>
#include <utility>

#include "ring/ring_diff.h"
#include "storage/format/bytes.h"

namespace gyre {
namespace {

constexpr uint8_t kFormat = 1;
constexpr size_t kProgressBytesMin = 1 + 8 + 1 + 1 + 1 + 1;

bool ReadBool(ByteReader& in) {
  const uint8_t value = in.Byte();
  if (value > 1) in.Fail();
  return value == 1;
}

bool Has(const std::vector<NodeId>& nodes, NodeId node) {
  return std::ranges::find(nodes, node) != nodes.end();
}

// The range in pieces that do not wrap.
std::vector<TokenRange> Unwrapped(const TokenRange& range) {
  constexpr Token kLast{std::numeric_limits<uint64_t>::max()};
  if (range.begin == kLast || range.begin < range.end) return {range};
  if (range.begin == range.end) return {kWholeRing};
  return {{kLast, range.end}, {range.begin, kLast}};
}

void AddTasks(const Layouts& layouts, NodeId self, const KeyspaceSpec& keyspace, const RingChange& change,
              std::vector<MoveTask>& tasks) {
  const bool was = Has(change.before, self);
  MoveTask task = {.keyspace = keyspace.id, .stays = was};
  for (const NodeId node : change.before) {
    if (node != self && !std::ranges::binary_search(layouts.view->layout.lost, node))
      task.before.push_back(node);
  }
  for (const Replacement& each : change.replacements) {
    if (each.newcomer == self) task.leaver = each.leaver;
  }
  for (const TokenRange& piece : Unwrapped(change)) {
    task.range = piece;
    task.span = SpansOf(keyspace.id, piece).front();
    tasks.push_back(task);
  }
}

}  // namespace

std::vector<MoveTask> MoveTasksOf(const Layouts& layouts, NodeId self) {
  std::vector<MoveTask> tasks;
  if (layouts.view->layout.abort) return tasks;  // what it goes back to is complete
  for (const KeyspaceSpec& keyspace : layouts.view->layout.keyspaces) {
    const KeyspaceSpec* const before = layouts.other->Keyspace(keyspace.id);
    if (before == nullptr) continue;
    const std::vector<RingChange> changes = DiffRings({layouts.other->ring, static_cast<size_t>(before->n)},
                                                      {layouts.view->ring, static_cast<size_t>(keyspace.n)});
    for (const RingChange& change : changes) {
      if (!Has(change.after, self)) continue;
      // Where the number of replicas is another, a quorum of now may meet none of before, unless those that
      // stay have what all had.
      if (!Has(change.before, self) || keyspace.n != before->n)
        AddTasks(layouts, self, keyspace, change, tasks);
    }
  }
  std::ranges::sort(tasks, {}, [](const MoveTask& task) { return task.span.begin; });
  return tasks;
}

double MoveTask::FractionDone() const {
  if (progress.done || progress.fetched) return 1;
  RowKeyParts parts;
  if (!ParseRowKey(progress.after, parts)) return 0;
  const double width = static_cast<double>(range.width());
  return static_cast<double>(parts.token - range.begin.value) / width;
}

std::string EncodeMoveState(const MoveState& state) {
  ByteWriter out(64 + state.progress.size() * 64);
  out.Byte(kFormat);
  out.Varint(state.fence);
  out.Fixed64(state.digest);
  out.Byte(state.ready ? 1 : 0);
  out.Byte(state.control.paused ? 1 : 0);
  out.Varint(state.control.bytes_per_second);
  out.Varint(state.progress.size());
  for (const MoveProgress& each : state.progress) {
    out.Varint(each.after.size());
    out.Bytes(each.after);
    out.Fixed64(each.source.value);
    out.Byte(static_cast<uint8_t>((each.fetched ? 1 : 0) | (each.mixed ? 2 : 0) | (each.done ? 4 : 0)));
    out.Varint(each.compared.size());
    for (const NodeId node : each.compared) out.Fixed64(node.value);
    out.Varint(each.keys);
    out.Varint(each.bytes);
  }
  return out.Finish();
}

absl::StatusOr<MoveState> DecodeMoveState(std::string_view bytes) {
  const absl::Status garbled = absl::DataLossError(
      "what is stored of a movement of data is garbled; restore the store, or wipe the node");
  if (!CheckAndStrip(bytes)) return garbled;
  ByteReader in(bytes);
  const uint8_t format = in.Byte();
  if (in.ok() && format > kFormat) {
    return absl::UnimplementedError("what is stored of a movement of data has format " +
                                    std::to_string(format) +
                                    ", which is of a later version; run that version");
  }
  if (format != kFormat) return garbled;
  MoveState state;
  state.fence = in.Varint();
  state.digest = in.Fixed64();
  state.ready = ReadBool(in);
  state.control.paused = ReadBool(in);
  state.control.bytes_per_second = in.Varint();
  for (size_t left = in.Count(kProgressBytesMin); left > 0 && in.ok(); --left) {
    MoveProgress each;
    each.after = std::string(in.Bytes(in.Varint()));
    if (each.after.size() > kRowKeyBytesMax) in.Fail();
    each.source = NodeId{in.Fixed64()};
    const uint8_t flags = in.Byte();
    if (flags > 7) in.Fail();
    each.fetched = (flags & 1) != 0;
    each.mixed = (flags & 2) != 0;
    each.done = (flags & 4) != 0;
    for (size_t nodes = in.Count(8); nodes > 0 && in.ok(); --nodes)
      each.compared.push_back(NodeId{in.Fixed64()});
    each.keys = in.Varint();
    each.bytes = in.Varint();
    state.progress.push_back(std::move(each));
  }
  if (!in.AtEnd()) return garbled;
  return state;
}

}  // namespace gyre
