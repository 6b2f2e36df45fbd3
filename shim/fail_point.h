// Named points at which a test kills or holds the process (integration/faults/points_test.go).
//
// Only builds with the CMake option OUTBOARD_FAIL_POINTS have them; in all others the macros are
// empty. One point acts, the one of the environment variable OUTBOARD_FAIL_POINT:
//   NAME:COUNT:abort       SIGKILL at the COUNT-th passing
//   NAME:COUNT:stop        SIGSTOP at the COUNT-th passing
//   NAME:COUNT:pause:FILE  creates FILE at the COUNT-th passing, and goes on when FILE is removed
#ifndef OUTBOARD_SHIM_FAIL_POINT_H_
#define OUTBOARD_SHIM_FAIL_POINT_H_

#ifdef OUTBOARD_FAIL_POINTS

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace outboard {

// Threading: points are passed on any thread. A pause holds only the thread that it is on.
// Errors: a wrong variable ends the process with 2, because a test with a misspelt point would be
// void.
class FailPoint {
 public:
  static FailPoint& Get() {
    static auto& point = *new FailPoint;
    return point;
  }

  void Pass(const char* name) {
    if (name != name_ || ++passings_ != count_) return;
    if (file_.empty()) {
      kill(getpid(), signal_);
      return;
    }
    close(open(file_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    while (::access(file_.c_str(), F_OK) == 0) ::usleep(1000);
  }

 private:
  FailPoint() {
    const char* const text = getenv("OUTBOARD_FAIL_POINT");
    if (text == nullptr) return;
    const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 3));
    const bool is_signal = parts.size() == 3 && (parts[2] == "abort" || parts[2] == "stop");
    const bool is_pause = parts.size() == 4 && parts[2] == "pause" && !parts[3].empty();
    if (!(is_signal || is_pause) || !absl::SimpleAtoi(parts[1], &count_) || count_ <= 0) {
      fprintf(stderr,
              "OUTBOARD_FAIL_POINT must be NAME:COUNT:abort, NAME:COUNT:stop or "
              "NAME:COUNT:pause:FILE\n");
      _exit(2);
    }
    name_ = parts[0];
    if (is_pause) file_ = parts[3];
    signal_ = parts[2] == "stop" ? SIGSTOP : SIGKILL;
  }

  std::string name_;
  int64_t count_ = 0;
  std::string file_;
  int signal_ = SIGKILL;
  std::atomic<int64_t> passings_ = 0;
};

}  // namespace outboard

#define OUTBOARD_FAIL_POINT(name) ::outboard::FailPoint::Get().Pass(#name)
// A point that is passed only if `condition` holds, which other builds do not evaluate.
#define OUTBOARD_FAIL_POINT_IF(condition, name) \
  if (condition) OUTBOARD_FAIL_POINT(name)

#else

#define OUTBOARD_FAIL_POINT(name)
#define OUTBOARD_FAIL_POINT_IF(condition, name)

#endif

#endif  // OUTBOARD_SHIM_FAIL_POINT_H_
