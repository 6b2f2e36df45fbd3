#include "shim/hosts/visit_threads.h"

#include <glog/logging.h>

#include <system_error>

namespace outboard::hosts {

VisitThreads::VisitThreads(size_t limit, MakeThread make_thread)
    : limit_(limit), make_thread_(std::move(make_thread)) {}

VisitThreads::~VisitThreads() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void VisitThreads::Request(const std::string& address, std::function<void()> visit) {
  bool needs_thread;
  {
    absl::MutexLock lock(&mu_);
    if (pending_.insert(address).second) waiting_.emplace_back(address, std::move(visit));
    needs_thread = waiting_.size() > idle_;
  }
  if (needs_thread && threads_.size() < limit_) AddThread();
}

size_t VisitThreads::pending() const {
  absl::MutexLock lock(&mu_);
  return pending_.size();
}

void VisitThreads::AddThread() {
  try {
    threads_.push_back(make_thread_([this] { Run(); }));
    reported_limit_ = false;
  } catch (const std::system_error& error) {
    // Usually a limit on the number of threads. It must not end the process.
    LOG_IF(ERROR, !reported_limit_) << "Cannot start a thread to connect to hosts: " << error.what()
                                    << "; continuing with " << threads_.size();
    reported_limit_ = true;
  }
}

void VisitThreads::Run() {
  absl::MutexLock lock(&mu_);
  while (true) {
    ++idle_;
    const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return stopping_ || !waiting_.empty();
    };
    mu_.Await(absl::Condition(&has_work));
    --idle_;
    if (stopping_) return;
    const auto [address, visit] = std::move(waiting_.front());
    waiting_.pop_front();
    mu_.Unlock();
    visit();
    mu_.Lock();
    pending_.erase(address);
  }
}

}  // namespace outboard::hosts
