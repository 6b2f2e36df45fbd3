// The HTTPS server: certificates, access control, slow clients and many clients.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "shim/http/client.h"
#include "shim/http/server.h"
#include "shim/http/testing/authority.h"

namespace outboard::http {
namespace {

using ::testing::AllOf;
using testing::Authority;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Pair;
using ::testing::StartsWith;

struct Connecting {
  const char* from = "127.0.0.1";
  int max_version = TLS1_3_VERSION;
  Pair certificate = {};
};

// One TLS connection; verifies nothing.
class Connection {
 public:
  Connection(int port, const Connecting& how = {}) {
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, how.from, &address.sin_addr);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    address.sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    context_ = SSL_CTX_new(TLS_client_method());
    // Otherwise this library would reject the old protocols itself, before the server can.
    SSL_CTX_set_security_level(context_, 0);
    SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context_, how.max_version);
    ssl_ = SSL_new(context_);
    if (!how.certificate.key.empty()) Use(how.certificate);
    SSL_set_fd(ssl_, fd_);
  }
  ~Connection() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    close(fd_);
  }
  bool Handshake() { return SSL_connect(ssl_) == 1; }
  // The common name of the server's certificate.
  std::string Shown() {
    char name[256] = {};
    X509* const certificate = SSL_get1_peer_certificate(ssl_);
    if (certificate == nullptr) return "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
                              sizeof(name));
    X509_free(certificate);
    return name;
  }
  std::string Exchange(const std::string& request) {
    if (SSL_write(ssl_, request.data(), static_cast<int>(request.size())) <= 0) return "";
    std::string answer;
    char buffer[4096];
    for (int n; (n = SSL_read(ssl_, buffer, sizeof(buffer))) > 0;)
      answer.append(buffer, static_cast<size_t>(n));
    return answer;
  }
  // Sends without end. Returns how many bytes were sent when the server ended the connection.
  size_t Flood(const std::string& piece) {
    size_t sent = 0;
    int n = 0;
    while (sent < (1u << 30) &&
           (n = SSL_write(ssl_, piece.data(), static_cast<int>(piece.size()))) > 0)
      sent += static_cast<size_t>(n);
    return sent;
  }

 private:
  void Use(const Pair& pair) {
    BIO* bio = BIO_new_mem_buf(pair.certificate.data(), -1);
    X509* const certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
    bio = BIO_new_mem_buf(pair.key.data(), -1);
    EVP_PKEY* const key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
    EXPECT_EQ(SSL_use_cert_and_key(ssl_, certificate, key, nullptr, 1), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  int fd_ = -1;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
};

std::string Request(const std::string& path, const std::string& headers = "",
                    const std::string& method = "GET") {
  return absl::StrCat(method, " ", path, " HTTP/1.1\r\nHost: localhost\r\n", headers,
                      "Content-Length: 0\r\n\r\n");
}

class SecureServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/secure-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    server_ = nullptr;
    std::filesystem::remove_all(directory_);
  }

  std::string File(const std::string& name) const { return directory_ + "/" + name; }
  // Replaces a file like Kubernetes does for Secrets: by a rename.
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(File(name + ".new")) << text;
    std::filesystem::rename(File(name + ".new"), File(name));
    return File(name);
  }
  void WritePair(const Pair& pair) {
    files_.cert_file = Write("tls.crt", pair.certificate);
    files_.key_file = Write("tls.key", pair.key);
  }

  void Start() {
    files_.period = absl::ZeroDuration();
    files_.on_change = [this](bool in_use) { changes_.push_back(in_use); };
    absl::StatusOr<std::unique_ptr<ServingCertificate>> certificate =
        ServingCertificate::Load(files_);
    ASSERT_TRUE(certificate.ok()) << certificate.status();
    ServerOptions options;
    options.address = "127.0.0.1:0";
    options.certificate = *std::move(certificate);
    options.guard = [this](const PageRequest& request) {
      if (request.path == "/slow") {
        ++waiting_;
        released_.WaitForNotification();
      }
      std::lock_guard<std::mutex> lock(mutex_);
      asked_.push_back(request);
      if (!request.certificate_user.empty() || request.bearer_token == "good") return Verdict{};
      if (request.bearer_token.empty()) return Verdict{401, "Unauthorized"};
      return Verdict{403, "forbidden: User \"other\" cannot get path \"" + request.path + "\""};
    };
    options.metrics = [] { return "m 1\n"; };
    options.hosts = [] { return "{}"; };
    options.command_host = [](const HostCommand&) { return absl::OkStatus(); };
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::string Get(const std::string& path, const std::string& headers = "",
                  const Connecting& how = {}) {
    Connection connection(server_->port(), how);
    return connection.Handshake() ? connection.Exchange(Request(path, headers)) : "no handshake";
  }
  std::string Shown() {
    Connection connection(server_->port());
    return connection.Handshake() ? connection.Shown() : "no handshake";
  }

  std::string directory_;
  ServingCertificateOptions files_;
  std::vector<bool> changes_;
  std::mutex mutex_;
  std::vector<PageRequest> asked_;
  std::atomic<int> waiting_{0};
  absl::Notification released_;
  std::unique_ptr<Server> server_;
};

