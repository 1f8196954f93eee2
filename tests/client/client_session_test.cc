// The client against nodes in this process: batches, broken sessions, silence, big values, routing by
// topology.
#include <absl/synchronization/blocking_counter.h>
#include <absl/synchronization/notification.h>
#include <atomic>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <set>
#include <sys/socket.h>
#include <unistd.h>

#include "client/client.h"
#include "ring/token.h"
#include "tests/client/fake_kv.h"

namespace gyre {
namespace {

using absl::StatusCode;
using std::chrono::milliseconds;

Client ClientOf(std::vector<std::string> endpoints, milliseconds timeout = milliseconds(20000)) {
  return *Client::Connect({.endpoints = std::move(endpoints), .keyspace = "default", .timeout = timeout});
}

bool Echo(const v1::SessionBatch& batch, v1::SessionReplies& replies) {
  AnswerAll(batch, replies, "value");
  return true;
}

TEST(Session, CallsAreAnswered) {
  FakeKv node(Echo);
  Client client = ClientOf({node.address()});
  EXPECT_TRUE(client.Put("k", "v").ok());
  const auto get = client.Get("k");
  ASSERT_TRUE(get.ok());
  EXPECT_EQ(get->values.at(0).bytes, "value");
  EXPECT_TRUE(client.Delete("k").ok());
  EXPECT_TRUE(client.Scan({}, [](const ScanRow&) { return true; }).ok());
}

TEST(Session, AnErrorBringsItsCounts) {
  FakeKv node([](const v1::SessionBatch& batch, v1::SessionReplies& replies) {
    v1::SessionReply& reply = *replies.add_replies();
    reply.set_id(batch.requests(0).id());
    reply.set_code(static_cast<uint32_t>(StatusCode::kUnknown));
    reply.set_message("outcome unknown");
    reply.mutable_acknowledgements()->set_needed(2);
    return true;
  });
  Client client = ClientOf({node.address()});
  const absl::Status failed = client.Put("k", "v").status();
  EXPECT_TRUE(OutcomeUnknown(failed));
  EXPECT_EQ(AcknowledgementsOf(failed), (Acknowledgements{.got = 0, .needed = 2}));
}

TEST(Session, TheCallsThatAnswersStartMakeOneBatch) {
  constexpr int kCalls = 10;
  v1::SessionBatch held;  // the node answers once it has all of a round
  FakeKv node([&](const v1::SessionBatch& batch, v1::SessionReplies& replies) {
    held.MergeFrom(batch);
    if (held.requests_size() == kCalls) {
      AnswerAll(held, replies, "value");
      held.Clear();
    }
    return true;
  });
  Client client = ClientOf({node.address()});
  absl::BlockingCounter done(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    client.AsyncGet("first", {}, [&](absl::StatusOr<GetResult> first) {
      EXPECT_TRUE(first.ok());
      client.AsyncGet("second", {}, [&](absl::StatusOr<GetResult> second) {
        EXPECT_TRUE(second.ok());
        done.DecrementCount();
      });
    });
  }
  done.Wait();
  EXPECT_EQ(node.batch_sizes().back(), kCalls);
}

TEST(Session, BatchesStayBelowTheirLimits) {
  constexpr int kCalls = 40;
  const std::string value(100 << 10, 'v');  // 4 MB together, more than the node takes in one message
  std::atomic<size_t> largest{0};
  FakeKv node([&](const v1::SessionBatch& batch, v1::SessionReplies& replies) {
    largest = std::max<size_t>(largest, batch.ByteSizeLong());
    AnswerAll(batch, replies, "");
    return true;
  });
  Client client = ClientOf({node.address()});
  absl::BlockingCounter done(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    client.AsyncPut("k", value, {}, [&](absl::StatusOr<PutResult> put) {
      EXPECT_TRUE(put.ok()) << put.status();
      done.DecrementCount();
    });
  }
  done.Wait();
  EXPECT_LE(largest, size_t{256} << 10);
}

TEST(Session, BigValuesPass) {
  const std::string big(1 << 20, 'b');
  FakeKv node([&](const v1::SessionBatch& batch, v1::SessionReplies& replies) {
    for (const v1::SessionRequest& request : batch.requests()) {
      v1::SessionReply& reply = *replies.add_replies();
      reply.set_id(request.id());
      if (request.has_put()) {
        reply.mutable_put()->set_acks(request.put().value() == big);
      } else {
        for (int i = 0; i < 8; ++i) reply.mutable_get()->add_values()->set_value(big);
      }
    }
    return true;
  });
  Client client = ClientOf({node.address()});
  const auto put = client.Put("k", big);
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->acks, 1u);
  const auto get = client.Get("k");
  ASSERT_TRUE(get.ok()) << get.status();
  ASSERT_EQ(get->values.size(), 8u);
  EXPECT_EQ(get->values[7].bytes, big);
}

TEST(Session, APutOutlivesItsSession) {
  std::set<std::string> write_ids;
  std::vector<bool> retries;
  FakeKv node([&](const v1::SessionBatch& batch, v1::SessionReplies& replies) {
    retries.push_back(batch.requests(0).put().retry());
    write_ids.insert(batch.requests(0).put().write_id());
    if (retries.size() == 1) return false;
    AnswerAll(batch, replies, "");
    return true;
  });
  Client client = ClientOf({node.address()});
  EXPECT_TRUE(client.Put("k", "v").ok());
  EXPECT_EQ(retries, (std::vector<bool>{false, true}));
  EXPECT_EQ(write_ids.size(), 1u);
}

TEST(Session, ADeleteWhoseSessionBrokeIsUnknown) {
  FakeKv node([](const v1::SessionBatch&, v1::SessionReplies&) { return false; });
  Client client = ClientOf({node.address()});
  const auto result = client.Delete("k");
  EXPECT_EQ(result.status().code(), StatusCode::kUnknown);
  EXPECT_TRUE(OutcomeUnknown(result.status()));
}

TEST(Session, SilenceEndsAtTheDeadline) {
  FakeKv node([](const v1::SessionBatch&, v1::SessionReplies&) { return true; });
  Client client = ClientOf({node.address()}, milliseconds(50));
  EXPECT_EQ(client.Get("k").status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(client.Put("k", "v").status().code(), StatusCode::kDeadlineExceeded);
}

TEST(Session, TheNodeIsToldHowMuchTimeIsLeft) {
  std::atomic<uint32_t> timeout_ms{0};
  FakeKv node([&](const v1::SessionBatch& batch, v1::SessionReplies& replies) {
    timeout_ms = batch.requests(0).timeout_ms();
    return Echo(batch, replies);
  });
  Client client = ClientOf({node.address()});
  EXPECT_TRUE(client.Get("k").ok());
  EXPECT_GT(timeout_ms, 10000u);
  EXPECT_LE(timeout_ms, 20000u);
}

TEST(Session, WhereNothingListensIsUnavailable) {
  std::string address;
  {
    FakeKv gone(Echo);
    address = gone.address();
  }
  Client client = ClientOf({address});
  const auto get = client.Get("k");
  EXPECT_EQ(get.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(get.status().message().find(address), std::string::npos) << get.status();
}

TEST(Session, ANodeThatTakesConnectionsAndSaysNothingIsNotUnavailableForAWrite) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 16), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  // Long enough for several probes, and for gRPC to give up connecting, which is no refusal.
  const Options options{.endpoints = {"127.0.0.1:" + std::to_string(ntohs(address.sin_port))},
                        .keyspace = "default",
                        .timeout = milliseconds(1000),
                        .connect_timeout = milliseconds(100)};
  EXPECT_EQ(Client::Connect(options)->Put("k", "v").status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Client::Connect(options)->Delete("k").status().code(), StatusCode::kDeadlineExceeded);
  close(listener);
}

TEST(Session, AnEndpointThatIsGoneIsSkipped) {
  FakeKv node(Echo);
  std::string gone_address;
  {
    FakeKv gone(Echo);
    gone_address = gone.address();
  }
  Client client = ClientOf({gone_address, node.address()});
  EXPECT_TRUE(client.Put("k", "v").ok());
}

TEST(Session, ADestroyedClientAnswersWhatIsOutstanding) {
  absl::Notification received;
  FakeKv node([&](const v1::SessionBatch&, v1::SessionReplies&) {
    if (!received.HasBeenNotified()) received.Notify();
    return true;
  });
  absl::Status put_status;
  {
    Client client = ClientOf({node.address()});
    client.AsyncPut("k", "v", {}, [&](absl::StatusOr<PutResult> put) { put_status = put.status(); });
    received.WaitForNotification();
  }
  EXPECT_EQ(put_status.code(), StatusCode::kUnknown);
}

class Routed : public testing::Test {
 protected:
  // Node a owns the lower half of the ring, b the upper one. The clients know a only.
  v1::Topology Halves(uint64_t epoch, const std::string& lower, const std::string& upper) {
    v1::Topology topology;
    topology.set_cluster_id(1);
    topology.set_layout_epoch(epoch);
    AddNode(topology, "0000000000000001", lower, ~uint64_t{0} >> 1);
    AddNode(topology, "0000000000000002", upper, ~uint64_t{0});
    return topology;
  }
  static std::string UpperKey() {
    for (int i = 0;; ++i) {
      if (TokenOf(std::to_string(i)).value >> 63 == 1) return std::to_string(i);
    }
  }
  std::string Read(Client& client, const std::string& key) {
    const auto get = client.Get(key);
    return get.ok() ? get->values.at(0).bytes : std::string(get.status().message());
  }

