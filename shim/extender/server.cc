#include "shim/extender/server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <glog/logging.h>
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace outboard::extender {
namespace {

constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kJson[] = "application/json";

// A fixed number of threads, and no connection that waits for one: accepting pauses, and the
// kernel's backlog fills.
class ConnectionPool : public httplib::TaskQueue {
 public:
  explicit ConnectionPool(size_t threads) {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }

  void enqueue(std::function<void()> job) override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return jobs_.size() < threads_.size() - busy_ || ended_; });
    jobs_.push_back(std::move(job));
    changed_.notify_all();
  }

  void shutdown() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !jobs_.empty() || ended_; });
      if (jobs_.empty()) return;
      std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      ++busy_;
      lock.unlock();
      job();
      lock.lock();
      --busy_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;  // with its condition variable the standard library's, as the base class asks
                      // for nothing of ours
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  size_t busy_ = 0;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

// Ends what clients may still say on connections to the port: the library waits for idle ones
// until their time is over, and does not tell which there are.
void EndConnections(int port) {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    int descriptor = 0;
    int listens = 0;
    socklen_t length = sizeof(listens);
    if (!absl::SimpleAtoi(entry->d_name, &descriptor) ||
        getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens != 0) {
      continue;
    }
    sockaddr_storage address = {};
    length = sizeof(address);
    if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) continue;
    int own_port = -1;
    if (address.ss_family == AF_INET)
      own_port = ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
    if (address.ss_family == AF_INET6)
      own_port = ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
    if (own_port == port) shutdown(descriptor, SHUT_RD);
  }
  closedir(folder);
}

}  // namespace

struct Server::Impl {
  explicit Impl(ServerOptions given) : options(std::move(given)) {}

  static void Refuse(int status, absl::string_view why, httplib::Response& response) {
    response.status = status;
    response.set_content(absl::StrCat(why, "\n"), kText);
  }

  void Serve(Verb verb, const httplib::Request& request, const httplib::ContentReader& read,
             httplib::Response& response) {
    if (!TakeTurn()) {
      read([](const char*, size_t) { return true; });  // What is left would be the next request.
      return Refuse(503, "too many requests at a time", response);
    }
    std::string body;
    bool too_long = false;
    const bool complete = read([&](const char* data, size_t size) {
      too_long = size > options.max_body_bytes - body.size();
      if (!too_long) body.append(data, size);
      return !too_long;
    });
    if (too_long || response.status == 413) {
      Refuse(413, absl::StrCat("the body is longer than ", options.max_body_bytes, " bytes"),
             response);
    } else if (!complete) {
      Refuse(400, "the body did not come to its end", response);
    } else if (verb == Verb::kBind && !options.serves_bind) {
      Refuse(403, "bind is served to clients with a certificate, or on loopback", response);
    } else {
      HttpAnswer answer = options.answer(verb, std::move(body));
      response.status = answer.status;
      response.set_header("Content-Type", answer.status == 200 ? kJson : kText);
      response.body = std::move(answer.body);
    }
    EndTurn();
  }

  bool TakeTurn() {
    absl::MutexLock lock(&turns);
    const auto is_free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turns) {
      return requests < options.max_requests;
    };
    if (!turns.AwaitWithTimeout(absl::Condition(&is_free), options.max_wait)) return false;
    ++requests;
    return true;
  }
  void EndTurn() {
    absl::MutexLock lock(&turns);
    --requests;
  }

  void AddHandlers() {
    const std::pair<const char*, Verb> verbs[] = {{"/filter", Verb::kFilter},
                                                  {"/prioritize", Verb::kPrioritize},
                                                  {"/preempt", Verb::kPreempt},
                                                  {"/bind", Verb::kBind}};
    for (const auto& [path, verb] : verbs) {
      server->Post(path,
                   [this, verb = verb](const httplib::Request& request, httplib::Response& response,
                                       const httplib::ContentReader& read) {
                     Serve(verb, request, read, response);
                   });
    }
    server->set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty() && response.status == 404)
        response.set_content("404 page not found\n", kText);
    });
    server->set_default_headers({{"X-Content-Type-Options", "nosniff"}});
  }

  ServerOptions options;
  std::unique_ptr<CertificateFiles> certificates;
  std::unique_ptr<httplib::Server> server;
  std::thread thread;
  absl::Mutex turns;
  size_t requests ABSL_GUARDED_BY(turns) = 0;
  std::atomic<bool> ended{false};
  int port = 0;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  const ServerOptions& wanted = impl->options;
  if (wanted.tls.has_value()) {
    auto certificates = CertificateFiles::Load(*wanted.tls);
    if (!certificates.ok()) return certificates.status();
    impl->certificates = *std::move(certificates);
    impl->server = std::make_unique<httplib::SSLServer>(
        [certificates = impl->certificates.get()](SSL_CTX& context) {
          certificates->Attach(&context);
          return true;
        });
  } else {
    impl->server = std::make_unique<httplib::Server>();
  }
  httplib::Server& server = *impl->server;
  server.new_task_queue = [threads = wanted.max_connections] {
    return new ConnectionPool(threads);
  };
  server.set_tcp_nodelay(true);
  // Without the library's default SO_REUSEPORT, which would let two shims share one port in
  // silence.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.set_keep_alive_max_count(std::numeric_limits<size_t>::max());
  server.set_keep_alive_timeout(absl::ToInt64Seconds(wanted.idle_timeout));
  server.set_read_timeout(absl::ToChronoMilliseconds(wanted.io_timeout));
  server.set_write_timeout(absl::ToChronoMilliseconds(wanted.io_timeout));
  server.set_payload_max_length(wanted.max_body_bytes);
  impl->AddHandlers();
  impl->port = wanted.port;
  if (wanted.port == 0) {
    impl->port = server.bind_to_any_port(wanted.host);
  } else if (!server.bind_to_port(wanted.host, wanted.port)) {
    impl->port = -1;
  }
  if (impl->port < 0) {
    return absl::UnavailableError(
        absl::StrCat("the extender's address ", wanted.host, ":", wanted.port, " cannot be bound"));
  }
  impl->thread = std::thread([raw = impl.get()] {
    if (!raw->server->listen_after_bind())
      LOG(ERROR) << "The extender's server on port " << raw->port << " ended";
    raw->ended = true;
  });
  // The library's stop has no effect before this.
  while (!server.is_running() && !impl->ended) std::this_thread::yield();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::~Server() { Stop(); }

int Server::port() const { return impl_->port; }

void Server::Stop() {
  if (!impl_->thread.joinable()) return;
  impl_->server->stop();
  EndConnections(impl_->port);
  impl_->thread.join();
}

}  // namespace outboard::extender
