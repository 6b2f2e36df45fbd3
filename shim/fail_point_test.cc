// As in a build with the CMake option, although this one may be without it.
#ifndef OUTBOARD_FAIL_POINTS
#define OUTBOARD_FAIL_POINTS
#endif
#include "shim/fail_point.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace outboard {
namespace {

// Each of these runs in a process of its own, because the variable is read once.
void PassTwice(const std::string& variable) {
  setenv("OUTBOARD_FAIL_POINT", variable.c_str(), 1);
  OUTBOARD_FAIL_POINT(first);
  OUTBOARD_FAIL_POINT(second);
  OUTBOARD_FAIL_POINT_IF(1 + 1 == 3, never);
  fprintf(stderr, "passed once;");
  OUTBOARD_FAIL_POINT(first);
  fprintf(stderr, "passed twice;");
  _exit(0);
}

TEST(FailPointTest, KillsAtThePassingThatIsWanted) {
  EXPECT_EXIT(PassTwice("first:1:abort"), testing::KilledBySignal(SIGKILL), "^$");
  EXPECT_EXIT(PassTwice("first:2:abort"), testing::KilledBySignal(SIGKILL), "^passed once;$");
  EXPECT_EXIT(PassTwice("second:1:abort"), testing::KilledBySignal(SIGKILL), "^$");
  for (const char* other : {"first:3:abort", "second:2:abort", "fir:1:abort", "never:1:abort"}) {
    EXPECT_EXIT(PassTwice(other), testing::ExitedWithCode(0), "passed twice;$") << other;
  }
}

TEST(FailPointTest, StopsTheProcess) {
  const pid_t stopped = fork();
  if (stopped == 0) PassTwice("first:2:stop");
  int status = 0;
  waitpid(stopped, &status, WUNTRACED);
  EXPECT_TRUE(WIFSTOPPED(status));
  kill(stopped, SIGCONT);
  waitpid(stopped, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
}

TEST(FailPointTest, PausesUntilTheFileIsRemoved) {
  const std::string file = absl::StrCat(testing::TempDir(), "/fail_point_", getpid());
  // The process goes on only because this one finds the file and removes it.
  const pid_t remover = fork();
  if (remover == 0) {
    while (unlink(file.c_str()) != 0) usleep(1000);
    _exit(0);
  }
  EXPECT_EXIT(PassTwice(absl::StrCat("first:2:pause:", file)), testing::ExitedWithCode(0),
              "^passed once;passed twice;$");
  kill(remover, SIGKILL);
  int status = 0;
  waitpid(remover, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "the file was not created";
}

TEST(FailPointTest, AWrongVariableEndsTheProcess) {
  for (const char* wrong : {"", "first", "first:1", "first:x:abort", "first:0:abort", "first:1:go",
                            "first:1:pause", "first:1:pause:", "first:1:abort:x"}) {
    EXPECT_EXIT(PassTwice(wrong), testing::ExitedWithCode(2), "NAME:COUNT:abort") << wrong;
  }
}

}  // namespace
}  // namespace outboard
