// scan, export, import. A line is {"key","value"}; a key with siblings has "values":[{"value"},...] instead
// of "value", and importing it puts those one after another, each without superseding the others.
#include <CLI/CLI.hpp>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <unistd.h>

#include "client/cli/progress.h"
#include "client/cli/session.h"
#include "client/cli/text.h"
#include "ring/token.h"

namespace gyre::cli {
namespace {

constexpr uint64_t kInFlightMax = 256;
constexpr uint64_t kErrorsShown = 10;
constexpr int kProgressShift = 32;  // of tokens: how far a scan is, in 2^32 parts

Json RowJson(const ScanRow& row, bool keys_only) {
  Json json;
  AddBytes(json, "key", row.key);
  if (keys_only) return json;
  if (row.values.size() == 1) {
    AddBytes(json, "value", row.values[0].bytes);
    return json;
  }
  json["values"] = Json::array();
  for (const Value& value : row.values) {
    Json sibling;
    AddBytes(sibling, "value", value.bytes);
    json["values"].push_back(sibling);
  }
  return json;
}

void PrintRow(const Session& session, const ScanRow& row, bool keys_only) {
  if (session.json) return session.Print(RowJson(row, keys_only));
  if (keys_only) return session.Print(row.key);
  for (const Value& value : row.values) session.Print(row.key + "\t" + value.bytes);
}

struct ScanFlags {
  std::string prefix;
  uint64_t limit = 0;
  bool keys_only = false;
};

void Scan(Session& session, const ScanFlags& flags) {
  absl::StatusOr<Client> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status(), Effect::kRead);
  ScanOptions options;
  options.prefix = flags.prefix;
  options.keys_only = flags.keys_only;
  uint64_t rows = 0;
  const absl::Status status = client->Scan(options, [&](const ScanRow& row) {
    PrintRow(session, row, flags.keys_only);
    return ++rows != flags.limit && std::ferror(stdout) == 0;
  });
  if (!status.ok()) session.Fail(status, Effect::kRead);
}

void Export(Session& session, const std::string& path) {
  absl::StatusOr<Client> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status(), Effect::kRead);
  std::ofstream file;
  if (path != "-") {
    file.open(path, std::ios::binary | std::ios::trunc);
    if (!file) return session.Fail(kOtherFailure, "PERMISSION_DENIED", "cannot write " + path);
  }
  // Rows come in the order of their tokens, which are spread evenly. A line between them would be in the way.
  ProgressLine progress;
  const bool apart = path != "-" || isatty(STDOUT_FILENO) != 1;
  const absl::Status status = client->Scan({}, [&](const ScanRow& row) {
    const Json json = RowJson(row, /*keys_only=*/false);
    if (path == "-") {
      session.Print(json);
    } else {
      file << json.dump() << '\n';
    }
    if (apart)
      progress.Show("exporting", TokenOf(row.key).value >> kProgressShift, uint64_t{1} << kProgressShift);
    return path == "-" ? std::ferror(stdout) == 0 : file.good();
  });
  progress.Clear();
  if (!status.ok()) return session.Fail(status, Effect::kRead);
  if (path == "-") return;
  file.close();
  if (!file) session.Fail(kOtherFailure, "DATA_LOSS", path + " could not be written completely");
}

// Counts puts in flight, and what became of them.
class Import {
 public:
  explicit Import(Session& session) : session_(session) {}

  void Failed(uint64_t line, const std::string& what) {
    const std::lock_guard lock(mutex_);
    FailedLocked(line, what);
  }
  void Put(Client& client, uint64_t line, std::string key, std::string value, PutOptions options) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return in_flight_ < kInFlightMax; });
      ++in_flight_;
    }
    client.AsyncPut(std::move(key), std::move(value), options, [this, line](absl::StatusOr<PutResult> put) {
      const std::lock_guard lock(mutex_);
      if (put.ok()) {
        ++imported_;
      } else {
        FailedLocked(line, put.status().ToString());
        last_ = put.status();
      }
      --in_flight_;
      changed_.notify_one();
    });
  }
  void Finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return in_flight_ == 0; });
    progress_.Clear();
    if (session_.json) {
      session_.Print(Json{{"imported", imported_}, {"failed", failed_}});
    } else {
      session_.Print("imported " + std::to_string(imported_) + ", failed " + std::to_string(failed_));
    }
    if (failed_ == 0) return;
    // The first wrong lines were told; the exit code is that of the last put that failed, if any did.
    session_.exit_code = last_.ok() ? static_cast<int>(kUsage) : ExitCodeOf(last_, Effect::kWrite);
  }
  void Progress(uint64_t done, uint64_t total) {
    const std::lock_guard lock(mutex_);
    progress_.Show("importing", done, total);
  }

 private:
  void FailedLocked(uint64_t line, const std::string& what) {
    if (++failed_ > kErrorsShown) return;
    progress_.Clear();
    session_.Fail(kOtherFailure, "IMPORT", "line " + std::to_string(line) + ": " + what);
  }

  Session& session_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  uint64_t in_flight_ = 0;
  uint64_t imported_ = 0;
  uint64_t failed_ = 0;
  absl::Status last_;
  ProgressLine progress_;
};

