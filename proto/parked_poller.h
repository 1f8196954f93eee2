// Takes one of gRPC's polling threads out of service.
//
// gRPC 1.51 polls for its callbacks with max(2, cores / 2) threads, a number that cannot be set. At every
// event they hand each other the duty to wait on the sockets: on two cores that made four fifths of a busy
// node's futex calls, and cost a quarter of its gets. So one of them waits inside a callback for as long as
// this lives. Callbacks must not wait for other callbacks, then: there may be one thread for all of them.
#pragma once

#include <absl/synchronization/notification.h>
#include <grpcpp/grpcpp.h>
#include <memory>

#include "proto/peer.grpc.pb.h"

namespace gyre {

class ParkedPoller {
 public:
  // REQUIRES: a server or channel of this process lives from before this until after it.
  // A channel without credentials fails every call at once, and says so on a polling thread.
  ParkedPoller() : stub_(v1::Peer::NewStub(grpc::CreateChannel("parked", nullptr))) {
    stub_->async()->Tell(&context_, &nothing_, &receipt_, [this](const grpc::Status&) {
      over_.WaitForNotification();
      left_.Notify();
    });
  }
  ~ParkedPoller() {
    over_.Notify();
    left_.WaitForNotification();
  }
  ParkedPoller(const ParkedPoller&) = delete;
  ParkedPoller& operator=(const ParkedPoller&) = delete;

 private:
  absl::Notification over_;
  absl::Notification left_;
  grpc::ClientContext context_;
  v1::ControlMessage nothing_;
  v1::ControlReceipt receipt_;
  std::unique_ptr<v1::Peer::Stub> stub_;
};

}  // namespace gyre
