#include "shim/kube/kubeconfig.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shim/clock.h"

namespace outboard::kube {
namespace {

using ::testing::HasSubstr;

class KubeconfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/kubeconfig-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path) << content;
    return path;
  }

  // A kubeconfig whose cluster and user have these fields, in flow style.
  std::string File(const std::string& cluster, const std::string& user) {
    return Write("config",
                 absl::StrCat("current-context: c\n"
                              "contexts: [{name: c, context: {cluster: k, user: u, "
                              "namespace: team}}]\n"
                              "clusters: [{name: k, cluster: {",
                              cluster, "}}]\n", "users: [{name: u, user: {", user, "}}]\n"));
  }

  std::string ErrorOf(const std::string& cluster, const std::string& user) {
    auto config = LoadKubeconfig(File(cluster, user));
    return config.ok() ? "" : std::string(config.status().message());
  }

  std::string Script(const std::string& body) {
    const std::string path = Write("plugin.sh", "#!/bin/sh\n" + body);
    chmod(path.c_str(), 0700);
    return path;
  }

  std::string directory_;
};

const char kServer[] = "server: 'https://h:6443'";

TEST_F(KubeconfigTest, TokenAndCertificateAuthority) {
  auto config = LoadKubeconfig(
      File("server: 'https://h:6443/', certificate-authority-data: Y2E=, tls-server-name: n, "
           "proxy-url: 'http://p:1'",
           "token: abc"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://h:6443");
  EXPECT_EQ(config->ca_pem, "ca");
  EXPECT_EQ(config->tls_server_name, "n");
  EXPECT_EQ(config->proxy_url, "http://p:1");
  EXPECT_EQ(config->default_namespace, "team");
  EXPECT_EQ((*config->credentials->Get(SteadyNow()))->bearer_token, "abc");
}

TEST_F(KubeconfigTest, PathsAreRelativeToTheFile) {
  Write("ca.crt", "the ca");
  Write("token", "from file\n");
  auto config = LoadKubeconfig(
      File(absl::StrCat(kServer, ", certificate-authority: ca.crt"), "tokenFile: token"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ca_file, directory_ + "/ca.crt");
  EXPECT_EQ((*config->credentials->Get(SteadyNow()))->bearer_token, "from file");
}

TEST_F(KubeconfigTest, TokenFileIsReadAgainAfterAMinuteAndAfter401) {
  Write("token", "one");
  auto config = LoadKubeconfig(File(kServer, "tokenFile: token"));
  ASSERT_TRUE(config.ok());
  auto& credentials = *config->credentials;
  const absl::Time now = SteadyNow();
  Write("token", "two");
  EXPECT_EQ((*credentials.Get(now))->bearer_token, "one");
  auto second = *credentials.Get(now + absl::Seconds(61));
  EXPECT_EQ(second->bearer_token, "two");
  Write("token", "three");
  EXPECT_EQ((*credentials.Get(now + absl::Seconds(62)))->bearer_token, "two");
  credentials.Rejected(second, now + absl::Seconds(62));
  EXPECT_EQ((*credentials.Get(now + absl::Seconds(62)))->bearer_token, "three");
  // An empty or missing file keeps the last token.
  Write("token", "");
  EXPECT_EQ((*credentials.Get(now + absl::Seconds(200)))->bearer_token, "three");
  std::filesystem::remove(directory_ + "/token");
  EXPECT_EQ((*credentials.Get(now + absl::Seconds(300)))->bearer_token, "three");
}

TEST_F(KubeconfigTest, ErrorsNameFileAndField) {
  const std::string file = directory_ + "/config: ";
  EXPECT_THAT(ErrorOf("", "token: t"), HasSubstr(file + "clusters[name=k].cluster.server: "));
  EXPECT_THAT(ErrorOf("server: 'ftp://h'", ""), HasSubstr("cluster.server: expected a URL"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kServer, ", certificate-authority-data: '!'"), ""),
              HasSubstr("clusters[name=k].cluster.certificate-authority-data: not valid base64"));
  EXPECT_THAT(
      ErrorOf(absl::StrCat(kServer, ", certificate-authority: none.crt"), ""),
      HasSubstr("cluster.certificate-authority: " + directory_ + "/none.crt: No such file"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kServer, ", insecure-skip-tls-verify: true"), ""),
              HasSubstr("cluster.insecure-skip-tls-verify: "));
  EXPECT_THAT(ErrorOf(kServer, "username: a, password: b"),
              HasSubstr("users[name=u].user.username: basic authentication is not supported"));
  EXPECT_THAT(ErrorOf(kServer, "auth-provider: {name: gcp}"), HasSubstr("user.auth-provider: "));
  EXPECT_THAT(ErrorOf(kServer, "as: root"), HasSubstr("user.as: impersonation"));
  EXPECT_THAT(ErrorOf(kServer, "token: [1]"), HasSubstr("user.token: expected a string"));
  EXPECT_THAT(ErrorOf(kServer, "client-certificate-data: Y2E="),
              HasSubstr("user.client-key-data: "));
  EXPECT_THAT(ErrorOf(kServer, "client-certificate-data: Y2E=, client-key-data: Y2E="),
              HasSubstr("not a matching pair"));
  EXPECT_THAT(ErrorOf(kServer, "exec: {command: x, apiVersion: v9}"),
              HasSubstr("user.exec.apiVersion: expected"));
  EXPECT_THAT(ErrorOf(kServer,
                      "exec: {command: x, interactiveMode: Always, apiVersion: "
                      "client.authentication.k8s.io/v1}"),
              HasSubstr("user.exec.interactiveMode: "));
}

TEST_F(KubeconfigTest, ADirectoryIsNotAFile) {
  EXPECT_EQ(LoadKubeconfig(directory_).status().message(),
            "kubeconfig " + directory_ + ": Is a directory");
  EXPECT_THAT(ErrorOf(kServer, "tokenFile: ."), HasSubstr(": Is a directory"));
}

TEST_F(KubeconfigTest, ErrorsOfTheWholeFile) {
  EXPECT_THAT(LoadKubeconfig(directory_ + "/none").status().message(), HasSubstr("/none: No such"));
  EXPECT_THAT(LoadKubeconfig(Write("a", "a: [\n")).status().message(), HasSubstr("/a:2: "));
  EXPECT_THAT(LoadKubeconfig(Write("b", "[]")).status().message(), HasSubstr("expected a mapping"));
  EXPECT_THAT(LoadKubeconfig(Write("c", "clusters: []")).status().message(),
              HasSubstr("current-context: required"));
  EXPECT_THAT(LoadKubeconfig(Write("d", "current-context: x\ncontexts: []")).status().message(),
              HasSubstr("contexts: no entry is named \"x\""));
  KubeconfigOptions options;
  options.context = "other";
  EXPECT_THAT(LoadKubeconfig(File(kServer, "token: a"), options).status().message(),
              HasSubstr("no entry is named \"other\""));
}

TEST_F(KubeconfigTest, InsecureOnlyWhereAllowed) {
  KubeconfigOptions options;
  options.allow_insecure = true;
  auto config = LoadKubeconfig(
      File(absl::StrCat(kServer, ", insecure-skip-tls-verify: true"), "token: a"), options);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->insecure_skip_tls_verify);
}

