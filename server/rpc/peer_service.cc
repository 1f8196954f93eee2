// The peers' service.
#include "server/rpc/peer_service.h"

#include <utility>
#include <vector>

#include "server/rpc/convert_control.h"
#include "server/rpc/convert_peer.h"
#include "server/rpc/peer_link.h"
#include "server/rpc/peer_links.h"
#include "server/rpc/status.h"

namespace gyre {
namespace {

absl::Status OtherCluster(NodeId from, uint64_t cluster_id, const View& view) {
  return absl::FailedPreconditionError("node " + ToString(from) + " is of cluster " +
                                       ToString(Token{cluster_id}) + ", this is cluster " +
                                       ToString(Token{view.layout.cluster_id}));
}

absl::Status Denied(const Backend& backend, absl::Status why) {
  backend.counters.calls_denied.fetch_add(1, std::memory_order_relaxed);
  return why;
}

// The receiving end of a link.
class Incoming : public grpc::ServerBidiReactor<v1::Frame, v1::LinkWelcome> {
 public:
  Incoming(Backend& backend, std::shared_ptr<const grpc::AuthContext> caller)
      : backend_(backend), caller_(std::move(caller)) {
    StartRead(&frame_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(from_ ? absl::OkStatus() : Refused(NotIntroduced()));
    if (!from_) {
      if (absl::Status status = Introduce(); !status.ok()) return End(Refused(std::move(status)));
      backend_.incoming_link(from_, true);
      StartWrite(&welcome_);
      return StartRead(&frame_);
    }
    if (NodeId{frame_.from()} != from_ || frame_.cluster_id() != cluster_id_) {
      return End(Refused(absl::FailedPreconditionError("a frame speaks for another node than its link")));
    }
    Deliver();
    StartRead(&frame_);
  }
  void OnDone() override {
    if (from_) backend_.incoming_link(from_, false);
    delete this;
  }

 private:
  void End(const absl::Status& status) { Finish(ToGrpc(status)); }

  absl::Status Refused(absl::Status why) {
    backend_.counters.peer_messages_refused.fetch_add(1, std::memory_order_relaxed);
    return why;
  }

  // gRPC tells a frame that it cannot parse and an end of the stream alike.
  static absl::Status NotIntroduced() {
    return absl::InvalidArgumentError("the link ended before its first frame, or that was garbled");
  }

  // Who speaks, and whether it may.
  absl::Status Introduce() {
    const Layouts layouts = backend_.state.layouts();
    const std::shared_ptr<const View>& view = layouts.view;
    const NodeId from{frame_.from()};
    if (absl::Status status = backend_.access.SpeaksFor(*caller_, from); !status.ok()) {
      return Denied(backend_, std::move(status));
    }
    if (view == nullptr) return absl::UnavailableError("this node has not joined a cluster yet");
    if (frame_.cluster_id() != view->layout.cluster_id) {
      return OtherCluster(from, frame_.cluster_id(), *view);
    }
    if (frame_.format() != kPeerFormat) {
      return absl::FailedPreconditionError("the peer speaks format " + std::to_string(frame_.format()) +
                                           ", this node speaks " + std::to_string(kPeerFormat));
    }
    // One that has left is heard while it hands over what is left with it.
    const bool member = layouts.HasMember(from);
    const bool leaver = !member && MayLink(layouts, from) && backend_.state.known()->contains(from);
    if ((!member && !leaver) || from == backend_.self) {
      return absl::FailedPreconditionError("node " + ToString(from) + " is no other member of this cluster");
    }
    from_ = from;
    cluster_id_ = frame_.cluster_id();
    welcome_.set_node(backend_.self.value);
    return absl::OkStatus();
  }

  void Deliver() {
    std::vector<Input> inputs;
    inputs.reserve(static_cast<size_t>(frame_.messages_size()));
    for (v1::PeerMessage& wire : *frame_.mutable_messages()) {
      absl::StatusOr<Message> message = ToMessage(std::move(wire));
      if (message.ok()) {
        inputs.push_back(FromPeer{from_, LayoutOf(frame_), *std::move(message)});
      } else {
        backend_.counters.peer_messages_refused.fetch_add(1, std::memory_order_relaxed);
      }
    }
    backend_.counters.peer_frames_received.fetch_add(1, std::memory_order_relaxed);
    backend_.counters.peer_messages_received.fetch_add(inputs.size(), std::memory_order_relaxed);
    backend_.lane.PushAll(std::move(inputs));
  }

  Backend& backend_;
  const std::shared_ptr<const grpc::AuthContext> caller_;
  NodeId from_;  // zero until it is introduced
  uint64_t cluster_id_ = 0;
  v1::Frame frame_;
  v1::LinkWelcome welcome_;
};

}  // namespace

grpc::ServerBidiReactor<v1::Frame, v1::LinkWelcome>* PeerService::Link(grpc::CallbackServerContext* context) {
  return new Incoming(backend_, context->auth_context());
}

grpc::ServerUnaryReactor* PeerService::Tell(grpc::CallbackServerContext* context,
                                            const v1::ControlMessage* request, v1::ControlReceipt*) {
  absl::StatusOr<control::Message> message = ToControl(*request);
  if (!message.ok()) {
    backend_.counters.peer_messages_refused.fetch_add(1, std::memory_order_relaxed);
    return Finished(context, message.status());
  }
  absl::Status status = backend_.access.SpeaksFor(*context->auth_context(), message->from);
  if (!status.ok()) return Finished(context, Denied(backend_, std::move(status)));
  const std::shared_ptr<const View> view = backend_.state.view();
  if (view != nullptr && message->cluster_id != 0 && message->cluster_id != view->layout.cluster_id) {
    backend_.counters.peer_messages_refused.fetch_add(1, std::memory_order_relaxed);
    status = OtherCluster(message->from, message->cluster_id, *view);
  }
  backend_.control.Receive(
      *std::move(message));  // which drops what is of another cluster, and says so in the log
  return Finished(context, status);
}

}  // namespace gyre
