// Random walks over a cluster of three replicas and a fallback: no record may claim a write that it has not
// seen, no acknowledged write may vanish and no deleted one come back, whatever crashes and gets lost. Rules
// that are left out must be missed: that shows that the walks can find something.
#include <array>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <optional>

#include "tests/storage/causal/world.h"

namespace gyre {
namespace {

struct Rules {
  bool retire_after_crash = true;  // a node that may have lost its own writes takes a new incarnation
  bool retire_after_hint = true;   // so does one that gave away a hint with writes of its own
  bool mint_on_all_hints = true;   // a fallback writes on the merge of all its hints of the key
};

// A record and the writes that it claims by right.
struct Known {
  Record record;
  std::set<Dot> writes;
  bool operator==(const Known&) const = default;
};

Known Merged(const Known& a, const Known& b) {
  Known merged{Merge(a.record, b.record), a.writes};
  merged.writes.insert(b.writes.begin(), b.writes.end());
  return merged;
}

constexpr size_t kReplicas = 3;
constexpr size_t kFallback = 3;  // the fourth node, which holds hints only
constexpr size_t kWritesMax = 6;
constexpr size_t kCrashesMax = 2;
constexpr size_t kContextsMax = 3;

class Walk {
 public:
  Walk(uint32_t seed, const Rules& rules) : random_(seed), rules_(rules) {}

  // What went wrong; empty when nothing did.
  std::string Run(int steps) {
    for (int i = 0; i < steps && wrong_.empty(); ++i) {
      const std::vector<Action> actions = Actions();
      if (actions.empty()) break;
      Pick(actions).run();
    }
    return wrong_.empty() ? Final() : wrong_;
  }

 private:
  enum Kind {
    kPut,
    kDelete,
    kHintPut,
    kDeliver,
    kDrop,
    kSync,
    kCrash,
    kHandOver,
    kRead,
    kReadHint,
    kExchange,
    kKinds
  };
  struct Action {
    Kind kind;
    size_t node;
    std::function<void()> run;
  };
  struct Write {
    std::set<Dot> past;
    std::set<size_t> durable_on;
    bool is_delete = false;
  };
  struct Message {
    Dot dot;
    size_t to;
    bool as_hint;  // kept by the fallback for `to`
    Known known;
  };

  std::vector<Action> Actions() {
    std::vector<Action> actions;
    const auto add = [&](Kind kind, size_t node, std::function<void()> run) {
      actions.push_back({kind, node, std::move(run)});
    };
    for (size_t node = 0; node < kReplicas && writes_.size() < kWritesMax; ++node) {
      add(kPut, node, [this, node] { WriteAt(node, nullptr, false); });
      add(kHintPut, node, [this, node] { WriteHint(node, nullptr); });
      add(kPut, node, [this, node] { WriteAt(node, &nothing_, false); });
      add(kHintPut, node, [this, node] { WriteHint(node, &nothing_); });
      for (size_t i = 0; i < contexts_.size(); ++i) {
        add(kPut, node, [this, node, i] { WriteAt(node, &contexts_[i], false); });
        add(kHintPut, node, [this, node, i] { WriteHint(node, &contexts_[i]); });
        add(kDelete, node, [this, node, i] { WriteAt(node, &contexts_[i], true); });
      }
    }
    for (size_t i = 0; i < messages_.size() && i < 6; ++i) add(kDeliver, 0, [this, i] { Deliver(i); });
    for (size_t i = 0; i < messages_.size() && i < 2; ++i) {
      add(kDrop, 0, [this, i] { messages_.erase(messages_.begin() + static_cast<long>(i)); });
    }
    for (size_t node = 0; node < kReplicas; ++node) {
      const size_t next = (node + 1) % kReplicas;
      if (memory_[node] != disk_[node]) add(kSync, node, [this, node] { Sync(node); });
      if (crashes_ < kCrashesMax) add(kCrash, node, [this, node] { Crash(node); });
      if (hints_[node]) {
        add(kHandOver, node, [this, node] { HandOver(node); });
        if (contexts_.size() < kContextsMax)
          add(kReadHint, node, [this, node] { contexts_.push_back(*hints_[node]); });
      }
      if (contexts_.size() < kContextsMax) {
        add(kRead, node, [this, node, next] { contexts_.push_back(Merged(disk_[node], disk_[next])); });
      }
      add(kExchange, node, [this, node, next] {
        const Known mine = disk_[node];
        Take(node, disk_[next]);
        Take(next, mine);
      });
    }
    return actions;
  }

