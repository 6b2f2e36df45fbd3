#include "node_probe/command_runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "shim/clock.h"

extern char** environ;

// glibc 2.36 declares these functions without C linkage (fixed in 2.37).
extern "C" {
#include <sys/pidfd.h>
}

namespace outboard::node_probe {
namespace {

// How long a process may take to end after SIGKILL.
constexpr absl::Duration kKillTime = absl::Seconds(1);
constexpr size_t kMaxErrors = 4096;  // bytes of standard error; more is discarded

// A file descriptor, closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void Set(int fd) {
    Close();
    fd_ = fd;
  }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

struct Pipe {
  Descriptor read, write;
  bool Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read.Set(ends[0]);
    write.Set(ends[1]);
    return true;
  }
};

absl::Status FromErrno(absl::string_view what, int error) {
  const std::string message = absl::StrCat(what, ": ", strerror(error));
  return error == ENOENT || error == EACCES ? absl::NotFoundError(message)
                                            : absl::InternalError(message);
}

// Starts the program in a process group of its own, without the signals that this process blocks.
absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& command, int out, int errors) {
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return FromErrno("cannot start", error);
  return pid;
}

int MillisUntil(absl::Time end) {
  const absl::Duration left = end - SteadyNow();
  if (left <= absl::ZeroDuration()) return 0;
  return static_cast<int>(absl::ToInt64Milliseconds(left + absl::Milliseconds(1)));
}

// Reads what is there. False at the end of the stream.
bool ReadSome(int fd, std::string* into) {
  char buffer[16384];
  const ssize_t got = read(fd, buffer, sizeof(buffer));
  if (got > 0) into->append(buffer, static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

// Reads both streams to their ends. `woken` becomes readable when the caller cancels.
absl::Status ReadBoth(Pipe* out, Pipe* errors, int woken, const CommandLimits& limits,
                      absl::Time end, std::string* output, std::string* error_text) {
  while (out->read.get() >= 0 || errors->read.get() >= 0) {
    std::array<pollfd, 3> wanted = {
        {{out->read.get(), POLLIN, 0}, {errors->read.get(), POLLIN, 0}, {woken, POLLIN, 0}}};
    const int ready = poll(wanted.data(), wanted.size(), MillisUntil(end));
    if (ready < 0 && errno != EINTR) return FromErrno("poll", errno);
    if (ready == 0) return absl::DeadlineExceededError("");
    if (ready < 0) continue;
    if (wanted[2].revents != 0) return absl::CancelledError("stopped");
    if (wanted[0].revents != 0 && !ReadSome(out->read.get(), output)) out->read.Close();
    if (wanted[1].revents != 0 && !ReadSome(errors->read.get(), error_text)) errors->read.Close();
    if (output->size() > limits.max_output)
      return absl::ResourceExhaustedError(
          absl::StrCat("more than ", limits.max_output, " bytes of output"));
    if (error_text->size() > kMaxErrors) error_text->resize(kMaxErrors);
  }
  return absl::OkStatus();
}

// Waits for the end of a process; false if it has not ended by `end`. The descriptor wakes it.
bool AwaitEnd(pid_t pid, int* status, absl::Time end) {
  const Descriptor process(pidfd_open(pid, 0));
  while (true) {
    const pid_t ended = waitpid(pid, status, WNOHANG);
    if (ended == pid || (ended < 0 && errno == ECHILD)) return true;
    pollfd wanted = {process.get(), POLLIN, 0};
    const int millis = MillisUntil(end);
    if (millis == 0) return false;
    // Without a descriptor (kernels before 5.3): look again a little later.
    poll(&wanted, 1, process.get() >= 0 ? millis : std::min(millis, 10));
  }
}

// The last line, for people.
std::string LastLine(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (const size_t line = text.rfind('\n'); line != absl::string_view::npos)
    text.remove_prefix(line + 1);
  std::string shown;
  for (const char c : text.substr(0, 200))
    shown.push_back(absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?');
  return shown;
}

absl::Status ExitStatus(int status, const std::string& output, const std::string& errors) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  // nvidia-smi writes its errors to standard output.
  const std::string said = LastLine(errors.empty() ? output : errors);
  return absl::FailedPreconditionError(
      absl::StrCat(WIFEXITED(status) ? absl::StrCat("exit status ", WEXITSTATUS(status))
                                     : absl::StrCat("ended by signal ", WTERMSIG(status)),
                   said.empty() ? "" : ": ", said));
}

}  // namespace

absl::StatusOr<std::string> CommandRunner::Run(const std::vector<std::string>& command,
                                               const kube::CancelToken& cancel) {
  const std::string name = absl::StrJoin(command, " ");
  const auto fail = [&name](const absl::Status& why) {
    return absl::Status(why.code(), absl::StrCat(name, ": ", why.message()));
  };
  int status = 0;
  if (unended_ > 0 && !AwaitEnd(unended_, &status, SteadyNow())) {
    return fail(absl::DeadlineExceededError(
        absl::StrCat("not started: process ", unended_, " of an earlier call has not ended")));
  }
  unended_ = -1;
  Pipe out, errors;
  Descriptor woken(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!out.Open() || !errors.Open() || woken.get() < 0) return fail(FromErrno("pipe", errno));
  const absl::Time end = SteadyNow() + limits_.timeout;
  const absl::StatusOr<pid_t> pid = Spawn(command, out.write.get(), errors.write.get());
  if (!pid.ok()) return fail(pid.status());
  out.write.Close();
  errors.write.Close();

  std::string output, error_text;
  absl::Status read;
  {
    const kube::CancelToken::Listener listener(cancel, [fd = woken.get()] {
      const uint64_t one = 1;
      if (write(fd, &one, sizeof(one)) != sizeof(one)) return;  // Already woken.
    });
    read = ReadBoth(&out, &errors, woken.get(), limits_, end, &output, &error_text);
  }
  if (read.ok() && !AwaitEnd(*pid, &status, end)) read = absl::DeadlineExceededError("");
  if (read.ok()) {
    const absl::Status ended = ExitStatus(status, output, error_text);
    if (!ended.ok()) return fail(ended);
    return output;
  }
  kill(-*pid, SIGKILL);
  if (!AwaitEnd(*pid, &status, SteadyNow() + kKillTime)) unended_ = *pid;
  if (absl::IsDeadlineExceeded(read)) {
    read = absl::DeadlineExceededError(
        absl::StrCat("ended after ", absl::FormatDuration(limits_.timeout),
                     unended_ > 0 ? "; the process ignores SIGKILL: the driver may hang" : ""));
  }
  return fail(read);
}

}  // namespace outboard::node_probe
