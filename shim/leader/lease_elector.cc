#include "shim/leader/lease_elector.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shim/fail_point.h"

namespace outboard::leader {
namespace {

constexpr int64_t kNotLeading = std::numeric_limits<int64_t>::min();
// How often `useful` is called again while the lease is free, and `alive` while it is false.
constexpr absl::Duration kUsefulPeriod = absl::Milliseconds(100);

std::string LeasePath(const LeaseElectorOptions& options, bool with_name) {
  std::string path =
      absl::StrCat("/apis/coordination.k8s.io/v1/namespaces/", options.lease_namespace, "/leases");
  if (with_name) absl::StrAppend(&path, "/", options.lease_name);
  return path;
}

}  // namespace

LeaseElector::LeaseElector(kube::ApiClient& client, LeaseElectorOptions options,
                           LeaseCallbacks callbacks)
    : client_(client),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      deadline_ns_(kNotLeading),
      step_(options_.identity, options_.timings) {}

LeaseElector::~LeaseElector() { Stop(); }

void LeaseElector::Start() {
  thread_ = std::thread([this] { Run(); });
}

void LeaseElector::Stop() {
  cancel_.Cancel();
  if (thread_.joinable()) thread_.join();
}

absl::Time LeaseElector::BindDeadline() const {
  const int64_t nanoseconds = deadline_ns_.load(std::memory_order_acquire);
  return nanoseconds == kNotLeading ? absl::InfinitePast() : absl::FromUnixNanos(nanoseconds);
}

absl::Status LeaseElector::Check(absl::Duration tolerance) const {
  const absl::Time deadline = BindDeadline();
  if (deadline == absl::InfinitePast()) return absl::OkStatus();
  const absl::Time expiry =
      deadline - options_.timings.renew_deadline + options_.timings.lease_duration;
  if (SteadyNow() <= expiry + tolerance) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("failed election to renew leadership on lease ", options_.lease_name));
}

std::string LeaseElector::leader() const {
  absl::MutexLock lock(&mutex_);
  return leader_;
}

absl::Duration LeaseElector::RequestTimeout() const {
  absl::Duration timeout = options_.timings.renew_deadline / 2;
  if (step_.leading()) timeout = std::min(timeout, step_.leading_until() - SteadyNow());
  return std::max(timeout, absl::Milliseconds(1));
}

bool LeaseElector::LetsExpire() {
  const bool lets_expire = step_.leading() && options_.alive && !options_.alive();
  if (lets_expire && !lets_expire_) {
    LOG(ERROR) << "lease " << options_.lease_name
               << ": this process hangs; not renewing, so that another replica can lead";
  }
  lets_expire_ = lets_expire;
  return lets_expire;
}

bool LeaseElector::LeavesLease(absl::Time now) {
  if (step_.leading() || !options_.useful) return false;
  if (options_.useful()) {
    last_useful_ = now;
    leaves_lease_ = false;
    return false;
  }
  if (now - last_useful_ < options_.patience) return true;
  // Logged once per period of waiting that ended without becoming useful.
  if (std::exchange(leaves_lease_, false)) {
    LOG(WARNING) << "lease " << options_.lease_name
                 << ": this process cannot schedule yet; acquiring a free lease anyway after "
                 << options_.patience;
  }
  return false;
}

void LeaseElector::Run() {
  last_useful_ = SteadyNow();
  LOG(INFO) << "attempting to acquire leader lease " << options_.lease_namespace << "/"
            << options_.lease_name << " as " << options_.identity;
  while (!cancel_.cancelled()) {
    const absl::Time now = SteadyNow();
    // Also called while another replica leads, so that the patience is already used up when its
    // lease ends.
    const bool leaves_lease = LeavesLease(now);
    const LeaseAction action = step_.Next(now, absl::Now());
    switch (action.kind) {
      case LeaseAction::Kind::kWait:
        cancel_.WaitFor(action.until - now);
        break;
      case LeaseAction::Kind::kRead: {
        auto lease = Read(RequestTimeout());
        step_.OnRead(lease, SteadyNow());
        break;
      }
      case LeaseAction::Kind::kCreate:
      case LeaseAction::Kind::kUpdate: {
        if (leaves_lease) {
          // The lease may change meanwhile; the update's resource version detects that.
          if (!std::exchange(leaves_lease_, true))
            LOG(INFO) << "lease " << options_.lease_name
                      << " is free; leaving it to other replicas until this process can schedule";
          cancel_.WaitFor(kUsefulPeriod);
          continue;
        }
        if (LetsExpire()) {
          cancel_.WaitFor(kUsefulPeriod);
          continue;
        }
        OUTBOARD_FAIL_POINT_IF(step_.leading(), before_lease_renewal);
        auto lease = Write(action, RequestTimeout());
        OUTBOARD_FAIL_POINT_IF(step_.leading() && lease.ok(), lease_renewed);
        step_.OnWritten(lease, SteadyNow());
        break;
      }
      case LeaseAction::Kind::kLost:
        LOG(ERROR) << "leader lease " << options_.lease_name << " lost";
        OUTBOARD_FAIL_POINT(lease_lost);
        StopLeading();
        return;
    }
    Publish();
  }
  const bool led = step_.leading();
  StopLeading();
  if (led && options_.release_on_stop) Release();
}