  // Each walk has its own taste: some kinds of steps, and some nodes, are rare in it.
  const Action& Pick(const std::vector<Action>& actions) {
    std::vector<double> weights;
    for (const Action& action : actions) weights.push_back(Taste(action.kind) * Taste(kKinds + action.node));
    return actions[std::discrete_distribution<size_t>(weights.begin(), weights.end())(random_)];
  }
  double Taste(size_t what) {
    const auto [it, is_new] = taste_.try_emplace(what, 0);
    if (is_new) {
      std::uniform_real_distribution<double> exponent(-1.6, 0.6);
      it->second = random_() % 8 == 0 ? 0.004 : std::pow(10.0, exponent(random_));
    }
    return it->second;
  }

  Actor ActorOf(size_t node) const { return {node + 1, incarnation_[node]}; }

  std::pair<Dot, Known> Mint(size_t node, Known base, const Known* context, bool is_delete) {
    const Dot dot{ActorOf(node), ++time_};
    writes_[dot] = {
        .past = context ? context->writes : base.writes, .durable_on = {}, .is_delete = is_delete};
    CausalContext seen;
    if (context) seen.seen = context->record.seen;
    if (is_delete) {
      ApplyDelete(base.record, dot, seen);
    } else {
      ApplyPut(base.record, testing::ValueOf(dot), context ? &seen : nullptr);
    }
    if (context) base.writes.insert(context->writes.begin(), context->writes.end());
    base.writes.insert(dot);
    CheckClaims(base, "a mint");
    return {dot, base};
  }

  void CheckClaims(const Known& known, const char* when) {
    for (const auto& [dot, write] : writes_) {
      if (known.record.seen.Covers(dot) && !known.writes.contains(dot)) {
        wrong_ = "a record claims " + ToString(dot) + ", which it has not seen, after " + when;
      }
    }
  }

  void WriteAt(size_t node, const Known* context, bool is_delete) {
    auto [dot, known] = Mint(node, memory_[node], context, is_delete);
    memory_[node] = known;
    unsynced_[node].insert(dot);
    for (size_t to = 0; to < kReplicas; ++to) {
      if (to != node) messages_.push_back({dot, to, false, known});
    }
    if (node != 0) messages_.push_back({dot, 0, true, known});
  }

  void WriteHint(size_t target, const Known* context) {
    Known base = hints_[target].value_or(Known{});
    for (size_t i = 0; i < kReplicas && rules_.mint_on_all_hints; ++i)
      base = Merged(base, hints_[i].value_or(Known{}));
    auto [dot, known] = Mint(kFallback, base, context, false);
    hints_[target] = Merged(hints_[target].value_or(Known{}), known);
    writes_[dot].durable_on.insert(kFallback);
    for (size_t to = 0; to < 2; ++to) messages_.push_back({dot, to, false, known});
  }

  void Deliver(size_t index) {
    const Message message = messages_[index];
    messages_.erase(messages_.begin() + static_cast<long>(index));
    if (!message.as_hint) {
      Take(message.to, message.known);
      writes_[message.dot].durable_on.insert(message.to);
      return;
    }
    uint64_t own = 0;
    for (const auto& hint : hints_) {
      if (hint) own = std::max(own, hint->record.seen.CounterOf(ActorOf(kFallback)));
    }
    if (message.known.record.seen.CounterOf(ActorOf(kFallback)) > own) ++incarnation_[kFallback];
    hints_[message.to] = Merged(hints_[message.to].value_or(Known{}), message.known);
    writes_[message.dot].durable_on.insert(kFallback);
  }

