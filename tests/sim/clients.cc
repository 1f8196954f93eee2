// The clients of a simulated cluster.
#include "tests/sim/clients.h"

#include <utility>

#include "server/core/coordinator_ops.h"
#include "storage/format/row_key.h"

namespace gyre::sim {
namespace {

constexpr Micros kThink = Millis(60);
constexpr int kOutstandingMax = 3;
constexpr int kAttemptsMax = 4;

// On these nobody writes without having read, so that nothing may ever be overwritten unseen.
bool Careful(const Key& key) { return key.name.back() % 2 == 0; }

}  // namespace

Clients::Clients(World& world, Cluster& cluster, size_t clients)
    : world_(world),
      cluster_(cluster),
      strict_(world.random().Chance(0.5)),
      keys_(1 + world.random().Below(6)) {
  for (size_t i = 0; i < clients; ++i) {
    clients_.push_back(std::make_unique<Client>());
    clients_.back()->number = i;
  }
}

// What a quorum knew of it may be known by less than one.
void Clients::DiskLost() {
  history_.DiskLost();
  for (const auto& client : clients_) {
    for (auto& [key, known] : client->contexts) {
      for (Claims::Claim& claim : known.claims) claim.sure = claim.sure && !claim.own;
    }
  }
}

void Clients::Begin(Micros end) {
  for (const auto& client : clients_) {
    world_.In(world_.random().Between({0}, kThink), [this, each = client.get(), end] { Act(*each, end); });
  }
}

void Clients::Act(Client& client, Micros end) {
  Random& random = world_.random();
  if (world_.now() >= end) return;
  world_.In(random.Between({0}, kThink + kThink), [this, &client, end] { Act(client, end); });
  if (client.outstanding >= kOutstandingMax) return;
  const Key key = {keyspaces_[random.Below(keyspaces_.size())],
                   std::string("k").append(std::to_string(random.Below(keys_)))};
  const uint64_t dice = random.Below(100);
  if (dice < 6) {
    const auto scan = std::make_shared<Scan>();
    scan->keyspace = key.keyspace;
    scan->limit = static_cast<uint32_t>(random.Below(4));
    scan->start = world_.now();
    ++client.outstanding;
    return ScanOn(client, scan);
  }
  const auto known = client.contexts.find(key);
  if (dice < 40 || (Careful(key) && known == client.contexts.end()))
    return Get(&client, key, MaybeCount(key), nullptr);
  const bool with_context = known != client.contexts.end() && (Careful(key) || random.Chance(0.6));
  const Claims context = with_context ? known->second : Claims{};
  Write(client, key, dice >= 88, with_context ? &context : nullptr);
  if (random.Chance(0.1)) Write(client, key, false, with_context ? &context : nullptr);
}

std::optional<ReplicaCount> Clients::MaybeCount(const Key& key) {
  Random& random = world_.random();
  if (!random.Chance(0.15)) return std::nullopt;
  const auto how = static_cast<ReplicaCount::How>(random.Below(4));
  return ReplicaCount{how,
                      1 + static_cast<int64_t>(random.Below(static_cast<uint64_t>(Replicas(key.keyspace))))};
}

int Clients::Replicas(const std::string& keyspace) const {
  const KeyspaceSpec& spec = **FindKeyspace(cluster_.view(), keyspace);
  return std::min(spec.n, static_cast<int>(cluster_.first_members()));
}

int Clients::Needed(const std::string& keyspace, const std::optional<ReplicaCount>& asked, bool write) const {
  const KeyspaceSpec& spec = **FindKeyspace(cluster_.view(), keyspace);
  return CountOf(asked ? *asked : write ? spec.w : spec.r, Replicas(keyspace));
}

int Clients::Promised(int r, bool after_all) const { return strict_ || after_all ? r : 0; }

void Clients::Write(Client& client, const Key& key, bool is_delete, const Claims* context) {
  Random& random = world_.random();
  const WriteId write_id = {random.Next(), random.Next()};
  const std::string value = std::to_string(client.number).append(":").append(std::to_string(++written_));
  const EventId event =
      history_.Begin(key, is_delete, is_delete ? "" : value, write_id, context, world_.now()).id;
  std::optional<std::string> bytes;
  if (context != nullptr) bytes = context->bytes;
  const std::optional<ReplicaCount> w = MaybeCount(key);
  ++client.outstanding;
  const size_t node = random.Below(cluster_.size());
  if (is_delete)
    return Attempt(
        client, event,
        DeleteCall{.keyspace = key.keyspace, .key = key.name, .w = w, .strict = strict_, .context = bytes},
        node);
  std::optional<int64_t> ttl_ms;
  if (random.Chance(0.1)) {
    ttl_ms = 1000 + static_cast<int64_t>(random.Below(5000));
    history_.Expires(event);
  }
  Attempt(client, event,
          PutCall{.keyspace = key.keyspace,
                  .key = key.name,
                  .value = value,
                  .w = w,
                  .strict = strict_,
                  .context = bytes,
                  .ttl_ms = ttl_ms,
                  .write_id = write_id},
          node);
}

Outcome Clients::Judge(const CallResult* result) {
  if (result != nullptr && result->status.ok()) {
    world_.Add(Count::kOk);
    return Outcome::kOk;
  }
  if (result == nullptr || result->status.code() == absl::StatusCode::kUnknown) {
    world_.Add(Count::kUnknown);
    return Outcome::kUnknown;
  }
  world_.Add(Count::kRefused);
  // A node that has not heard of a new keyspace yet says so, and one whose clock is far behind does not
  // believe a context that no quorum knows.
  const auto says = [&](const char* words) {
    return result->status.message().find(words) != absl::string_view::npos;
  };
  if (result->status.code() == absl::StatusCode::kInvalidArgument && !says("\"late\" does not exist") &&
      !says("context is from the future")) {
    world_.Violated("a good call was refused: " + result->status.ToString());
  }
  return Outcome::kRefused;
}

void Clients::Attempt(Client& client, EventId id, Call call, size_t node) {
  history_.Attempt(id);
  const std::optional<ReplicaCount> asked =
      std::holds_alternative<PutCall>(call) ? std::get<PutCall>(call).w : std::get<DeleteCall>(call).w;
  const Key key = history_.event(id).key;
  const int w = Needed(key.keyspace, asked, true);
  const auto answered = [this, id, key, w](const CallResult& result) {
    if (!result.status.ok()) return;
    if (std::get<WriteResult>(result.result).fallbacks > 0) world_.Add(Count::kFallbacks);
    const uint32_t keyspace = (*FindKeyspace(cluster_.view(), key.keyspace))->id;
    cluster_.invariants().Acknowledged(
        history_.event(id), std::get<WriteResult>(result.result), keyspace,
        MakeRowKey(keyspace, TokenOf(key.name).value, key.name), w,
        cluster_.HoldersOf((*FindKeyspace(cluster_.view(), key.keyspace))->name, key.name), cluster_.Nodes());
  };
  const auto done = [this, &client, id, call, key, w, node](const CallResult* result) {
    Random& random = world_.random();
    const Outcome outcome = Judge(result);
    history_.AttemptEnded(id, outcome, w, world_.now());
    const Event& event = history_.event(id);
    if (outcome == Outcome::kOk) {
      --client.outstanding;
      Claims& known = client.contexts[key];
      known.bytes = std::get<WriteResult>(result->result).context;
      known.claims = event.claims;
      // A context names only the last own write; those before it are covered by whoever has that one.
      const int n = Replicas(key.keyspace);
      const bool sure = strict_ && w + n / 2 + 1 > n;
      for (Claims::Claim& claim : known.claims) claim.sure = claim.sure && (sure || !claim.own);
      known.claims.push_back({.event = id, .at = world_.now(), .r = n, .own = true, .sure = sure});
      return;
    }
    const auto* put = std::get_if<PutCall>(&call);
    if (put == nullptr || event.attempts >= kAttemptsMax || random.Chance(0.3)) {
      --client.outstanding;
      return;
    }
    world_.Add(Count::kRetries);
    PutCall again = *put;
    again.retry = true;
    const size_t to = random.Chance(0.5) ? node : random.Below(cluster_.size());
    world_.In(random.Between({0}, Millis(300)),
              [this, &client, id, again, to] { Attempt(client, id, again, to); });
  };
  const Micros timeout = world_.random().Between(Millis(200), Seconds(2));
  cluster_.Ask({.node = node, .call = call, .timeout = timeout, .answered = answered, .done = done});
}

void Clients::Explain(const History::Read& read) {
  if (std::string sentence = history_.Check(read); !sentence.empty()) world_.Violated(sentence);
}

void Clients::Get(Client* client, const Key& key, std::optional<ReplicaCount> r, size_t* good) {
  if (client != nullptr) ++client->outstanding;
  const Micros start = world_.now();
  const auto done = [this, client, key, r, good, start](const CallResult* result) {
    if (client != nullptr) --client->outstanding;
    if (Judge(result) != Outcome::kOk) return;
    world_.Add(Count::kReads);
    const GetResult& get = std::get<GetResult>(result->result);
    History::Read read = {.key = key,
                          .start = start,
                          .end = world_.now(),
                          .r = Promised(Needed(key.keyspace, r, false), good != nullptr),
                          .n = Replicas(key.keyspace),
                          .rule = (*FindKeyspace(cluster_.view(), key.keyspace))->conflict};
    for (const ReadValue& value : get.values) read.values.push_back(value.value);
    read.all_expired = all_expired_;
    Explain(read);
    if (good != nullptr) ++*good;
    if (client == nullptr || !world_.ok()) return;
    Claims& known = client->contexts[key];
    known.bytes = get.context;
    known.claims.clear();
    for (const std::string& value : read.values)
      known.claims.push_back({.event = history_.OfValue(value)->id, .at = start, .r = read.r});
  };
  const Micros timeout = world_.random().Between(Millis(200), Seconds(2));
  cluster_.Ask(
      {.node = good == nullptr ? world_.random().Below(cluster_.size()) : cluster_.AnyLiving(),
       .call =
           GetCall{.keyspace = key.keyspace, .key = key.name, .r = r, .strict = strict_ || good != nullptr},
       .timeout = good != nullptr ? Seconds(5) : timeout,
       .answered = [](const CallResult&) {},
       .done = done});
}

// One page after the other until the scan is complete.
void Clients::ScanOn(Client& client, const std::shared_ptr<Scan>& scan) {
  const auto done = [this, &client, scan](const CallResult* result) {
    if (Judge(result) != Outcome::kOk) {
      --client.outstanding;
      return;
    }
    const ScanResult& page = std::get<ScanResult>(result->result);
    for (const ScanRow& row : page.rows) {
      const auto [at, is_new] = scan->rows.try_emplace(row.key);
      if (!is_new) world_.Violated("a scan showed the key " + row.key + " twice");
      for (const ReadValue& value : row.values) at->second.push_back(value.value);
    }
    scan->cursor = page.next_cursor;
    if (!scan->cursor.empty()) return ScanOn(client, scan);
    --client.outstanding;
    world_.Add(Count::kScans);
    CheckScan(*scan);
  };
  cluster_.Ask({.node = world_.random().Below(cluster_.size()),
                .call = ScanCall{.keyspace = scan->keyspace, .cursor = scan->cursor, .limit = scan->limit},
                .timeout = Seconds(1),
                .answered = [](const CallResult&) {},
                .done = done});
}

void Clients::CheckScan(const Scan& scan) {
  for (const Key& key : history_.Keys()) {
    if (key.keyspace != scan.keyspace) continue;
    const auto row = scan.rows.find(key.name);
    Explain({.key = key,
             .values = row == scan.rows.end() ? std::vector<std::string>() : row->second,
             .start = scan.start,
             .end = world_.now(),
             .r = Promised(Needed(scan.keyspace, std::nullopt, false), false),
             .n = Replicas(scan.keyspace),
             .rule = (*FindKeyspace(cluster_.view(), scan.keyspace))->conflict});
  }
}

void Clients::ReadAll(size_t& read) {
  read = 0;
  for (const Key& key : history_.Keys()) Get(nullptr, key, ReplicaCount{ReplicaCount::How::kAll, 0}, &read);
}

}  // namespace gyre::sim
