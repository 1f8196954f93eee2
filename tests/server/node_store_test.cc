// A damaged store is rebuilt, at whatever moment that is interrupted, and nothing readable is lost on the
// way.
#include "server/node_store.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/core/membership.h"
#include "server/core/membership_codec.h"
#include "storage/format/meta_codec.h"
#include "tests/server/core/turns.h"
#include "tests/storage/rocks_world.h"
#include "tests/storage/rot.h"

namespace gyre {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kRows = 3000;

bool GoOn() { return true; }
const absl::Status kDamage = absl::DataLossError("a block is rotten");

std::string RowKeyOf(int i) {
  return MakeRowKey(1, static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15, "key" + std::to_string(i));
}

class NodeStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    identity_.emplace(*OpenIdentity(directory_.path() + "/data"));
    ASSERT_TRUE(identity_->SetCluster(7).ok());
  }
  // A first store, of a member of a cluster of three.
  void Fill(int n = 3) {
    const absl::StatusOr<NodeStore> opened = Open();
    ASSERT_TRUE(opened.ok()) << opened.status();
    Store store(*opened->engine);
    Layout layout = ThreeNodes()->layout;
    layout.keyspaces[0].n = n;
    const EngineWrite facts[] = {
        {Table::kMeta, std::string(kMetaMembership) + "layout", Bytes(EncodeLayout(layout))},
        {Table::kMeta, std::string(kMetaFilling), nullptr}};
    ASSERT_TRUE(store.Commit({}, facts, Durability::kDisk).ok());
    for (int i = 0; i < kRows; ++i) {
      Record record;
      ApplyPut(record, {.dot = {{1, 0}, 100 + static_cast<uint64_t>(i)}, .value = std::string(500, 'v')},
               nullptr);
      const RowWrite write{RowKeyOf(i), nullptr, Bytes(EncodeRecord(record))};
      ASSERT_TRUE(store.Commit({&write, 1}, {}, Durability::kMemory).ok());
    }
    stores_ = identity_->stores();
  }
  absl::StatusOr<NodeStore> Open() { return OpenNodeStore(*identity_, damage_, GoOn); }
  std::string Path(const std::string& name) const { return identity_->data_dir() + "/" + name; }
  bool Exists(const std::string& name) const { return fs::exists(Path(name)); }

  fs::path Manifest() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(Path("store"))) {
      if (entry.path().filename().string().starts_with("MANIFEST")) return entry.path();
    }
    return {};
  }

  // It was rebuilt once since Fill, of all rows.
  void ExpectRebuilt(const absl::StatusOr<NodeStore>& opened, size_t rows_least = kRows) {
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_TRUE(opened->filling);
    EXPECT_TRUE(opened->set_aside);
    EXPECT_GT(opened->rebuilt_ms, 0u);
    EXPECT_GE(Contents(*opened->engine, Table::kRows).size(), rows_least);
    EXPECT_GT(identity_->stores(), stores_);
    const auto actor = DecodeActorState(*opened->engine->Get(Table::kMeta, kMetaActor));
    ASSERT_TRUE(actor.ok());
    EXPECT_EQ(actor->incarnation, identity_->stores() << 20);
    // Votes may be among what was not read.
    const auto [votes, forgotten] = Membership::VotesForgotten();
    EXPECT_EQ(*opened->engine->Get(Table::kMeta, votes), forgotten);
    EXPECT_TRUE(damage_.first().ok());
    EXPECT_TRUE(Exists("store.damaged"));
    EXPECT_FALSE(Exists("store.new"));
  }

  TemporaryDirectory directory_;
  std::optional<Identity> identity_;
  StoreDamage damage_;
  uint64_t stores_ = 0;
};

TEST_F(NodeStoreTest, AWholeStoreIsOpenedAsItIs) {
  Fill();
  const absl::StatusOr<NodeStore> opened = Open();
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_FALSE(opened->filling);
  EXPECT_FALSE(opened->set_aside);
  EXPECT_EQ(opened->rebuilt_ms, 0u);
  EXPECT_EQ(identity_->stores(), stores_);
}

