// What a person is shown of how far a command is.
#include <gtest/gtest.h>

#include "client/cli/progress.h"

namespace gyre::cli {
namespace {

TEST(Progress, IsABarWhereTheEndIsKnown) {
  EXPECT_EQ(ProgressText("writing", 0, 10), "[>                             ] 0%  writing");
  EXPECT_EQ(ProgressText("writing", 5, 10), "[===============>              ] 50%  writing");
  EXPECT_EQ(ProgressText("writing", 10, 10), "[==============================] 100%  writing");
  EXPECT_EQ(ProgressText("writing", 11, 10), "[==============================] 100%  writing");
  EXPECT_EQ(ProgressText("writing", 11, 0), "writing 11");
}

}  // namespace
}  // namespace gyre::cli
