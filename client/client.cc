// The Client's calls, each over the retry loop of call.h.
#include "client/client.h"

#include <absl/synchronization/notification.h>
#include <utility>

#include "client/call.h"
#include "client/credentials.h"
#include "client/grpc_connection.h"

namespace gyre {
inline namespace sdk {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTimeoutMax = std::chrono::hours(1);

// A call whose answer goes to a callback.
template <typename Result>
class CallOf final : public Call {
 public:
  CallOf(const std::shared_ptr<Connection>& connection, Request request, Settings settings,
         Client::Callback<Result> done)
      : Call(connection, std::move(request), settings), done_(std::move(done)) {}

 protected:
  void Finish(absl::StatusOr<Reply> reply) override {
    // Moved out first, so that what the callback owns dies with this call and not with its last reference.
    const Client::Callback<Result> done = std::move(done_);
    if (!reply.ok()) return done(reply.status());
    if (Result* result = std::get_if<Result>(&*reply)) return done(std::move(*result));
    done(absl::InternalError("the node answered with another kind of reply than was asked for"));
  }

 private:
  Client::Callback<Result> done_;
};

template <typename Result>
void StartCall(const std::shared_ptr<Connection>& connection, Request request, Call::Settings settings,
               Client::Callback<Result> done) {
  if (settings.timeout <= milliseconds(0) || settings.timeout > kTimeoutMax) {
    return done(absl::InvalidArgumentError("timeout must be positive and at most an hour"));
  }
  std::make_shared<CallOf<Result>>(connection, std::move(request), settings, std::move(done))->Start();
}

// Waits for the answer of an asynchronous call.
template <typename Answer>
Answer Await(const std::function<void(std::function<void(Answer)>)>& start) {
  std::optional<Answer> answer;
  absl::Notification answered;
  start([&](Answer given) {
    answer.emplace(std::move(given));
    answered.Notify();
  });
  answered.WaitForNotification();
  return *std::move(answer);
}

}  // namespace

bool OutcomeUnknown(const absl::Status& write_status) {
  return write_status.code() == absl::StatusCode::kUnknown ||
         write_status.code() == absl::StatusCode::kDeadlineExceeded;
}

absl::StatusOr<Client> Client::Connect(Options options) {
  if (options.endpoints.empty())
    return absl::InvalidArgumentError("endpoints is empty: give at least one HOST:PORT");
  for (const std::string& endpoint : options.endpoints) {
    const size_t colon = endpoint.rfind(':');
    if (colon == 0 || colon == std::string::npos || colon + 1 == endpoint.size()) {
      return absl::InvalidArgumentError("endpoint \"" + endpoint + "\" is not HOST:PORT");
    }
  }
  if (options.timeout <= milliseconds(0) || options.timeout > kTimeoutMax) {
    return absl::InvalidArgumentError("timeout must be positive and at most an hour");
  }
  if (options.connect_timeout <= milliseconds(0) || options.connect_timeout > kTimeoutMax) {
    return absl::InvalidArgumentError("connect_timeout must be positive and at most an hour");
  }
  const auto credentials = MakeCredentials(options.tls);
  if (!credentials.ok()) return credentials.status();
  std::shared_ptr<Connection> connection = MakeGrpcConnection({.endpoints = options.endpoints,
                                                               .connect_timeout = options.connect_timeout,
                                                               .credentials = *credentials});
  return Client(std::move(connection), options);
}

struct Client::Handle {
  explicit Handle(std::shared_ptr<Connection> owned) : connection(std::move(owned)) {}
  ~Handle() { connection->Shutdown(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  const std::shared_ptr<Connection> connection;
};

Client::Client(std::shared_ptr<Connection> connection, const Options& options)
    : handle_(std::make_shared<Handle>(std::move(connection))),
      keyspace_(options.keyspace),
      timeout_(options.timeout) {}

void Client::AsyncPut(std::string key, std::string value, const PutOptions& options,
                      Callback<PutResult> done) {
  PutRequest request{.keyspace = options.keyspace.empty() ? keyspace_ : options.keyspace,
                     .key = std::move(key),
                     .value = std::move(value),
                     .w = options.w,
                     .strict = options.strict,
                     .context = options.context,
                     .ttl = options.ttl,
                     .write_id = {}};
  StartCall<PutResult>(handle_->connection, std::move(request),
                       {.kind = CallKind::kPut, .timeout = options.timeout.value_or(timeout_)},
                       std::move(done));
}

void Client::AsyncGet(std::string key, const GetOptions& options, Callback<GetResult> done) {
  GetRequest request{.keyspace = options.keyspace.empty() ? keyspace_ : options.keyspace,
                     .key = std::move(key),
                     .r = options.r,
                     .strict = options.strict};
  StartCall<GetResult>(handle_->connection, std::move(request),
                       {.kind = CallKind::kRead, .timeout = options.timeout.value_or(timeout_)},
                       std::move(done));
}

void Client::AsyncDelete(std::string key, const DeleteOptions& options, Callback<DeleteResult> done) {
  DeleteRequest request{.keyspace = options.keyspace.empty() ? keyspace_ : options.keyspace,
                        .key = std::move(key),
                        .w = options.w,
                        .strict = options.strict,
                        .context = options.context};
  StartCall<DeleteResult>(handle_->connection, std::move(request),
                          {.kind = CallKind::kDelete, .timeout = options.timeout.value_or(timeout_)},
                          std::move(done));
}

void Client::AsyncScan(const ScanOptions& options, std::string cursor, Callback<ScanPage> done) {
  ScanRequest request{.keyspace = options.keyspace.empty() ? keyspace_ : options.keyspace,
                      .prefix = options.prefix,
                      .cursor = std::move(cursor),
                      .page_rows = options.page_rows,
                      .keys_only = options.keys_only,
                      .r = options.r};
  StartCall<ScanPage>(handle_->connection, std::move(request),
                      {.kind = CallKind::kRead, .timeout = options.timeout.value_or(timeout_)},
                      std::move(done));
}

void Client::AsyncUpdate(std::string key, Resolver resolve, const UpdateOptions& options,
                         std::function<void(absl::Status)> done) {
  const GetOptions get{
      .keyspace = options.keyspace, .r = options.r, .strict = options.strict, .timeout = options.timeout};
  AsyncGet(
      key, get,
      [client = *this, key, resolve = std::move(resolve), options,
       done = std::move(done)](absl::StatusOr<GetResult> read) mutable {
        if (!read.ok()) {
          // Nothing was written, so this must not look like a write of unknown outcome.
          const bool late = absl::IsDeadlineExceeded(read.status()) || absl::IsUnknown(read.status());
          return done(late ? absl::UnavailableError("nothing was written, as the key could not be read: " +
                                                    std::string(read.status().message()))
                           : read.status());
        }
        std::vector<std::string> values;
        for (Value& value : read->values) values.push_back(std::move(value.bytes));
        std::optional<std::string> resolved = resolve(values);
        if (!resolved) {
          const DeleteOptions del{.keyspace = options.keyspace,
                                  .w = options.w,
                                  .strict = options.strict,
                                  .context = std::move(read->context),
                                  .timeout = options.timeout};
          return client.AsyncDelete(std::move(key), del,
                                    [done = std::move(done)](auto result) { done(result.status()); });
        }
        const PutOptions put{.keyspace = options.keyspace,
                             .w = options.w,
                             .strict = options.strict,
                             .context = std::move(read->context),
                             .ttl = options.ttl,
                             .timeout = options.timeout};
        client.AsyncPut(std::move(key), *std::move(resolved), put,
                        [done = std::move(done)](auto result) { done(result.status()); });
      });
}

absl::StatusOr<PutResult> Client::Put(std::string key, std::string value, const PutOptions& options) {
  return Await<absl::StatusOr<PutResult>>(
      [&](auto done) { AsyncPut(std::move(key), std::move(value), options, std::move(done)); });
}

absl::StatusOr<GetResult> Client::Get(std::string key, const GetOptions& options) {
  return Await<absl::StatusOr<GetResult>>(
      [&](auto done) { AsyncGet(std::move(key), options, std::move(done)); });
}

absl::StatusOr<DeleteResult> Client::Delete(std::string key, const DeleteOptions& options) {
  return Await<absl::StatusOr<DeleteResult>>(
      [&](auto done) { AsyncDelete(std::move(key), options, std::move(done)); });
}

absl::Status Client::Update(std::string key, const Resolver& resolve, const UpdateOptions& options) {
  return Await<absl::Status>(
      [&](auto done) { AsyncUpdate(std::move(key), resolve, options, std::move(done)); });
}

absl::Status Client::Scan(const ScanOptions& options, const std::function<bool(const ScanRow&)>& visit) {
  std::string cursor;
  do {
    absl::StatusOr<ScanPage> page = Await<absl::StatusOr<ScanPage>>(
        [&](auto done) { AsyncScan(options, std::move(cursor), std::move(done)); });
    if (!page.ok()) return page.status();
    for (const ScanRow& row : page->rows) {
      if (!visit(row)) return absl::OkStatus();
    }
    cursor = std::move(page->next_cursor);
  } while (!cursor.empty());
  return absl::OkStatus();
}

}  // namespace sdk
}  // namespace gyre
