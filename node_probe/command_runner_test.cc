#include "node_probe/command_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace outboard::node_probe {
namespace {

using ::testing::HasSubstr;

// Long enough for a busy machine; tests that wait for the end of a program use Short().
constexpr absl::Duration kLong = absl::Minutes(1);
CommandLimits Short() { return {absl::Milliseconds(100), 1000}; }

absl::StatusOr<std::string> RunIn(CommandLimits limits, const std::vector<std::string>& command) {
  CommandRunner runner(limits);
  return runner.Run(command, kube::CancelToken());
}
absl::StatusOr<std::string> Shell(const std::string& script, CommandLimits limits = {kLong}) {
  return RunIn(limits, {"sh", "-c", script});
}

TEST(CommandRunnerTest, ReturnsStandardOutput) {
  EXPECT_EQ(*Shell("echo a; echo b >&2; echo c"), "a\nc\n");
  EXPECT_EQ(*Shell("exit 0"), "");
  EXPECT_EQ(*Shell("cat"), "") << "standard input is empty";
}

TEST(CommandRunnerTest, OtherExitsAreErrorsWithTheLastLine) {
  EXPECT_EQ(Shell("echo first; echo 'no driver'; exit 9").status(),
            absl::FailedPreconditionError(
                "sh -c echo first; echo 'no driver'; exit 9: exit status 9: no driver"));
  EXPECT_THAT(Shell("echo out; printf 'bad\\033' >&2; exit 1").status().message(),
              HasSubstr(": exit status 1: bad?"));
  EXPECT_THAT(Shell("kill -USR1 $$").status().message(), HasSubstr("ended by signal 10"));
}

TEST(CommandRunnerTest, AMissingProgram) {
  const auto answer = RunIn({kLong}, {"/nowhere/nvidia-smi", "-L"});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(answer.status().message(),
            "/nowhere/nvidia-smi -L: cannot start: No such file or directory");
}

TEST(CommandRunnerTest, OutputIsBounded) {
  const auto answer = RunIn({kLong, 100000}, {"yes"});
  EXPECT_EQ(answer.status(), absl::ResourceExhaustedError("yes: more than 100000 bytes of output"));
  // What goes to standard error neither stops the program nor fills memory.
  EXPECT_EQ(*Shell("head -c 1000000 /dev/zero >&2; echo end", {kLong, 10}), "end\n");
}

// A program that hangs is ended with all that it started: the last writer of the pipe is gone.
TEST(CommandRunnerTest, TimeIsBounded) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto answer = Shell("tail -f /dev/null & tail -f /dev/null", Short());
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(answer.status().message(), HasSubstr(": ended after 100ms"));
  close(ends[1]);
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
  // The same if it closes its output before.
  EXPECT_EQ(Shell("exec >&- 2>&-; tail -f /dev/null >/dev/null", Short()).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(CommandRunnerTest, ARunnerGoesOnAfterAProgramThatHung) {
  CommandRunner runner(Short());
  EXPECT_EQ(runner.Run({"tail", "-f", "/dev/null"}, kube::CancelToken()).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  // `true` may need longer than 100 ms on a busy machine, but is started.
  const absl::Status status = runner.Run({"true"}, kube::CancelToken()).status();
  EXPECT_THAT(status.message(), ::testing::Not(HasSubstr("not started")));
}

TEST(CommandRunnerTest, CancellingEndsTheProgram) {
  const kube::CancelToken cancel;
  CommandRunner runner({kLong});
  std::thread canceller([&cancel] { cancel.Cancel(); });
  EXPECT_EQ(runner.Run({"tail", "-f", "/dev/null"}, cancel).status(),
            absl::CancelledError("tail -f /dev/null: stopped"));
  canceller.join();
}

// Signals that this process blocks are not blocked in the program.
TEST(CommandRunnerTest, SignalsReachTheProgram) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  EXPECT_THAT(Shell("kill -TERM $$; echo alive").status().message(),
              HasSubstr("ended by signal 15"));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace outboard::node_probe
