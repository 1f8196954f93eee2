// The Client's calls, each over the retry loop of call.h.
#include "client/client.h"

#include <absl/synchronization/notification.h>
#include <sstream>
#include <utility>

#include "client/call_of.h"
#include "client/credentials.h"
#include "client/grpc_connection.h"
#include "client/hedge.h"
#include "client/session_contexts.h"

namespace gyre {
inline namespace sdk {
namespace {

using std::chrono::milliseconds;

constexpr char kAcknowledgementsPayload[] = "gyre/acknowledgements";
constexpr milliseconds kTimeoutMax = std::chrono::hours(1);

bool IsTimeout(milliseconds timeout) { return timeout > milliseconds(0) && timeout <= kTimeoutMax; }
absl::Status BadTimeout() {
  return absl::InvalidArgumentError("timeout must be positive and at most an hour");
}

template <typename Result>
void StartCall(const std::shared_ptr<Connection>& connection, Request request, Call::Settings settings,
               Client::Callback<Result> done) {
  if (!IsTimeout(settings.timeout)) return done(BadTimeout());
  std::make_shared<CallOf<Result>>(connection, std::move(request), settings, std::move(done))->Start();
}

// The status of an update that ended before its write: it must not look like a write of unknown outcome.
absl::Status NothingWritten(const absl::Status& status, const std::string& why) {
  if (!OutcomeUnknown(status)) return status;
  return absl::UnavailableError("nothing was written, as " + why + ": " + std::string(status.message()));
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

absl::Status WithAcknowledgements(absl::Status status, const Acknowledgements& acknowledgements) {
  status.SetPayload(kAcknowledgementsPayload, absl::Cord(std::to_string(acknowledgements.got) + " of " +
                                                         std::to_string(acknowledgements.needed)));
  return status;
}

std::optional<Acknowledgements> AcknowledgementsOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kAcknowledgementsPayload);
  if (!payload) return std::nullopt;
  std::istringstream text{std::string(*payload)};
  Acknowledgements acknowledgements;
  std::string of;
  text >> acknowledgements.got >> of >> acknowledgements.needed;
  return acknowledgements;
}

std::vector<std::string> NodesAsked(const absl::Status& status) {
  const absl::optional<absl::Cord> asked = status.GetPayload(kAskedPayload);
  if (!asked) return {};
  std::vector<std::string> nodes;
  std::istringstream text{std::string(*asked)};
  for (std::string node; std::getline(text, node, ',');) nodes.push_back(node);
  return nodes;
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
  if (!IsTimeout(options.timeout)) return BadTimeout();
  if (options.hedge_after < milliseconds(0) || options.hedge_after > kTimeoutMax) {
    return absl::InvalidArgumentError("hedge_after must be 0 or positive, and at most an hour");
  }
  if (!(options.hedge_budget > 0 && options.hedge_budget <= 1)) {
    return absl::InvalidArgumentError("hedge_budget must be above 0, and at most 1");
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
  Handle(std::shared_ptr<Connection> owned, const Options& options)
      : connection(std::move(owned)),
        hedging{options.hedge_after, std::make_shared<HedgeBudget>(options.hedge_budget)},
        contexts(options.read_your_writes ? std::make_shared<SessionContexts>() : nullptr) {}
  ~Handle() { connection->Shutdown(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  const std::shared_ptr<Connection> connection;
  const Hedging hedging;
  const std::shared_ptr<SessionContexts> contexts;  // null: none are remembered
};

namespace {

// `done`, after the context of a write was remembered.
template <typename Result>
Client::Callback<Result> AfterWrite(std::shared_ptr<SessionContexts> contexts, std::string keyspace,
                                    std::string key, Client::Callback<Result> done) {
  if (contexts == nullptr) return done;
  return [contexts = std::move(contexts), keyspace = std::move(keyspace), key = std::move(key),
          done = std::move(done)](absl::StatusOr<Result> result) {
    if (result.ok()) contexts->Wrote(keyspace, key, result->context);
    done(std::move(result));
  };
}

}  // namespace

Client::Client(std::shared_ptr<Connection> connection, const Options& options)
    : handle_(std::make_shared<Handle>(std::move(connection), options)),
      keyspace_(options.keyspace),
      timeout_(options.timeout) {}

void Client::AsyncPut(std::string key, std::string value, const PutOptions& options,
                      Callback<PutResult> done) {
  if (options.may_have_been_sent && options.write_id.empty()) {
    return done(absl::InvalidArgumentError("a put that may have been sent before needs its write_id"));
  }
  PutRequest request{.keyspace = options.keyspace.empty() ? keyspace_ : options.keyspace,
                     .key = std::move(key),
                     .value = std::move(value),
                     .w = options.w,
                     .strict = options.strict,
                     .context = options.context,
                     .ttl = options.ttl,
                     .expires_at_ms = options.expires_at_ms,
                     .write_id = options.write_id,
                     .retry = options.may_have_been_sent};
  done = AfterWrite(handle_->contexts, request.keyspace, request.key, std::move(done));
  StartCall<PutResult>(handle_->connection, std::move(request),
                       {.kind = CallKind::kPut, .timeout = options.timeout.value_or(timeout_)},
                       std::move(done));
}

void Client::AsyncGet(std::string key, const GetOptions& options, Callback<GetResult> done) {
  GetRequest request{.keyspace = options.keyspace.empty() ? keyspace_ : options.keyspace,
                     .key = std::move(key),
                     .r = options.r,
                     .strict = options.strict,
                     .contexts = {}};
  if (options.context) request.contexts.push_back(*options.context);
  if (const auto& contexts = handle_->contexts; contexts != nullptr) {
    const std::vector<std::string> asked = contexts->Of(request.keyspace, request.key);
    request.contexts.insert(request.contexts.end(), asked.begin(), asked.end());
    done = [contexts, keyspace = request.keyspace, key = request.key, asked,
            done = std::move(done)](absl::StatusOr<GetResult> result) {
      if (result.ok()) contexts->Read(keyspace, key, asked, result->context);
      done(std::move(result));
    };
  }
  const Call::Settings settings{.kind = CallKind::kRead, .timeout = options.timeout.value_or(timeout_)};
  if (handle_->hedging.after.count() > 0 && IsTimeout(settings.timeout)) {
    return StartHedgedGet(handle_->connection, std::move(request), settings, handle_->hedging,
                          std::move(done));
  }
  StartCall<GetResult>(handle_->connection, std::move(request), settings, std::move(done));
}

void Client::AsyncDelete(std::string key, const DeleteOptions& options, Callback<DeleteResult> done) {
  DeleteRequest request{.keyspace = options.keyspace.empty() ? keyspace_ : options.keyspace,
                        .key = std::move(key),
                        .w = options.w,
                        .strict = options.strict,
                        .context = options.context};
  done = AfterWrite(handle_->contexts, request.keyspace, request.key, std::move(done));
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
  const GetOptions get{.keyspace = options.keyspace,
                       .r = options.r,
                       .strict = options.strict,
                       .context = {},
                       .timeout = options.timeout};
  AsyncGet(key, get,
           [client = *this, key, resolve = std::move(resolve), options,
            done = std::move(done)](absl::StatusOr<GetResult> read) mutable {
             if (!read.ok()) {
               return done(NothingWritten(read.status(), "the key could not be read"));
             }
             std::vector<std::string> values;
             for (Value& value : read->values) values.push_back(std::move(value.bytes));
             absl::StatusOr<std::optional<std::string>> made = resolve(values);
             if (!made.ok()) return done(NothingWritten(made.status(), "the resolver failed"));
             std::optional<std::string>& resolved = *made;
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
