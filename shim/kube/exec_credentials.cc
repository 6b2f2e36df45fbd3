#include "shim/kube/exec_credentials.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "shim/clock.h"
#include "shim/steady_condition.h"

extern char** environ;

namespace outboard::kube {
namespace {

constexpr size_t kMaxOutput = 1 << 20;

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Starts the program in its own process group, with standard output redirected to `out_fd`.
absl::StatusOr<pid_t> Spawn(const std::string& command, const std::vector<std::string>& args,
                            const std::vector<std::string>& env, int out_fd) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t no_signals;
  sigemptyset(&no_signals);
  posix_spawnattr_setsigmask(&attributes, &no_signals);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> argv = {command};
  argv.insert(argv.end(), args.begin(), args.end());
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, command.c_str(), &actions, &attributes,
                                 Pointers(argv).data(), Pointers(env).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return absl::NotFoundError(absl::StrCat("cannot run ", command, ": ", std::strerror(error)));
  }
  return pid;
}

// Waits until `fd` (-1: none) is readable; false after `wait`. CANCELLED if `cancel_fd` becomes
// readable.
absl::StatusOr<bool> Poll(int fd, int cancel_fd, absl::Duration wait) {
  pollfd waiting[] = {{fd, POLLIN, 0}, {cancel_fd, POLLIN, 0}};
  // Rounded up, so that the last millisecond is not a busy loop.
  const int ready = poll(waiting, 2, static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
  if (ready < 0 && errno != EINTR) return absl::InternalError(std::strerror(errno));
  if (waiting[1].revents != 0) return absl::CancelledError("this process is ending");
  return ready > 0 && waiting[0].revents != 0;
}

// Reads until end of file.
absl::Status ReadAll(int fd, int cancel_fd, absl::Time deadline, std::string* output) {
  for (;;) {
    const absl::Duration left = deadline - SteadyNow();
    if (left <= absl::ZeroDuration())
      return absl::DeadlineExceededError("the program did not end in time");
    const absl::StatusOr<bool> ready = Poll(fd, cancel_fd, left);
    if (!ready.ok()) return ready.status();
    if (!*ready) continue;
    char buffer[4096];
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got == 0) return absl::OkStatus();
    if (got < 0) {
      if (errno == EINTR) continue;
      return absl::InternalError(std::strerror(errno));
    }
    output->append(buffer, got);
    if (output->size() > kMaxOutput) return absl::ResourceExhaustedError("more than 1 MiB output");
  }
}

// Waits until `deadline` for the exit of a program that has closed its output.
absl::StatusOr<int> WaitForExit(pid_t pid, int cancel_fd, absl::Time deadline) {
  absl::Duration pause = absl::Milliseconds(1);
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) return status;
    if (ended < 0 && errno != EINTR) return absl::InternalError(std::strerror(errno));
    if (SteadyNow() >= deadline)
      return absl::DeadlineExceededError("the program did not end in time");
    const absl::StatusOr<bool> waited = Poll(-1, cancel_fd, pause);
    if (!waited.ok()) return waited.status();
    pause = std::min(pause * 2, absl::Milliseconds(50));
  }
}

