// The address book.
#include "server/core/membership_book.h"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

namespace gyre {
namespace {

bool SamePlace(const NodeInfoValue& a, const NodeInfoValue& b) {
  return std::tie(a.address, a.peer_address, a.zone, a.weight) ==
         std::tie(b.address, b.peer_address, b.zone, b.weight);
}

bool IsNewer(const NodeInfoValue& a, const NodeInfoValue& b) {
  return std::tie(a.generation, a.heartbeat) > std::tie(b.generation, b.heartbeat);
}

}  // namespace

bool IsUsable(const NodeInfoValue& info) {
  const auto fits = [](const std::string& text) { return text.size() <= NodeInfoValue::kTextBytesMax; };
  return info.id && !info.peer_address.empty() && fits(info.peer_address) && fits(info.address) &&
         fits(info.zone) && fits(info.facts.version);
}

AddressBook::AddressBook(NodeInfoValue self) : self_(self.id) {
  assert(IsUsable(self));
  nodes_.emplace(self_, std::move(self));
}

void AddressBook::Remember(const std::vector<NodeInfoValue>& nodes) {
  changed_ = true;  // at least this life's own generation is new
  for (const NodeInfoValue& info : nodes) {
    if (info.id == self_) {
      NodeInfoValue& self = nodes_.at(self_);
      self.generation = std::max(self.generation, info.generation + 1);
    } else if (!full()) {
      nodes_.emplace(info.id, info);
    }
  }
}

// Makes `info` the only one at its peer address. False when somebody else has the better claim to it.
bool AddressBook::ClearAddress(const NodeInfoValue& info) {
  const auto at_address = [&](const auto& entry) {
    return entry.first != info.id && entry.second.peer_address == info.peer_address;
  };
  const auto other = std::ranges::find_if(nodes_, at_address);
  if (other == nodes_.end()) return true;
  const auto claim = [](const NodeInfoValue& node) { return std::tie(node.generation, node.id); };
  if (other->first == self_ || claim(other->second) > claim(info)) return false;
  heard_.erase(other->first);
  nodes_.erase(other);
  return true;
}

void AddressBook::Merge(Micros now, const NodeInfoValue& info, bool forming) {
  if (!IsUsable(info) || info.id == self_) return;
  const auto known = nodes_.find(info.id);
  if (known == nodes_.end() ? full() : !IsNewer(info, known->second)) return;
  if (forming && !ClearAddress(info)) return;
  const auto [entry, added] = nodes_.try_emplace(info.id);
  changed_ |= added || !SamePlace(entry->second, info);
  entry->second = info;
  heard_[info.id] = now;
}

void AddressBook::Forget(NodeId node) {
  assert(node != self_);
  changed_ |= nodes_.erase(node) > 0;
  heard_.erase(node);
}

void AddressBook::Beat(Micros now, const NodeFactsValue& facts) {
  NodeInfoValue& self = nodes_.at(self_);
  ++self.heartbeat;
  self.facts = facts;
  heard_[self_] = now;
}

std::optional<Micros> AddressBook::last_heard(NodeId node) const {
  const auto heard = heard_.find(node);
  return heard == heard_.end() ? std::nullopt : std::optional(heard->second);
}

const std::string* AddressBook::PeerAddressOf(NodeId node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : &found->second.peer_address;
}

std::vector<NodeInfoValue> AddressBook::NextToTell(size_t count) {
  std::vector<NodeInfoValue> told = {self()};
  auto next = nodes_.upper_bound(told_);
  for (size_t looked_at = 0; looked_at < nodes_.size() && told.size() < count; ++looked_at, ++next) {
    if (next == nodes_.end()) next = nodes_.begin();
    told_ = next->first;
    if (told_ != self_) told.push_back(next->second);
  }
  return told;
}

bool AddressBook::TakeChanged() { return std::exchange(changed_, false); }

}  // namespace gyre
