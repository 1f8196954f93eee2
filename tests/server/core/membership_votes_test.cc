// Votes about an abort against steps towards the retirement of what it goes back to: each is hand-fed.
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/core/layout_line.h"
#include "server/core/membership.h"
#include "server/core/membership_codec.h"

namespace gyre {
namespace {

constexpr NodeId kA{1}, kB{2}, kC{3}, kN{4};

// The members A, B and C vote. A is replaced by N, and data moves; or with `retired` it has moved.
class Voter {
 public:
  explicit Voter(NodeId self, bool store_lost = false) {
    config_.self.id = self;
    config_.self.peer_address = AddressOf(self);
    config_.bootstrap_expect = 3;
    if (store_lost) disk_.insert(Membership::VotesForgotten());
    Start();
  }
  static std::string AddressOf(NodeId node) { return "a" + ToString(node); }
  static Layout Before() { return FirstLayout({{kA, ""}, {kB, ""}, {kC, ""}}); }
  static Layout Newest() {
    Layout next = Before();
    next.epoch = 2;
    next.base_digest = DigestOf(Before());
    next.fence = 2;
    next.members[0].id = kN;
    std::ranges::sort(next.members, {}, &Member::id);
    next.removed = {kA};
    return next;
  }
  static Layout Abort() { return AbortOf(Newest(), Before(), {}); }
  static Layout Finish() { return *Finished(Newest(), false); }

  // A new life on what was persisted.
  void Start() {
    absl::Status status;
    membership_ = std::make_unique<Membership>(config_, disk_, &status);
    ASSERT_TRUE(status.ok()) << status;
    layouts_ = membership_->layouts();
    lane_ = {};
  }
  // A new life on what could be read of a damaged store.
  void StartRebuilt() {
    const auto [key, forgotten] = Membership::VotesForgotten();
    disk_[key] = forgotten;
    Start();
  }
  void Push(std::vector<control::MemberStep> steps = {}) {
    Step(kC, control::LayoutPush{Newest(), Before(), std::move(steps)});
  }
  void Learn(std::vector<control::MemberStep> steps) { Push(std::move(steps)); }
  // The lane has done all that it may.
  void Work() {
    lane_ = {.stamp = layouts_.stamp,
             .epoch = layouts_.view->layout.epoch,
             .ready = true,
             .synced = true,
             .done = !layouts_.moving()};
    Tick();
  }
  void Tick() {
    MembershipOutbox out;
    now_ = now_ + Millis(10);
    membership_->SetLaneSteps(lane_);
    membership_->Tick({now_, 0}, out);
    Take(out);
  }
  void Wait(Micros time) { now_ = now_ + time; }

  // Whether it votes yes. nullopt: it says nothing.
  std::optional<bool> Promises(Ballot ballot) {
    Step(kC, control::Prepare{base_epoch(), base_digest(), ballot});
    const auto* const answer = Sent<control::Prepared>();
    return answer == nullptr ? std::nullopt : std::optional(answer->promised);
  }
  std::optional<bool> Accepts(Ballot ballot, const Layout& layout) {
    Step(kC, control::Accept{base_epoch(), base_digest(), ballot, layout});
    const auto* const answer = Sent<control::Accepted>();
    return answer == nullptr ? std::nullopt : std::optional(answer->accepted);
  }
  template <typename Body>
  const Body* Sent() const {
    for (const auto& send : sent_) {
      if (const Body* const body = std::get_if<Body>(&send.message.body); body != nullptr) return body;
    }
    return nullptr;
  }

  void Step(NodeId from, control::Body body) {
    MembershipOutbox out;
    now_ = now_ + Millis(1);
    membership_->Step({now_, 0}, {Before().cluster_id, from, AddressOf(from), std::move(body)}, out);
    Take(out);
  }
  void Hello(NodeId from, uint64_t epoch) {
    NodeInfoValue info;
    info.id = from;
    info.peer_address = AddressOf(from);
    info.generation = 1;
    Step(from, control::Hello{.bootstrap_expect = 3, .known = {info}, .layout_epoch = epoch});
  }
  MoveStep own() const {
    for (const control::MemberStep& each : membership_->steps()) {
      if (each.node == config_.self.id) return each.step;
    }
    return MoveStep::kNone;
  }
  const Layouts& layouts() const { return layouts_; }
  Membership& membership() { return *membership_; }
  std::map<std::string, std::string>& disk() { return disk_; }

