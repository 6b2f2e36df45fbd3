#include "shim/http/tls_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/time/clock.h"

namespace outboard::http {
namespace {

void AddressOf(const sockaddr_storage& address, std::string* ip, int* port) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    *port = ntohs(v6.sin6_port);
  } else if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    *port = ntohs(v4.sin_port);
  }
  *ip = text;
}

void PeerOf(socket_t socket, std::string* ip, int* port) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    AddressOf(address, ip, port);
}

// How long a stopping server waits for its current clients.
constexpr absl::Duration kStopPatience = absl::Milliseconds(200);

// A connection's socket, and the server's own, which becomes invalid when it stops.
struct Sockets {
  socket_t peer;
  const std::atomic<socket_t>& listening;

  // Waits until the client's socket is ready for `events`. False at the deadline.
  bool Await(short events, absl::Time deadline) const {
    while (true) {
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) return false;
      pollfd wanted{peer, events, 0};
      const int ready =
          poll(&wanted, 1,
               static_cast<int>(absl::ToInt64Milliseconds(std::min(left, kStopPatience))) + 1);
      if (ready > 0) return true;
      if ((ready < 0 && errno != EINTR) || listening == INVALID_SOCKET) return false;
    }
  }
};

// Repeats `step` (an SSL_… function, > 0: done) until it is done, has failed or time is over.
template <typename Step>
int Drive(SSL* connection, const Sockets& sockets, absl::Time deadline, Step step) {
  while (true) {
    ERR_clear_error();
    const int done = step();
    if (done > 0) return done;
    const int error = SSL_get_error(connection, done);
    const bool again = (error == SSL_ERROR_WANT_READ && sockets.Await(POLLIN, deadline)) ||
                       (error == SSL_ERROR_WANT_WRITE && sockets.Await(POLLOUT, deadline));
    if (!again) return error == SSL_ERROR_ZERO_RETURN ? 0 : -1;
  }
}

class TlsStream final : public httplib::Stream {
 public:
  TlsStream(SSL* connection, const Sockets& sockets, absl::Time read_by, absl::Duration answer)
      : connection_(connection), sockets_(sockets), read_by_(read_by), answer_(answer) {}

  bool is_readable() const override {
    return SSL_pending(connection_) > 0 || sockets_.Await(POLLIN, read_by_);
  }
  bool is_writable() const override { return sockets_.Await(POLLOUT, WriteBy()); }

  ssize_t read(char* data, size_t size) override {
    return Drive(connection_, sockets_, read_by_, [&] {
      return SSL_read(connection_, data, static_cast<int>(std::min<size_t>(size, 1 << 20)));
    });
  }
  ssize_t write(const char* data, size_t size) override {
    return Drive(connection_, sockets_, WriteBy(), [&] {
      return SSL_write(connection_, data, static_cast<int>(std::min<size_t>(size, 1 << 20)));
    });
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    PeerOf(sockets_.peer, &ip, &port);
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (getsockname(sockets_.peer, reinterpret_cast<sockaddr*>(&address), &size) == 0)
      AddressOf(address, &ip, &port);
  }
  socket_t socket() const override { return sockets_.peer; }

 private:
  absl::Time WriteBy() const {
    if (write_by_ == absl::InfiniteFuture()) write_by_ = absl::Now() + answer_;
    return write_by_;
  }

  SSL* const connection_;
  const Sockets& sockets_;
  const absl::Time read_by_;
  const absl::Duration answer_;
  mutable absl::Time write_by_ = absl::InfiniteFuture();  // until the answer starts
};

}  // namespace

TlsServer::TlsServer(std::unique_ptr<ServingCertificate> certificate, TlsLimits limits)
    : certificate_(std::move(certificate)),
      limits_(limits),
      context_(SSL_CTX_new(TLS_server_method())) {
  if (context_ != nullptr) certificate_->InstallOn(context_);
}

TlsServer::~TlsServer() { SSL_CTX_free(context_); }

bool TlsServer::process_and_close_socket(socket_t socket) {
  std::string peer;
  int port = 0;
  PeerOf(socket, &peer, &port);
  bool admitted = false;
  {
    absl::MutexLock lock(&mutex_);
    int& connections = peers_[peer];
    admitted = connections < limits_.per_peer;
    if (admitted) ++connections;
  }
  const bool served = admitted && Serve(socket);
  if (admitted) {
    absl::MutexLock lock(&mutex_);
    const auto found = peers_.find(peer);
    if (--found->second == 0) peers_.erase(found);
  }
  shutdown(socket, SHUT_RDWR);
  close(socket);
  return served;
}

bool TlsServer::Serve(socket_t socket) {
  const absl::Time read_by = absl::Now() + limits_.request;
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  const Sockets sockets{socket, svr_sock_};
  SSL* const connection = SSL_new(context_);
  if (connection == nullptr) return false;
  bool served = false;
  if (SSL_set_fd(connection, socket) == 1 &&
      Drive(connection, sockets, read_by, [&] { return SSL_accept(connection); }) > 0) {
    TlsStream stream(connection, sockets, read_by, limits_.answer);
    bool closed = false;
    served = process_request(stream, /*close_connection=*/true, closed,
                             [&](httplib::Request& request) { request.ssl = connection; });
    ERR_clear_error();
    SSL_shutdown(connection);  // signals the end to the client; does not wait for its reply
  }
  SSL_free(connection);
  ERR_clear_error();
  return served;
}

}  // namespace outboard::http