TEST_F(NodeStoreTest, DamageThatWasMetLeadsToANewStoreOfWhatCanBeRead) {
  Fill();
  damage_.Met(kDamage);
  ExpectRebuilt(Open());
  // Once is enough: from now on it fills.
  const uint64_t stores = identity_->stores();
  ExpectRebuilt(Open());
  EXPECT_EQ(identity_->stores(), stores);
  ASSERT_TRUE(RemoveSetAside(*identity_).ok());
  EXPECT_FALSE(Exists("store.damaged"));
  EXPECT_FALSE(Exists("store.discarded"));
}

TEST_F(NodeStoreTest, ARebuildThatIsInterruptedAnywhereIsBegunAnewOrOver) {
  Fill();
  fs::rename(Path("store"), Path("store.damaged"));
  const auto whole = FilesOf(Path("store.damaged"));
  {
    SCOPED_TRACE("set aside, and no more");
    ExpectRebuilt(Open());
    EXPECT_TRUE(FilesOf(Path("store.damaged")) == whole);
  }
  for (const int steps : {0, 1, 2}) {
    SCOPED_TRACE("ended in the middle of the copying");
    fs::remove_all(Path("store"));
    int asked = 0;
    const auto go_on = [&] { return asked++ < steps; };
    EXPECT_TRUE(absl::IsCancelled(OpenNodeStore(*identity_, damage_, go_on).status()));
    EXPECT_FALSE(Exists("store"));
    EXPECT_TRUE(Exists("store.new"));
    ExpectRebuilt(Open());
    EXPECT_TRUE(FilesOf(Path("store.damaged")) == whole);
  }
  {
    SCOPED_TRACE("copied, and not yet in its place");
    fs::rename(Path("store"), Path("store.new"));
    ExpectRebuilt(Open());
  }
  {
    SCOPED_TRACE("ended in the middle of the removal");
    fs::rename(Path("store.damaged"), Path("store.discarded"));
    fs::remove(Path("store.discarded/CURRENT"));
    const absl::StatusOr<NodeStore> opened = Open();
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_FALSE(opened->set_aside);
    EXPECT_FALSE(Exists("store.discarded"));
    EXPECT_EQ(Contents(*opened->engine, Table::kRows).size(), size_t{kRows});
  }
}

TEST_F(NodeStoreTest, Case84_ALogThatIsDamagedInTheMiddleIsNoReasonToStandStill) {
  Fill();
  const fs::path log = Largest(Path("store"), ".log");
  FlipByte(log, fs::file_size(log) / 2);
  ExpectRebuilt(Open(), kRows - 100);
  EXPECT_GE(damage_.met(), 1u);
}

TEST_F(NodeStoreTest, Case90_WhatCannotBeOpenedAtAllIsRefusedWithTheWayOut) {
  Fill();
  const fs::path manifest = Manifest();
  for (const bool current : {false, true}) {
    if (current) {
      fs::rename(Path("store/CURRENT"), Path("kept"));
    } else {
      FlipByte(manifest, 3);
    }
    const absl::Status status = Open().status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("move that directory away")) << status;
    EXPECT_FALSE(Exists("store.damaged"));
    if (current) {
      fs::rename(Path("kept"), Path("store/CURRENT"));
    } else {
      FlipByte(manifest, 3);
    }
  }
  damage_.Forget();
  const absl::StatusOr<NodeStore> opened = Open();
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_FALSE(opened->filling);
  EXPECT_EQ(Contents(*opened->engine, Table::kRows).size(), size_t{kRows});
}

TEST_F(NodeStoreTest, WhatNobodyElseHasIsNotGivenUp) {
  Fill(/*n=*/1);
  const fs::path log = Largest(Path("store"), ".log");
  FlipByte(log, fs::file_size(log) / 2);
  const absl::Status status = Open().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("has no second replica")) << status;
  EXPECT_TRUE(Exists("store"));
  EXPECT_FALSE(Exists("store.damaged"));
}

