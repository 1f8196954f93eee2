// One stream to one peer.
#include "server/rpc/peer_link.h"

#include <utility>

#include "server/rpc/channel.h"
#include "server/rpc/convert_peer.h"

namespace gyre {

std::shared_ptr<PeerLink> PeerLink::Open(Ends ends, std::function<void()> changed, const World& world) {
  std::shared_ptr<PeerLink> link(new PeerLink(std::move(ends), std::move(changed), world));
  link->stub_ = v1::Peer::NewStub(OpenChannel(link->ends_.address, world.credentials.ForChannels()));
  link->stub_->async()->Link(&link->context_, link.get());
  link->AddHold();  // writes start outside of reactions
  absl::MutexLock lock(&link->mutex_);
  link->outgoing_.push_back({link->NewFrame({})});
  link->WriteNext();
  link->StartRead(&link->welcome_);
  link->StartCall();
  return link;
}

v1::Frame PeerLink::NewFrame(LayoutMark layout) const {
  v1::Frame frame;
  frame.set_cluster_id(ends_.cluster_id);
  frame.set_from(ends_.self.value);
  frame.set_layout_epoch(layout.epoch);
  frame.set_fence(layout.fence);
  frame.set_reads_other(layout.reads_other);
  frame.set_format(kPeerFormat);
  return frame;
}

void PeerLink::Send(LayoutMark layout, std::vector<Message> batch) {
  absl::MutexLock lock(&mutex_);
  if (!held_ || !up() || waiting_bytes_ > kWaitingBytesMax) {
    counters_.peer_messages_dropped.fetch_add(batch.size(), std::memory_order_relaxed);
    return;
  }
  counters_.peer_messages_sent.fetch_add(batch.size(), std::memory_order_relaxed);
  for (Message& message : batch) {
    const size_t bytes = WireBytes(message);
    const bool being_written = outgoing_.size() == 1 && writing_;
    if (outgoing_.empty() || being_written || outgoing_.back().bytes + bytes > kFrameBytesMax ||
        LayoutOf(outgoing_.back().frame) != layout) {
      outgoing_.push_back({NewFrame(layout)});
    }
    outgoing_.back().bytes += bytes;
    waiting_bytes_ += bytes;
    FromMessage(std::move(message), *outgoing_.back().frame.add_messages());
  }
  WriteNext();
}

void PeerLink::WriteNext() {
  if (writing_ || !held_ || outgoing_.empty()) return;
  writing_ = true;
  StartWrite(&outgoing_.front().frame);
}

void PeerLink::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  waiting_bytes_ -= outgoing_.front().bytes;
  outgoing_.pop_front();
  if (!ok) return Close();
  WriteNext();
}

// The first read brings the welcome; the second ends only with the stream.
void PeerLink::OnReadDone(bool ok) {
  const bool welcome =
      ok && welcome_.node() == ends_.peer.value && (up() || world_.access.Answers(context_, ends_.peer));
  if (welcome && !up_.exchange(true, std::memory_order_acq_rel)) changed_();
  absl::MutexLock lock(&mutex_);
  if (!welcome) return Close();
  StartRead(&welcome_);
}

void PeerLink::Close() {
  if (!std::exchange(held_, false)) return;
  context_.TryCancel();
  RemoveHold();
}

void PeerLink::OnDone(const grpc::Status&) {
  if (up_.exchange(false, std::memory_order_acq_rel)) {
    counters_.links_broken.fetch_add(1, std::memory_order_relaxed);
    changed_();
  }
  ended_.Notify();
}

}  // namespace gyre
