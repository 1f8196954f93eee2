// Says what inputs, messages and results are, in one line each: for the debug log and for traces of the
// simulator.
#pragma once

#include <string>

#include "server/core/message.h"

namespace gyre {

// Keys are quoted and made printable; values and records are cut short.
std::string Describe(const Call& call);
std::string Describe(const CallResult& result);
std::string Describe(const Message& message);
std::string Describe(const Input& input);
// A line for each obligation, each ending in '\n'.
std::string Describe(const Outbox& out);
std::string DescribeRecord(const RecordBytes& record);
std::string DescribeRowKey(const std::string& row_key);

}  // namespace gyre
