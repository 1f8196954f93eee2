// A node in this process that answers operators as a test says, and keeps what it was asked.
#pragma once

#include <functional>
#include <grpcpp/grpcpp.h>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "proto/admin.grpc.pb.h"
#include "proto/kv.grpc.pb.h"

namespace gyre {
inline namespace sdk {

class FakeAdmin final : private v1::Admin::Service, private v1::Kv::Service {
 public:
  FakeAdmin() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(static_cast<v1::Admin::Service*>(this));
    builder.RegisterService(static_cast<v1::Kv::Service*>(this));
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~FakeAdmin() override { server_->Shutdown(std::chrono::system_clock::now()); }

  const std::string& address() const { return address_; }

  // What it answers, and what it was asked. Not to be touched while a command runs.
  v1::ClusterStatusReply status;
  v1::PlanReply plan;
  v1::ApplyReply apply;
  std::vector<v1::MovesReply> moves;  // one after the other; the last one for ever
  grpc::Status outcome;               // of plan, apply, abort
  v1::PlanRequest planned;
  v1::ApplyRequest applied;
  std::vector<v1::ControlMovesRequest> controls;
  int aborts = 0;
  int looks = 0;  // how often moves were asked for

 private:
  grpc::Status Topology(grpc::ServerContext*, const v1::TopologyRequest*, v1::TopologyReply*) override {
    return grpc::Status::OK;
  }
  grpc::Status ClusterStatus(grpc::ServerContext*, const v1::ClusterStatusRequest*,
                             v1::ClusterStatusReply* reply) override {
    *reply = status;
    return grpc::Status::OK;
  }
  grpc::Status Plan(grpc::ServerContext*, const v1::PlanRequest* request, v1::PlanReply* reply) override {
    planned = *request;
    *reply = plan;
    return outcome;
  }
  grpc::Status Apply(grpc::ServerContext*, const v1::ApplyRequest* request, v1::ApplyReply* reply) override {
    applied = *request;
    *reply = apply;
    return outcome;
  }
  grpc::Status AbortMove(grpc::ServerContext*, const v1::AbortMoveRequest*, v1::ApplyReply* reply) override {
    ++aborts;
    *reply = apply;
    return outcome;
  }
  grpc::Status Moves(grpc::ServerContext*, const v1::MovesRequest*, v1::MovesReply* reply) override {
    const auto place = std::min(static_cast<size_t>(looks++), moves.size() - 1);
    *reply = moves.at(place);
    return grpc::Status::OK;
  }
  grpc::Status ControlMoves(grpc::ServerContext*, const v1::ControlMovesRequest* request,
                            v1::ControlMovesReply*) override {
    controls.push_back(*request);
    return grpc::Status::OK;
  }

  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace sdk
}  // namespace gyre
