// A node in this process on a port of its own: answers sessions as a test says, and counts what it saw.
#pragma once

#include <condition_variable>
#include <functional>
#include <grpcpp/grpcpp.h>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "proto/kv.grpc.pb.h"

namespace gyre {
inline namespace sdk {

class FakeKv final : private v1::Kv::Service {
 public:
  // Fills the replies to a batch, which are sent if there are any; false ends the session.
  using Handler = std::function<bool(const v1::SessionBatch&, v1::SessionReplies&)>;

  explicit FakeKv(Handler handler) : handler_(std::move(handler)) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.SetMaxReceiveMessageSize(4 << 20);
    builder.SetMaxSendMessageSize(-1);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~FakeKv() override { Stop(); }

  const std::string& address() const { return address_; }
  void Stop() { server_->Shutdown(std::chrono::system_clock::now()); }

  void SetTopology(v1::Topology topology) {
    const std::lock_guard lock(mutex_);
    topology_ = std::move(topology);
  }
  // Returns once the topology was asked for so often.
  void AwaitTopologies(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return topologies_ >= count; });
  }
  std::vector<int> batch_sizes() {
    const std::lock_guard lock(mutex_);
    return batch_sizes_;
  }

 private:
  grpc::Status Topology(grpc::ServerContext*, const v1::TopologyRequest*, v1::TopologyReply* reply) override {
    const std::lock_guard lock(mutex_);
    *reply->mutable_topology() = topology_;
    ++topologies_;
    changed_.notify_all();
    return grpc::Status::OK;
  }
  grpc::Status Session(grpc::ServerContext*,
                       grpc::ServerReaderWriter<v1::SessionReplies, v1::SessionBatch>* stream) override {
    v1::SessionBatch batch;
    while (stream->Read(&batch)) {
      {
        const std::lock_guard lock(mutex_);
        batch_sizes_.push_back(batch.requests_size());
      }
      v1::SessionReplies replies;
      if (!handler_(batch, replies))
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the node is going away");
      if (replies.replies_size() > 0) stream->Write(replies);
    }
    return grpc::Status::OK;
  }

  const Handler handler_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::mutex mutex_;
  std::condition_variable changed_;
  v1::Topology topology_;
  int topologies_ = 0;
  std::vector<int> batch_sizes_;
};

// Answers every request of a batch at once, gets with `value`.
inline void AnswerAll(const v1::SessionBatch& batch, v1::SessionReplies& replies, const std::string& value,
                      uint64_t layout_epoch = 1) {
  for (const v1::SessionRequest& request : batch.requests()) {
    v1::SessionReply& reply = *replies.add_replies();
    reply.set_id(request.id());
    if (request.has_put()) reply.mutable_put()->set_layout_epoch(layout_epoch);
    if (request.has_delete_()) reply.mutable_delete_()->set_layout_epoch(layout_epoch);
    if (request.has_scan()) reply.mutable_scan()->set_layout_epoch(layout_epoch);
    if (request.has_get()) {
      reply.mutable_get()->add_values()->set_value(value);
      reply.mutable_get()->set_layout_epoch(layout_epoch);
    }
  }
}

// A member that owns the ring up to `token`.
inline void AddNode(v1::Topology& topology, const std::string& id, const std::string& address,
                    uint64_t token) {
  v1::Node& node = *topology.add_nodes();
  node.set_id(id);
  node.set_address(address);
  node.set_weight(1);
  node.add_tokens(token);
  node.set_member(true);
}

}  // namespace sdk
}  // namespace gyre
