// Messages of peers whose row keys are at the tokens of their keys: else mutations of keys would all be
// refused.
#pragma once

#include <string>

#include "proto/peer.pb.h"
#include "ring/token.h"
#include "storage/format/row_key.h"

namespace gyre::fuzz {

inline void Place(std::string& row_key) {
  RowKeyParts parts;
  if (row_key.size() > kRowKeyBytesMax || !ParseRowKey(row_key, parts)) return;
  row_key = MakeRowKey(parts.keyspace, TokenOf(parts.key).value, std::string(parts.key));
}

inline void Place(v1::PeerMessage& message) {
  const auto each = [](auto& rows) {
    for (auto& row : rows) Place(*row.mutable_row_key());
  };
  if (message.has_store()) Place(*message.mutable_store()->mutable_row_key());
  if (message.has_fetch()) Place(*message.mutable_fetch()->mutable_row_key());
  if (message.has_fetch_page_reply()) each(*message.mutable_fetch_page_reply()->mutable_rows());
  if (message.has_compare_rows()) each(*message.mutable_compare_rows()->mutable_rows());
  if (message.has_compare_rows_reply()) each(*message.mutable_compare_rows_reply()->mutable_rows());
}

}  // namespace gyre::fuzz
