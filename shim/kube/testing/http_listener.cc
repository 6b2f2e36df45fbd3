#include "shim/kube/testing/http_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace outboard::kube::testing {
namespace {

std::string UrlDecode(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      decoded.push_back(
          static_cast<char>(std::strtol(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16)));
      i += 2;
    } else {
      decoded.push_back(text[i] == '+' ? ' ' : text[i]);
    }
  }
  return decoded;
}

// Reads one request. `buffer` keeps the bytes after it. False at the end of the connection.
bool ReadRequest(int fd, std::string* buffer, HttpRequest* request) {
  auto fill = [&] {
    char bytes[16384];
    const ssize_t got = read(fd, bytes, sizeof(bytes));
    if (got <= 0) return false;
    buffer->append(bytes, got);
    return true;
  };
  size_t end;
  while ((end = buffer->find("\r\n\r\n")) == std::string::npos) {
    if (!fill()) return false;
  }
  std::vector<std::string> lines = absl::StrSplit(buffer->substr(0, end), "\r\n");
  buffer->erase(0, end + 4);
  std::vector<std::string> words = absl::StrSplit(lines[0], ' ');
  if (words.size() < 3) return false;
  request->method = words[0];
  const std::pair<std::string, std::string> target =
      absl::StrSplit(words[1], absl::MaxSplits('?', 1));
  request->path = UrlDecode(target.first);
  for (absl::string_view pair : absl::StrSplit(target.second, '&', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> item = absl::StrSplit(pair, absl::MaxSplits('=', 1));
    request->query[item.first] = UrlDecode(item.second);
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::pair<std::string, std::string> header =
        absl::StrSplit(lines[i], absl::MaxSplits(':', 1));
    request->headers[absl::AsciiStrToLower(header.first)] =
        std::string(absl::StripAsciiWhitespace(header.second));
  }
  size_t length = 0;
  (void)absl::SimpleAtoi(request->headers["content-length"], &length);
  while (buffer->size() < length) {
    if (!fill()) return false;
  }
  request->body = buffer->substr(0, length);
  buffer->erase(0, length);
  return true;
}

}  // namespace

bool HttpConnection::Write(absl::string_view bytes) {
  if (cut_) return false;
  const bool cut_here = bytes.size() > left_;
  if (cut_here) bytes = bytes.substr(0, left_);
  left_ -= left_ == SIZE_MAX ? 0 : bytes.size();
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      cut_ = true;
      return false;
    }
    bytes.remove_prefix(sent);
  }
  if (cut_here) cut_ = true;
  return !cut_here;
}

bool HttpConnection::Respond(int status, absl::string_view content_type, absl::string_view body,
                             const std::map<std::string, std::string>& headers) {
  std::string answer = absl::StrCat("HTTP/1.1 ", status, " Status\r\nContent-Type: ", content_type,
                                    "\r\nContent-Length: ", body.size(), "\r\n");
  for (const auto& [name, value] : headers) absl::StrAppend(&answer, name, ": ", value, "\r\n");
  absl::StrAppend(&answer, "\r\n", body);
  return Write(answer);
}

bool HttpConnection::BeginChunks(int status, absl::string_view content_type) {
  return Write(absl::StrCat("HTTP/1.1 ", status, " Status\r\nContent-Type: ", content_type,
                            "\r\nTransfer-Encoding: chunked\r\n\r\n"));
}

bool HttpConnection::WriteChunk(absl::string_view data) {
  return Write(absl::StrCat(absl::StrFormat("%x\r\n", data.size()), data, "\r\n"));
}

bool HttpConnection::EndChunks() { return Write("0\r\n\r\n"); }

bool HttpConnection::peer_closed() const {
  char byte;
  return recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

HttpListener::HttpListener(Handler handler) : handler_(std::move(handler)) {
  listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listen_fd_, 128) != 0 ||
      getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return;
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

void HttpListener::Accept() {
  for (;;) {
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    absl::MutexLock lock(&mutex_);
    if (stopping_) {
      close(fd);
      return;
    }
    open_.insert(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void HttpListener::Serve(int fd) {
  std::string buffer;
  for (;;) {
    HttpRequest request;
    if (!ReadRequest(fd, &buffer, &request)) break;
    HttpConnection connection(fd);
    handler_(request, connection);
    if (connection.cut()) break;
  }
  absl::MutexLock lock(&mutex_);
  open_.erase(fd);
  close(fd);
}

void HttpListener::CloseConnections() {
  absl::MutexLock lock(&mutex_);
  for (int fd : open_) shutdown(fd, SHUT_RDWR);
}

void HttpListener::Stop() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  shutdown(listen_fd_, SHUT_RDWR);
  if (acceptor_.joinable()) acceptor_.join();
  close(listen_fd_);
  CloseConnections();
  {
    absl::MutexLock lock(&mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace outboard::kube::testing