 private:
  uint64_t base_epoch() const { return membership_->view()->layout.epoch; }
  uint64_t base_digest() const { return membership_->view()->digest; }
  void Take(MembershipOutbox& out) {
    for (auto& persist : out.persists) disk_[persist.key] = std::move(persist.value);
    if (out.new_layouts) layouts_ = *out.new_layouts;
    sent_ = std::move(out.sends);
  }

  Membership::Config config_;
  std::unique_ptr<Membership> membership_;
  std::map<std::string, std::string> disk_;
  Layouts layouts_;
  LaneSteps lane_;
  Micros now_ = Seconds(100);
  std::vector<MembershipOutbox::Send> sent_;
};

using Steps = std::vector<control::MemberStep>;
const Steps kAllAcked = {
    {kA, MoveStep::kAck}, {kB, MoveStep::kAck}, {kC, MoveStep::kAck}, {kN, MoveStep::kAck}};
const Steps kAllSynced = {
    {kA, MoveStep::kSync}, {kB, MoveStep::kSync}, {kC, MoveStep::kSync}, {kN, MoveStep::kSync}};

// B, which has done everything but read by the newest layout.
struct Synced : Voter {
  Synced() : Voter(kB) {
    Push(kAllAcked);
    Work();
    Work();
    EXPECT_EQ(own(), MoveStep::kSync);
  }
};

// The model's trace "abort pledge": voters that helped to abort must not go on.
TEST(AbortPledge, WhoHelpedToAbortDoesNotReadByTheNewLayout) {
  Synced b;
  EXPECT_EQ(b.Accepts({1, kC}, Voter::Abort()), true);
  for (int life = 0; life < 2; ++life) {
    b.Learn(kAllSynced);
    b.Wait(Seconds(100));
    b.Work();
    EXPECT_EQ(b.own(), MoveStep::kSync) << life;
    EXPECT_TRUE(b.layouts().reads_other) << life;
    b.Start();
  }
}

TEST(AbortPledge, WithoutItItDoes) {
  Synced b;
  b.Learn(kAllSynced);
  EXPECT_FALSE(b.layouts().reads_other) << "handed to the lane";
  EXPECT_EQ(b.own(), MoveStep::kSync) << "and not told before the lane has it";
  b.Work();
  EXPECT_EQ(b.own(), MoveStep::kSyncAck);
}

TEST(AbortPledge, WhoReadsByTheNewLayoutDoesNotHelpToAbort) {
  Synced b;
  b.Learn(kAllSynced);
  EXPECT_EQ(b.Promises({1, kC}), std::nullopt) << "from the moment on that its lane is told";
  EXPECT_EQ(b.Accepts({1, kC}, Voter::Abort()), std::nullopt);
  b.Work();
  EXPECT_EQ(b.Accepts({1, kC}, Voter::Abort()), std::nullopt);
  b.Start();
  EXPECT_EQ(b.own(), MoveStep::kSyncAck);
  EXPECT_FALSE(b.layouts().reads_other);
  EXPECT_EQ(b.Accepts({1, kC}, Voter::Abort()), std::nullopt) << "in a later life, too";
}

// Else one voter that helped to an abort which nobody else helps would keep the layout from retiring for
// ever.
TEST(AbortPledge, EndsWhenTheAbortIsImpossible) {
  Synced b;
  ASSERT_EQ(b.Accepts({1, kC}, Voter::Abort()), true);
  b.Learn(kAllSynced);
  b.Learn({{kC, MoveStep::kSyncAck}});
  b.Wait(Seconds(100));
  b.Work();
  EXPECT_EQ(b.own(), MoveStep::kSync) << "A and B could still be a majority for it";
  b.Learn({{kA, MoveStep::kSyncAck}, {kN, MoveStep::kSyncAck}});
  b.Work();
  EXPECT_EQ(b.own(), MoveStep::kSyncAck);
  EXPECT_FALSE(b.layouts().moving()) << "it has retired";
}

TEST(AbortPledge, AnAbortThatIsAskedForIsGivenTime) {
  Synced b;
  EXPECT_EQ(b.Promises({1, kC}), true);
  b.Learn(kAllSynced);
  b.Work();
  EXPECT_EQ(b.own(), MoveStep::kSync);
  EXPECT_TRUE(b.layouts().reads_other);
  b.Wait(Seconds(2));
  b.Tick();
  b.Work();
  EXPECT_EQ(b.own(), MoveStep::kSyncAck) << "whoever asked may have died";
}

// Whoever proposed it may have died; the voter that is bound by it goes on with it.
TEST(AbortPledge, WhoIsBoundProposesTheAbortItself) {
  Synced b;
  b.Hello(kA, 2);
  ASSERT_EQ(b.Accepts({1, kC}, Voter::Abort()), true);
  const control::Prepare* asked = nullptr;
  for (int ticks = 0; ticks < 50 && asked == nullptr; ++ticks) {
    b.Tick();
    asked = b.Sent<control::Prepare>();
  }
  ASSERT_NE(asked, nullptr);
  EXPECT_GT(asked->ballot, (Ballot{1, kC}));
}

TEST(Votes, WhileDataMovesTheOnlySuccessorIsAnAbort) {
  Synced b;
  EXPECT_EQ(b.Accepts({1, kC}, Voter::Finish()), std::nullopt);
  EXPECT_NE(b.Sent<control::LayoutWanted>(), nullptr) << "the proposer may know that it is over";
  EXPECT_EQ(b.Accepts({1, kC}, *WithKeyspace(Voter::Newest(), {.name = "k", .r = {}, .w = {}})),
            std::nullopt);
  Layout other = Voter::Abort();
  ++other.members[0].weight;
  EXPECT_EQ(b.Accepts({1, kC}, other), std::nullopt);
}

TEST(Votes, AfterwardsItIsAnythingElse) {
  Synced b;
  b.Step(kC, control::LayoutPush{Voter::Newest(), std::nullopt, {}});
  EXPECT_FALSE(b.layouts().moving()) << "whoever has no other layout knows that it has retired";
  EXPECT_EQ(b.Accepts({1, kC}, Voter::Abort()), std::nullopt);
  EXPECT_EQ(b.Accepts({1, kC}, Voter::Finish()), true);
}

TEST(Votes, RetirementNeedsSoManyVotersThatTheOthersCannotAbort) {
  // C left, so that B and D are all that read by the new layout: of the voters A, B and C one.
  Moves moves(kB);
  Layout before = Voter::Before();
  Layout newest = before;
  newest.epoch = 2;
  newest.base_digest = DigestOf(before);
  newest.fence = 2;
  newest.keyspaces.clear();
  newest.members.resize(2);
  newest.members[0].id = kB;
  newest.members[1].id = kN;
  before.keyspaces.clear();
  newest.base_digest = DigestOf(before);
  moves.Begin(*MakeView(newest), *MakeView(before));
  moves.Remember({{kB, MoveStep::kSyncAck}, {kN, MoveStep::kSyncAck}});
  moves.Advance({}, false);
  EXPECT_TRUE(moves.moving());
  moves.Learn(Steps{{kC, MoveStep::kSyncAck}});
  EXPECT_TRUE(moves.Advance({}, false).retired);
}

// A store that was lost has lost votes with it.
TEST(LostStore, DoesNotVoteAboutWhatItMayHaveVotedAboutBefore) {
  Voter b(kB, /*store_lost=*/true);
  b.Push();
  EXPECT_EQ(b.Promises({1, kC}), std::nullopt);
  b.Hello(kA, 1);
  b.Hello(kC, 3);  // there is a later one: it may have voted about what follows that
  b.Start();
  EXPECT_EQ(b.Promises({1, kC}), std::nullopt) << "in a later life, too";
  b.Step(kC, control::LayoutPush{Voter::Finish(), std::nullopt, {}});
  EXPECT_EQ(b.Promises({1, kC}), std::nullopt);
  b.Step(kC, control::LayoutPush{
                 *WithKeyspace(Voter::Finish(), {.name = "k", .r = {}, .w = {}}), std::nullopt, {}});
  EXPECT_EQ(b.Promises({1, kC}), true);
}

TEST(LostStore, APartOfItMayHaveBeenVotesToo) {
  Voter b(kB);
  b.Push();
  b.StartRebuilt();
  EXPECT_EQ(b.Promises({1, kC}), std::nullopt) << "it knows the layout, but not what it voted";
  b.Hello(kA, 2);
  b.Hello(kC, 2);
  EXPECT_EQ(b.Promises({1, kC}), std::nullopt);
  b.Step(kC, control::LayoutPush{Voter::Finish(), std::nullopt, {}});
  EXPECT_EQ(b.Promises({1, kC}), true) << "about what follows the next one";
}

TEST(LostStore, NeitherDoesItCommitItself) {
  Voter b(kB, /*store_lost=*/true);
  b.Push(kAllSynced);
  b.Work();
  b.Work();
  EXPECT_TRUE(b.layouts().reads_other);
  b.Learn({{kA, MoveStep::kSyncAck}, {kC, MoveStep::kSyncAck}});
  b.Work();
  EXPECT_FALSE(b.layouts().reads_other) << "no abort is possible";
}

TEST(Persisted, AMovementThatIsMissingIsNoMovementThatIsOver) {
  Synced b;
  for (const char* key : {"cluster/other", "cluster/steps"}) {
    std::map<std::string, std::string> disk = b.disk();
    ASSERT_EQ(disk.erase(key), 1u);
    Membership::Config config;
    config.self.id = kB;
    config.self.peer_address = "b";
    absl::Status status;
    Membership membership(config, disk, &status);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << key;
  }
  std::map<std::string, std::string> disk = b.disk();
  disk["cluster/other"] = EncodeOther({2, *WithKeyspace(Voter::Before(), {.name = "k", .r = {}, .w = {}})});
  Membership::Config config;
  config.self.id = kB;
  config.self.peer_address = "b";
  absl::Status status;
  Membership membership(config, disk, &status);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
}

TEST(Enough, CountsWhoIsMissingOfEachSetOfReplicas) {
  using Need = ReplicaSets::Need;
  std::vector<FirstMember> nodes;
  for (uint64_t id = 1; id <= 5; ++id) nodes.push_back({NodeId{id}, "zone" + std::to_string(id)});
  const auto enough = [&](ReplicaCount r, ReplicaCount w, std::vector<int> missing, Need need) {
    Layout layout = FirstLayout(nodes);
    layout.keyspaces[0].r = r;
    layout.keyspaces[0].w = w;
    std::vector<bool> flags(5);
    for (const int i : missing) flags[static_cast<size_t>(i)] = true;
    return ReplicaSets(*MakeView(layout)).Enough(flags, need);
  };
  using How = ReplicaCount::How;
  const ReplicaCount quorum{How::kQuorum, 0}, one{How::kOne, 0}, all{How::kAll, 0};
  EXPECT_TRUE(enough(quorum, quorum, {}, Need::kReadAndWrite));
  EXPECT_TRUE(enough(quorum, quorum, {3}, Need::kReadAndWrite));
  EXPECT_FALSE(enough(quorum, quorum, {0, 1}, Need::kReadAndWrite)) << "some key is on both";
  EXPECT_FALSE(enough(quorum, one, {3}, Need::kReadAndWrite));
  EXPECT_FALSE(enough(one, all, {3}, Need::kReadAndWrite));
  EXPECT_TRUE(enough(one, one, {}, Need::kReadAndWrite));
  EXPECT_FALSE(enough(one, all, {3}, Need::kRead));
  EXPECT_TRUE(enough(one, one, {3}, Need::kRead)) << "such reads promise nothing";
  EXPECT_FALSE(enough(one, one, {0, 1}, Need::kRead)) << "but those that ask for more do";
}

}  // namespace
}  // namespace gyre
