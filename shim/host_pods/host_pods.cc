#include "shim/host_pods/host_pods.h"

#include <glog/logging.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "shim/bind/api_requests.h"
#include "shim/informer/informer.h"

namespace outboard::host_pods {
namespace {

using nlohmann::json;

constexpr absl::Duration kRetryWrite = absl::Seconds(5);
constexpr absl::Duration kNextReason = absl::Seconds(10);
constexpr absl::Duration kWriteTimeout = absl::Seconds(5);

std::string AddressOf(const HostPod& pod, int port) {
  const bool is_ipv6 = absl::StrContains(pod.ip, ':');
  return is_ipv6 ? absl::StrCat("[", pod.ip, "]:", port) : absl::StrCat(pod.ip, ":", port);
}

std::string PatchOf(const HostPod& pod, const Readiness& wanted, absl::Time wall) {
  json condition = {{"type", kReadinessGate},
                    {"status", wanted.status},
                    {"reason", wanted.reason},
                    {"message", wanted.message}};
  if (wanted.status != pod.readiness.status)
    condition["lastTransitionTime"] =
        absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", wall, absl::UTCTimeZone());
  const json patch = {{"metadata", {{"uid", pod.uid()}}},
                      {"status", {{"conditions", json::array({condition})}}}};
  // Messages of hosts need not be UTF-8.
  return patch.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

// The pods of one selector.
struct HostPods::Watch final : public informer::InformerHandler<HostPod> {
  using Ptr = HostPodPtr;

  Watch(HostPods* owner, const config::HostPodsSpec& spec)
      : owner(owner),
        pod_namespace(spec.pod_namespace),
        selector(spec.selector),
        resource(HostPodsWith(spec.pod_namespace, spec.selector)) {}

  bool Has(const config::HostPodsSpec& spec) const {
    return spec.pod_namespace == pod_namespace && spec.selector == selector;
  }
  void OnAdd(const Ptr& pod) override { Post(pod, false); }
  void OnUpdate(const Ptr& old_pod, const Ptr& pod) override { Post(pod, false); }
  void OnDelete(const Ptr& pod) override { Post(pod, true); }
  void OnSynced() override {}
  void Post(const Ptr& pod, bool is_deleted) {
    owner->callbacks_.post([owner = owner, watch = this, pod, is_deleted](absl::Time) {
      owner->OnPod(watch, pod, is_deleted);
    });
  }

  HostPods* const owner;
  const std::string pod_namespace, selector;
  const informer::Resource<HostPod> resource;
  std::map<std::string, HostPodPtr> pods;  // by uid; of the scheduling thread
  std::unique_ptr<informer::Informer<HostPod>> informer;
};

HostPods::HostPods(kube::ApiClient* client, Callbacks callbacks)
    : client_(client), callbacks_(std::move(callbacks)) {}

HostPods::~HostPods() { Stop(); }

void HostPods::Stop() {
  for (std::unique_ptr<Watch>& watch : watches_) watch->informer->Stop();
  for (std::thread& stopper : stoppers_) stopper.join();
  stoppers_.clear();
}

void HostPods::SetConfig(const config::ShimConfig& config) {
  selections_.clear();
  std::vector<std::unique_ptr<Watch>> old = std::exchange(watches_, {});
  const auto watch_of = [&](const config::HostPodsSpec& spec) {
    for (const std::unique_ptr<Watch>& watch : watches_) {
      if (watch->Has(spec)) return watch.get();
    }
    const auto kept = std::find_if(old.begin(), old.end(), [&](const auto& watch) {
      return watch != nullptr && watch->Has(spec);
    });
    if (kept != old.end()) {
      watches_.push_back(std::move(*kept));
    } else {
      auto& watch = watches_.emplace_back(std::make_unique<Watch>(this, spec));
      watch->informer =
          std::make_unique<informer::Informer<HostPod>>(*client_, watch->resource, watch.get());
      watch->informer->Start();
    }
    return watches_.back().get();
  };
  for (const config::HostSpec& spec : config.hosts) {
    if (spec.pods.has_value()) selections_.push_back({spec, watch_of(*spec.pods)});
  }
  for (std::unique_ptr<Watch>& watch : old) {
    // Ending a watch may take as long as an answer of the API server.
    if (watch != nullptr)
      stoppers_.emplace_back(
          [watch = std::shared_ptr<Watch>(std::move(watch))] { watch->informer->Stop(); });
  }
  Report();
}

void HostPods::OnPod(Watch* watch, const HostPodPtr& pod, bool is_deleted) {
  // It may have been posted before the watch was ended.
  const bool is_wanted = std::any_of(watches_.begin(), watches_.end(),
                                     [&](const auto& one) { return one.get() == watch; });
  if (!is_wanted) return;
  if (is_deleted || pod->has_ended) {
    watch->pods.erase(pod->uid());
    next_writes_.erase(pod->uid());
    were_ready_.erase(pod->uid());
  } else {
    watch->pods[pod->uid()] = pod;
  }
  Report();
}

void HostPods::Report() {
  std::vector<hosts::Endpoint> endpoints;
  std::vector<hosts::GatedInstance> gated;
  for (const Selection& selection : selections_) {
    for (const auto& [uid, pod] : selection.watch->pods) {
      if (pod->ip.empty()) continue;
      hosts::Endpoint& endpoint = endpoints.emplace_back();
      endpoint.host = selection.spec.name;
      endpoint.address = AddressOf(*pod, selection.spec.pods->port);
      endpoint.tls = selection.spec.tls;
      endpoint.pod = pod->key();
      endpoint.pod_uid = uid;
      if (pod->has_gate)
        gated.push_back({endpoint.host, endpoint.address, pod->readiness.status == "True"});
    }
  }
  callbacks_.gated(std::move(gated));
  callbacks_.found(std::move(endpoints));
}

std::vector<HostInPod> HostPods::HostsIn(const Watch& watch, const HostPod& pod,
                                         const std::vector<hosts::InstanceView>& instances) {
  std::set<std::string>& were_ready = were_ready_[pod.uid()];
  std::vector<HostInPod> hosts;
  for (const Selection& selection : selections_) {
    if (selection.watch != &watch) continue;
    const std::string address = AddressOf(pod, selection.spec.pods->port);
    HostInPod& host = hosts.emplace_back(HostInPod{selection.spec.name});
    for (const hosts::InstanceView& view : instances) {
      if (view.host == host.host && view.address == address) host.instance = &view;
    }
    if (host.instance != nullptr) {
      const hosts::InstanceState state = host.instance->state;
      if (state == hosts::InstanceState::kServing || state == hosts::InstanceState::kStandby)
        were_ready.insert(address);
      if (state == hosts::InstanceState::kRefused || state == hosts::InstanceState::kQuarantined)
        were_ready.erase(address);
    }
    host.was_ready = were_ready.count(address) > 0;
  }
  return hosts;
}

void HostPods::OnRetired(const std::string& address) {
  for (const Selection& selection : selections_) {
    for (const auto& [uid, pod] : selection.watch->pods) {
      if (!pod->ip.empty() && AddressOf(*pod, selection.spec.pods->port) == address)
        were_ready_[uid].insert(address);
    }
  }
}

void HostPods::Tick(const std::vector<hosts::InstanceView>& instances, absl::Time now) {
  const bool may_write = callbacks_.may_write();
  for (const std::unique_ptr<Watch>& watch : watches_) {
    for (const auto& [uid, pod] : watch->pods) {
      if (!pod->has_gate || pod->ip.empty()) continue;
      const std::vector<HostInPod> hosts = HostsIn(*watch, *pod, instances);
      if (!may_write || hosts.empty() || writing_.count(uid) > 0) continue;
      const std::optional<Readiness> wanted = WantedReadiness(pod->readiness, hosts);
      if (wanted.has_value()) Write(pod, *wanted, now);
    }
  }
}

void HostPods::Write(const HostPodPtr& pod, const Readiness& wanted, absl::Time now) {
  if (const auto it = next_writes_.find(pod->uid()); it != next_writes_.end()) {
    const bool is_same = wanted.status == pod->readiness.status;
    if (now < it->second.any || (is_same && now < it->second.same_status)) return;
  }
  writing_.insert(pod->uid());
  kube::ApiRequest request;
  request.method = kube::Method::kPatch;
  request.path = bind::PodStatusPath(pod->pod_namespace, pod->name);
  request.content_type = std::string(kube::kStrategicMergePatch);
  request.accept = std::string(kube::kMetadataOnly);
  request.body = PatchOf(*pod, wanted, callbacks_.wall());
  request.timeout = kWriteTimeout;
  request.before_send = [may_write = callbacks_.may_write] {
    return may_write() ? absl::OkStatus()
                       : absl::FailedPreconditionError("this replica no longer leads");
  };
  client_->Start(
      std::move(request), [this, alive = std::weak_ptr<bool>(alive_), post = callbacks_.post, pod,
                           wanted](absl::StatusOr<kube::ApiResponse> answer) {
        const absl::Status status = answer.ok() ? kube::ToStatus(*answer) : answer.status();
        post([this, alive, pod, wanted, status](absl::Time now) {
          if (!alive.expired()) OnWritten(pod, wanted, status, now);
        });
      });
}

void HostPods::OnWritten(const HostPodPtr& pod, const Readiness& wanted, const absl::Status& status,
                         absl::Time now) {
  writing_.erase(pod->uid());
  if (!status.ok()) {
    next_writes_[pod->uid()].any = now + kRetryWrite;
    LOG(WARNING) << "Pod " << pod->key() << ": cannot write the condition " << kReadinessGate
                 << ": " << status.message() << "; retrying";
    return;
  }
  LOG(INFO) << "Pod " << pod->key() << ": " << kReadinessGate << " is " << wanted.status << ", "
            << wanted.reason << ": " << wanted.message;
  next_writes_[pod->uid()].same_status = now + kNextReason;
  // Until the watch reports it.
  for (const std::unique_ptr<Watch>& watch : watches_) {
    const auto it = watch->pods.find(pod->uid());
    if (it == watch->pods.end() || it->second != pod) continue;
    auto written = std::make_shared<HostPod>(*pod);
    written->readiness = wanted;
    it->second = std::move(written);
  }
  callbacks_.written(*pod, wanted, now);
}

}  // namespace outboard::host_pods
