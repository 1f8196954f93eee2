// Takes one of gRPC's polling threads out of service.
#include "server/rpc/parked_poller.h"

namespace gyre {

// A channel without credentials fails every call at once, and says so on a polling thread.
ParkedPoller::ParkedPoller() : stub_(v1::Peer::NewStub(grpc::CreateChannel("parked", nullptr))) {
  stub_->async()->Tell(&context_, &nothing_, &receipt_, [this](const grpc::Status&) {
    over_.WaitForNotification();
    left_.Notify();
  });
}

ParkedPoller::~ParkedPoller() {
  over_.Notify();
  left_.WaitForNotification();
}

}  // namespace gyre
