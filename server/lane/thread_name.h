// Names of threads, as top -H and perf show them.
#pragma once

#include <pthread.h>

namespace gyre {

// Names the calling thread. At most 15 characters.
inline void NameThisThread(const char* name) { pthread_setname_np(pthread_self(), name); }

}  // namespace gyre
