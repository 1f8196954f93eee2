// A quorum's verdict for every order of answers that matters, and for all of them up to four replicas.
#include "server/core/quorum.h"

#include <gtest/gtest.h>
#include <sstream>
#include <string>

namespace gyre {
namespace {

// answers: slot + y/n in the order they arrive; verdicts: . pending, + met, - lost, after each.
struct Row {
  const char* why;
  int replicas;
  int need;
  const char* answers;
  const char* verdicts;
};
constexpr Row kRows[] = {
    {"one answer of one", 1, 1, "0y", "+"},
    {"one refusal of one", 1, 1, "0n", "-"},
    {"two of three", 3, 2, "2y 0y", ".+"},
    {"two refusals make W=2 impossible", 3, 2, "0n 1n 2y", ".--"},
    {"one refusal makes W=all impossible", 3, 3, "0y 1n 2y", ".--"},
    {"W=1 needs every refusal to be lost", 3, 1, "0n 1n 2n", "..-"},
    {"a repeated answer counts once", 3, 2, "0y 0y 1y", "..+"},
    {"a repeated refusal counts once", 3, 2, "0n 0n 1y 2y", "...+"},
    {"a replica cannot change its mind", 3, 2, "0n 0y 1y", "..."},
    {"nor from yes to no", 3, 2, "0y 0n 1n 2y", "...+"},
    {"what comes after the verdict changes nothing", 3, 2, "0y 1y 2n", ".++"},
    {"the most replicas there can be", 8, 8, "7y 6y 5y 4y 3y 2y 1y 0y", ".......+"},
};

char Letter(Verdict verdict) {
  return verdict == Verdict::kPending ? '.' : verdict == Verdict::kMet ? '+' : '-';
}

TEST(Quorum, Table) {
  for (const Row& row : kRows) {
    Quorum quorum(row.replicas, row.need);
    std::istringstream answers(row.answers);
    std::string verdicts;
    for (std::string answer; answers >> answer;) {
      const int slot = answer[0] - '0';
      const Verdict verdict = answer[1] == 'y' ? quorum.Yes(slot) : quorum.No(slot);
      EXPECT_EQ(verdict, quorum.verdict());
      verdicts.push_back(Letter(verdict));
    }
    EXPECT_EQ(verdicts, row.verdicts) << row.why;
  }
}

// Every sequence of up to five answers (which repeats and contradicts), against counting by hand.
TEST(Quorum, EverySequenceOfUpToFiveAnswersOfUpToFourReplicas) {
  for (int n = 1; n <= 4; ++n) {
    for (int need = 1; need <= n; ++need) {
      constexpr int kLength = 5;
      int sequences = 1;
      for (int i = 0; i < kLength; ++i) sequences *= 2 * n;
      for (int sequence = 0; sequence < sequences; ++sequence) {
        Quorum quorum(n, need);
        char said[4] = {};
        Verdict settled = Verdict::kPending;
        for (int i = 0, rest = sequence; i < kLength; ++i, rest /= 2 * n) {
          const int slot = rest % (2 * n) / 2;
          const bool yes = rest % 2 == 1;
          if (said[slot] == 0) said[slot] = yes ? 'y' : 'n';
          const Verdict verdict = yes ? quorum.Yes(slot) : quorum.No(slot);
          int acks = 0;
          int refusals = 0;
          for (const char each : said) acks += each == 'y', refusals += each == 'n';
          const Verdict wanted = acks >= need          ? Verdict::kMet
                                 : n - refusals < need ? Verdict::kLost
                                                       : Verdict::kPending;
          ASSERT_EQ(verdict, wanted) << n << " " << need << " " << sequence;
          ASSERT_EQ(quorum.acks(), acks);
          ASSERT_EQ(quorum.all_answered(), acks + refusals == n);
          ASSERT_TRUE(settled == Verdict::kPending || verdict == settled) << "a verdict never changes";
          settled = verdict;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gyre