// The values of a line, or nothing when it is wrong.
std::vector<std::string> ValuesOf(const Json& line) {
  std::vector<std::string> values;
  if (const auto many = line.find("values"); many != line.end() && many->is_array()) {
    for (const Json& one : *many) {
      const auto value = one.is_object() ? TakeBytes(one, "value") : std::nullopt;
      if (!value) return {};
      values.push_back(*value);
    }
    return values;
  }
  if (const auto value = TakeBytes(line, "value")) values.push_back(*value);
  return values;
}

// Siblings are written with the context of a read from before all of them, so that each is kept.
absl::Status ImportLine(Client& client, Import& import, uint64_t number, const std::string& text) {
  const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) return absl::InvalidArgumentError("is not a JSON object");
  const auto key = TakeBytes(line, "key");
  if (!key) return absl::InvalidArgumentError("has no \"key\" or \"key_base64\" that is right");
  std::vector<std::string> values = ValuesOf(line);
  if (values.empty())
    return absl::InvalidArgumentError("has no \"value\", \"value_base64\" or \"values\" that is right");
  PutOptions options;
  if (values.size() > 1) {
    const auto before = client.Get(*key);
    if (!before.ok()) return before.status();
    options.context = before->context;
  }
  for (std::string& value : values) import.Put(client, number, *key, std::move(value), options);
  return absl::OkStatus();
}

void ImportAll(Session& session, const std::string& path) {
  absl::StatusOr<Client> client = session.Connect();
  if (!client.ok()) return session.Fail(client.status(), Effect::kRead);
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) return session.FailUsage("cannot read " + path);
  }
  std::istream& in = path == "-" ? std::cin : file;
  // By bytes of a file; of anything else only the lines are known.
  std::error_code no_file;
  const uint64_t bytes = path == "-" ? 0 : std::filesystem::file_size(path, no_file);
  const uint64_t total = no_file ? 0 : bytes;
  Import import(session);
  std::string text;
  uint64_t number = 0;
  uint64_t bytes_read = 0;
  while (std::getline(in, text)) {
    ++number;
    bytes_read += text.size() + 1;
    import.Progress(total > 0 ? bytes_read : number, total);
    if (text.empty()) continue;
    const absl::Status status = ImportLine(*client, import, number, text);
    if (!status.ok()) import.Failed(number, std::string(status.message()));
  }
  import.Finish();
}

}  // namespace

void AddBulkCommands(CLI::App& app, Session& session) {
  {
    auto flags = std::make_shared<ScanFlags>();
    CLI::App* scan = app.add_subcommand("scan", "list keys and values, in the order of their tokens");
    scan->add_option("--prefix", flags->prefix, "only keys that begin with this");
    scan->add_option("--limit", flags->limit, "at most so many keys; 0: all");
    scan->add_flag("--keys-only", flags->keys_only, "without values");
    scan->callback([&session, flags] { Scan(session, *flags); });
  }
  {
    auto path = std::make_shared<std::string>("-");
    CLI::App* all = app.add_subcommand("export", "write all keys as JSON lines; siblings as \"values\"");
    all->add_option("FILE", *path, "where to; default stdout");
    all->callback([&session, path] { Export(session, *path); });
  }
  {
    auto path = std::make_shared<std::string>();
    CLI::App* import = app.add_subcommand("import", "put every line of what export wrote");
    import->add_option("FILE", *path, "what to read; - is stdin")->required();
    import->callback([&session, path] { ImportAll(session, *path);
  });
}
}  // namespace gyre::cli

}  // namespace gyre::cli