TEST_F(NodeStoreTest, AStoreThatIsDamagedAgainWhileItFillsIsRefused) {
  Fill();
  damage_.Met(kDamage);
  ExpectRebuilt(Open());
  FlipByte(Manifest(), 3);
  const absl::Status status = Open().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the disk may be failing")) << status;
  EXPECT_TRUE(Exists("store.damaged"));
}

TEST_F(NodeStoreTest, WithoutRoomForASecondStoreNoRebuildIsBegun) {
  Fill();
  const DiskRoom room = RoomToRebuild(*identity_);
  EXPECT_GT(room.needed_bytes, size_t{kRows} * 500);
  EXPECT_LT(room.needed_bytes, room.free_bytes);
  std::ofstream(Path("store/filler")).flush();
  fs::resize_file(Path("store/filler"), room.free_bytes * 2);  // which takes nothing
  EXPECT_GT(RoomToRebuild(*identity_).needed_bytes, room.free_bytes);
  const fs::path log = Largest(Path("store"), ".log");
  FlipByte(log, fs::file_size(log) / 2);
  const absl::Status status = Open().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no room for a second store")) << status;
  EXPECT_FALSE(Exists("store.damaged"));
  FlipByte(log, fs::file_size(log) / 2);
  {
    SCOPED_TRACE("it can be opened: what was met is passed over, as while it ran");
    const absl::StatusOr<NodeStore> opened = Open();
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_FALSE(opened->filling);
    EXPECT_FALSE(damage_.first().ok());
  }
  fs::remove(Path("store/filler"));
  ExpectRebuilt(Open());
}

TEST_F(NodeStoreTest, AStoreOfAnotherNodeIsNotSalvaged) {
  Fill();
  fs::rename(Path("store"), directory_.path() + "/store");
  identity_.emplace(*OpenIdentity(directory_.path() + "/another"));
  fs::rename(directory_.path() + "/store", Path("store"));
  damage_.Met(kDamage);
  EXPECT_TRUE(absl::IsFailedPrecondition(Open().status()));
}

TEST(ObstacleToRebuildTest, EachHasItsOwnWords) {
  constexpr uint64_t kNow = 1'700'000'000'000;
  constexpr uint64_t kHour = 3'600'000;
  const std::shared_ptr<const View> view = ThreeNodes();
  const NodeStore store;
  constexpr DiskRoom kRoom = {.needed_bytes = 1, .free_bytes = 1};
  EXPECT_EQ(ObstacleToRebuild(store, view.get(), true, kRoom, kNow), "");
  EXPECT_THAT(ObstacleToRebuild(store, nullptr, true, kRoom, kNow), HasSubstr("no cluster"));
  EXPECT_THAT(ObstacleToRebuild(store, view.get(), false, kRoom, kNow), HasSubstr("away"));
  Layout layout = view->layout;
  layout.keyspaces[0].n = 1;
  EXPECT_THAT(ObstacleToRebuild(store, MakeView(layout)->get(), true, kRoom, kNow),
              HasSubstr("no second replica"));
  EXPECT_EQ(ObstacleToRebuild(store, view.get(), true, {(700 << 20) + 1, 700 << 20}, kNow),
            "the disk has no room for a second store beside it, which may take 768 MiB: free some space");
  NodeStore filling;
  filling.set_aside = true;
  EXPECT_THAT(ObstacleToRebuild(filling, view.get(), true, kRoom, kNow), HasSubstr("still fills"));
  NodeStore rebuilt;
  for (const auto& [ago, allowed] : {std::pair(kHour - 1, false), {kHour, true}, {-kHour + 1, false}}) {
    rebuilt.rebuilt_ms = kNow - ago;
    EXPECT_EQ(ObstacleToRebuild(rebuilt, view.get(), true, kRoom, kNow).empty(), allowed) << ago;
  }
}

}  // namespace
}  // namespace gyre
