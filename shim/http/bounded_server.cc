#include "shim/http/bounded_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/string_view.h"
#include "shim/clock.h"
#include "shim/http/unix_socket.h"

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

// How often a wait for a client checks whether others need its thread.
constexpr absl::Duration kCrowdedPeriod = absl::Milliseconds(50);

// What a refused client may still send until its connection is closed. Closing with unread bytes
// could destroy the answer on its way.
constexpr size_t kDiscarded = size_t{256} << 10;

// A connection's socket, and the server's own, which becomes invalid when it stops.
struct Sockets {
  socket_t peer;
  const std::atomic<socket_t>& listening;
  const std::atomic<bool>& crowded;  // other connections wait for a thread
  absl::Duration crowded_limit;
  // Since the client got its turn: to send a request, to receive the answer, or to be idle.
  absl::Duration waited = absl::ZeroDuration();

  void BeginTurn() { waited = absl::ZeroDuration(); }

  // Waits until the client's socket is ready for `events`. False at the deadline.
  bool Await(short events, absl::Time deadline) {
    while (true) {
      const absl::Time now = SteadyNow();
      if (now >= deadline || (crowded && waited >= crowded_limit)) return false;
      const absl::Duration period = std::min(deadline - now, kCrowdedPeriod);
      pollfd wanted{peer, events, 0};
      const int ready = poll(&wanted, 1, static_cast<int>(absl::ToInt64Milliseconds(period)) + 1);
      // What exceeds the period is this process's own delay on a busy machine. It must not make the
      // client a slow one, and neither must the time that cryptography takes here.
      waited += std::min(SteadyNow() - now, period);
      if (ready > 0) return true;
      if ((ready < 0 && errno != EINTR) || listening == INVALID_SOCKET) return false;
    }
  }
};

