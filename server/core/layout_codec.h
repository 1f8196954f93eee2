// The bytes of a layout: what its digest hashes and what a node persists.
#pragma once

#include "server/core/layout.h"
#include "storage/format/bytes.h"

namespace gyre {

// Canonical: equal layouts have equal bytes, different ones different bytes. Never changes, since digests
// rest on it.
void WriteLayout(ByteWriter& out, const Layout& layout);

// Strict and bounded: allocates no more than a small multiple of what is left in `in`. Makes `in` fail when
// the bytes are no layout, or one that CheckLayout refuses. REQUIRES: nothing follows the layout.
Layout ReadLayout(ByteReader& in);

}  // namespace gyre
