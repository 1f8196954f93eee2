// Calls are found by id, once; ids of calls that ended find nothing.
#include "client/outstanding.h"

#include <gtest/gtest.h>

namespace gyre {
namespace {

class Nothing final : public Exchange {
 public:
  const Request& request() const override { return request_; }
  void Done(AttemptResult) override {}

 private:
  Request request_ = GetRequest{};
};

Outstanding::Entry Entry(int deadline_s, size_t bytes = 10) {
  return {.exchange = std::make_shared<Nothing>(),
          .options = {.deadline = TimePoint(std::chrono::seconds(deadline_s)), .time_allowed = {}},
          .stream = 0,
          .sent_at = {},
          .bytes = bytes};
}

TEST(Outstanding, AnIdIsGoodOnce) {
  Outstanding calls;
  const Outstanding::Id first = calls.Add(Entry(1));
  EXPECT_NE(first, 0u);
  EXPECT_NE(calls.Find(first), nullptr);
  EXPECT_NE(calls.Take(first).exchange, nullptr);
  EXPECT_EQ(calls.Take(first).exchange, nullptr);
  const Outstanding::Id second = calls.Add(Entry(1));  // in the same slot
  EXPECT_NE(first, second);
  EXPECT_EQ(calls.Find(first), nullptr);
  EXPECT_EQ(calls.Find(12345), nullptr);
}

TEST(Outstanding, CountsCallsAndBytes) {
  Outstanding calls;
  calls.Add(Entry(1, 7));
  const Outstanding::Id id = calls.Add(Entry(1, 5));
  EXPECT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls.bytes(), 12u);
  calls.Take(id);
  EXPECT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls.bytes(), 7u);
}

TEST(Outstanding, TheEarliestDeadlineAndWhatIsLate) {
  Outstanding calls;
  EXPECT_EQ(calls.NextDeadline(), TimePoint::max());
  calls.Add(Entry(5));
  calls.Add(Entry(3));
  EXPECT_EQ(calls.NextDeadline(), TimePoint(std::chrono::seconds(3)));
  const auto late = calls.TakeIf([](const Outstanding::Entry& entry) {
    return entry.options.deadline <= TimePoint(std::chrono::seconds(3));
  });
  EXPECT_EQ(late.size(), 1u);
  EXPECT_EQ(calls.NextDeadline(), TimePoint(std::chrono::seconds(5)));
}

}  // namespace
}  // namespace gyre
