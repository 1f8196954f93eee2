// Records by hand: what puts, deletes and merges leave behind.
#include "storage/causal/record.h"

#include <gtest/gtest.h>

#include "tests/storage/causal/world.h"

namespace gyre {
namespace {

using testing::DotOf;
using testing::ValueOf;
using testing::VectorOf;

constexpr uint64_t A = 1, B = 2, C = 3;
constexpr ConflictRule kLast = ConflictRule::kLastWriteWins;

CausalContext Seen(std::initializer_list<Dot> dots) {
  return {.seen = VectorOf(dots), .has_own = false, .own = {}};
}

std::string Show(const Record& record) {
  std::string text;
  for (const Version& version : record.versions) {
    if (!text.empty()) text += ' ';
    text += static_cast<char>('A' + version.dot.actor.node - 1) + std::to_string(version.dot.counter);
  }
  return text;
}

// A script per row. Each step is WHERE then what: "A+1" puts blindly at A with counter 1, "A+1:" with the
// empty context, "A+3:B2C1" with a context that has seen B2 and C1, "A-3:B2" deletes, "A<B" merges B's record
// into A's. "id" after a put's counter as "A+1=7" gives it write id 7, "A+1*7:" marks it as a retry of
// write 7.
struct Row {
  const char* what;
  const char* script;
  const char* siblings;         // what A holds at the end
  const char* last_write_wins;  // the same under last-write-wins
};

constexpr Row kRows[] = {
    {"a put is there", "A+1", "A1", "A1"},
    {"a blind put overwrites what its coordinator holds", "A+1 A+2", "A2", "A2"},
    {"a blind put does not overwrite what its coordinator never saw", "B+1 A+2 A<B", "B1 A2", "A2"},
    {"two puts with the same context leave two siblings", "A+1 A+2:A1 A+3:A1", "A2 A3", "A3"},
    {"a put with the merged context leaves one", "A+1 A+2:A1 A+3:A1 A+4:A3", "A4", "A4"},
    {"a put that has seen one sibling of two keeps the other", "A+1 B+2: A<B A+3:B2", "A1 A3", "A3"},
    {"an empty context supersedes nothing", "A+1 A+2: A+3:", "A1 A2 A3", "A3"},
    {"a delete removes what it has seen", "A+1 A-2:A1", "", ""},
    {"a delete keeps what it has not seen", "A+1 B+2: A<B A-3:A1", "B2", ""},
    {"a late old value stays dead after its delete", "A+1 B<A A-2:A1 A<B", "", ""},
    {"a delete elsewhere removes on merge", "A+1 B<A B-2:A1 A<B", "", ""},
    {"a context removes a value that its coordinator never held", "A+1 B+2:A1 A<B", "B2", "B2"},
    {"a put concurrent with a delete survives it", "A+1 B<A B-2:A1 A+3:A1 A<B", "A3", "A3"},
    {"last write wins even over a younger vector of more entries", "A+1 B+2: C+3: A<B A<C", "A1 B2 C3", "C3"},
    {"equal counters are ordered by actor", "A+5 B+5: A<B", "A5 B5", "B5"},
    {"a concurrent delete with the higher dot wins", "A+1 B-2: A<B", "A1", ""},
    {"a concurrent delete with the lower dot loses", "A+2 B-1: A<B", "A2", "A2"},
    {"twins of an unmarked retry are both kept", "A+1=7 B+2=7: A<B", "A1 B2", "B2"},
    {"the twin of a retried put stays dead after the delete", "A+1=7 B+2*7: B-3:B2 A<B", "", ""},
    {"the same when the delete went through a third node that never held it", "A+1=7 B+2*7: C-3:B2 A<B A<C",
     "", ""},
    {"the same in the other order", "A+1=7 B+2*7: C-3:B2 A<C A<B", "", ""},
    {"the twin of a retried put stays dead after an overwrite", "A+1=7 B+2*7: B+3:B2 A<B", "B3", "B3"},
    {"a late blind attempt of a superseded write replaces nothing", "A+1*7: A+2 A+3=7", "A2", "A3"},
    {"a late marked retry of a superseded write stays dead", "B+1*7: B+2:B1 A<B A+3*7:", "B2", "A3"},
    {"what superseded one retry does not touch other writes", "A+1=8 B+2*7: B-3:B2 A<B", "A1", ""},
    {"a twin that its coordinator holds dies with the retry", "A+1=7 B+2*7: A<B A+3:B2", "A3", "A3"},
};

struct Script {
  explicit Script(ConflictRule r) : rule(r) {}