TEST_F(KubeconfigTest, ExecPluginGetsItsEnvironment) {
  Script(
      "cd $(dirname $0)\n"
      "echo \"$KUBERNETES_EXEC_INFO\" > info\n"
      "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
      "\"status\":{\"token\":\"'$1-$WORD'\"}}'\n");
  auto config = LoadKubeconfig(
      File(kServer,
           "exec: {command: ./plugin.sh, args: [first], env: [{name: WORD, value: w}], "
           "provideClusterInfo: true, interactiveMode: IfAvailable, "
           "apiVersion: client.authentication.k8s.io/v1}"));
  ASSERT_TRUE(config.ok()) << config.status();
  CredentialSource& source = *config->credentials;
  while (!source.Get(SteadyNow()).ok()) {
    ASSERT_TRUE(source.Refreshing()) << source.Get(SteadyNow()).status();
    absl::SleepFor(absl::Milliseconds(5));  // poll interval
  }
  EXPECT_EQ((*source.Get(SteadyNow()))->bearer_token, "first-w");
  std::ifstream info(directory_ + "/info");
  const std::string text(std::istreambuf_iterator<char>(info), {});
  EXPECT_THAT(text, HasSubstr("\"kind\":\"ExecCredential\""));
  EXPECT_THAT(text, HasSubstr("\"server\":\"https://h:6443\""));
}

TEST_F(KubeconfigTest, InCluster) {
  unsetenv("KUBERNETES_SERVICE_HOST");
  EXPECT_EQ(LoadInClusterConfig(directory_).status().code(), absl::StatusCode::kInvalidArgument);
  setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
  setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  EXPECT_THAT(LoadInClusterConfig(directory_).status().message(), HasSubstr("/token"));
  Write("token", "t");
  Write("ca.crt", "c");
  Write("namespace", "mine\n");
  auto config = LoadInClusterConfig(directory_);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://[fd00::1]:443");
  EXPECT_EQ(config->default_namespace, "mine");
  EXPECT_EQ((*config->credentials->Get(SteadyNow()))->bearer_token, "t");
}

}  // namespace
}  // namespace outboard::kube
