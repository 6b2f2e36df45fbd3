// A library to preload into a program: sets its wall clock, by a number of nanoseconds in the file
// that the environment's OUTBOARD_WALL_CLOCK_STEP names, at any time. The kernel's own clock is
// unchanged: a wait until a wall time ends early or late by the step, as if the clock were set
// while the program waits.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

const std::atomic<int64_t>* Step() {
  static const std::atomic<int64_t> none{0};
  const char* const path = getenv("OUTBOARD_WALL_CLOCK_STEP");
  const int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return &none;
  void* const mapped = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return mapped == MAP_FAILED ? &none : static_cast<const std::atomic<int64_t>*>(mapped);
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, struct timespec* now) noexcept {
  constexpr int64_t kSecond = 1000000000;
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    static const std::atomic<int64_t>* const step = Step();
    const int64_t nanos = now->tv_sec * kSecond + now->tv_nsec + step->load();
    now->tv_sec = nanos / kSecond;
    now->tv_nsec = nanos % kSecond;
  }
  return result;
}

// absl's timed waits begin with this.
extern "C" int gettimeofday(struct timeval* now, void*) noexcept {
  struct timespec precise = {};
  const int result = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return result;
}
