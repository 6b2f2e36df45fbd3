#include "shim/hosts/endpoint.h"

#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace outboard::hosts {
namespace {

constexpr int kMaxSentBytes = 16 << 20;
constexpr int kMaxMetadataBytes = 64 << 10;
// How long an attempt to connect may take: over the network several round trips.
constexpr int kLocalConnectMillis = 20;
constexpr int kNetworkConnectMillis = 10000;

grpc::ChannelArguments HostChannelArguments(int connect_millis) {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  // Despite its name the time that an attempt has.
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, connect_millis);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  args.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  args.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  args.SetMaxSendMessageSize(kMaxSentBytes);
  return args;
}

absl::Status Unavailable(absl::string_view path, int error) {
  return absl::UnavailableError(absl::StrCat(path, ": ", strerror(error)));
}

// Closes the descriptor unless it was taken.
struct Socket {
  explicit Socket(int fd) : fd(fd) {}
  ~Socket() {
    if (fd >= 0) close(fd);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd;
};

absl::StatusOr<std::shared_ptr<grpc::Channel>> DialUnix(const std::string& path,
                                                        const std::vector<int64_t>& allowed_uids) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) return Unavailable(path, ENAMETOOLONG);
  memcpy(name.sun_path, path.c_str(), path.size() + 1);
  Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.fd < 0) return Unavailable(path, errno);
  // A Unix socket connects at once, or returns EAGAIN: the listener's backlog is full.
  if (connect(socket.fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
    if (errno == EAGAIN) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path, ": the process behind the socket does not accept connections"));
    }
    return Unavailable(path, errno);
  }
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return Unavailable(path, errno);
  const bool is_allowed = allowed_uids.empty() ? peer.uid == geteuid() || peer.uid == 0
                                               : std::find(allowed_uids.begin(), allowed_uids.end(),
                                                           int64_t{peer.uid}) != allowed_uids.end();
  if (!is_allowed) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": the process behind the socket (pid ",
                                                    peer.pid, ") runs as user ", peer.uid,
                                                    ", which allowedUids does not list"));
  }
  const int fd = std::exchange(socket.fd, -1);
  return grpc::CreateCustomInsecureChannelFromFd("outboard-host", fd,
                                                 HostChannelArguments(kLocalConnectMillis));
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return text.str();
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> DialTls(const Endpoint& endpoint) {
  grpc::SslCredentialsOptions options;
  for (const auto& [file, pem] : {std::pair{&endpoint.tls->ca_file, &options.pem_root_certs},
                                  std::pair{&endpoint.tls->cert_file, &options.pem_cert_chain},
                                  std::pair{&endpoint.tls->key_file, &options.pem_private_key}}) {
    absl::StatusOr<std::string> text = ReadFile(*file);
    if (!text.ok()) return text.status();
    *pem = *std::move(text);
  }
  grpc::ChannelArguments args = HostChannelArguments(kNetworkConnectMillis);
  if (!endpoint.tls->server_name.empty()) args.SetSslTargetNameOverride(endpoint.tls->server_name);
  return grpc::CreateCustomChannel(endpoint.address, grpc::SslCredentials(options), args);
}

bool IsHostName(absl::string_view name) {
  return !name.empty() && name.size() <= 63 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
         });
}

}  // namespace

std::shared_ptr<grpc::Channel> NewHostChannel(const std::string& address) {
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   HostChannelArguments(kLocalConnectMillis));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const Endpoint& endpoint,
                                                    const std::vector<int64_t>& allowed_uids) {
  absl::string_view path = endpoint.address;
  if (absl::ConsumePrefix(&path, "unix:")) return DialUnix(std::string(path), allowed_uids);
  if (!endpoint.tls.has_value())
    return absl::InvalidArgumentError(absl::StrCat(endpoint.address, " needs tls"));
  return DialTls(endpoint);
}

absl::StatusOr<std::vector<Endpoint>> ListSockets(const std::string& directory,
                                                  std::vector<std::string>* problems) {
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  if (error) {
    return error == std::errc::no_such_file_or_directory
               ? absl::NotFoundError(absl::StrCat(directory, ": ", error.message()))
               : absl::UnknownError(absl::StrCat(directory, ": ", error.message()));
  }
  std::vector<Endpoint> found;
  for (const auto end = std::filesystem::directory_iterator(); entries != end;
       entries.increment(error)) {
    if (error) break;
    const std::string file = entries->path().filename();
    absl::string_view stem = file;
    struct stat status;
    if (!absl::ConsumeSuffix(&stem, ".sock") || stat(entries->path().c_str(), &status) != 0 ||
        !S_ISSOCK(status.st_mode)) {
      continue;
    }
    Endpoint endpoint;
    endpoint.host = std::string(stem.substr(0, stem.find('@')));
    endpoint.address = absl::StrCat("unix:", entries->path().string());
    endpoint.inode = status.st_ino;
    if (IsHostName(endpoint.host)) {
      found.push_back(std::move(endpoint));
    } else {
      problems->push_back(absl::StrCat(entries->path().string(),
                                       ": the part before @ or .sock is not a host name: it must "
                                       "match [a-z0-9-]{1,63}"));
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Endpoint& a, const Endpoint& b) { return a.address < b.address; });
  return found;
}

}  // namespace outboard::hosts
