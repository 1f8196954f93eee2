// cluster backup, cluster restore.
#include <CLI/CLI.hpp>
#include <memory>

#include "client/backup/restore.h"
#include "client/backup/take.h"
#include "client/cli/options.h"
#include "client/cli/progress.h"
#include "client/cli/session.h"

namespace gyre::cli {
namespace {

backup::Progress ShowOn(const std::shared_ptr<ProgressLine>& line) {
  return [line](const char* doing, uint64_t done, uint64_t total) { line->Show(doing, done, total); };
}

struct BackupFlags {
  std::string directory;
  std::vector<std::string> without;
};

absl::StatusOr<backup::TakeResult> TakeBackup(const Session& session, const BackupFlags& flags) {
  return backup::Take({.endpoints = session.endpoints,
                       .timeout = session.timeout,
                       .tls = session.tls,
                       .directory = flags.directory,
                       .without = flags.without,
                       .progress = ShowOn(std::make_shared<ProgressLine>())});
}

void Backup(Session& session, const BackupFlags& flags) {
  const auto taken = TakeBackup(session, flags);
  if (!taken.ok()) return session.Fail(taken.status(), Effect::kRead);
  if (session.json) {
    return session.Print(Json{{"nodes", taken->nodes},
                              {"keys", taken->keys},
                              {"bytes", taken->bytes},
                              {"files", taken->files},
                              {"reused", taken->reused},
                              {"damaged", taken->damaged}});
  }
  session.Print("backup of " + std::to_string(taken->nodes) + " nodes in " + flags.directory + ": " +
                std::to_string(taken->keys) + " keys, " + std::to_string(taken->bytes) + " bytes in " +
                std::to_string(taken->files) + " files, of which " + std::to_string(taken->reused) +
                " were there before");
  if (taken->damaged == 0) return;
  session.Print(std::to_string(taken->damaged) +
                " files of an earlier backup were damaged, and were replaced: check the disk");
}

struct RestoreFlags {
  std::string directory;
  bool overwrite = false;
};

absl::StatusOr<backup::RestoreResult> RestoreBackup(const Session& session, const RestoreFlags& flags) {
  return backup::Restore({.endpoints = session.endpoints,
                          .timeout = session.timeout,
                          .tls = session.tls,
                          .directory = flags.directory,
                          .overwrite = flags.overwrite,
                          .progress = ShowOn(std::make_shared<ProgressLine>())});
}

void Restore(Session& session, const RestoreFlags& flags) {
  const auto restored = RestoreBackup(session, flags);
  if (!restored.ok()) return session.Fail(restored.status(), Effect::kWrite);
  if (session.json) {
    return session.Print(Json{{"nodes", restored->nodes},
                              {"keys", restored->keys},
                              {"written", restored->written},
                              {"kept", restored->kept},
                              {"bytes", restored->bytes},
                              {"files", restored->files},
                              {"resumed", restored->resumed}});
  }
  session.Print("restored " + flags.directory + ": of " + std::to_string(restored->keys) + " keys " +
                std::to_string(restored->written) + " were written, and " + std::to_string(restored->kept) +
                " were kept as they are in the cluster");
}

}  // namespace

void AddBackupCommands(CLI::App& cluster, Session& session) {
  {
    const auto flags = std::make_shared<BackupFlags>();
    CLI::App* backup = cluster.add_subcommand(
        "backup", "fetch all rows into a directory; again: only what changed. Goes on after an interruption");
    backup->add_option("DIR", flags->directory, "made if it is missing")->required()->check(NotEmpty());
    backup->add_option("--without", flags->without, "the id of a member that is away and not waited for")
        ->check(NotEmpty());
    backup->callback([&session, flags] { Backup(session, *flags); });
  }
  const auto flags = std::make_shared<RestoreFlags>();
  CLI::App* restore = cluster.add_subcommand(
      "restore",
      "write what a backup holds into this cluster; keys that it has are kept. Goes on after an "
      "interruption");
  restore->add_option("DIR", flags->directory, "of a backup")->required()->check(NotEmpty());
  restore->add_flag("--overwrite", flags->overwrite, "also keys that the cluster has");
  restore->callback([&session, flags] { Restore(session, *flags); });
}

}  // namespace gyre::cli