  std::atomic<uint64_t> epoch{1};
  FakeKv a{[this](const v1::SessionBatch& batch, v1::SessionReplies& replies) {
    AnswerAll(batch, replies, "a", epoch);
    return true;
  }};
  FakeKv b{[this](const v1::SessionBatch& batch, v1::SessionReplies& replies) {
    AnswerAll(batch, replies, "b", epoch);
    return true;
  }};
  const std::string upper_key = UpperKey();
};

TEST_F(Routed, AKeyGoesToItsFirstReplica) {
  a.SetTopology(Halves(1, a.address(), b.address()));
  Client client = ClientOf({a.address()});
  EXPECT_EQ(Read(client, upper_key), "a");  // by any endpoint, which tells the topology
  EXPECT_EQ(Read(client, upper_key), "b");
}

TEST_F(Routed, ANewerLayoutInAReplyIsFetched) {
  a.SetTopology(Halves(1, b.address(), a.address()));
  b.SetTopology(Halves(2, a.address(), b.address()));
  Client client = ClientOf({a.address()});
  EXPECT_EQ(Read(client, upper_key), "a");
  a.SetTopology(Halves(2, a.address(), b.address()));
  epoch = 2;
  a.AwaitTopologies(1);
  EXPECT_EQ(Read(client, upper_key), "a");  // its reply names the newer layout
  a.AwaitTopologies(2);
  while (Read(client, upper_key) != "b") continue;
}

// A topology that is due soon must not be asked for over and over once the client ends.
TEST_F(Routed, AClientEndsWhileARefreshIsPlanned) {
  a.SetTopology(Halves(1, a.address(), b.address()));
  b.Stop();
  for (int i = 0; i < 3; ++i) {
    Client client = ClientOf({a.address()});
    EXPECT_EQ(Read(client, upper_key), "a");
    EXPECT_EQ(Read(client, upper_key), "a");
    EXPECT_EQ(Read(client, upper_key), "a");
  }
}

TEST_F(Routed, WhenAReplicaGoesAwayTheNextOneIsAsked) {
  a.SetTopology(Halves(1, a.address(), b.address()));
  Client client = ClientOf({a.address()});
  EXPECT_EQ(Read(client, upper_key), "a");
  EXPECT_EQ(Read(client, upper_key), "b");
  b.Stop();
  EXPECT_EQ(Read(client, upper_key), "a");
}

}  // namespace
}  // namespace gyre
