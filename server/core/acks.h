// How many replicas answered a call that failed for want of them. Kept with its status, so that whatever
// makes a status of it need not know.
#pragma once

#include <absl/status/status.h>
#include <optional>

namespace gyre {

struct Acks {
  int got = 0;     // replicas that confirmed the write or answered the read
  int needed = 0;  // what w or r made of it
  bool operator==(const Acks&) const = default;
};

// `status`, and the counts. REQUIRES: it is not OK.
absl::Status WithAcks(absl::Status status, Acks acks);
// What WithAcks added, if anything.
std::optional<Acks> AcksOf(const absl::Status& status);

}  // namespace gyre
