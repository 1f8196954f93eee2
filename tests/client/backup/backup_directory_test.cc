// The directory of a backup: what it keeps, what it notices, and that nothing leads out of it.
#include <fstream>
#include <sys/stat.h>

#include "tests/client/backup/backup_world.h"

namespace gyre::backup {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;

class DirectoryTest : public testing::Test {
 protected:
  std::string Path() const { return (world_.path() / "backup").string(); }
  Directory Make() const {
    absl::StatusOr<Directory> directory = Directory::Open(Path(), /*create=*/true);
    EXPECT_TRUE(directory.ok()) << directory.status();
    return *std::move(directory);
  }
  const TemporaryDirectory world_;
  const std::string name_ = Sha256Hex("content");
};

TEST_F(DirectoryTest, KeepsFilesAndChunks) {
  Directory directory = Make();
  EXPECT_EQ(*directory.ReadFile("manifest.jsonl"), std::nullopt);
  ASSERT_TRUE(directory.WriteFile("manifest.jsonl", "one").ok());
  ASSERT_TRUE(directory.WriteFile("manifest.jsonl", "two").ok());
  EXPECT_EQ(*directory.ReadFile("manifest.jsonl"), "two");
  ASSERT_TRUE(directory.WriteChunk(name_, "content").ok());
  EXPECT_EQ(*directory.ReadChunk(name_), "content");
  EXPECT_EQ(*directory.ListChunks(), std::vector{name_});
  ASSERT_TRUE(directory.Sync().ok());
  ASSERT_TRUE(directory.RemoveChunk(name_).ok());
  EXPECT_EQ(directory.ReadChunk(name_).status().code(), StatusCode::kNotFound);
}

TEST_F(DirectoryTest, NoticesEveryFlippedBitAndNamesTheFile) {
  Directory directory = Make();
  for (size_t bit = 0; bit < 7 * 8; ++bit) {
    std::string content = "content";
    content[bit / 8] = static_cast<char>(content[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_TRUE(directory.WriteChunk(name_, content).ok());
    const absl::Status status = directory.ReadChunk(name_).status();
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_NE(status.message().find(ChunkPath(Path(), name_).string()), absl::string_view::npos) << status;
  }
}

TEST_F(DirectoryTest, RefusesNamesThatAreNoChunks) {
  Directory directory = Make();
  const std::string outside = (world_.path() / "outside").string();
  std::ofstream(outside) << "secret";
  for (const std::string& name :
       {std::string("../outside"), std::string("../../outside"), outside, std::string(64, '.'), std::string(),
        std::string(63, 'a'), std::string(64, 'A'), "../" + std::string(61, 'a'),
        std::string(32, 'a') + "/" + std::string(31, 'a'), std::string(64, '\0')}) {
    EXPECT_EQ(directory.ReadChunk(name).status().code(), StatusCode::kFailedPrecondition) << name;
    EXPECT_EQ(directory.WriteChunk(name, "x").code(), StatusCode::kFailedPrecondition) << name;
    EXPECT_EQ(directory.RemoveChunk(name).code(), StatusCode::kFailedPrecondition) << name;
  }
  EXPECT_TRUE(fs::exists(outside));
}

TEST_F(DirectoryTest, FollowsNoSymbolicLinkInIt) {
  const fs::path outside = world_.path() / "outside";
  fs::create_directories(outside / name_.substr(0, 2));
  std::ofstream(outside / name_.substr(0, 2) / name_) << "content";
  const auto refused = [&](const char* what) {
    Directory directory = Make();
    EXPECT_EQ(directory.ReadChunk(name_).status().code(), StatusCode::kFailedPrecondition) << what;
    EXPECT_TRUE(fs::exists(outside / name_.substr(0, 2) / name_)) << what;
  };
  fs::create_directory(Path());
  fs::create_directory_symlink(outside, fs::path(Path()) / "chunks");
  refused("the folder of chunks");
  EXPECT_EQ(Make().WriteChunk(name_, "content").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Make().ListChunks().status().code(), StatusCode::kFailedPrecondition);
  fs::remove(fs::path(Path()) / "chunks");
  fs::create_directory(fs::path(Path()) / "chunks");
  fs::create_directory_symlink(outside / name_.substr(0, 2),
                               fs::path(Path()) / "chunks" / name_.substr(0, 2));
  refused("a folder in it");
  EXPECT_EQ(Make().WriteChunk(name_, "content").code(), StatusCode::kFailedPrecondition);
  fs::remove(fs::path(Path()) / "chunks" / name_.substr(0, 2));
  fs::create_directory(fs::path(Path()) / "chunks" / name_.substr(0, 2));
  fs::create_symlink(outside / name_.substr(0, 2) / name_, ChunkPath(Path(), name_));
  refused("a chunk");
  fs::create_symlink(outside / name_.substr(0, 2) / name_, fs::path(Path()) / "manifest.jsonl");
  EXPECT_EQ(Make().ReadFile("manifest.jsonl").status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(DirectoryTest, WhatIsNoRegularFileIsNotWaitedFor) {
  Directory directory = Make();
  ASSERT_TRUE(directory.WriteChunk(name_, "content").ok());
  fs::remove(ChunkPath(Path(), name_));
  ASSERT_EQ(mkfifo(ChunkPath(Path(), name_).c_str(), 0600), 0);
  EXPECT_EQ(directory.ReadChunk(name_).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(DirectoryTest, RemovesWhatAnInterruptedWriteLeft) {
  Directory directory = Make();
  ASSERT_TRUE(directory.WriteChunk(name_, "content").ok());
  const std::string part = ChunkPath(Path(), name_).string() + ".part";
  std::ofstream(part) << "cont";
  EXPECT_EQ(*directory.ListChunks(), std::vector{name_});
  EXPECT_FALSE(fs::exists(part));
}

TEST_F(DirectoryTest, ADirectoryOfOtherThingsIsNotTakenForABackup) {
  fs::create_directory(Path());
  std::ofstream(fs::path(Path()) / "letter.txt") << "dear";
  EXPECT_EQ(Directory::Open(Path(), true).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Directory::Open(Path() + "/letter.txt", true).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Directory::Open(Path() + "/missing", false).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Directory::Open(Path() + "/missing/deeper", true).status().code(), StatusCode::kNotFound);
}

TEST_F(DirectoryTest, IsForOneProgramAtATime) {
  {
    const Directory directory = Make();
    EXPECT_EQ(Directory::Open(Path(), true).status().code(), StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(Directory::Open(Path(), true).ok());
}

// A copy by hard links is a backup of its own: what happens to the one does not show in the other.
TEST_F(DirectoryTest, ACopyByHardLinksStaysAsItIs) {
  Directory directory = Make();
  ASSERT_TRUE(directory.WriteChunk(name_, "content").ok());
  ASSERT_TRUE(directory.WriteFile("manifest.jsonl", "one").ok());
  const fs::path copy = world_.path() / "copy";
  fs::copy(Path(), copy, fs::copy_options::recursive | fs::copy_options::create_hard_links);
  ASSERT_TRUE(directory.WriteChunk(name_, "content").ok());
  ASSERT_TRUE(directory.WriteFile("manifest.jsonl", "two").ok());
  ASSERT_TRUE(directory.RemoveChunk(name_).ok());
  absl::StatusOr<Directory> other = Directory::Open(copy.string(), false);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(*other->ReadChunk(name_), "content");
  EXPECT_EQ(*other->ReadFile("manifest.jsonl"), "one");
}

}  // namespace
}  // namespace gyre::backup
