#include "cli/plugin/program.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

extern char** environ;

namespace outboard::plugin_command {

namespace fs = std::filesystem;

std::string OwnFolder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? "" : self.parent_path().string();
}

std::string ProgramBeside(const std::string& name) {
  const std::string beside = absl::StrCat(OwnFolder(), "/", name);
  return access(beside.c_str(), X_OK) == 0 ? beside : name;
}

absl::StatusOr<std::string> RunProgram(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return absl::UnavailableError(absl::StrCat("pipe: ", strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return absl::UnavailableError(
        absl::StrCat("cannot start ", arguments[0], ": ", strerror(error)));
  }
  std::string output;
  char buffer[4096];
  ssize_t count;
  while ((count = read(ends[0], buffer, sizeof(buffer))) > 0 || (count < 0 && errno == EINTR)) {
    if (count > 0) output.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return absl::FailedPreconditionError(absl::StrCat(arguments[0], " failed"));
  return output;
}

}  // namespace outboard::plugin_command
