// What a node thinks of another one.
#pragma once

#include <cstdint>

#include "server/core/time.h"

namespace gyre {

struct Liveness {
  enum class State : uint8_t {
    kUp,       // linked, and heard of lately
    kSuspect,  // one of both
    kDown,     // neither
  };
  State state = State::kDown;  // only who is up is asked anything
  Micros lasting;              // for how long it has been up, or has not been
};

}  // namespace gyre