  static std::vector<Dot> Dots(const std::string& text) {
    std::vector<Dot> dots;
    for (size_t i = 0; i + 1 < text.size(); i += 2) {
      dots.push_back(
          DotOf(static_cast<uint64_t>(text[i] - 'A' + 1), static_cast<uint64_t>(text[i + 1] - '0')));
    }
    return dots;
  }

  void Run(const std::string& step) {
    Record& at = records[step[0]];
    if (step[1] == '<') {
      at = Merge(at, records[step[2]], rule);
      return;
    }
    const Dot dot = DotOf(static_cast<uint64_t>(step[0] - 'A' + 1), static_cast<uint64_t>(step[2] - '0'));
    const size_t colon = step.find(':');
    CausalContext context;
    if (colon != std::string::npos) context.seen = VectorOf(Dots(step.substr(colon + 1)));
    if (step[1] == '-') {
      ApplyDelete(at, dot, context, rule);
      return;
    }
    const bool has_id = step.size() > 4 && (step[3] == '=' || step[3] == '*');
    Version version =
        ValueOf(dot, has_id ? static_cast<uint64_t>(step[4] - '0') : 0, has_id && step[3] == '*');
    ApplyPut(at, std::move(version), colon == std::string::npos ? nullptr : &context, rule);
  }

