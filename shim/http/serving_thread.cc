#include "shim/http/serving_thread.h"

#include <errno.h>
#include <glog/logging.h>
#include <httplib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/http/unix_socket.h"

namespace outboard::http {
namespace {

class ConnectionPool : public httplib::TaskQueue {
 public:
  explicit ConnectionPool(const ServingBounds& bounds)
      : max_waiting_(bounds.max_waiting), crowded_(bounds.crowded) {
    for (size_t i = 0; i < bounds.threads; ++i) threads_.emplace_back([this] { Work(); });
  }

  void enqueue(std::function<void()> job) override {
    std::unique_lock<std::mutex> lock(mutex_);
    ++arriving_;
    ReportCrowd();
    changed_.wait(
        lock, [this] { return jobs_.size() < max_waiting_ + threads_.size() - busy_ || ended_; });
    --arriving_;
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
      ReportCrowd();
      lock.unlock();
      job();
      lock.lock();
      --busy_;
      ReportCrowd();
      changed_.notify_all();
    }
  }

  void ReportCrowd() {
    if (crowded_ != nullptr) *crowded_ = jobs_.size() + arriving_ > threads_.size() - busy_;
  }

  const size_t max_waiting_;
  std::atomic<bool>* const crowded_;
  // Standard library types: the httplib base class needs none of absl.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  size_t busy_ = 0;
  size_t arriving_ = 0;  // 1 while the accepting thread waits for room
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

struct ServingThread::Impl {
  httplib::Server* server = nullptr;
  std::thread thread;
  std::atomic<bool> ended{false};
  int port = 0;
  std::string socket;  // a path; empty: a port
};

ServingThread::ServingThread() : impl_(std::make_unique<Impl>()) {}

ServingThread::~ServingThread() { Stop(); }

absl::Status ServingThread::Start(httplib::Server* server, const std::string& host, int port,
                                  const ServingBounds& bounds) {
  server->new_task_queue = [bounds] { return new ConnectionPool(bounds); };
  // Without the library's default SO_REUSEPORT, which would let two shims share one port silently.
  server->set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  if (port == 0) {
    impl_->port = server->bind_to_any_port(host);
  } else {
    impl_->port = server->bind_to_port(host, port) ? port : -1;
  }
  if (impl_->port <= 0)
    return absl::UnavailableError(absl::StrCat("cannot listen on ", host, ":", port));
  Serve(server);
  return absl::OkStatus();
}

absl::Status ServingThread::StartUnix(httplib::Server* server, const std::string& path,
                                      const ServingBounds& bounds) {
  if (absl::Status removed = RemoveStaleSocket(path); !removed.ok()) return removed;
  server->new_task_queue = [bounds] { return new ConnectionPool(bounds); };
  server->set_address_family(AF_UNIX);
  // The file gets the socket's mode minus the umask: it is never open to others.
  server->set_socket_options([](socket_t socket) { fchmod(socket, 0600); });
  // The library ignores the port, but 0 has a meaning for it.
  if (!server->bind_to_port(path, 1))
    return absl::UnavailableError(absl::StrCat("cannot listen on ", path, ": ", strerror(errno)));
  impl_->socket = path;
  Serve(server);
  return absl::OkStatus();
}

void ServingThread::Serve(httplib::Server* server) {
  impl_->server = server;
  impl_->thread = std::thread([impl = impl_.get()] {
    if (!impl->server->listen_after_bind()) {
      LOG(ERROR) << "HTTP server on "
                 << (impl->socket.empty() ? absl::StrCat("port ", impl->port) : impl->socket)
                 << " ended unexpectedly";
    }
    impl->ended = true;
  });
  // The library's stop() has no effect before the server runs.
  while (!server->is_running() && !impl_->ended) std::this_thread::yield();
}

int ServingThread::port() const { return impl_->port; }

void ServingThread::Stop() {
  if (!impl_->thread.joinable()) return;
  impl_->server->stop();
  impl_->thread.join();
  if (!impl_->socket.empty()) unlink(impl_->socket.c_str());
}

}  // namespace outboard::http
