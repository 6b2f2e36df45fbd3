#include "cli/simulate/host_process.h"

#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace outboard::simulate {
namespace {

namespace fs = std::filesystem;

std::string BesideThisProgram() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return "";
  const fs::path beside = self.parent_path() / "outboard-host";
  return fs::exists(beside, error) ? beside.string() : "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostProcess>> HostProcess::Start(std::string binary, int verbosity,
                                                                int min_severity) {
  const bool is_named = !binary.empty();
  if (is_named && absl::StrContains(binary, "/") && access(binary.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat("--host-binary ", binary, ": cannot be started: ", strerror(errno)));
  }
  if (binary.empty()) binary = BesideThisProgram();
  if (binary.empty()) binary = "outboard-host";
  std::string folder = (fs::temp_directory_path() / "outboard-simulate-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::InternalError(
        absl::StrCat("cannot create a folder for the host's socket: ", strerror(errno)));
  }
  const std::string address = absl::StrCat("unix:", folder, "/host.sock");
  std::vector<std::string> arguments = {binary, "--listen", address};
  if (verbosity > 0) {
    arguments.push_back("--v");
    arguments.push_back(absl::StrCat(verbosity));
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  std::string severity = absl::StrCat("GLOG_minloglevel=", min_severity);
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (min_severity == 0 || !absl::StartsWith(*variable, "GLOG_minloglevel="))
      environment.push_back(*variable);
  }
  if (min_severity > 0) environment.push_back(severity.data());
  environment.push_back(nullptr);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0)
    return absl::InternalError(absl::StrCat("cannot start ", binary, ": ", strerror(errno)));
  if (pid == 0) {
    // Only async-signal-safe calls between fork and exec.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    // The host's log must not mix with the results on standard output.
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execvpe(argv[0], argv.data(), environment.data());
    _exit(127);
  }
  return std::unique_ptr<HostProcess>(
      new HostProcess(pid, is_named ? std::move(binary) : "", std::move(folder), address));
}

absl::Status HostProcess::CheckAlive() {
  if (pid_ < 0) return absl::UnavailableError("the plugin host has ended");
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return absl::OkStatus();
  pid_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    if (!named_.empty())
      return absl::NotFoundError(absl::StrCat("--host-binary ", named_, ": cannot be started"));
    return absl::NotFoundError(
        "outboard-host is neither beside this program nor on PATH; set --host-binary");
  }
  if (WIFEXITED(status)) {
    return absl::InternalError(
        absl::StrCat("the plugin host ended with exit code ", WEXITSTATUS(status)));
  }
  return absl::InternalError(
      absl::StrCat("the plugin host was killed by signal ", WTERMSIG(status)));
}

HostProcess::~HostProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    int status = 0;
    waitpid(pid_, &status, 0);
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace outboard::simulate
