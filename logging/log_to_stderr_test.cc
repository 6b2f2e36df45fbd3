#include "logging/log_to_stderr.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <gmock/gmock.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "logging/stderr_log.h"

namespace outboard::logging {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// In a process of its own, because a failed check ends it and glog's setup is for good.
TEST(LogToStderr, AProcessThatDiesSaysWhyAndDoesNotHangOnAFullPipe) {
  for (const bool is_full : {false, true}) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
      dup2(ends[1], STDERR_FILENO);
      LogToStderr("test");
      gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // as gRPC itself does
      gpr_log("grpc.cc", 3, GPR_LOG_SEVERITY_ERROR, "from %s", "gRPC");
      while (is_full && DroppedLogLines() == 0) LOG(INFO) << std::string(4000, 'x');
      alarm(20);  // what hangs dies of another signal
      CHECK(false) << "the last line";
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGABRT);
    close(ends[1]);
    std::string text;
    char buffer[65536];
    for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;)
      text.append(buffer, static_cast<size_t>(got));
    close(ends[0]);
    EXPECT_THAT(text.substr(0, 1000), HasSubstr("grpc.cc:3] from gRPC\n"));
    if (!is_full) {
      EXPECT_THAT(text, AllOf(HasSubstr("the last line"), HasSubstr("Check failure stack trace")));
      EXPECT_THAT(text, ::testing::Not(HasSubstr("WARNING: Logging before")));
    }
  }
}

}  // namespace
}  // namespace outboard::logging
