// Answers what the core asks about stored rows: pages of them, and their Merkle sums.
#pragma once

#include "server/core/message.h"
#include "storage/store.h"

namespace gyre {

// The rows behind page.after and before page.end, as many as the page may have and always at least one if
// there is one.
peer::FetchPageReply PageOf(Engine& engine, const peer::FetchPage& page);

// Called where the store may be asked: in one order with its commits. A sum that cannot be told is left out.
SumsRead SumsOf(Store& store, const SumRequest& request);

}  // namespace gyre
