// A real outboard-shim in a folder of its own, for tests.
#ifndef OUTBOARD_SHIM_KUBE_TESTING_SHIM_PROGRAM_H_
#define OUTBOARD_SHIM_KUBE_TESTING_SHIM_PROGRAM_H_

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"

extern char** environ;

namespace outboard::shim::testing {

// Used as: construct → write `config` → Start.
//
// Threading: thread-compatible.
// Lifetime: the destructor ends the program and removes the folder.
class ShimProgram {
 public:
  // `name` is a part of the folder's. `server` is the API server's URL.
  ShimProgram(const std::string& name, const std::string& server)
      : directory_(absl::StrCat(::testing::TempDir(), "outboard-", name, "-", getpid())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    Write("kubeconfig", absl::StrReplaceAll(kKubeconfig, {{"$SERVER", server}}));
  }
  ~ShimProgram() {
    End();
    std::filesystem::remove_all(directory_);
  }
  ShimProgram(const ShimProgram&) = delete;
  ShimProgram& operator=(const ShimProgram&) = delete;

  const std::string& directory() const { return directory_; }
  void Write(const std::string& file, const std::string& text) const {
    std::ofstream(directory_ + "/" + file) << text;
  }
  std::string Log() const {
    std::stringstream text;
    text << std::ifstream(directory_ + "/log").rdbuf();
    return text.str();
  }
  // Where the test programs are; the programs are in a neighbouring folder.
  static std::filesystem::path Tests() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path();
  }

  // Starts it with the files `config` and `kubeconfig` of the folder. `variables`: further ones of
  // the environment, each NAME=VALUE. `flags`: further flags.
  void Start(std::vector<std::string> variables = {}, const std::vector<std::string>& flags = {}) {
    const std::string program = Tests().parent_path() / "bin/outboard-shim";
    std::vector<std::string> arguments = {program, "--config", directory_ + "/config",
                                          "--kubeconfig", directory_ + "/kubeconfig"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    std::vector<char*> argv, env;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    for (std::string& variable : variables) env.push_back(variable.data());
    for (char** variable = environ; *variable != nullptr; ++variable) env.push_back(*variable);
    argv.push_back(nullptr);
    env.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, (directory_ + "/log").c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    ASSERT_EQ(posix_spawn(&process_, program.c_str(), &actions, nullptr, argv.data(), env.data()),
              0);
    posix_spawn_file_actions_destroy(&actions);
  }
  // Whether it still runs.
  bool IsRunning() const { return process_ > 0 && waitpid(process_, nullptr, WNOHANG) == 0; }
  // Waits until it ends by itself, and returns its exit code; -1: a signal ended it.
  int AwaitExit() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void End() {
    if (process_ <= 0) return;
    kill(process_, SIGTERM);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  static constexpr char kKubeconfig[] = R"(apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "$SERVER"}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
)";

  const std::string directory_;
  pid_t process_ = -1;
};

}  // namespace outboard::shim::testing

#endif  // OUTBOARD_SHIM_KUBE_TESTING_SHIM_PROGRAM_H_
