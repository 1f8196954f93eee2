// Passing over what cannot be read of a table.
#pragma once

#include <string>

#include "storage/engine.h"

namespace gyre {

// Where `range`, whose beginning cannot be read, can be read again; perhaps behind its end. Found by halves,
// so that rows between damaged places which are as close to each other as they are wide may be passed over,
// and of keys that agree in their first 24 bytes all or none. REQUIRES: range.end is not empty.
std::string BehindDamage(Engine& engine, Table table, const KeyRange& range);

}  // namespace gyre
