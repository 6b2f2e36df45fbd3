#include "shim/kube/exec_credentials.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"

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

// Reads until end of file.
absl::Status ReadAll(int fd, absl::Time deadline, std::string* output) {
  for (;;) {
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left_ms <= 0) return absl::DeadlineExceededError("the program did not end in time");
    pollfd waiting = {fd, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(left_ms));
    if (ready < 0 && errno != EINTR) return absl::InternalError(std::strerror(errno));
    if (ready <= 0) continue;
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
absl::StatusOr<int> WaitForExit(pid_t pid, absl::Time deadline) {
  absl::Duration pause = absl::Milliseconds(1);
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) return status;
    if (ended < 0 && errno != EINTR) return absl::InternalError(std::strerror(errno));
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError("the program did not end in time");
    }
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Milliseconds(50));
  }
}

std::string Text(const nlohmann::json& object, const char* name) {
  auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

class ExecCredentials : public CredentialSource {
 public:
  explicit ExecCredentials(ExecCredentialOptions options) : options_(std::move(options)) {}

  absl::StatusOr<CredentialsPtr> Get(absl::Time now) override {
    absl::MutexLock lock(&mutex_);
    const bool wanted = current_ == nullptr || rejected_ || now >= expires_;
    if (wanted && (current_ == nullptr || now >= not_before_)) {
      absl::Status refreshed = Refresh();
      if (!refreshed.ok()) {
        not_before_ = now + options_.retry_period;
        if (current_ == nullptr) return refreshed;
      }
    }
    return current_;
  }

  void Rejected(const CredentialsPtr& used, absl::Time now) override {
    absl::MutexLock lock(&mutex_);
    if (used == current_) rejected_ = true;
  }

 private:
  absl::Status Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
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
    auto output = RunProgram(options_.command, options_.args, env, options_.timeout);
    if (!output.ok()) return Explain(output.status());
    absl::Status taken = Take(*output);
    return taken.ok() ? taken : Explain(taken);
  }

  absl::Status Explain(const absl::Status& status) const {
    std::string message =
        absl::StrCat("exec credential plugin ", options_.command, ": ", status.message());
    if (absl::IsNotFound(status) && !options_.install_hint.empty()) {
      absl::StrAppend(&message, "\n", options_.install_hint);
    }
    return absl::Status(status.code(), message);
  }

  absl::Status Take(const std::string& output) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto answer = nlohmann::json::parse(output, nullptr, /*allow_exceptions=*/false);
    if (!answer.is_object()) return absl::InvalidArgumentError("the output is not a JSON object");
    if (Text(answer, "kind") != "ExecCredential" ||
        Text(answer, "apiVersion") != options_.api_version) {
      return absl::InvalidArgumentError(absl::StrCat("the output is ", Text(answer, "apiVersion"),
                                                     " ", Text(answer, "kind"), ", expected ",
                                                     options_.api_version, " ExecCredential"));
    }
    const nlohmann::json status = answer.value("status", nlohmann::json());
    if (!status.is_object()) return absl::InvalidArgumentError("the output has no status");
    Credentials fresh;
    fresh.bearer_token = Text(status, "token");
    fresh.client_certificate_pem = Text(status, "clientCertificateData");
    fresh.client_key_pem = Text(status, "clientKeyData");
    if (fresh.client_certificate_pem.empty() != fresh.client_key_pem.empty()) {
      return absl::InvalidArgumentError("status has only one of certificate and key");
    }
    if (fresh.bearer_token.empty() && fresh.client_key_pem.empty()) {
      return absl::InvalidArgumentError("status has neither a token nor a certificate and key");
    }
    absl::Time expires = absl::InfiniteFuture();
    const std::string timestamp = Text(status, "expirationTimestamp");
    std::string error;
    if (!timestamp.empty() && !absl::ParseTime(absl::RFC3339_full, timestamp, &expires, &error)) {
      return absl::InvalidArgumentError(absl::StrCat("status.expirationTimestamp: ", error));
    }
    expires_ = expires;
    rejected_ = false;
    not_before_ = absl::InfinitePast();
    current_ = std::make_shared<const Credentials>(std::move(fresh));
    return absl::OkStatus();
  }

  const ExecCredentialOptions options_;
  absl::Mutex mutex_;
  CredentialsPtr current_ ABSL_GUARDED_BY(mutex_);
  absl::Time expires_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Time not_before_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool rejected_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<std::string> RunProgram(const std::string& command,
                                       const std::vector<std::string>& args,
                                       const std::vector<std::string>& env,
                                       absl::Duration timeout) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return absl::InternalError(std::strerror(errno));
  const absl::Time deadline = absl::Now() + timeout;
  auto pid = Spawn(command, args, env, pipe_fds[1]);
  close(pipe_fds[1]);
  if (!pid.ok()) {
    close(pipe_fds[0]);
    return pid.status();
  }
  std::string output;
  absl::Status read = ReadAll(pipe_fds[0], deadline, &output);
  close(pipe_fds[0]);
  absl::StatusOr<int> exit = read.ok() ? WaitForExit(*pid, deadline) : absl::StatusOr<int>(read);
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

std::shared_ptr<CredentialSource> MakeExecCredentials(ExecCredentialOptions options) {
  return std::make_shared<ExecCredentials>(std::move(options));
}

}  // namespace outboard::kube
