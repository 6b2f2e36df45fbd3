// absl::Mutex, CondVar, Notification and BlockingCounter for the thread sanitizer, implemented only
// with std::mutex.
//
// Debian's Abseil is not instrumented, so the sanitizer sees neither its locks nor their order, and
// would report every access under a lock as a race. In test programs of the `tsan` build these
// definitions replace those of the shared library, also inside the library. They keep the
// interface's guarantees but not its speed; readers exclude each other.
//
// Threading: as absl::Mutex.
// Lifetime: a mutex allocates its state at its first use and frees it in its destructor.
#include "absl/synchronization/mutex.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

struct State {
  std::mutex mutex;
  // Signalled at every unlock: waiting threads check their conditions again.
  std::condition_variable changed;
};

template <typename T>
T* StateOf(std::atomic<intptr_t>* word) {
  intptr_t found = word->load(std::memory_order_acquire);
  if (found == 0) {
    auto* made = new T;
    if (word->compare_exchange_strong(found, reinterpret_cast<intptr_t>(made),
                                      std::memory_order_acq_rel))
      return made;
    delete made;
  }
  return reinterpret_cast<T*>(found);
}

// The deadline on the clock of pthread_cond_timedwait, which the sanitizer supports.
std::chrono::system_clock::time_point Limit(Time deadline) {
  return ToChronoTime(std::min(deadline, Now() + Hours(24)));
}

// With the mutex held. Returns false if the deadline came first.
bool WaitFor(State* state, const Condition& condition, Time deadline) {
  std::unique_lock<std::mutex> lock(state->mutex, std::adopt_lock);
  while (!condition.Eval()) {
    if (Now() >= deadline) {
      lock.release();
      return false;
    }
    // Changes under the lock so far may fulfil the conditions of other waiting threads.
    state->changed.notify_all();
    if (deadline == InfiniteFuture()) {
      state->changed.wait(lock);
    } else {
      state->changed.wait_until(lock, Limit(deadline));
    }
  }
  lock.release();
  return true;
}

}  // namespace

Mutex::~Mutex() { delete reinterpret_cast<State*>(mu_.load(std::memory_order_acquire)); }
void Mutex::Lock() { StateOf<State>(&mu_)->mutex.lock(); }
bool Mutex::TryLock() { return StateOf<State>(&mu_)->mutex.try_lock(); }
void Mutex::Unlock() {
  auto* state = StateOf<State>(&mu_);
  state->changed.notify_all();
  state->mutex.unlock();
}
void Mutex::ReaderLock() { Lock(); }
bool Mutex::ReaderTryLock() { return TryLock(); }
void Mutex::ReaderUnlock() { Unlock(); }
// The owner is not recorded; clang's analysis checks this.
void Mutex::AssertHeld() const {}
void Mutex::AssertReaderHeld() const {}
void Mutex::AssertNotHeld() const {}

void Mutex::Await(const Condition& condition) {
  WaitFor(StateOf<State>(&mu_), condition, InfiniteFuture());
}
bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  return AwaitWithDeadline(condition, Now() + timeout);
}
bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  return WaitFor(StateOf<State>(&mu_), condition, deadline);
}
void Mutex::LockWhen(const Condition& condition) {
  Lock();
  Await(condition);
}
bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  return LockWhenWithDeadline(condition, Now() + timeout);
}
bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  Lock();
  return AwaitWithDeadline(condition, deadline);
}
void Mutex::ReaderLockWhen(const Condition& condition) { LockWhen(condition); }
bool Mutex::ReaderLockWhenWithTimeout(const Condition& condition, Duration timeout) {
  return LockWhenWithTimeout(condition, timeout);
}
bool Mutex::ReaderLockWhenWithDeadline(const Condition& condition, Time deadline) {
  return LockWhenWithDeadline(condition, deadline);
}

CondVar::~CondVar() {
  delete reinterpret_cast<std::condition_variable_any*>(cv_.load(std::memory_order_acquire));
}
void CondVar::Signal() { StateOf<std::condition_variable_any>(&cv_)->notify_one(); }
void CondVar::SignalAll() { StateOf<std::condition_variable_any>(&cv_)->notify_all(); }
namespace {

// The lock interface for condition_variable_any, so that unlocking also wakes threads in Await.
struct Held {
  Mutex* mutex;
  void lock() { mutex->Lock(); }
  void unlock() { mutex->Unlock(); }
};

}  // namespace
void CondVar::Wait(Mutex* mutex) {
  Held held{mutex};
  StateOf<std::condition_variable_any>(&cv_)->wait(held);
}
bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  return WaitWithDeadline(mutex, Now() + timeout);
}
bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  if (deadline == InfiniteFuture()) {
    Wait(mutex);
    return false;
  }
  Held held{mutex};
  return StateOf<std::condition_variable_any>(&cv_)->wait_until(held, Limit(deadline)) ==
         std::cv_status::timeout;
}

Notification::~Notification() { MutexLock lock(&mutex_); }
void Notification::Notify() {
  MutexLock lock(&mutex_);
  notified_yet_.store(true, std::memory_order_release);
}
void Notification::WaitForNotification() const {
  WaitForNotificationWithDeadline(InfiniteFuture());
}
bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  return WaitForNotificationWithDeadline(Now() + timeout);
}
bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  MutexLock lock(&mutex_);
  return mutex_.AwaitWithDeadline(Condition(this, &Notification::HasBeenNotified), deadline);
}

bool BlockingCounter::DecrementCount() {
  MutexLock lock(&lock_);
  done_ = count_.fetch_sub(1) == 1;
  return done_;
}
void BlockingCounter::Wait() {
  MutexLock lock(&lock_);
  lock_.Await(Condition(&done_));
}

ABSL_NAMESPACE_END
}  // namespace absl
