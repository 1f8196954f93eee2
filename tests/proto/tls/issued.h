// Certificates for tests, made by deploy/certs in a directory of their own.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include "proto/tls/certificate.h"

namespace gyre {

class Issued {
 public:
  explicit Issued(const std::string& name)
      : dir_(testing::TempDir() + "gyre_" + name + "_" + std::to_string(getpid())) {
    Make("ca");
  }
  ~Issued() { std::filesystem::remove_all(dir_); }

  void Make(const std::string& what) const {
    const std::string command = std::string(GYRE_SOURCE_DIR) + "/deploy/certs " + dir_ + " " + what;
    if (std::system(command.c_str()) != 0) ADD_FAILURE() << command;
  }
  CertificateFiles Files(const std::string& name) const {
    return {.ca = dir_ + "/ca.pem",
            .certificate = dir_ + "/" + name + ".pem",
            .key = dir_ + "/" + name + "-key.pem"};
  }

 private:
  const std::string dir_;
};

}  // namespace gyre