TEST_F(SecureServerTest, AsksTheGuardForAllButHealth) {
  Start();
  for (const char* path : {"/healthz", "/livez", "/readyz", "/readyz?verbose"})
    EXPECT_THAT(Get(path), StartsWith("HTTP/1.1 200")) << path;
  EXPECT_THAT(asked_, IsEmpty());
  for (const char* path : {"/metrics", "/hosts", "/healthz/ping", "/nothing", "/healthz/"})
    EXPECT_THAT(Get(path), StartsWith("HTTP/1.1 401")) << path;
  EXPECT_THAT(
      Get("/metrics"),
      AllOf(HasSubstr("WWW-Authenticate: Bearer\r\n"), HasSubstr("Content-Type: application/json"),
            EndsWith("{\"apiVersion\":\"v1\",\"code\":401,\"kind\":\"Status\",\"message\":"
                     "\"Unauthorized\",\"metadata\":{},\"reason\":\"Unauthorized\","
                     "\"status\":\"Failure\"}\n")));
  EXPECT_THAT(Get("/metrics", "Authorization: Bearer other\r\n"),
              AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("cannot get path \\\"/metrics\\\"")));
  EXPECT_THAT(Get("/%ff", "Authorization: Bearer other\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Get("/metrics", "Authorization: bearer  good \r\n"), EndsWith("\r\n\r\nm 1\n"));
  EXPECT_THAT(Get("/metrics", "Authorization: Basic good\r\n"), StartsWith("HTTP/1.1 401"));
  asked_.clear();
  Connection connection(server_->port());
  ASSERT_TRUE(connection.Handshake());
  EXPECT_THAT(
      connection.Exchange(Request(
          "/hosts/swap?host=a", "Authorization: Bearer good\r\nX-Outboard-Command: 1\r\n", "POST")),
      StartsWith("HTTP/1.1 200"));
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].verb, "post");
  EXPECT_EQ(asked_[0].path, "/hosts/swap");
}

TEST_F(SecureServerTest, MakesACertificateWhereNoneIsGiven) {
  Start();
  EXPECT_THAT(Shown(), HasSubstr("@"));
  Connection old(server_->port(), {.max_version = TLS1_1_VERSION});
  EXPECT_FALSE(old.Handshake());
  Connection oldest(server_->port(), {.max_version = TLS1_2_VERSION});
  EXPECT_TRUE(oldest.Handshake());
  EXPECT_THAT(changes_, IsEmpty());
}