// Repeats `step` (an SSL_… function, > 0: done) until it is done, has failed or time is over.
template <typename Step>
int Drive(SSL* connection, Sockets& sockets, absl::Time deadline, Step step) {
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

// What the library reads requests from and writes answers to: a socket, encrypted or not.
class Connection final : public httplib::Stream {
 public:
  // `encrypted` may be null.
  Connection(SSL* encrypted, Sockets* sockets, const ConnectionLimits& limits)
      : encrypted_(encrypted), sockets_(*sockets), limits_(limits) {}

  void BeginRequest(absl::Time read_by) {
    read_by_ = read_by;
    write_by_ = absl::InfiniteFuture();
    left_ = limits_.request_bytes;
    header_left_ = limits_.header_bytes;
    in_headers_ = true;
    header_end_ = 0;
    answered_ = refused_ = false;
  }
  // Whether the last answer refused its request.
  bool refused() const { return refused_; }
  // Waits for the first byte of the next request.
  bool AwaitNextRequest(absl::Time deadline) {
    sockets_.BeginTurn();
    const bool comes = IsReadable(deadline);
    sockets_.BeginTurn();
    return comes;
  }

  bool is_readable() const override { return IsReadable(read_by_); }
  bool is_writable() const override { return sockets_.Await(POLLOUT, WriteBy()); }

  ssize_t read(char* data, size_t size) override {
    size = std::min(size, in_headers_ ? std::min(left_, header_left_) : left_);
    if (size == 0) return -1;
    // The library reads headers byte by byte.
    if (begin_ == end_) {
      const ssize_t got = Receive(size > buffer_.size() ? data : buffer_.data(),
                                  size > buffer_.size() ? size : buffer_.size());
      if (got <= 0) return got;
      if (size > buffer_.size()) {
        left_ -= static_cast<size_t>(got);
        return got;
      }
      begin_ = 0;
      end_ = static_cast<size_t>(got);
    }
    const size_t taken = std::min(size, end_ - begin_);
    memcpy(data, buffer_.data() + begin_, taken);
    begin_ += taken;
    left_ -= taken;
    if (in_headers_) FindEndOfHeaders(absl::string_view(data, taken));
    return static_cast<ssize_t>(taken);
  }

  ssize_t write(const char* data, size_t size) override {
    // The status line comes in one piece: "HTTP/1.1 404".
    constexpr size_t kStatus = 9;
    if (!std::exchange(answered_, true)) refused_ = size <= kStatus || data[kStatus] == '4';
    const absl::Time deadline = WriteBy();
    if (encrypted_ == nullptr) {
      while (true) {
        const ssize_t sent = send(sockets_.peer, data, size, MSG_NOSIGNAL);
        if (sent >= 0) return sent;
        if (!CanRetry(POLLOUT, deadline)) return -1;
      }
    }
    return Drive(encrypted_, sockets_, deadline, [&] {
      return SSL_write(encrypted_, data, static_cast<int>(std::min<size_t>(size, 1 << 20)));
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
  // The library reads what is not a body line by line, so that it ends exactly there.
  void FindEndOfHeaders(absl::string_view bytes) {
    constexpr absl::string_view kEnd = "\r\n\r\n";
    header_left_ -= bytes.size();
    for (const char byte : bytes) {
      header_end_ = byte == kEnd[header_end_] ? header_end_ + 1 : byte == kEnd[0] ? 1 : 0;
      if (header_end_ < kEnd.size()) continue;
      in_headers_ = false;
      return;
    }
  }

  bool IsReadable(absl::Time deadline) const {
    return begin_ < end_ || IsPending() || sockets_.Await(POLLIN, deadline);
  }

  bool IsPending() const { return encrypted_ != nullptr && SSL_pending(encrypted_) > 0; }

  bool CanRetry(short events, absl::Time deadline) const {
    return errno == EINTR ||
           ((errno == EAGAIN || errno == EWOULDBLOCK) && sockets_.Await(events, deadline));
  }

  ssize_t Receive(char* data, size_t size) {
    size = std::min<size_t>(size, 1 << 20);
    if (encrypted_ != nullptr) {
      return Drive(encrypted_, sockets_, read_by_,
                   [&] { return SSL_read(encrypted_, data, static_cast<int>(size)); });
    }
    while (true) {
      const ssize_t got = recv(sockets_.peer, data, size, 0);
      if (got >= 0) return got;
      if (!CanRetry(POLLIN, read_by_)) return -1;
    }
  }

  absl::Time WriteBy() const {
    if (write_by_ == absl::InfiniteFuture()) {
      sockets_.BeginTurn();
      write_by_ = SteadyNow() + limits_.answer;
    }
    return write_by_;
  }

  SSL* const encrypted_;
  Sockets& sockets_;
  const ConnectionLimits& limits_;
  absl::Time read_by_ = absl::InfinitePast();
  mutable absl::Time write_by_ = absl::InfiniteFuture();  // until the answer starts
  size_t left_ = 0;                                       // bytes that the request may still have
  size_t header_left_ = 0;                                // of them, as long as in_headers_
  bool in_headers_ = true;
  size_t header_end_ = 0;  // bytes of the empty line that ends the headers, if they came last
  bool answered_ = false;
  bool refused_ = false;
  // Received and not yet read: from begin_ to end_.
  std::array<char, 4096> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

// Lets a client whose request was not read to its end receive the answer.
void Discard(Sockets& sockets) {
  shutdown(sockets.peer, SHUT_WR);
  const absl::Time deadline = SteadyNow() + kStopPatience;
  std::array<char, 4096> buffer;
  for (size_t discarded = 0; discarded < kDiscarded && sockets.Await(POLLIN, deadline);) {
    const ssize_t got = recv(sockets.peer, buffer.data(), buffer.size(), 0);
    if (got <= 0) return;
    discarded += static_cast<size_t>(got);
  }
}

}  // namespace

BoundedServer::BoundedServer(std::unique_ptr<ServingCertificate> certificate,
                             ConnectionLimits limits)
    : certificate_(std::move(certificate)), limits_(limits) {
  // Announced, so that the client does not send its next request on this connection.
  set_post_routing_handler([](const httplib::Request&, httplib::Response& response) {
    if (response.status / 100 != 4) return;
    response.headers.erase("Keep-Alive");
    response.headers.erase("Connection");
    response.set_header("Connection", "close");
  });
  if (certificate_ == nullptr) return;
  context_ = SSL_CTX_new(TLS_server_method());
  if (context_ != nullptr) certificate_->InstallOn(context_);
}

BoundedServer::~BoundedServer() { SSL_CTX_free(context_); }

bool BoundedServer::process_and_close_socket(socket_t socket) {
  std::string peer;
  int port = 0;
  if (limits_.per_peer > 0) PeerOf(socket, &peer, &port);
  bool admitted = IsAllowedPeer(socket);
  if (admitted) {
    absl::MutexLock lock(&mutex_);
    int& connections = peers_[peer];
    admitted = limits_.per_peer == 0 || connections < limits_.per_peer;
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

bool BoundedServer::Serve(socket_t socket) {
  absl::Time read_by = SteadyNow() + limits_.request;
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  Sockets sockets{socket, svr_sock_, crowded_, limits_.crowded};
  const std::unique_ptr<SSL, void (*)(SSL*)> encrypted(
      context_ == nullptr ? nullptr : SSL_new(context_), SSL_free);
  if (context_ != nullptr && (encrypted == nullptr || SSL_set_fd(encrypted.get(), socket) != 1 ||
                              Drive(encrypted.get(), sockets, read_by,
                                    [&] { return SSL_accept(encrypted.get()); }) <= 0)) {
    ERR_clear_error();
    return false;
  }
  Connection connection(encrypted.get(), &sockets, limits_);
  const bool keeps = limits_.idle > absl::ZeroDuration();
  bool served = false;
  bool closed = false;
  do {
    connection.BeginRequest(read_by);
    served = process_request(connection, /*close_connection=*/!keeps, closed,
                             [&](httplib::Request& request) { request.ssl = encrypted.get(); });
    if (!keeps || !served || closed || connection.refused() ||
        !connection.AwaitNextRequest(SteadyNow() + limits_.idle)) {
      break;
    }
    read_by = SteadyNow() + limits_.request;
  } while (svr_sock_ != INVALID_SOCKET);
  if (encrypted != nullptr) {
    ERR_clear_error();
    SSL_shutdown(encrypted.get());  // signals the end to the client; does not wait for its reply
    ERR_clear_error();
  }
  if (connection.refused()) Discard(sockets);
  return served;
}

}  // namespace outboard::http
