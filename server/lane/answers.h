// Between the core and the store: pages of rows, Merkle sums, and the small facts of a batch.
#pragma once

#include "server/core/message.h"
#include "server/lane/runtime.h"
#include "storage/store.h"

namespace gyre {

// The rows behind page.after and before page.end, as many as the page may have and always at least one if
// there is one.
peer::FetchPageReply PageOf(Engine& engine, const peer::FetchPage& page);

// Called where the store may be asked: in one order with its commits. A sum that cannot be told is left out.
SumsRead SumsOf(Store& store, const SumRequest& request);

// What a batch changes beside rows: the small facts of the node.
std::vector<EngineWrite> FactsOf(const Disk::Batch& batch);

}  // namespace gyre
