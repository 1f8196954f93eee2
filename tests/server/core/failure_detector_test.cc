// The failure detector: who is suspected when, and that it is found out in time, by few messages, and only of
// the dead.
#include "server/core/failure_detector.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <queue>
#include <random>
#include <utility>
#include <vector>

namespace gyre {
namespace {

using control::Beat;

constexpr NodeId kSelf{1};
constexpr NodeId kB{2};
constexpr NodeId kC{3};

std::vector<Member> MembersUpTo(uint64_t last) {
  std::vector<Member> members;
  for (uint64_t id = 1; id <= last; ++id) members.push_back({.id = NodeId{id}, .zone = "", .tokens = {}});
  return members;
}

Beat BeatOf(NodeId node, uint64_t heartbeat) {
  return {.node = node, .generation = 7, .heartbeat = heartbeat};
}
Beat SuspicionOf(NodeId node, uint64_t heartbeat) {
  return {.node = node, .generation = 7, .heartbeat = heartbeat, .suspect = true};
}

// Node 1 of three, which heard of both others at second 1.
struct OfThree {
  FailureDetector detector{kSelf, 1};
  Micros now = Seconds(1);

  OfThree() {
    detector.Watch(now, MembersUpTo(3));
    detector.Heard(now, BeatOf(kB, 10));
    detector.Heard(now, BeatOf(kC, 10));
  }
  // Rounds until `end`, each of which hears a later beat of C.
  void RunUntil(Micros end, bool c_lives = true) {
    for (; now <= end; now = now + FailureDetector::kRound) {
      if (c_lives) detector.Heard(now, BeatOf(kC, static_cast<uint64_t>(now.value)));
      detector.NextRound(now);
    }
  }
};

TEST(FailureDetector, SuspectsWhoIsSilent) {
  OfThree a;
  a.RunUntil(Seconds(1) + FailureDetector::kSuspectAfter - Micros{1});
  EXPECT_EQ(a.detector.suspects(), std::vector<NodeId>{});
  a.RunUntil(Seconds(1) + FailureDetector::kSuspectAfter);
  EXPECT_EQ(a.detector.suspects(), std::vector<NodeId>{kB});
  EXPECT_TRUE(a.detector.Suspects(kB));
  EXPECT_FALSE(a.detector.Suspects(kC));
  EXPECT_FALSE(a.detector.Suspects(kSelf));
  EXPECT_FALSE(a.detector.Suspects(NodeId{4})) << "nobody watches it";
  EXPECT_EQ(a.detector.beats()[0], SuspicionOf(kB, 10));
}

TEST(FailureDetector, ALaterBeatRefutes) {
  OfThree a;
  a.RunUntil(Seconds(5));
  a.detector.Heard(a.now, BeatOf(kB, 10));
  a.detector.Heard(a.now, BeatOf(kB, 9));
  a.detector.Heard(a.now, {.node = kB, .generation = 6, .heartbeat = 99});
  EXPECT_TRUE(a.detector.Suspects(kB)) << "that is what it is suspected about, or older";
  a.detector.Heard(a.now, BeatOf(kB, 11));
  EXPECT_FALSE(a.detector.Suspects(kB));
  EXPECT_EQ(a.detector.beats()[0], BeatOf(kB, 11));
}

TEST(FailureDetector, ARestartedNodeIsTrustedAtOnce) {
  OfThree a;
  a.RunUntil(Seconds(5));
  a.detector.Heard(a.now, {.node = kB, .generation = 8, .heartbeat = 1});
  EXPECT_FALSE(a.detector.Suspects(kB));
}

TEST(FailureDetector, BelievesASuspicionOfWhatItKnows) {
  OfThree a;
  a.detector.Heard(a.now, SuspicionOf(kB, 10));
  EXPECT_TRUE(a.detector.Suspects(kB)) << "somebody waited for a later beat than this";
  a.detector.Heard(a.now, SuspicionOf(kC, 12));
  EXPECT_TRUE(a.detector.Suspects(kC));
}

TEST(FailureDetector, IgnoresASuspicionOfWhatIsPast) {
  OfThree a;
  a.detector.Heard(a.now, SuspicionOf(kB, 9));
  a.detector.Heard(a.now, {.node = kC, .generation = 6, .heartbeat = 99, .suspect = true});
  EXPECT_EQ(a.detector.suspects(), std::vector<NodeId>{});
}

TEST(FailureDetector, AnOldBeatIsNoSignOfLife) {
  OfThree a;
  for (; a.now <= Seconds(1) + FailureDetector::kSuspectAfter; a.now = a.now + FailureDetector::kRound) {
    a.detector.Heard(a.now, BeatOf(kB, 10));
    a.detector.NextRound(a.now);
  }
  EXPECT_TRUE(a.detector.Suspects(kB));
}

TEST(FailureDetector, AfterAPauseOfItsOwnNobodyIsSuspected) {
  OfThree a;
  a.RunUntil(Seconds(3));
  const Micros paused = Seconds(15);
  a.now = a.now - FailureDetector::kRound + paused;
  const FailureDetector::Round round = a.detector.NextRound(a.now);
  EXPECT_EQ(round.paused, paused);
  const Micros resumed = a.now;
  a.RunUntil(resumed + FailureDetector::kSuspectAfter - Micros{1}, /*c_lives=*/false);
  EXPECT_EQ(a.detector.suspects(), std::vector<NodeId>{}) << "all get the whole time again";
  a.RunUntil(resumed + FailureDetector::kSuspectAfter, /*c_lives=*/false);
  EXPECT_EQ(a.detector.suspects(), (std::vector<NodeId>{kB, kC}));
}

TEST(FailureDetector, APauseAcquitsNobody) {
  OfThree a;
  a.RunUntil(Seconds(5));
  a.detector.NextRound(a.now + Seconds(15));
  EXPECT_EQ(a.detector.suspects(), std::vector<NodeId>{kB});
}

TEST(FailureDetector, ALateRoundIsNoPause) {
  OfThree a;
  a.detector.NextRound(a.now);
  EXPECT_EQ(a.detector.NextRound(a.now + FailureDetector::kPausedAfter).paused, std::nullopt);
}

TEST(FailureDetector, WatchesTheMembers) {
  OfThree a;
  a.RunUntil(Seconds(5));
  std::vector<Member> members = MembersUpTo(4);
  members.erase(members.begin() + 2);
  a.detector.Watch(a.now, members);
  EXPECT_EQ(a.detector.beats(), (std::vector<Beat>{SuspicionOf(kB, 10), {.node = NodeId{4}}}));
  a.detector.Heard(a.now, BeatOf(kC, uint64_t{1} << 60));
  EXPECT_EQ(a.detector.beats().size(), 2u);
  const Micros joined = a.now;
  a.RunUntil(joined + FailureDetector::kSuspectAfter - Micros{1});
  EXPECT_FALSE(a.detector.Suspects(NodeId{4})) << "it has the whole time to be heard of";
  a.RunUntil(joined + FailureDetector::kSuspectAfter);
  EXPECT_TRUE(a.detector.Suspects(NodeId{4}));
}

TEST(FailureDetector, ARoundTellsAFewAndOneSuspect) {
  FailureDetector detector(kSelf, 1);
  detector.Watch(Seconds(1), MembersUpTo(300));
  for (uint64_t id = 101; id <= 300; ++id) detector.Heard(Seconds(1), SuspicionOf(NodeId{id}, 1));
  std::vector<NodeId> all;
  for (int i = 0; i < 2000; ++i) {
    std::vector<NodeId> told = detector.NextRound(Seconds(1)).tell;
    std::ranges::sort(told);
    EXPECT_EQ(std::ranges::adjacent_find(told), told.end());
    EXPECT_EQ(std::ranges::count_if(told, [](NodeId id) { return id.value <= 100; }),
              FailureDetector::kFanout);
    EXPECT_EQ(std::ranges::count_if(told, [](NodeId id) { return id.value > 100; }), 1);
    all.insert(all.end(), told.begin(), told.end());
  }
  std::ranges::sort(all);
  const auto repeated = std::ranges::unique(all);
  EXPECT_EQ(all.size() - repeated.size(), 299u) << "everybody's turn comes, and never its own";
}

// Detectors and a network that loses: one thread, virtual time, one seed.
class Crowd {
 public:
  Crowd(int size, uint64_t seed, double loss) : random_(seed), loss_(loss) {
    const std::vector<Member> members = MembersUpTo(static_cast<uint64_t>(size));
    for (const Member& member : members) {
      nodes_.push_back({.detector = FailureDetector(member.id, seed), .paused_until = {}, .suspects = {}});
      suspicions_.push_back(0);
      nodes_.back().detector.Watch(now_, members);
      Push(nodes_.size() - 1, now_ + Micros{static_cast<int64_t>(random_() % 200'000)}, nullptr);
    }
  }
  // What it would say from then on is lost, and it hears nothing until then.
  void Pause(size_t node, Micros until) { nodes_[node].paused_until = until; }
  void Kill(size_t node) { Pause(node, Seconds(1'000'000)); }
  void Deafen(size_t node) { nodes_[node].deaf = true; }
  // Plays until `end`, or until `done` at the end of somebody's round.
  template <typename Done>
  void RunUntil(Micros end, Done done) {
    while (events_.top().at <= end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      Happen(event);
      if (event.beats == nullptr && done()) return;
    }
    now_ = end;
  }
  void RunUntil(Micros end) {
    RunUntil(end, [] { return false; });
  }
  size_t SuspectedBy(size_t node) const {
    return static_cast<size_t>(std::ranges::count_if(
        nodes_, [&](const Node& other) { return other.detector.Suspects(NodeId{node + 1}); }));
  }
  // That ever began, of whoever by whomever.
  size_t suspicions() const { return std::accumulate(suspicions_.begin(), suspicions_.end(), size_t{0}); }
  size_t SuspicionsOf(size_t node) const { return suspicions_[node]; }
  const FailureDetector& operator[](size_t node) const { return nodes_[node].detector; }
  Micros now() const { return now_; }
  uint64_t messages() const { return messages_; }
  uint64_t pauses() const { return pauses_; }

 private:
  struct Node {
    FailureDetector detector;
    uint64_t heartbeat = 0;
    Micros paused_until;
    bool deaf = false;
    std::vector<NodeId> suspects;
  };
  struct Event {
    Micros at;
    uint64_t order = 0;
    size_t node = 0;
    std::shared_ptr<const std::vector<Beat>> beats;  // that arrive; nullptr: its round is due
    bool operator<(const Event& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };

  void Push(size_t node, Micros at, std::shared_ptr<const std::vector<Beat>> beats) {
    events_.push({at, ++events_made_, node, std::move(beats)});
  }
  void Happen(const Event& event) {
    Node& node = nodes_[event.node];
    if (node.paused_until > now_) {  // what comes meanwhile waits, like the timer
      if (event.beats == nullptr) Push(event.node, node.paused_until, nullptr);
      return;
    }
    if (event.beats != nullptr) {
      if (node.deaf) return;
      for (const Beat& beat : *event.beats) node.detector.Heard(now_, beat);
      return Count(node);
    }
    const FailureDetector::Round round = node.detector.NextRound(now_);
    Count(node);
    pauses_ += round.paused ? 1 : 0;
    auto beats = std::make_shared<std::vector<Beat>>(node.detector.beats());
    beats->push_back(BeatOf(NodeId{event.node + 1}, ++node.heartbeat));
    for (const NodeId to : round.tell) {
      ++messages_;
      if (static_cast<double>(random_() >> 11) * 0x1p-53 < loss_) continue;
      Push(to.value - 1, now_ + Millis(1 + static_cast<int64_t>(random_() % 20)), beats);
    }
    Push(event.node, now_ + FailureDetector::kRound, nullptr);
  }

  void Count(Node& node) {
    std::vector<NodeId> suspects = node.detector.suspects();
    for (const NodeId suspect : suspects) {
      if (!std::ranges::binary_search(node.suspects, suspect)) ++suspicions_[suspect.value - 1];
    }
    node.suspects = std::move(suspects);
  }

  std::mt19937_64 random_;
  double loss_;
  Micros now_ = Seconds(1);
  std::vector<Node> nodes_;
  std::priority_queue<Event> events_;
  uint64_t events_made_ = 0;
  uint64_t messages_ = 0;
  std::vector<size_t> suspicions_;  // by whom they are of
  uint64_t pauses_ = 0;
};

constexpr Micros kBound = Seconds(5);  // within which a death is noticed by everybody
constexpr size_t kMessagesMost =
    (FailureDetector::kFanout + 1) * (Seconds(1).value / FailureDetector::kRound.value);

class CrowdOf : public testing::TestWithParam<int> {
 protected:
  size_t size() const { return static_cast<size_t>(GetParam()); }
  int seeds() const { return GetParam() > 100 ? 5 : 100; }
};

TEST_P(CrowdOf, NoticesADeathInTime) {
  for (int seed = 1; seed <= seeds(); ++seed) {
    Crowd crowd(GetParam(), static_cast<uint64_t>(seed), /*loss=*/.1);
    crowd.RunUntil(Seconds(5));
    EXPECT_EQ(crowd.suspicions(), 0u);
    crowd.Kill(1);
    const Micros killed = crowd.now();
    crowd.RunUntil(killed + kBound, [&] { return crowd.SuspectedBy(1) == size() - 1; });
    EXPECT_EQ(crowd.SuspectedBy(1), size() - 1) << "seed " << seed;
    for (size_t node = 0; node < size(); ++node) {
      if (node == 1) continue;
      EXPECT_EQ(crowd[node].suspects(), std::vector<NodeId>{NodeId{2}}) << "seed " << seed;
    }
  }
}

TEST_P(CrowdOf, NoticesTheDeathOfAThird) {
  Crowd crowd(GetParam(), 1, /*loss=*/.1);
  crowd.RunUntil(Seconds(5));
  std::vector<NodeId> dead;
  for (size_t node = 0; node < size(); node += 3) {
    crowd.Kill(node);
    dead.push_back(NodeId{node + 1});
  }
  crowd.RunUntil(crowd.now() + kBound);
  for (size_t node = 0; node < size(); ++node) {
    if (node % 3 == 0) continue;
    EXPECT_EQ(crowd[node].suspects(), dead);
  }
}

TEST_P(CrowdOf, ItsMessagesAreBounded) {
  Crowd crowd(GetParam(), 1, /*loss=*/0);
  crowd.RunUntil(Seconds(11));
  const size_t told = std::min(size() - 1, static_cast<size_t>(FailureDetector::kFanout));
  EXPECT_EQ(crowd.messages(), 10 * 5 * size() * told) << "five rounds a second, however many nodes";
  const uint64_t before = crowd.messages();
  crowd.Kill(1);
  crowd.RunUntil(Seconds(21));
  EXPECT_LE(crowd.messages() - before, 10 * (size() - 1) * kMessagesMost);
}

// Case: a process that is stopped for 15 seconds, and goes on.
TEST_P(CrowdOf, OneThatWasPausedAccusesNobody) {
  Crowd crowd(GetParam(), 1, /*loss=*/.1);
  crowd.RunUntil(Seconds(5));
  const Micros until = crowd.now() + Seconds(15);
  crowd.Pause(1, until);
  crowd.RunUntil(until - Micros{1});
  EXPECT_EQ(crowd.SuspectedBy(1), size() - 1);
  crowd.RunUntil(until + Seconds(2));
  EXPECT_EQ(crowd.pauses(), 1u);
  EXPECT_EQ(crowd.SuspectedBy(1), 0u) << "it is heard of again";
  crowd.RunUntil(until + Seconds(10));
  EXPECT_EQ(crowd.suspicions(), crowd.SuspicionsOf(1)) << "of nobody else, ever";
}

// All of one machine's nodes, or all nodes of a frozen host.
TEST_P(CrowdOf, AllPausedAtOnceAccuseNobody) {
  Crowd crowd(GetParam(), 1, /*loss=*/.1);
  crowd.RunUntil(Seconds(5));
  for (size_t node = 0; node < size(); ++node) crowd.Pause(node, Seconds(20));
  crowd.RunUntil(Seconds(30));
  EXPECT_EQ(crowd.pauses(), size());
  EXPECT_EQ(crowd.suspicions(), 0u);
}

TEST_P(CrowdOf, OneThatFlapsIsSeenAsItIs) {
  Crowd crowd(GetParam(), 1, /*loss=*/.1);
  crowd.RunUntil(Seconds(5));
  for (int i = 0; i < 3; ++i) {
    const Micros back = crowd.now() + kBound;
    crowd.Pause(1, back);
    crowd.RunUntil(back - Micros{1});
    EXPECT_EQ(crowd.SuspectedBy(1), size() - 1);
    crowd.RunUntil(back + Seconds(2));
    EXPECT_EQ(crowd.SuspectedBy(1), 0u);
  }
  EXPECT_EQ(crowd.suspicions(), crowd.SuspicionsOf(1));
}

INSTANTIATE_TEST_SUITE_P(Sizes, CrowdOf, testing::Values(3, 30, 300));

TEST(Crowd, SuspectsNobodyInAnHourOfLoss) {
  for (const int size : {3, 30}) {
    Crowd crowd(size, 1, /*loss=*/.1);
    crowd.RunUntil(Seconds(3600));
    EXPECT_EQ(crowd.suspicions(), 0u) << size;
  }
  Crowd large(300, 1, /*loss=*/.1);
  large.RunUntil(Seconds(30));
  EXPECT_EQ(large.suspicions(), 0u);
}

TEST(Crowd, ASeedReplays) {
  const auto play = [] {
    Crowd crowd(30, 5, /*loss=*/.3);
    crowd.Kill(1);
    crowd.RunUntil(Seconds(60), [&] { return crowd.SuspectedBy(1) == 29; });
    return std::pair(crowd.now(), crowd.messages());
  };
  EXPECT_EQ(play(), play());
}

// A node that hears nothing suspects everybody, of what everybody else knows to be past.
TEST(Crowd, TheDeafConvinceNobody) {
  Crowd crowd(30, 1, /*loss=*/.1);
  crowd.RunUntil(Seconds(5));
  crowd.Deafen(1);
  crowd.RunUntil(Seconds(30));
  EXPECT_EQ(crowd[1].suspects().size(), 29u);
  EXPECT_EQ(crowd.suspicions(), 29u) << "all of them its own";
}

}  // namespace
}  // namespace gyre