void LeaseElector::BeginEpoch() {
  const int64_t epoch = step_.lease()->resource_version;
  if (epoch == 0) {
    LOG(WARNING) << "lease " << options_.lease_name
                 << ": its resource version is not a decimal number; plugins get no leader epoch";
  }
  epoch_.store(epoch, std::memory_order_release);
}

void LeaseElector::Publish() {
  if (step_.leading() && !started_reported_) BeginEpoch();
  const absl::Time until = step_.leading_until();
  deadline_ns_.store(until == absl::InfinitePast() ? kNotLeading : absl::ToUnixNanos(until),
                     std::memory_order_release);
  const std::string holder = step_.lease().has_value() ? step_.lease()->record.holder : "";
  bool changed = false;
  {
    absl::MutexLock lock(&mutex_);
    changed = leader_ != holder;
    leader_ = holder;
  }
  if (changed && callbacks_.on_new_leader) callbacks_.on_new_leader(holder);
  if (step_.leading() && !started_reported_) {
    started_reported_ = true;
    LOG(INFO) << "became leader by lease " << options_.lease_name;
    if (callbacks_.on_started) callbacks_.on_started(step_.lease()->record.transitions);
  }
}

void LeaseElector::StopLeading() {
  deadline_ns_.store(kNotLeading, std::memory_order_release);
  if (std::exchange(started_reported_, false) && callbacks_.on_stopped) callbacks_.on_stopped();
}

void LeaseElector::Release() {
  // Another replica may hold the lease by now; the update's resource version detects that.
  const absl::Duration timeout = options_.timings.renew_deadline / 2;
  auto current = Read(timeout);
  if (!current.ok() || current->record.holder != options_.identity) return;
  kube::ApiRequest request;
  request.method = kube::Method::kPut;
  request.path = LeasePath(options_, /*with_name=*/true);
  request.body = UpdatedLeaseJson(*current, step_.ReleaseRecord(absl::Now()));
  request.timeout = timeout;
  auto released = Send(std::move(request));
  if (!released.ok()) LOG(WARNING) << "failed to release the lease: " << released.status();
}

absl::StatusOr<Lease> LeaseElector::Read(absl::Duration timeout) {
  kube::ApiRequest request;
  request.path = LeasePath(options_, /*with_name=*/true);
  request.timeout = timeout;
  return Send(std::move(request));
}

absl::StatusOr<Lease> LeaseElector::Write(const LeaseAction& action, absl::Duration timeout) {
  kube::ApiRequest request;
  request.timeout = timeout;
  if (action.kind == LeaseAction::Kind::kCreate) {
    request.method = kube::Method::kPost;
    request.path = LeasePath(options_, /*with_name=*/false);
    request.body = NewLeaseJson(options_.lease_namespace, options_.lease_name, action.record);
  } else {
    request.method = kube::Method::kPut;
    request.path = LeasePath(options_, /*with_name=*/true);
    request.body = UpdatedLeaseJson(*step_.lease(), action.record);
  }
  return Send(std::move(request));
}

absl::StatusOr<Lease> LeaseElector::Send(kube::ApiRequest request) {
  request.rate_limited = false;
  // The state machine has the timing; a retry inside the client would exceed the deadline.
  request.retry = false;
  const bool read = request.method == kube::Method::kGet;
  auto response = client_.Call(std::move(request));
  absl::Status status = response.ok() ? kube::ToStatus(*response) : response.status();
  if (status.ok()) return ParseLease(response->body);
  // An absent lease and a conflict are expected.
  if (!response.ok()) {
    // The client reports an API server that does not answer, once for all requests.
    VLOG(1) << "lease " << options_.lease_name << ": " << status;
  } else if (!(read && absl::IsNotFound(status)) && !absl::IsAborted(status)) {
    LOG(WARNING) << "lease " << options_.lease_name << ": " << status;
  }
  return status;
}

}  // namespace outboard::leader