std::string Text(const nlohmann::json& object, const char* name) {
  auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

// What a run of the plugin returned.
struct Fetched {
  CredentialsPtr credentials;
  absl::Duration life = absl::InfiniteDuration();  // from the end of the run
};

class ExecCredentials : public CredentialSource {
 public:
  explicit ExecCredentials(ExecCredentialOptions options)
      : options_(std::move(options)), cancel_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  ~ExecCredentials() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    changed_.Notify();
    const uint64_t one = 1;
    [[maybe_unused]] ssize_t written = write(cancel_fd_, &one, sizeof(one));
    if (thread_.joinable()) thread_.join();
    close(cancel_fd_);
  }

  absl::StatusOr<CredentialsPtr> Get(absl::Time) override {
    absl::MutexLock lock(&mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    const absl::Time now = SteadyNow();
    if (now < usable_until_) return current_;
    if (!failure_.ok() && !Wanted(now)) return failure_;
    const absl::Duration elapsed =
        running_ ? absl::Trunc(now - run_began_, absl::Seconds(1)) : absl::ZeroDuration();
    return Explain(absl::UnavailableError(
        absl::StrCat("no answer for ", absl::FormatDuration(elapsed),
                     current_ == nullptr ? "" : ", and its last credentials have expired")));
  }

  void Rejected(const CredentialsPtr& used, absl::Time) override {
    absl::MutexLock lock(&mutex_);
    if (used != current_) return;
    rejected_ = true;
    changed_.Notify();
  }

  bool Refreshing() override {
    absl::MutexLock lock(&mutex_);
    return Wanted(SteadyNow());
  }

 private:
  absl::Time NextRun() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::max(rejected_ ? absl::InfinitePast() : refresh_at_, not_before_);
  }
  // Whether a run has begun or is about to. After a failed run that is not so until the next one.
  bool Wanted(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return running_ || now >= NextRun() || (rejected_ && failure_.ok());
  }

  void Run() {
    absl::MutexLock lock(&mutex_);
    while (!stopping_) {
      const absl::Time now = SteadyNow();
      if (now < NextRun()) {
        const absl::Time until = NextRun();
        changed_.AwaitFor(mutex_, until - now,
                          [this, until]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                            return stopping_ || NextRun() < until;
                          });
        continue;
      }
      running_ = true;
      run_began_ = now;
      mutex_.Unlock();
      const absl::StatusOr<Fetched> fetched = Fetch();
      mutex_.Lock();
      running_ = false;
      Take(fetched);
    }
  }

  absl::StatusOr<Fetched> Fetch() const {
    nlohmann::json info = {{"apiVersion", options_.api_version},
                           {"kind", "ExecCredential"},
                           {"spec", {{"interactive", false}}}};
    if (!options_.cluster_json.empty()) {
      info["spec"]["cluster"] =
          nlohmann::json::parse(options_.cluster_json, nullptr, /*allow_exceptions=*/false);
    }
    std::vector<std::string> env;
    for (char** entry = environ; *entry != nullptr; ++entry) env.emplace_back(*entry);
    for (const auto& [name, value] : options_.env) env.push_back(absl::StrCat(name, "=", value));
    env.push_back(absl::StrCat("KUBERNETES_EXEC_INFO=", info.dump()));
    auto output = RunProgram(options_.command, options_.args, env, options_.timeout, cancel_fd_);
    if (!output.ok()) return Explain(output.status());
    absl::StatusOr<ExecCredential> read = ParseExecCredential(*output, options_.api_version);
    if (!read.ok()) return Explain(read.status());
    Fetched fetched;
    // A wall time of the plugin's machine, which is this one.
    fetched.life = read->expires - absl::Now();
    fetched.credentials = std::make_shared<const Credentials>(std::move(read->credentials));
    return fetched;
  }

  void Take(const absl::StatusOr<Fetched>& fetched) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Time now = SteadyNow();
    if (!fetched.ok()) {
      failure_ = fetched.status();
      not_before_ = now + (now < usable_until_ ? options_.retry_period : ShortPause());
      return;
    }
    const absl::Duration life = std::max(fetched->life, options_.retry_period);
    failure_ = absl::OkStatus();
    rejected_ = false;
    current_ = fetched->credentials;
    usable_until_ = now + life;
    // Not more often than this, for plugins that return the same credentials until they expire.
    refresh_at_ =
        std::max(now + kRefreshAfter * life, std::min(now + options_.retry_period, usable_until_));
    not_before_ = now + ShortPause();
  }

  absl::Duration ShortPause() const { return std::min(options_.retry_period, absl::Seconds(1)); }

  absl::Status Explain(const absl::Status& status) const {
    std::string message =
        absl::StrCat("exec credential plugin ", options_.command, ": ", status.message());
    if (absl::IsNotFound(status) && !options_.install_hint.empty()) {
      absl::StrAppend(&message, "\n", options_.install_hint);
    }
    return absl::Status(status.code(), message);
  }

  static constexpr double kRefreshAfter = 0.8;  // of the credentials' life

  const ExecCredentialOptions options_;
  const int cancel_fd_;
  absl::Mutex mutex_;
  SteadyCondition changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  CredentialsPtr current_ ABSL_GUARDED_BY(mutex_);
  // On the clock of SteadyNow.
  absl::Time usable_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time refresh_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time not_before_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time run_began_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool rejected_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // of the last run
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::string> RunProgram(const std::string& command,
                                       const std::vector<std::string>& args,
                                       const std::vector<std::string>& env, absl::Duration timeout,
                                       int cancel_fd) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return absl::InternalError(std::strerror(errno));
  const absl::Time deadline = SteadyNow() + timeout;
  auto pid = Spawn(command, args, env, pipe_fds[1]);
  close(pipe_fds[1]);
  if (!pid.ok()) {
    close(pipe_fds[0]);
    return pid.status();
  }
  std::string output;
  absl::Status read = ReadAll(pipe_fds[0], cancel_fd, deadline, &output);
  close(pipe_fds[0]);
  absl::StatusOr<int> exit =
      read.ok() ? WaitForExit(*pid, cancel_fd, deadline) : absl::StatusOr<int>(read);
  if (!exit.ok()) {
    // Kill the process group, so that children of the program end too.
    kill(-*pid, SIGKILL);
    waitpid(*pid, nullptr, 0);
    return exit.status();
  }
  if (!WIFEXITED(*exit)) {
    return absl::UnavailableError(absl::StrCat("ended by signal ", WTERMSIG(*exit)));
  }
  if (WEXITSTATUS(*exit) == 127 && output.empty()) {
    return absl::NotFoundError("not found (exit code 127)");
  }
  if (WEXITSTATUS(*exit) != 0) {
    return absl::UnavailableError(absl::StrCat("exit code ", WEXITSTATUS(*exit)));
  }
  return output;
}

