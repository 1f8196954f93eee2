// The process's log: lines on stderr, as text or JSON.
#pragma once

#include "server/config.h"

namespace gyre {

// Makes spdlog's default logger write to stderr from `level` up, one line an entry: text for people
// ("2026-01-31T12:00:00.000Z info   sentence") or one JSON object {"time", "level", "message"}. A newline in
// a message never makes a second line of JSON. Called once by main, before other threads start; logging
// itself is thread-safe. What gRPC has to say goes the same way, as debug: anybody who connects can make it
// say something.
void SetUpLog(LogLevel level, LogFormat format);

}  // namespace gyre
