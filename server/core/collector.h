// Collection: what all members' stable cut lets go leaves the disk.
//
// The store keeps an index of rows by the cut at which something of them may go (storage/store_collect.cc).
// When the cut rises, this walks the part of the index below it, page by page, and of each row keeps what
// lasts.
//
// A value driven by its node.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/core/message.h"
#include "server/core/replica.h"
#include "server/core/turn.h"

namespace gyre {

class Collector {
 public:
  Collector(Replica& replica, OpId first_op) : replica_(replica), next_op_(first_op) {}

  void Tick(const Turn& turn);
  std::optional<Micros> next_deadline() const;
  void PageRead(const Turn& turn, OpId op, const peer::FetchPageReply& page);
  void Resume(const Turn& turn, OpId op);  // a row is in hand
  void RowUnreadable(OpId op);             // it stays as it is, for now
  // A commit failed: rows that were collected may still be there.
  void StartOver() { target_ = done_to_ = done_before_ = 0; }

 private:
  static constexpr uint32_t kPageRows = 256;
  static constexpr Micros kPagesApart = Millis(10);
  static constexpr Micros kRetryAfter = Millis(500);
  static constexpr Micros kMissedAgainAfter = Seconds(10);

  // A row whose turn has come.
  struct Due {
    std::string row_key;
    std::string collect_key;
  };

  bool due() const { return replica_.cuts().all > done_to_; }
  void NextKeyspace(const Turn& turn);

  Replica& replica_;
  OpId next_op_;
  OpId page_op_ = 0;     // of the page that is being read; 0: none
  uint64_t target_ = 0;  // of the pass under way; 0: none
  uint64_t done_to_ = 0;
  uint64_t done_before_ = 0;  // by the pass before: the next one begins there, as commits may have come late
  std::vector<uint32_t> keyspaces_;  // that the pass has still to walk, the last one now
  std::string after_;                // collect key
  Micros next_at_;
  bool missed_ = false;  // a row below done_to_ or target_ could not be collected
  std::map<OpId, Due> rows_;
};

}  // namespace gyre
