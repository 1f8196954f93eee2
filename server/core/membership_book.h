// The address book: who there is, as they say themselves; the later word of each node wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ring/ring.h"
#include "server/core/membership_messages.h"
#include "server/core/time.h"

namespace gyre {

// False for an entry without id or peer address, or with a text beyond NodeInfoValue::kTextBytesMax.
bool IsUsable(const NodeInfoValue& info);

class AddressBook {
 public:
  static constexpr size_t kEntriesMax = Ring::kMembersMax + 64;

  explicit AddressBook(NodeInfoValue self);

  // Takes over what an earlier life knew. This node's own generation is raised above that life's, so that the
  // newer life is believed also when the clock was set back between them.
  void Remember(const std::vector<NodeInfoValue>& nodes);

  // Takes what was said of a node, if it is news. What others say of this node is ignored. With `forming`, a
  // peer address belongs to one node only, to the one started last: else a node that was given a new data
  // directory would count twice. (Later that must not be: addresses may be swapped while a member is away.)
  void Merge(Micros now, const NodeInfoValue& info, bool forming);

  // As if it had never been heard of. REQUIRES: not this node.
  void Forget(NodeId node);

  // This node's next heartbeat, with the facts of now.
  void Beat(Micros now, const NodeFactsValue& facts);

  const NodeInfoValue& self() const { return nodes_.at(self_); }
  const std::map<NodeId, NodeInfoValue>& nodes() const { return nodes_; }
  std::optional<Micros> last_heard(NodeId node) const;
  // nullptr when the node is not known.
  const std::string* PeerAddressOf(NodeId node) const;

  // This node first, then others; when there are more than `count`, a window that moves on from call to call.
  std::vector<NodeInfoValue> NextToTell(size_t count);

  // True once after something that a restarted node should remember has changed.
  bool TakeChanged();
  // Where nodes were turned away since the book is full.
  bool full() const { return nodes_.size() >= kEntriesMax; }

 private:
  bool ClearAddress(const NodeInfoValue& info);

  NodeId self_;
  std::map<NodeId, NodeInfoValue> nodes_;
  std::map<NodeId, Micros> heard_;
  NodeId told_;  // the last one that NextToTell gave
  bool changed_ = true;
};

}  // namespace gyre
