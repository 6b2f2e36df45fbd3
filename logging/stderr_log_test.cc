#include "logging/stderr_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace outboard::logging {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A pipe whose reader reads when told to.
class StderrLogTest : public ::testing::Test {
 protected:
  StderrLogTest() {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~StderrLogTest() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  std::string Read() {
    std::string text;
    char buffer[65536];
    for (ssize_t got; (got = read(ends_[0], buffer, sizeof(buffer))) > 0;)
      text.append(buffer, static_cast<size_t>(got));
    return text;
  }
  static void Send(StderrLog* log, const std::string& message) {
    log->send(google::GLOG_INFO, "dir/file.cc", "file.cc", 7,
              google::LogMessageTime(absl::ToTimeT(absl::Now()), 0.), message.data(),
              message.size());
  }
  int ends_[2];
};

TEST_F(StderrLogTest, WritesLinesAsGlogDoes) {
  StderrLog log(ends_[1]);
  Send(&log, "first");
  Send(&log, std::string(20000, 'x'));
  const std::vector<std::string> lines = absl::StrSplit(Read(), '\n');
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_THAT(lines[0], AllOf(HasSubstr("I2"), EndsWith(" file.cc:7] first")));
  EXPECT_THAT(lines[1], EndsWith(absl::StrCat("] ", std::string(20000, 'x'))));
  EXPECT_EQ(log.dropped(), 0u);
}

// A reader that stops costs one wait, then lines; afterwards the log says how many.
TEST_F(StderrLogTest, AReaderThatStopsCostsLinesNotTime) {
  StderrLog log(ends_[1]);
  const std::string line(1000, 'x');
  const absl::Time begun = absl::Now();
  int sent = 0;
  for (; log.dropped() < 500; ++sent) Send(&log, line);
  EXPECT_LT(absl::Now() - begun, absl::Seconds(2));
  EXPECT_GT(sent, 60 + 500);  // at least the 64 KiB of any pipe were written
  const std::string before = Read();
  Send(&log, "back");
  const std::string after = Read();
  EXPECT_THAT(after, HasSubstr("500 log lines before this one were dropped: stderr took none\n"));
  EXPECT_THAT(after, EndsWith("file.cc:7] back\n"));
  // Whatever was torn has got an end.
  const std::string all = before + after;
  for (const absl::string_view one : absl::StrSplit(all, '\n', absl::SkipEmpty()))
    EXPECT_EQ(one[0], one.find("dropped") != absl::string_view::npos ? 'W' : 'I') << one;
  Send(&log, "and on");
  EXPECT_EQ(std::count(all.begin(), all.end(), 'W'), 1);
}

TEST_F(StderrLogTest, AFullDiskCostsLines) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  StderrLog log(full);
  Send(&log, "lost");
  Send(&log, "lost");
  EXPECT_EQ(log.dropped(), 2u);
  close(full);
}

}  // namespace
}  // namespace outboard::logging
