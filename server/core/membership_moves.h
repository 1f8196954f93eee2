// Moves: how far the members are with the newest layout while it moves data, and when the one before retires.
//
// Each member takes its steps (MoveStep) when its lane is ready for them and what the step rests on is known,
// and tells them to the others. Nothing is collected anywhere: whoever knows enough steps draws the
// conclusion itself. Steps only rise, so that all draw the same in the end, and none has to be taken back.
//
// Why the order is what it is (the models in the design show what breaks otherwise):
// - Nothing is fetched before all operations also go by the new layout (kAck): what is fetched earlier would
//   lack what is written later by the old one alone.
// - Nobody reads by the new layout before all new members have everything (kSync).
// - The old layout retires when so few may still read by it that they find no quorum (kSyncAck).
//
// A value: told everything, owns nothing but what it knows. NOT thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/core/layouts.h"
#include "server/core/membership_messages.h"

namespace gyre {

// As operators read it: "sync-ack".
std::string_view NameOf(MoveStep step);

// The sets of primary replicas of one layout, and how many of each may be unheard of. Computed when first
// needed.
class ReplicaSets {
 public:
  explicit ReplicaSets(std::shared_ptr<const View> view) : view_(std::move(view)) {}
  const std::shared_ptr<const View>& view() const { return view_; }

  enum class Need : uint8_t {
    kReadAndWrite,  // those that are missing make neither a read nor a write quorum
    kRead,          // they make no read quorum that promises anything
  };
  // Whether that holds for every key. `missing`: by the index of a member in the view's ring.
  bool Enough(const std::vector<bool>& missing, Need need);

 private:
  struct OfCount {
    int below[2] = {0, 0};  // so many may not be missing, by Need; the strictest of all keyspaces
    std::vector<std::vector<MemberIndex>> sets;
  };
  void Compute();

  std::shared_ptr<const View> view_;
  std::map<int, OfCount> by_count_;  // by number of replicas
  bool computed_ = false;
};

class Moves {
 public:
  explicit Moves(NodeId self) : self_(self), sets_(nullptr) {}

  // A newer layout; `other` is active beside it (nullptr: none, or it has retired). Steps begin anew.
  // REQUIRES: with other, view->layout.moves().
  void Begin(std::shared_ptr<const View> view, std::shared_ptr<const View> other);
  // Takes what this node knew in an earlier life. REQUIRES: Begin was called.
  void Remember(const std::vector<control::MemberStep>& steps);
  // Takes what another node told of the newest layout. True: some of it was news.
  bool Learn(std::span<const control::MemberStep> steps);
  // The other layout has retired, as a node knows that knows more steps.
  void Retire();

  // Takes the steps of this node that can be taken, and lets the other layout retire if it can. Steps must be
  // durable before they are told. `bound`: this node may not commit to the newest layout.
  struct News {
    bool step = false;     // this node took one
    bool retired = false;  // `other` is no more
  };
  News Advance(const LaneSteps& lane, bool bound);

  // For the lane. The stamp rises with every change.
  const Layouts& layouts() const { return layouts_; }
  const std::shared_ptr<const View>& view() const { return layouts_.view; }
  const std::shared_ptr<const View>& other() const { return layouts_.other; }
  bool moving() const { return layouts_.other != nullptr; }
  MoveStep StepOf(NodeId node) const;
  MoveStep own() const { return StepOf(self_); }
  // This node reads by the newest layout, or is about to: it will not help to abort it.
  bool committed() const { return handed_over_ || own() >= MoveStep::kSyncAck; }
  // So many voters are known to be committed that the others are no majority for an abort. (With half of four
  // voters on each side that is so; to ask for a majority of the committed would leave both sides waiting.)
  bool AbortIsImpossible() const;
  // The lane has done all about the newest layout, also what its retirement let go.
  bool LaneIsDone(const LaneSteps& lane) const;
  // What is to be told and persisted: sorted by node.
  std::vector<control::MemberStep> steps() const;
  // One sentence: who is waited for, with which step. REQUIRES: moving().
  std::string Progress() const;

 private:
  bool TakesPart(NodeId node) const;
  bool IsLost(NodeId node) const;
  bool AllOfView(MoveStep step) const;
  bool EnoughOfOther(MoveStep step, ReplicaSets::Need need);
  bool MayRetire();
  MoveStep NextStep(const LaneSteps& lane, bool bound);
  void Publish();

  NodeId self_;
  std::map<NodeId, MoveStep> steps_;  // of the newest layout
  ReplicaSets sets_;                  // of `other`
  Layouts layouts_;
  bool handed_over_ = false;        // the lane was told to read by the newest layout
  uint64_t handed_over_stamp_ = 0;  // of the layouts that said so
  uint64_t all_acked_stamp_ = 0;    // the first that said so
  uint64_t retired_stamp_ = 0;
};

}  // namespace gyre
