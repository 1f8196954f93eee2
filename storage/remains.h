// What is left of a damaged store.
//
// A store keeps a key in several places: a newer version above older ones, until they are merged. Where one
// place is damaged the others may be whole, and what they hold need not be lost with it.
//
// Threads and ownership: as Engine, but one Scan at a time.
#pragma once

#include <absl/status/status.h>
#include <string_view>

#include "storage/engine.h"

namespace gyre {

class Remains {
 public:
  virtual ~Remains() = default;

  // The damaged store as it is: reads that meet damage fail with DATA_LOSS.
  virtual Engine& engine() = 0;

  // Who is told what Scan finds. REQUIRES: none of it calls this or the engine.
  class Reader {
   public:
    virtual ~Reader() = default;
    // False: no more. The views die when it returns.
    virtual bool Entry(std::string_view key, std::string_view value) = 0;
    // There is a place that cannot be read; once for each.
    virtual void Damage(const absl::Status& what) = 0;
    // Asked now and then while Scan looks for the end of such a place, which may take minutes. False: no
    // more.
    virtual bool GoOn() = 0;
  };

  // Reads each entry of `range` of which a version can be read, in key order and each once: its newest
  // readable version. Where damage may hide that an entry was erased, an older version of it is read, too.
  // Errors: one of an engine's that is no damage.
  // REQUIRES: range.end is not empty.
  virtual absl::Status Scan(Table table, const KeyRange& range, Reader& reader) = 0;
};

}  // namespace gyre