  // A replica that is shown a write of its own which it lacks retires.
  void Take(size_t node, const Known& known) {
    const Actor own = ActorOf(node);
    if (known.record.seen.CounterOf(own) > memory_[node].record.seen.CounterOf(own)) ++incarnation_[node];
    memory_[node] = Merged(memory_[node], known);
    CheckClaims(memory_[node], "a merge");
    Sync(node);
  }

  void Sync(size_t node) {
    disk_[node] = memory_[node];
    for (const Dot& dot : unsynced_[node]) writes_[dot].durable_on.insert(node);
    unsynced_[node].clear();
  }

  void Crash(size_t node) {
    ++crashes_;
    memory_[node] = disk_[node];
    unsynced_[node].clear();
    if (rules_.retire_after_crash) ++incarnation_[node];
  }

  void HandOver(size_t target) {
    const Known hint = *hints_[target];
    hints_[target].reset();
    Take(target, hint);
    for (const VersionVector::Entry& entry : hint.record.seen.entries()) {
      if (entry.actor.node == kFallback + 1 && rules_.retire_after_hint) {
        ++incarnation_[kFallback];
        return;
      }
    }
  }

  std::string Final() const {
    Known all;
    for (const Known& known : disk_) all = Merged(all, known);
    for (const auto& hint : hints_) {
      if (hint) all = Merged(all, *hint);
    }
    std::set<Dot> left;
    for (const Version& version : all.record.versions) left.insert(version.dot);
    for (const auto& [dot, write] : writes_) {
      if (write.durable_on.size() < 2) continue;
      if (write.is_delete) {
        for (const Dot& past : write.past) {
          if (left.contains(past)) return "the deleted " + ToString(past) + " came back";
        }
      } else if (!left.contains(dot) && !Overwritten(dot)) {
        return "the acknowledged " + ToString(dot) + " vanished";
      }
    }
    return "";
  }

  bool Overwritten(const Dot& dot) const {
    return std::any_of(writes_.begin(), writes_.end(),
                       [&](const auto& write) { return write.second.past.contains(dot); });
  }

  std::mt19937 random_;
  Rules rules_;
  std::string wrong_;
  uint64_t time_ = 0;
  size_t crashes_ = 0;
  std::map<Dot, Write> writes_;
  std::array<Known, kReplicas> memory_;
  std::array<Known, kReplicas> disk_;
  std::array<std::set<Dot>, kReplicas> unsynced_;
  std::array<std::optional<Known>, kReplicas> hints_;  // on the fallback, by the replica they are for
  std::array<uint32_t, kReplicas + 1> incarnation_ = {};
  std::vector<Message> messages_;
  std::vector<Known> contexts_;
  const Known nothing_;
  std::map<size_t, double> taste_;
};

constexpr int kSteps = 40;

// The first seed below `walks` whose walk goes wrong, and how.
std::string FirstWrong(uint32_t walks, const Rules& rules) {
  for (uint32_t seed = 0; seed < walks; ++seed) {
    const std::string wrong = Walk(seed, rules).Run(kSteps);
    if (!wrong.empty()) return "seed " + std::to_string(seed) + ": " + wrong;
  }
  return "";
}

TEST(RecordWalk, WithAllRulesNothingGoesWrong) { EXPECT_EQ(FirstWrong(20'000, {}), ""); }

TEST(RecordWalk, WithoutRetirementAfterACrashItDoes) {
  EXPECT_NE(FirstWrong(200, {.retire_after_crash = false}), "");
}

TEST(RecordWalk, WithoutRetirementAfterGivingAwayAHintItDoes) {
  EXPECT_NE(FirstWrong(200, {.retire_after_hint = false}), "");
}

TEST(RecordWalk, WithoutTheUnionOfHintsItDoes) {
  EXPECT_NE(FirstWrong(200, {.mint_on_all_hints = false}), "");
}

}  // namespace
}  // namespace gyre
