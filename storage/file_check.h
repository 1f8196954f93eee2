// Looks at the files of a store before RocksDB does, and lays out what is left of a damaged one.
#pragma once

#include <absl/status/status.h>
#include <string>

namespace gyre {

// DATA_LOSS, as a sentence, when in the directory `path`
// - there are tables or logs but nothing that names the list of them: RocksDB would begin a new store there;
// - a log has a whole batch behind a place where it cannot be followed. RocksDB takes a length that leads
//   beyond the end for a torn end, and zeros for nothing, and drops what was synced behind them.
// A log that only ends in the middle of a batch is what a crash leaves. Wrong checksums are not looked for:
// RocksDB finds these. UNAVAILABLE when a file cannot be read. Whether there is a store at all does not
// matter.
absl::Status CheckFiles(const std::string& path);

// Makes `scratch` anew, in the same file system: a store of the tables of the damaged one in `path`, and of
// all whole batches of its logs, also those behind damage. (RocksDB can be told to skip what is damaged of a
// log; but then it takes the next batch, if that is long, for damaged, too, and refuses the rest.) It shares
// the tables' bytes; nothing in `path` is changed, whatever is done with `scratch`. UNAVAILABLE when the disk
// refuses.
absl::Status LinkDamaged(const std::string& path, const std::string& scratch);

}  // namespace gyre