absl::StatusOr<ExecCredential> ParseExecCredential(absl::string_view output,
                                                   absl::string_view api_version) {
  const auto answer = nlohmann::json::parse(output, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return absl::InvalidArgumentError("the output is not a JSON object");
  if (Text(answer, "kind") != "ExecCredential" || Text(answer, "apiVersion") != api_version) {
    return absl::InvalidArgumentError(absl::StrCat("the output is ", Text(answer, "apiVersion"),
                                                   " ", Text(answer, "kind"), ", expected ",
                                                   api_version, " ExecCredential"));
  }
  const nlohmann::json status = answer.value("status", nlohmann::json());
  if (!status.is_object()) return absl::InvalidArgumentError("the output has no status");
  ExecCredential read;
  read.credentials.bearer_token = Text(status, "token");
  read.credentials.client_certificate_pem = Text(status, "clientCertificateData");
  read.credentials.client_key_pem = Text(status, "clientKeyData");
  // It becomes the value of a header.
  if (read.credentials.bearer_token.find_first_of("\r\n") != std::string::npos)
    return absl::InvalidArgumentError("status.token has a line break");
  if (read.credentials.client_certificate_pem.empty() != read.credentials.client_key_pem.empty())
    return absl::InvalidArgumentError("status has only one of certificate and key");
  if (read.credentials.bearer_token.empty() && read.credentials.client_key_pem.empty())
    return absl::InvalidArgumentError("status has neither a token nor a certificate and key");
  const std::string timestamp = Text(status, "expirationTimestamp");
  std::string error;
  if (!timestamp.empty() &&
      !absl::ParseTime(absl::RFC3339_full, timestamp, &read.expires, &error)) {
    return absl::InvalidArgumentError(absl::StrCat("status.expirationTimestamp: ", error));
  }
  return read;
}

std::shared_ptr<CredentialSource> MakeExecCredentials(ExecCredentialOptions options) {
  return std::make_shared<ExecCredentials>(std::move(options));
}

}  // namespace outboard::kube
