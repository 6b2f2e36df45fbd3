#include "logging/stderr_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace outboard::logging {
namespace {

constexpr int kPipeBytes = 1 << 20;  // what the kernel gives users without privileges

std::atomic<uint64_t> all_dropped{0};

// A process that dies of a failed check writes its stack trace after its last line, without us.
void LetNothingWait(int fd) {
  struct stat status;
  if (fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

StderrLog::StderrLog(int fd) : fd_(fd) {
  if (fcntl(fd, F_GETPIPE_SZ) < kPipeBytes) fcntl(fd, F_SETPIPE_SZ, kPipeBytes);
}

void StderrLog::send(google::LogSeverity severity, const char* /*full_filename*/,
                     const char* base_filename, int line, const google::LogMessageTime& time,
                     const char* message, size_t message_len) {
  std::string text = torn_ ? "\n" : "";
  if (missing_ > 0) {
    const std::string gap =
        absl::StrCat(missing_, " log lines before this one were dropped: stderr took none");
    absl::StrAppend(
        &text, ToString(google::GLOG_WARNING, base_filename, line, time, gap.data(), gap.size()),
        "\n");
  }
  absl::StrAppend(&text, ToString(severity, base_filename, line, time, message, message_len), "\n");
  const bool is_last = severity == google::GLOG_FATAL;
  if (is_last) LetNothingWait(fd_);
  if (Write(text, missing_ == 0 || is_last ? kPatience : absl::ZeroDuration())) {
    missing_ = 0;
    torn_ = false;
  } else {
    ++missing_;
    ++dropped_;
    ++all_dropped;
  }
}

bool StderrLog::Write(absl::string_view text, absl::Duration patience) {
  const int wait = static_cast<int>(absl::ToInt64Milliseconds(patience));
  while (!text.empty()) {
    pollfd wanted{fd_, POLLOUT, 0};
    const int ready = poll(&wanted, 1, wait);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    // A pipe that is ready has room for this much, so that the write does not wait.
    const ssize_t written = write(fd_, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    torn_ = true;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

uint64_t DroppedLogLines() { return all_dropped; }

}  // namespace outboard::logging
