// The peers' service: frames of other members go to the lane, membership messages to the control thread.
#pragma once

#include "proto/peer.grpc.pb.h"
#include "server/rpc/backend.h"

namespace gyre {

class PeerService : public v1::Peer::CallbackService {
 public:
  explicit PeerService(Backend& backend) : backend_(backend) {}

  grpc::ServerBidiReactor<v1::Frame, v1::LinkWelcome>* Link(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Tell(grpc::CallbackServerContext* context, const v1::ControlMessage* request,
                                 v1::ControlReceipt* reply) override;

 private:
  Backend& backend_;
};

}  // namespace gyre
