// Keys of rows, hints and the collection: what is taken apart is put together again.
#include "storage/format/row_key.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gyre;
  const std::string_view key = fuzz::Text(data, size);
  RowKeyParts parts;
  if (ParseRowKey(key, parts) && parts.key.size() <= kKeyBytesMax) {
    assert(MakeRowKey(parts.keyspace, parts.token, parts.key) == key);
    assert(RowKeyFloor(parts.keyspace, parts.token) <= key);
    const std::string ceiling = RowKeyCeiling(parts.keyspace, parts.token);
    assert(ceiling.empty() || key < ceiling);
  }
  uint64_t node = 0;
  std::string_view row_key;
  if (ParseHintKey(key, node, row_key)) {
    assert(IsHintKey(key));
    assert(HintedRowKey(key) == row_key);
    assert(row_key.size() > kRowKeyBytesMax || MakeHintKey(node, row_key) == key);
  }
  assert(HintedRowKey(key).size() <= key.size());
  if (ParseCollectKey(key, row_key)) {
    assert(IsCollectKey(key));
    assert(ParseRowKey(row_key, parts));
    assert(MakeCollectKey(row_key, 1) > CollectKeyFloor(parts.keyspace, 1));
  }
  return 0;
}
