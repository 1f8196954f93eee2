// Channels to peers: limits, and how soon a silent peer counts as gone.
#pragma once

#include <grpcpp/grpcpp.h>
#include <memory>
#include <string>

#include "proto/peer.grpc.pb.h"

namespace gyre {

// Every message of ours fits with room: a record has at most limits.record_bytes, a page a little more.
constexpr int kMessageBytesMax = 32 << 20;
// A link whose peer does not answer pings for this long is broken: a peer that is stopped, or cut off.
constexpr int kKeepaliveMs = 1000;
constexpr int kKeepaliveTimeoutMs = 2000;
// How long one attempt to connect may take, a TLS handshake on a busy machine included. One that is refused
// is over at once.
constexpr int kConnectMs = 2000;
// What a stream may have sent before it was read. Fixed, for gRPC's way of finding one by itself sends a ping
// and a window update for nearly every message, which costs more than the messages of a busy node.
constexpr int kWindowBytes = 1 << 20;

// Never shared with another channel to the same address, so that each link has its own connection.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const std::shared_ptr<grpc::ChannelCredentials>& credentials);

}  // namespace gyre
