// What the services count; read by metrics. Any thread may add and read.
#pragma once

#include <atomic>
#include <cstdint>

#include "server/rpc/hot_keys.h"

namespace gyre {

struct RpcCounters {
  std::atomic<uint64_t> session_calls = 0;
  std::atomic<uint64_t> unary_calls = 0;
  std::atomic<uint64_t> calls_failed = 0;  // answered with a status that is not OK
  std::atomic<uint64_t> sessions_open = 0;
  std::atomic<uint64_t> peer_frames_received = 0;
  std::atomic<uint64_t> peer_messages_received = 0;
  std::atomic<uint64_t> peer_messages_sent = 0;
  std::atomic<uint64_t> peer_messages_dropped = 0;  // the link was down or its queue full
  std::atomic<uint64_t> peer_messages_refused = 0;  // garbled, of a foreign cluster or a stranger
  std::atomic<uint64_t> links_broken = 0;
  std::atomic<uint64_t> connections_refused = 0;  // at the limit
  std::atomic<uint64_t> calls_denied = 0;  // because of the certificate or the permissions of who made them
  HotKeys hot_keys;
};

}  // namespace gyre
