// A node's store: opened, claimed for its node, and rebuilt when it is damaged.
#include "server/node_store.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <spdlog/spdlog.h>
#include <utility>
#include <vector>

#include "server/core/membership.h"
#include "server/files.h"
#include "storage/format/meta_codec.h"
#include "storage/rocks_engine.h"
#include "storage/salvage.h"
#include "storage/watched_engine.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;

// Beside one another, in the data directory.
constexpr char kStore[] = "store";
constexpr char kDamaged[] = "store.damaged";      // set aside
constexpr char kReading[] = "store.reading";      // the same, laid out to be read
constexpr char kNew[] = "store.new";              // being made of that
constexpr char kDiscarded[] = "store.discarded";  // being removed

// So seldom that a disk which is dying does not keep its node away for good: what it loses meanwhile is
// passed over, and the node says so.
constexpr uint64_t kRebuildEveryMs = 60 * 60 * 1000;

std::string PathOf(const Identity& identity, const char* name) { return identity.data_dir() + "/" + name; }

bool Exists(const Identity& identity, const char* name) {
  std::error_code error;
  return fs::exists(PathOf(identity, name), error);
}

absl::Status Remove(const Identity& identity, const char* name) {
  std::error_code error;
  fs::remove_all(PathOf(identity, name), error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError("the directory " + PathOf(identity, name) +
                                " cannot be removed: " + error.message());
}

RecordBytes BytesOf(std::string value) { return std::make_shared<const std::string>(std::move(value)); }

std::string Bytes64(uint64_t value) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

uint64_t Number64(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

uint64_t WallMs() {
  using std::chrono::duration_cast;
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(duration_cast<std::chrono::milliseconds>(wall).count());
}

EngineWrite Fact(std::string_view name, std::string value) {
  return {Table::kMeta, std::string(name), BytesOf(std::move(value))};
}

// What makes a store, which may lack what its node confirmed, one that fills. It writes under other names
// than those before it did, as nobody knows what they wrote last.
absl::StatusOr<std::vector<EngineWrite>> ClaimToFill(Identity& identity) {
  constexpr int kIncarnationsOfAStore = 20;  // bits
  if (absl::Status status = identity.CountStore(); !status.ok()) return status;
  const ActorState actor = {.incarnation = static_cast<uint32_t>(identity.stores() << kIncarnationsOfAStore),
                            .clean = true};
  const auto [votes, forgotten] = Membership::VotesForgotten();
  return std::vector<EngineWrite>{Fact(kMetaOwner, Bytes64(identity.node().value)),
                                  Fact(kMetaActor, EncodeActorState(actor)), Fact(kMetaFilling, ""),
                                  Fact(votes, forgotten)};
}

absl::Status CheckOwner(const std::string& owner, const std::string& path, const Identity& identity) {
  if (owner == Bytes64(identity.node().value)) return absl::OkStatus();
  return absl::FailedPreconditionError("the store in " + path +
                                       " belongs to another node than the identity beside it (" +
                                       ToString(identity.node()) + "); put back the right one");
}

// A store belongs to the node whose identity lies beside it: a store that was copied is refused. True: the
// store is filling. One that is new although its node belongs to a cluster takes the place of one that was
// lost.
absl::StatusOr<bool> ClaimStore(Engine& engine, Identity& identity) {
  const absl::StatusOr<std::string> owner = engine.Get(Table::kMeta, kMetaOwner);
  if (owner.ok()) {
    if (absl::Status status = CheckOwner(*owner, identity.store_dir(), identity); !status.ok()) return status;
    const absl::Status filling = engine.Get(Table::kMeta, kMetaFilling).status();
    if (!filling.ok() && !absl::IsNotFound(filling)) return filling;  // unknown is not "full"
    return filling.ok();
  }
  if (!absl::IsNotFound(owner.status())) return owner.status();
  const bool lost = identity.cluster() != 0;
  absl::StatusOr<std::vector<EngineWrite>> claim =
      std::vector<EngineWrite>{Fact(kMetaOwner, Bytes64(identity.node().value))};
  if (lost) {
    claim = ClaimToFill(identity);
    if (!claim.ok()) return claim.status();
    spdlog::warn(
        "the store in {} is new, but node {} belongs to a cluster: it fills from the other replicas, and "
        "answers no reads until it has compared what it has with all of them",
        identity.store_dir(), ToString(identity.node()));
  }
  if (absl::Status status = engine.Apply(*claim, Durability::kDisk, ""); !status.ok()) return status;
  return lost;
}

// The last word about a store of which too little can be read.
absl::Status Unreadable(const std::string& path, const absl::Status& why) {
  return absl::DataLossError("the store in " + path + " is damaged so that this node cannot start with it: " +
                             std::string(why.message()) +
                             "; move that directory away and start again: the node then fills from the other "
                             "replicas");
}

// Why rows that are lost here are lost; empty: the others have them, too.
std::string NoOtherReplica(const View& view) {
  for (const KeyspaceSpec& keyspace : view.layout.keyspaces) {
    if (std::min<size_t>(static_cast<size_t>(keyspace.n), view.layout.members.size()) > 1) continue;
    return "keyspace '" + keyspace.name + "' has no second replica to fill from";
  }
  return "";
}

DiskRoom RoomFor(const std::string& store) {
  constexpr uint64_t kOverheadBytes = 64 << 20;  // of logs and merges, while it is written
  DiskRoom room = {.needed_bytes = kOverheadBytes, .free_bytes = std::numeric_limits<uint64_t>::max()};
  std::error_code error;  // what cannot be asked is no obstacle: whoever writes meets it
  for (fs::recursive_directory_iterator entry(store, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    const uintmax_t bytes = entry->is_regular_file(gone) ? entry->file_size(gone) : 0;
    if (!gone) room.needed_bytes += bytes;
  }
  const fs::space_info space = fs::space(store, error);
  if (!error) room.free_bytes = space.available;
  return room;
}

// Why there cannot be a second store; empty: there can. The words change seldom while the store grows.
std::string NoRoom(const DiskRoom& room) {
  constexpr uint64_t kStepBytes = 256 << 20;
  if (room.free_bytes >= room.needed_bytes) return "";
  const uint64_t steps = (room.needed_bytes + kStepBytes - 1) / kStepBytes;
  return "the disk has no room for a second store beside it, which may take " +
         std::to_string(steps * (kStepBytes >> 20)) + " MiB: free some space";
}

// Whether a damaged store can be rebuilt: what a node has to know is there.
absl::Status CheckRebuild(Engine& damaged, const std::string& path, const Identity& identity) {
  const auto facts = ReadFacts(damaged);
  if (absl::IsDataLoss(facts.status())) return Unreadable(path, facts.status());
  if (!facts.ok()) return facts.status();
  const auto owner = facts->find(std::string(kMetaOwner));
  if (owner == facts->end()) {
    return Unreadable(path, absl::DataLossError("whose it is cannot be read"));
  }
  if (absl::Status status = CheckOwner(owner->second, path, identity); !status.ok()) return status;
  std::map<std::string, std::string> of_membership;
  for (const auto& [name, value] : *facts) {
    if (name.starts_with(kMetaMembership)) of_membership.emplace(name, value);
  }
  absl::Status status;
  Membership::Config config;
  config.self = {.id = identity.node(), .peer_address = "nowhere"};  // it is only asked what it remembers
  const Membership membership(std::move(config), of_membership, &status);
  if (!status.ok()) return Unreadable(path, status);
  if (membership.view() == nullptr) {
    return Unreadable(path, absl::DataLossError("the layout of the cluster cannot be read"));
  }
  if (const std::string obstacle = NoOtherReplica(*membership.view()); !obstacle.empty()) {
    return absl::DataLossError(
        "the store in " + path + " is damaged, and " + obstacle +
        "; put back a copy of that directory, or move it away to give up what only this "
        "node holds");
  }
  return absl::OkStatus();
}

// Makes the new store.
absl::StatusOr<Salvaged> CopyToNew(Remains& damaged, Identity& identity, absl::FunctionRef<bool()> go_on) {
  const auto fresh = RocksEngine::Open(PathOf(identity, kNew));
  if (!fresh.ok()) return fresh.status();
  Store store(**fresh);
  absl::StatusOr<Salvaged> salvaged = Salvage(damaged, store, go_on);
  if (!salvaged.ok()) return salvaged;
  absl::StatusOr<std::vector<EngineWrite>> claim = ClaimToFill(identity);
  if (!claim.ok()) return claim.status();
  claim->push_back(Fact(kMetaRebuilt, Bytes64(WallMs())));
  if (absl::Status status = store.Commit({}, *claim, Durability::kDisk); !status.ok()) return status;
  if (absl::Status status = store.SaveSums(); !status.ok()) return status;
  return salvaged;
}

// From the damaged store `from`, which is set aside unless it has been, to a new one in its place. May be
// interrupted anywhere: the next start begins anew, for what was set aside is only read.
absl::Status Rebuild(const char* from, Identity& identity, absl::FunctionRef<bool()> go_on) {
  if (absl::Status status = Remove(identity, kNew); !status.ok()) return status;
  if (const std::string no_room = NoRoom(RoomFor(PathOf(identity, from))); !no_room.empty()) {
    return absl::DataLossError(
        "the store in " + PathOf(identity, from) +
        " is damaged so that this node cannot start with it, and it is not rebuilt, for " + no_room +
        ", and start again");
  }
  auto damaged = RocksEngine::OpenDamaged(PathOf(identity, from), PathOf(identity, kReading));
  if (absl::IsDataLoss(damaged.status())) return Unreadable(PathOf(identity, from), damaged.status());
  if (!damaged.ok()) return damaged.status();
  if (absl::Status status = CheckRebuild((*damaged)->engine(), PathOf(identity, from), identity);
      !status.ok()) {
    return status;
  }
  if (std::string_view(from) != kDamaged) {
    if (absl::Status status = RenameIn(identity.data_dir(), from, kDamaged); !status.ok()) return status;
  }
  const absl::StatusOr<Salvaged> salvaged = CopyToNew(**damaged, identity, go_on);
  if (!salvaged.ok()) return salvaged.status();
  damaged->reset();
  if (absl::Status status = Remove(identity, kReading); !status.ok()) return status;
  if (absl::Status status = RenameIn(identity.data_dir(), kNew, kStore); !status.ok()) return status;
  spdlog::warn(
      "the store in {} was rebuilt: {} rows and {} hints were read of the damaged one, and {} places of its "
      "tables were passed over{}. This node fills from the other replicas, and answers no reads until it has "
      "compared what it has with all of them; {} is kept until then",
      identity.store_dir(), salvaged->rows, salvaged->hints, salvaged->places,
      salvaged->places == 0 ? "" : " (the first: " + std::string(salvaged->first.message()) + ")",
      PathOf(identity, kDamaged));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Engine>> OpenEngine(const Identity& identity, StoreDamage& damage) {
  const auto met = [&damage](const absl::Status& what) { damage.Met(what); };
  RocksOptions options;
  options.met_damage = met;
  absl::StatusOr<std::unique_ptr<Engine>> engine = RocksEngine::Open(identity.store_dir(), options);
  if (!engine.ok()) return engine.status();
  return std::make_unique<WatchedEngine>(*std::move(engine), met);
}

}  // namespace

absl::StatusOr<NodeStore> OpenNodeStore(Identity& identity, StoreDamage& damage,
                                        absl::FunctionRef<bool()> go_on) {
  for (const char* const left_over : {kDiscarded, kReading}) {
    if (absl::Status status = Remove(identity, left_over); !status.ok()) return status;
  }
  NodeStore store = {.set_aside = Exists(identity, kDamaged)};
  const auto rebuild = [&](const char* from) {
    store.set_aside = true;
    absl::Status status = Rebuild(from, identity, go_on);
    if (status.ok()) damage.Forget();
    return status;
  };
  const auto set_aside_and_rebuild = [&] {
    spdlog::error("{}: the store is set aside as {}, and a new one is made of what can be read of it",
                  std::string(damage.first().message()), PathOf(identity, kDamaged));
    return rebuild(kStore);
  };
  if (store.set_aside && !Exists(identity, kStore)) {
    spdlog::warn("the store in {} was being rebuilt when this node ended; that is begun anew",
                 identity.store_dir());
    if (absl::Status status = rebuild(kDamaged); !status.ok()) return status;
  } else if (!store.set_aside && !damage.first().ok() && NoRoom(RoomToRebuild(identity)).empty()) {
    if (absl::Status status = set_aside_and_rebuild(); !status.ok()) return status;
  }
  absl::StatusOr<std::unique_ptr<Engine>> engine = OpenEngine(identity, damage);
  if (absl::IsDataLoss(engine.status())) {
    damage.Met(engine.status());
    if (store.set_aside) {
      return absl::DataLossError(
          std::string(engine.status().message()) + ". It still fills after it was rebuilt from " +
          PathOf(identity, kDamaged) +
          ", so the disk may be failing: move the data directory to another disk, without "
          "its directory store, and start again");
    }
    if (absl::Status status = set_aside_and_rebuild(); !status.ok()) return status;
    engine = OpenEngine(identity, damage);
  }
  if (!engine.ok()) return engine.status();
  const auto facts = ReadFacts(**engine);
  if (absl::IsDataLoss(facts.status())) return Unreadable(identity.store_dir(), facts.status());
  if (!facts.ok()) return facts.status();
  if (const auto fact = facts->find(std::string(kMetaRebuilt)); fact != facts->end()) {
    store.rebuilt_ms = Number64(fact->second);
  }
  const absl::StatusOr<bool> filling = ClaimStore(**engine, identity);
  if (!filling.ok()) return filling.status();
  store.filling = *filling;
  store.engine = *std::move(engine);
  return store;
}

DiskRoom RoomToRebuild(const Identity& identity) { return RoomFor(identity.store_dir()); }

std::string ObstacleToRebuild(const NodeStore& store, const View* view, bool all_up, const DiskRoom& room,
                              uint64_t wall_ms) {
  if (view == nullptr) return "this node belongs to no cluster yet";
  if (std::string obstacle = NoOtherReplica(*view); !obstacle.empty()) return obstacle;
  if (store.set_aside) return "this node still fills after the store was rebuilt, so the disk may be failing";
  if (wall_ms < store.rebuilt_ms + kRebuildEveryMs && store.rebuilt_ms < wall_ms + kRebuildEveryMs) {
    return "it was rebuilt less than an hour ago, so the disk may be failing";
  }
  if (!all_up) return "a member is away, without which this node could not become full again";
  return NoRoom(room);
}

absl::Status RemoveSetAside(const Identity& identity) {
  const absl::Status status = RenameIn(identity.data_dir(), kDamaged, kDiscarded);
  if (!status.ok()) return status;
  return Remove(identity, kDiscarded);
}

}  // namespace gyre
