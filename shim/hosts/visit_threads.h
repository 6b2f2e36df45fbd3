// Threads for visits to hosts, each of which may take its time.
#ifndef OUTBOARD_SHIM_HOSTS_VISIT_THREADS_H_
#define OUTBOARD_SHIM_HOSTS_VISIT_THREADS_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace outboard::hosts {

// Runs visits in the order in which they were requested, a bounded number at a time, so that a
// thousand sockets that do not answer neither need a thousand threads nor delay others for ever.
//
// Threading: Request from one thread.
// Lifetime: the destructor waits for visits in progress; those that wait are dropped.
// Errors: if no thread can be made, visits wait for the existing ones; without any, for the next
// Request.
class VisitThreads {
 public:
  using MakeThread = std::function<std::thread(std::function<void()>)>;

  // `make_thread` may throw std::system_error, as std::thread's constructor.
  explicit VisitThreads(
      size_t limit, MakeThread make_thread = [](std::function<void()> run) {
        return std::thread(std::move(run));
      });
  ~VisitThreads();
  VisitThreads(const VisitThreads&) = delete;
  VisitThreads& operator=(const VisitThreads&) = delete;

  // Runs `visit` soon, unless a visit to this address waits or is in progress.
  void Request(const std::string& address, std::function<void()> visit);
  // Visits that wait or are in progress.
  size_t pending() const;

 private:
  void Run();
  void AddThread();

  const size_t limit_;
  const MakeThread make_thread_;
  std::vector<std::thread> threads_;  // of the thread that requests
  bool reported_limit_ = false;       // of the thread that requests
  mutable absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  size_t idle_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<std::string> pending_ ABSL_GUARDED_BY(mu_);
  std::deque<std::pair<std::string, std::function<void()>>> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_VISIT_THREADS_H_