  ConflictRule rule;
  std::map<char, Record> records;
};

TEST(RecordTable, EachScriptEndsAsWritten) {
  for (const Row& row : kRows) {
    for (const ConflictRule rule : {ConflictRule::kSiblings, kLast}) {
      Script script(rule);
      std::string rest = std::string(row.script) + " ";
      while (!rest.empty()) {
        script.Run(rest.substr(0, rest.find(' ')));
        rest.erase(0, rest.find(' ') + 1);
      }
      EXPECT_EQ(Show(script.records['A']), rule == kLast ? row.last_write_wins : row.siblings) << row.what;
    }
  }
}

TEST(Record, ADeleteLeavesATombstoneAsYoungAsItself) {
  Record record;
  EXPECT_TRUE(record.empty());
  EXPECT_FALSE(record.tombstone());
  ApplyPut(record, ValueOf(DotOf(A, 1)), nullptr);
  EXPECT_FALSE(record.tombstone());
  ApplyDelete(record, DotOf(B, 9), Seen({DotOf(A, 1)}));
  EXPECT_TRUE(record.tombstone());
  EXPECT_EQ(record.seen, VectorOf({DotOf(A, 1), DotOf(B, 9)}));
}

TEST(Record, ADroppedRetryLeavesItsIdAndWhatSupersededIt) {
  Record record;
  const CausalContext nothing;
  ApplyPut(record, ValueOf(DotOf(A, 1), 7, true), &nothing);
  ApplyPut(record, ValueOf(DotOf(A, 2), 8), nullptr);
  ASSERT_EQ(record.superseded.size(), 1u);
  EXPECT_EQ(record.superseded[0], (SupersededRetry{{0, 7}, DotOf(A, 2)}));
  // An unmarked write leaves nothing.
  ApplyPut(record, ValueOf(DotOf(A, 3)), nullptr);
  EXPECT_EQ(record.superseded.size(), 1u);
}

TEST(Record, MergeKeepsTheHighestDotPerSupersededId) {
  const Record a{.seen = VectorOf({DotOf(A, 4)}), .versions = {}, .superseded = {{{0, 7}, DotOf(A, 4)}}};
  const Record b{.seen = VectorOf({DotOf(B, 3)}),
                 .versions = {},
                 .superseded = {{{0, 5}, DotOf(B, 1)}, {{0, 7}, DotOf(B, 3)}}};
  const std::vector<SupersededRetry> both = {{{0, 5}, DotOf(B, 1)}, {{0, 7}, DotOf(A, 4)}};
  EXPECT_EQ(Merge(a, b).superseded, both);
  EXPECT_EQ(Merge(b, a).superseded, both);
}

TEST(OwnDots, AWriterThatIsAloneHasSeenEverything) {
  Record record;
  ApplyPut(record, ValueOf(DotOf(A, 1)), nullptr);
  ApplyPut(record, ValueOf(DotOf(B, 2)), nullptr);
  const CausalContext after = ContextAfterWrite(record, DotOf(B, 2), nullptr);
  EXPECT_EQ(after, Seen({DotOf(A, 1), DotOf(B, 2)}));
}

TEST(OwnDots, AWriterWithSiblingsOverwritesItsOwnValueOnly) {
  Record record;
  const CausalContext nothing;
  ApplyPut(record, ValueOf(DotOf(A, 1)), &nothing);
  ApplyPut(record, ValueOf(DotOf(A, 2)), &nothing);
  CausalContext mine = ContextAfterWrite(record, DotOf(A, 2), &nothing);
  EXPECT_TRUE(mine.has_own);
  EXPECT_TRUE(mine.Covers(DotOf(A, 2)));
  EXPECT_FALSE(mine.Covers(DotOf(A, 1)));

  ApplyPut(record, ValueOf(DotOf(B, 3)), &mine);
  EXPECT_EQ(Show(record), "A1 B3");
  mine = ContextAfterWrite(record, DotOf(B, 3), &mine);
  EXPECT_EQ(mine.own, DotOf(B, 3));

  ApplyDelete(record, DotOf(B, 4), mine);
  EXPECT_EQ(Show(record), "A1");
  mine = ContextAfterWrite(record, DotOf(B, 4), &mine);
  EXPECT_TRUE(mine.has_own);
  EXPECT_FALSE(mine.Covers(DotOf(A, 1)));
}

TEST(Visible, HidesWhatExpiredAndShowsTwinsOnce) {
  Record record{.seen = VectorOf({DotOf(A, 9), DotOf(B, 9)}), .versions = {}, .superseded = {}};
  record.versions = {ValueOf(DotOf(A, 1), 7), ValueOf(DotOf(B, 2), 7, true), ValueOf(DotOf(A, 3)),
                     ValueOf(DotOf(A, 4)), ValueOf(DotOf(A, 5), 8)};
  record.versions[2].expires_ms = 100;
  const auto shown = [&](uint64_t now_ms) {
    std::vector<uint64_t> counters;
    for (const Version* version : VisibleVersions(record, now_ms)) counters.push_back(version->dot.counter);
    return counters;
  };
  EXPECT_EQ(shown(99), (std::vector<uint64_t>{1, 3, 4, 5}));
  EXPECT_EQ(shown(100), (std::vector<uint64_t>{1, 4, 5}));
  record.versions[0].expires_ms = 50;
  EXPECT_EQ(shown(99), (std::vector<uint64_t>{2, 3, 4, 5}));
  EXPECT_TRUE(VisibleVersions(Record{}, 0).empty());
}

TEST(Dots, AreOrderedByClockThenActor) {
  EXPECT_LT(DotOf(B, 1), DotOf(A, 2));
  EXPECT_LT(DotOf(A, 2), DotOf(B, 2));
  EXPECT_LT(DotOf(A, 2, 0), DotOf(A, 2, 1));
  EXPECT_EQ(ToString(DotOf(0x9fe1, 1234, 3)), "0000000000009fe1.3@1234");
  EXPECT_EQ(ToString(VectorOf({DotOf(C, 2), DotOf(A, 1)})), "{0000000000000001.0@1, 0000000000000003.0@2}");
  EXPECT_EQ(ToString(VersionVector{}), "{}");
  EXPECT_EQ(MillisOfCounter(CounterOfMillis(1'700'000'000'000) + 65'535), 1'700'000'000'000u);
}

TEST(Vectors, KnowTheHighestEntry) {
  const VersionVector vector = VectorOf({DotOf(A, 5), DotOf(B, 5), DotOf(C, 2), DotOf(A, 3)});
  EXPECT_EQ(vector.Max(), 5u);
  EXPECT_EQ(vector.Highest(), DotOf(B, 5));
  EXPECT_EQ(vector.CounterOf({A, 0}), 5u);
  EXPECT_EQ(vector.CounterOf({A, 1}), 0u);
  EXPECT_FALSE(vector.Covers(DotOf(C, 3)));
  EXPECT_EQ(VersionVector{}.Max(), 0u);
}

TEST(RecordDeathTest, WritesMustBeAboveWhatIsThere) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Record record;
  ApplyPut(record, ValueOf(DotOf(A, 5)), nullptr);
  EXPECT_DEATH(ApplyPut(record, ValueOf(DotOf(B, 5)), nullptr), "record.seen.Max");
  EXPECT_DEATH(ApplyDelete(record, DotOf(A, 6), Seen({DotOf(B, 6)})), "context->seen.Max");
  const CausalContext unknown{.seen = {}, .has_own = true, .own = DotOf(B, 4)};
  EXPECT_DEATH(ApplyDelete(record, DotOf(A, 6), unknown), "has_own");
}

}  // namespace
}  // namespace gyre