TEST_F(SecureServerTest, TakesANewPairWithoutARestart) {
  Authority authority("ca");
  WritePair(authority.Issue("first", "serverAuth"));
  Start();
  EXPECT_EQ(Shown(), "first");
  // Between the two writes the pair does not match, and the old pair stays in use.
  const Pair second = authority.Issue("second", "serverAuth");
  Write("tls.crt", second.certificate);
  EXPECT_EQ(Shown(), "first");
  EXPECT_EQ(Shown(), "first");
  EXPECT_THAT(changes_, ElementsAre(false)) << "reported once";
  Write("tls.key", second.key);
  EXPECT_EQ(Shown(), "second");
  EXPECT_THAT(changes_, ElementsAre(false, true));
  for (const char* bad : {"", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n"}) {
    Write("tls.crt", bad);
    EXPECT_EQ(Shown(), "second");
  }
  std::filesystem::remove(File("tls.key"));
  EXPECT_EQ(Shown(), "second");
  EXPECT_THAT(changes_, ElementsAre(false, true, false, false, false, false));
  WritePair(authority.Issue("third", "serverAuth"));
  EXPECT_EQ(Shown(), "third");
}

TEST_F(SecureServerTest, ReportsFaultyFilesAtTheStart) {
  Authority authority("ca");
  const auto error = [&] {
    return std::string(ServingCertificate::Load(files_).status().message());
  };
  const Pair one = authority.Issue("one", "serverAuth");
  WritePair({one.certificate, authority.Issue("two", "serverAuth").key});
  EXPECT_THAT(error(), HasSubstr("tls.key: does not match "));
  WritePair({"x", one.key});
  EXPECT_THAT(error(), HasSubstr("tls.crt: contains no PEM certificate"));
  WritePair({one.certificate, "x"});
  EXPECT_THAT(error(), HasSubstr("tls.key: contains no PEM key"));
  WritePair({one.certificate + "-----BEGIN CERTIFICATE-----\nAAAA\n", one.key});
  EXPECT_THAT(error(), HasSubstr("tls.crt: contains an invalid certificate"));
  WritePair(one);
  files_.client_ca_file = File("none");
  EXPECT_THAT(error(), HasSubstr("none: No such file"));
  files_.client_ca_file = File("");
  EXPECT_THAT(error(), HasSubstr("Is a directory"));
  files_.key_file = "";
  EXPECT_THAT(error(), HasSubstr("must be set together"));
}

TEST_F(SecureServerTest, KnowsClientsByCertificatesOfTheAuthority) {
  Authority authority("clients"), other("others");
  files_.client_ca_file = Write("ca.crt", authority.pem());
  Start();
  EXPECT_THAT(Get("/metrics", "", {.certificate = authority.Issue("jane", "clientAuth", "ops")}),
              EndsWith("\r\n\r\nm 1\n"));
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].certificate_user, "jane");
  EXPECT_THAT(asked_[0].certificate_groups, ElementsAre("ops"));
  // Certificates of another authority, and server certificates, are ignored; a token still counts.
  const Pair strange = other.Issue("jane", "clientAuth", "ops");
  for (const Pair& pair : {strange, authority.Issue("jane", "serverAuth", "ops")})
    EXPECT_THAT(Get("/metrics", "", {.certificate = pair}), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Get("/metrics", "Authorization: Bearer good\r\n", {.certificate = strange}),
              EndsWith("\r\n\r\nm 1\n"));
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 401"));
  // The authorities are reloaded, too.
  Write("ca.crt", other.pem());
  EXPECT_THAT(Get("/metrics", "", {.certificate = strange}), EndsWith("\r\n\r\nm 1\n"));
}

// A header line that the library would read to its end.
TEST_F(SecureServerTest, WhatHasNoEndIsNotKept) {
  Start();
  Connection flooding(server_->port());
  ASSERT_TRUE(flooding.Handshake());
  EXPECT_LT(flooding.Flood(std::string(1 << 20, 'x')), size_t{64} << 20);
  EXPECT_THAT(Get("/healthz"), EndsWith("ok"));
}

TEST_F(SecureServerTest, IgnoresCertificatesWithoutAnAuthority) {
  Authority authority("clients");
  Start();
  EXPECT_THAT(Get("/metrics", "", {.certificate = authority.Issue("jane", "clientAuth")}),
              StartsWith("HTTP/1.1 401"));
}

