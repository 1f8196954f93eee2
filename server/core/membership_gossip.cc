// Membership: gossip. Who is told what and when, and what is made of it.
//
// Until the cluster has formed every node says hello to everyone each second, for all must hear it of all.
// Then it does so at each round of the failure detector, to a few: so a node sends a bounded number of
// messages a second, however many nodes there are, and news is everywhere after some rounds.
#include <algorithm>
#include <set>
#include <utility>

#include "server/core/membership.h"
#include "server/core/membership_codec.h"
#include "storage/format/meta_codec.h"

namespace gyre {
namespace {

constexpr Micros kGreetEvery = Seconds(1);  // seeds, and all that are known while the cluster forms
constexpr Micros kWantAgain = Millis(20);   // a peer that seems to know more
constexpr size_t kKnownInRound = 64;        // what more nodes say of themselves is told in later rounds

std::string InSeconds(Micros time) { return std::to_string(time.value / 1'000'000) + " s"; }

}  // namespace

control::Hello Membership::MakeHello(bool answer_wanted) {
  return {.bootstrap_expect = config_.bootstrap_expect,
          .known = book_.NextToTell(view() ? kKnownInRound : control::Hello::kKnownMax),
          .beats = detector_.beats(),
          .layout_epoch = epoch(),
          .layout_digest = view() ? view()->digest : 0,
          .answer_wanted = answer_wanted,
          .steps = view() && view()->layout.moves() ? moves_.steps() : std::vector<control::MemberStep>()};
}

void Membership::Gossip(Now now, MembershipOutbox& out) {
  gossip_at_ = now.steady + (view() ? FailureDetector::kRound : kGreetEvery);
  facts_.layout_epoch = epoch();
  book_.Beat(now.steady, facts_);
  if (view()) ForgetLeavers(now);
  if (book_.TakeChanged()) {
    std::vector<NodeInfoValue> nodes;
    for (const auto& [id, info] : book_.nodes()) nodes.push_back(info);
    out.persists.push_back({std::string(kMetaMembership) + "known", EncodeNodes(nodes)});
  }
  if (view()) {
    TellSome(now, out);
  } else {
    const control::Hello hello = MakeHello(/*answer_wanted=*/false);
    for (const auto& [id, info] : book_.nodes()) {
      if (id != self()) SendTo({id, info.peer_address}, hello, out);
    }
    TellPromise(out);
  }
  GreetSeeds(now, out);
}

// The members of all active layouts.
void Membership::Watch(Now now) {
  const std::pair watched = {epoch(), moves_.moving()};
  if (std::exchange(watched_, watched) == watched) return;
  std::vector<Member> members = view()->layout.members;
  if (moves_.moving()) {
    for (const Member& member : moves_.other()->layout.members) {
      if (view()->ring.IndexOf(member.id) < 0) members.push_back(member);
    }
    std::ranges::sort(members, {}, &Member::id);
  }
  detector_.Watch(now.steady, members);
}

// A round: some members, and one of the nodes that are none.
void Membership::TellSome(Now now, MembershipOutbox& out) {
  Watch(now);
  FailureDetector::Round round = detector_.NextRound(now.steady);
  if (round.paused) {
    out.log.push_back("This node did not run for " + InSeconds(*round.paused) +
                      ": it gives the other nodes time to be heard of before it judges them.");
  }
  std::vector<NodeId> others;
  for (const auto& [id, info] : book_.nodes()) {
    if (id != self() && !layouts().HasMember(id)) others.push_back(id);
  }
  if (!others.empty()) round.tell.push_back(others[Random() % others.size()]);
  const control::Hello hello = MakeHello(/*answer_wanted=*/false);
  for (const NodeId id : round.tell) {
    const std::string* const address = book_.PeerAddressOf(id);
    if (address != nullptr) SendTo({id, *address}, hello, out);
  }
}

void Membership::TellPromise(MembershipOutbox& out) {
  if (formation_.promise()) {
    for (const NodeInfoValue& node : formation_.promise()->nodes) {
      const std::string* const address = book_.PeerAddressOf(node.id);
      if (node.id != self() && address != nullptr) SendTo({node.id, *address}, *formation_.promise(), out);
    }
  }
  if (const std::string obstacle = this->obstacle(); obstacle != obstacle_said_) {
    out.log.push_back(obstacle);
    obstacle_said_ = obstacle;
  }
}

// Those that no known node answers for.
void Membership::GreetSeeds(Now now, MembershipOutbox& out) {
  if (now.steady < greet_at_) return;
  greet_at_ = now.steady + kGreetEvery;
  std::set<std::string> greeted;
  for (const auto& [id, info] : book_.nodes()) {
    // An address from before a restart may be another node's by now.
    const bool silent = !book_.last_heard(id) || detector_.Suspects(id);
    if (id == self() || !view() || !silent) greeted.insert(info.peer_address);
  }
  for (const std::string& seed : config_.seeds) {
    if (greeted.insert(seed).second) SendTo({NodeId{}, seed}, MakeHello(/*answer_wanted=*/true), out);
  }
}

void Membership::WantLayout(Now now, NodeId peer, MembershipOutbox& out) {
  const std::string* const address = book_.PeerAddressOf(peer);
  if (now.steady < wanted_at_ || address == nullptr) return;  // who is not known yet says hello itself
  wanted_at_ = now.steady + kWantAgain;
  // Whoever has the same layouts tells its steps as an answer, and takes over ours.
  SendTo({peer, *address}, MakeHello(/*answer_wanted=*/true), out);
  SendTo({peer, *address}, control::LayoutWanted{}, out);
}

void Membership::Receive(Now now, Sender from, const control::Hello& hello, MembershipOutbox& out) {
  if (hello.known.empty() || hello.known.front().id != from.id) return;
  const NodeInfoValue& sender = hello.known.front();
  const auto known = book_.nodes().find(from.id);
  if (known != book_.nodes().end() && known->second.generation > sender.generation) {
    LogOncePerMinute(now, from.id,
                     "Dropped a message of an older process of node " + ToString(from.id) + " at " +
                         from.address +
                         ": if it goes on, two processes have the same data; stop one of them.",
                     out);
    return;
  }
  const size_t told = std::min(hello.known.size(), control::Hello::kKnownMax);
  for (size_t i = 0; i < told; ++i) {
    if (i > 0 && HasLeft(hello.known[i].id)) continue;
    book_.Merge(now.steady, hello.known[i], /*forming=*/!view());
  }
  detector_.Heard(now.steady,
                  {.node = from.id, .generation = sender.generation, .heartbeat = sender.heartbeat});
  const size_t beats = std::min(hello.beats.size(), control::Hello::kBeatsMax);
  for (size_t i = 0; i < beats; ++i) detector_.Heard(now.steady, hello.beats[i]);
  if (!view() && book_.nodes().contains(from.id)) {
    if (hello.layout_epoch == 0) {
      formation_.HeardExpect(from.id, hello.bootstrap_expect);
    } else {
      formation_.HeardOfLayout(from.id);
    }
  }
  if (book_.full()) {
    LogOncePerMinute(now, from.id, "The list of known nodes is full: further nodes are not found.", out);
  }
  NoteWhatVotersKnow(from.id, hello.layout_epoch, out);
  if (hello.layout_epoch < epoch()) {
    SendTo(from, MakePush(), out);
  } else if (hello.layout_epoch > epoch()) {
    SendTo(from, control::LayoutWanted{}, out);
  } else if (view() && hello.layout_digest != view()->digest) {
    LogOncePerMinute(now, from.id,
                     "Node " + ToString(from.id) + " at " + from.address + " has another layout of epoch " +
                         std::to_string(epoch()) +
                         ": two were chosen, which must never happen. Stop one of the nodes " +
                         "and report this with the log of both.",
                     out);
  } else {
    LearnSteps(hello.steps);
  }
  if (hello.answer_wanted) SendTo(from, MakeHello(/*answer_wanted=*/false), out);
}

}  // namespace gyre
