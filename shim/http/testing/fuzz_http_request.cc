#include "shim/http/testing/fuzz_http_request.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "integration/fuzz/seeds.h"
#include "shim/http/server.h"

namespace outboard::http {
namespace {

// A server for all inputs.
struct Pages {
  Pages() {
    ServerOptions options;
    options.address = "127.0.0.1:0";
    options.metrics = [] { return "m 1\n"; };
    options.configz = [] { return "kind: X\n"; };
    options.version_json = "{}";
    options.explain = [](const std::string& pod) -> absl::StatusOr<std::string> { return "{}"; };
    options.queue = [](size_t, const std::string&) -> absl::StatusOr<std::string> { return "{}"; };
    options.hosts = []() -> absl::StatusOr<std::string> { return "[]"; };
    options.command_host = [this](const HostCommand&) {
      ++commands;
      return absl::OkStatus();
    };
    server = *Server::Start(std::move(options));
  }
  std::atomic<int> commands{0};
  std::unique_ptr<Server> server;
};

// Sends the bytes and returns the answer.
std::string Exchange(int port, absl::string_view bytes) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  fuzz::Require(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0,
                "the server accepts connections");
  // The connection has no lingering state, or ports run out.
  const linger at_once = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;  // refused
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  shutdown(fd, SHUT_WR);
  std::string answer;
  char buffer[4096];
  for (ssize_t got; (got = read(fd, buffer, sizeof(buffer))) > 0;)
    answer.append(buffer, static_cast<size_t>(got));
  close(fd);
  return answer;
}

}  // namespace

void FuzzHttpRequest(absl::string_view bytes) {
  if (bytes.size() > 100000) return;
  static auto* const pages = new Pages();
  const int commands = pages->commands;
  const std::string answer = Exchange(pages->server->port(), bytes);
  if (!answer.empty()) {
    fuzz::Require(absl::StartsWith(answer, "HTTP/1.") && answer.size() > 12, "an answer is HTTP");
    fuzz::Require(answer[9] >= '1' && answer[9] <= '5', "an answer has a status");
    fuzz::Require(answer.size() < 65536, "an answer is bounded");
  }
  if (pages->commands == commands) return;
  const std::string lower = absl::AsciiStrToLower(bytes);
  fuzz::Require(absl::StrContains(lower, "x-outboard-command"),
                "a command has the header that a page in a browser cannot send");
  fuzz::Require(absl::StrContains(bytes, "POST"), "a command is a POST");
}

}  // namespace outboard::http
