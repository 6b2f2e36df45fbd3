// Runs outboard-node-probe with a stand-in for nvidia-smi, a kubelet and an API server.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "node_probe/testing/fake_kubelet.h"
#include "shim/kube/testing/fake_api_server.h"

extern char** environ;

namespace outboard::node_probe {
namespace {

using ::testing::HasSubstr;

class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ + "/kubeconfig")
        << absl::StrCat("apiVersion: v1\nkind: Config\ncurrent-context: x\n",
                        "clusters: [{name: c, cluster: {server: \"", server_.url(), "\"}}]\n",
                        "users: [{name: u, user: {}}]\n",
                        "contexts: [{name: x, context: {cluster: c, user: u}}]\n");
    server_.Put("nodes", {{"metadata", {{"name", "n1"}}}});
    setenv("FAKE_NVIDIA_SMI", "mixed", /*overwrite=*/1);
    setenv("NODE_NAME", "n1", /*overwrite=*/1);
  }
  void TearDown() override {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
    unsetenv("NODE_NAME");
    std::filesystem::remove_all(directory_);
  }

  void Start(std::vector<std::string> flags) {
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() /
        "bin/outboard-node-probe";
    flags.insert(flags.begin(), {program, "--nvidia-smi", "node_probe/testdata/nvidia-smi",
                                 "--pod-resources", kubelet_.socket()});
    std::vector<char*> argv;
    for (std::string& flag : flags) argv.push_back(flag.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const auto& [fd, file] : {std::pair(1, "/out"), std::pair(2, "/log")}) {
      posix_spawn_file_actions_addopen(&actions, fd, (directory_ + file).c_str(),
                                       O_WRONLY | O_CREAT | O_TRUNC, 0600);
    }
    ASSERT_EQ(posix_spawn(&process_, program.c_str(), &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  // The exit code; -1 if it was ended by a signal.
  int AwaitEnd() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string Text(const std::string& file) const {
    std::ifstream stream(directory_ + "/" + file);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
  std::string Annotation(const std::string& key) const {
    return server_.Get("nodes", "n1")["metadata"]["annotations"].value(key, "none");
  }

  const std::string directory_ = absl::StrCat(::testing::TempDir(), "node-probe-", getpid());
  kube::testing::FakeApiServer server_;
  testing::FakeKubelet kubelet_;
  pid_t process_ = -1;
};

TEST_F(ProgramTest, WritesChangesUntilItIsStopped) {
  testing::AddPod(kubelet_.pods(), "ns", "a", {"GPU-e2d96536-baf2-58d8-af3e-63d8694984cf"});
  // The first patch fails; the next round tries again.
  kube::testing::Fault starting;
  starting.method = "PATCH";
  starting.http_status = 503;
  starting.body = "starting";
  server_.Inject(starting);
  Start({"--kubeconfig", directory_ + "/kubeconfig", "--period", "1s"});
  ASSERT_TRUE(server_.AwaitCount("PATCH", "/api/v1/nodes/n1", 2)) << Text("log");
  kill(process_, SIGTERM);
  EXPECT_EQ(AwaitEnd(), 0) << Text("log");
  EXPECT_EQ(Annotation("accelerator.sched.io/gpu-islands"), "nvlink 0,1;2;3");
  EXPECT_EQ(Annotation("accelerator.sched.io/pod-gpus"), "ns/a=1");
  EXPECT_EQ(server_.Requests()[0].headers.at("user-agent").substr(0, 20), "outboard-node-probe/");
  const std::string log = Text("log");
  EXPECT_THAT(log, HasSubstr("Round failed: patch of node n1: starting (HTTP 503); trying again"));
  EXPECT_THAT(log, HasSubstr("stopping"));
}

TEST_F(ProgramTest, OneRoundThatIsOnlyPrinted) {
  Start({"--once", "--dry-run"});
  EXPECT_EQ(AwaitEnd(), 0) << Text("log");
  EXPECT_EQ(Text("out"),
            R"({"metadata":{"annotations":{"accelerator.sched.io/gpu-islands":"nvlink 0,1;2;3",)"
            R"("accelerator.sched.io/pod-gpus":""}}})"
            "\n");
  EXPECT_TRUE(server_.Requests().empty());
}

TEST_F(ProgramTest, ARoundThatFails) {
  setenv("FAKE_NVIDIA_SMI", "no_driver", /*overwrite=*/1);
  Start({"--once", "--dry-run"});
  EXPECT_EQ(AwaitEnd(), 1);
  EXPECT_THAT(Text("log"), HasSubstr("outboard-node-probe: node_probe/testdata/nvidia-smi -L: exit "
                                     "status 9: NVIDIA-SMI has failed"));
  EXPECT_EQ(Text("out"), "");
}

// SIGTERM ends the program although nvidia-smi hangs. That it hangs shows in a fifo, which it
// opens.
TEST_F(ProgramTest, StopsWhileNvidiaSmiHangs) {
  const std::string fifo = directory_ + "/started";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  setenv("FAKE_NVIDIA_SMI", "hangs", /*overwrite=*/1);
  setenv("FAKE_NVIDIA_SMI_STARTED", fifo.c_str(), /*overwrite=*/1);
  Start({"--dry-run"});
  const int started = open(fifo.c_str(), O_RDONLY);
  char byte = 0;
  EXPECT_EQ(read(started, &byte, 1), 1);
  kill(process_, SIGTERM);
  EXPECT_EQ(AwaitEnd(), 0) << Text("log");
  close(started);
  unsetenv("FAKE_NVIDIA_SMI_STARTED");
}

}  // namespace
}  // namespace outboard::node_probe
