// A client that sends without end.
#ifndef OUTBOARD_SHIM_HTTP_TESTING_FLOOD_H_
#define OUTBOARD_SHIM_HTTP_TESTING_FLOOD_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace outboard::http::testing {

// More than the kernel's buffers of both ends hold, so that a server that ends the connection has
// taken less.
inline constexpr size_t kKernelBuffers = size_t{64} << 20;

// Memory of this process in use, in bytes.
inline size_t ResidentBytes() {
  size_t total = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// How much a process may grow while it is flooded: much less than what is sent, and with room for
// what a sanitizer keeps of each byte (the thread sanitizer four times the memory that was used).
#ifdef OUTBOARD_SANITIZED
inline constexpr size_t kFloodedGrowth = size_t{256} << 20;
#else
inline constexpr size_t kFloodedGrowth = size_t{16} << 20;
#endif

// Sends `head` and then `piece` again and again to a port of this machine, until the server ends
// the connection or 1 GiB is sent. Returns how many bytes were sent, of which the kernel's buffers
// may hold some.
inline size_t Flood(int port, const std::string& head, const std::string& piece) {
  constexpr size_t kEnd = size_t{1} << 30;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  size_t sent = 0;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
      send(fd, head.data(), head.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(head.size())) {
    ssize_t n = 0;
    while (sent < kEnd && (n = send(fd, piece.data(), piece.size(), MSG_NOSIGNAL)) > 0)
      sent += static_cast<size_t>(n);
  }
  close(fd);
  return sent;
}

}  // namespace outboard::http::testing

#endif  // OUTBOARD_SHIM_HTTP_TESTING_FLOOD_H_