// Half of the threads may wait for the API server; the others serve health.
TEST_F(SecureServerTest, ServesHealthWhileTheGuardWaits) {
  Start();
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i)
    clients.emplace_back([this] { EXPECT_THAT(Get("/slow"), StartsWith("HTTP/1.1 401")); });
  while (waiting_ < 8) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_THAT(Get("/metrics", "", {.from = "127.0.0.2"}),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("too many requests wait")));
  EXPECT_THAT(Get("/livez", "", {.from = "127.0.0.2"}), StartsWith("HTTP/1.1 200"));
  released_.Notify();
  for (std::thread& client : clients) client.join();
}

// A client that opens connections and sends nothing occupies half of the threads, for ten seconds.
TEST_F(SecureServerTest, OnePeerLeavesRoomForOthers) {
  Start();
  std::vector<std::unique_ptr<Connection>> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(std::make_unique<Connection>(server_->port()));
  EXPECT_THAT(Get("/livez", "", {.from = "127.0.0.2"}), StartsWith("HTTP/1.1 200"));
  const absl::Time began = absl::Now();
  server_->Stop();
  EXPECT_LT(absl::Now() - began, absl::Seconds(5)) << "it does not wait for silent clients";
}

TEST_F(SecureServerTest, CommandsTrustAndConvinceIt) {
  Authority authority("ca");
  WritePair(authority.Issue("shim", "serverAuth"));
  Start();
  ShimAddress shim;
  shim.server = absl::StrCat("https://127.0.0.1:", server_->port());
  const auto get = [&] {
    const auto page = GetPage(shim, "/metrics", {}, absl::Seconds(10));
    return page.ok() ? *page : std::string(page.status().message());
  };
  EXPECT_THAT(get(), HasSubstr("set --certificate-authority to the authority"));
  shim.certificate_authority = Write("ca.crt", authority.pem());
  EXPECT_EQ(get(), "Unauthorized; see --token-file");
  shim.token_file = Write("token", "other\n");
  EXPECT_EQ(get(), "forbidden: User \"other\" cannot get path \"/metrics\"");
  shim.token_file = Write("token", "good\n");
  EXPECT_EQ(get(), "m 1\n");
  EXPECT_TRUE(Command(shim, "/hosts/swap", {{"host", "a"}}, absl::Seconds(10)).ok());
  shim.certificate_authority = File("none");
  EXPECT_THAT(get(), HasSubstr("none: No such file"));
  shim.certificate_authority = shim.token_file;
  EXPECT_THAT(get(), HasSubstr("has no certificate in PEM"));
  shim.certificate_authority = "";
  shim.insecure_skip_tls_verify = true;
  EXPECT_EQ(get(), "m 1\n");
  shim.server = absl::StrCat("127.0.0.1:", server_->port());
  EXPECT_EQ(get(),
            absl::StrCat("--token-file: a token is sent over https:// only, and --server is ",
                         shim.server));
  shim.token_file = "";
  EXPECT_EQ(get(), absl::StrCat("--insecure-skip-tls-verify is for https:// only, and --server is ",
                                shim.server));
}

TEST(SecureServer, NeedsAGuard) {
  ServerOptions options;
  options.address = "127.0.0.1:0";
  options.certificate = *ServingCertificate::Load({});
  EXPECT_EQ(Server::Start(std::move(options)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CredentialFlags, FillTheAddress) {
  ShimAddress shim;
  config::FlagTable flags;
  AddCredentialFlags(&flags, &shim);
  ASSERT_TRUE(flags
                  .Parse({"pod", "--token-file", "t", "--insecure-skip-tls-verify",
                          "--certificate-authority=ca"})
                  .ok());
  EXPECT_EQ(shim.token_file, "t");
  EXPECT_EQ(shim.certificate_authority, "ca");
  EXPECT_TRUE(shim.insecure_skip_tls_verify);
  EXPECT_THAT(flags.words(), ElementsAre("pod"));
}

}  // namespace
}  // namespace outboard::http
