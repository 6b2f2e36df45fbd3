// Finds instances of hosts by their pods, and tells these pods whether the instances are accepted.
#ifndef OUTBOARD_SHIM_HOST_PODS_HOST_PODS_H_
#define OUTBOARD_SHIM_HOST_PODS_HOST_PODS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/config/config.h"
#include "shim/host_pods/host_pod.h"
#include "shim/host_pods/readiness.h"
#include "shim/hosts/accepted_pods.h"
#include "shim/hosts/endpoint.h"
#include "shim/hosts/instance_view.h"
#include "shim/kube/api_client.h"

namespace outboard::host_pods {

// Watches the pods that `hosts[].pods` of the configuration select. Each is an endpoint of the host
// from the moment that it has an address until it has ended or is deleted; also while it is being
// deleted, because its instance then drains.
//
// Pods with the readiness gate outboard.dev/host-ready get this condition from the leader. So a
// Deployment replaces its pods only as far as the shim accepts their instances, and keeps the old
// ones if it does not.
//
// Threading: scheduling thread, but for `post` and `may_write`.
// Lifetime: what watches post must not run after Stop. `post` is called until the client ends.
// Errors: the watch retries forever. A write that fails is logged and repeated after 5 s. A new
// reason without a new status is written 10 s after the last write.
class HostPods {
 public:
  using Work = std::function<void(absl::Time now)>;
  struct Callbacks {
    // Runs work on the scheduling thread, in order. Called on other threads.
    std::function<void(Work)> post;
    // All endpoints that were found, whenever they change.
    std::function<void(std::vector<hosts::Endpoint>)> found;
    // The pod has another condition now.
    std::function<void(const HostPod&, const Readiness&, absl::Time)> written;
    // Whether this process leads. Called on the client's thread, before each write.
    std::function<bool()> may_write;
    // The time that is written into objects: wall time.
    std::function<absl::Time()> wall;
    // All instances in pods with the gate, whenever they or their gates change.
    std::function<void(std::vector<hosts::GatedInstance>)> gated =
        [](std::vector<hosts::GatedInstance>) {};
  };
  HostPods(kube::ApiClient* client, Callbacks callbacks);
  ~HostPods();
  HostPods(const HostPods&) = delete;
  HostPods& operator=(const HostPods&) = delete;

  void SetConfig(const config::ShimConfig& config);
  // Writes conditions that differ from what the instances' states say.
  void Tick(const std::vector<hosts::InstanceView>& instances, absl::Time now);
  // The instance at this address was ready; its session has ended because another one serves.
  void OnRetired(const std::string& address);
  // Ends all threads.
  void Stop();

 private:
  struct Watch;

  struct Selection {
    config::HostSpec spec;
    Watch* watch;
  };

  void OnPod(Watch* watch, const HostPodPtr& pod, bool is_deleted);
  // The hosts in the pod, and their instances. Remembers which are ready.
  std::vector<HostInPod> HostsIn(const Watch& watch, const HostPod& pod,
                                 const std::vector<hosts::InstanceView>& instances);
  void Report();
  void Write(const HostPodPtr& pod, const Readiness& wanted, absl::Time now);
  void OnWritten(const HostPodPtr& pod, const Readiness& wanted, const absl::Status& status,
                 absl::Time now);

  kube::ApiClient* const client_;
  const Callbacks callbacks_;
  std::vector<std::unique_ptr<Watch>> watches_;
  std::vector<Selection> selections_;  // one for each host with pods
  std::vector<std::thread> stoppers_;  // end watches of former configurations
  std::set<std::string> writing_;      // uids of pods
  // By uid: the next write, and the next write that keeps the status. A host that crashes again and
  // again changes its state all the time.
  struct NextWrites {
    absl::Time any = absl::InfinitePast();
    absl::Time same_status = absl::InfinitePast();
  };
  std::map<std::string, NextWrites> next_writes_;
  // By uid: the addresses of instances that were ready, also while another replica led.
  std::map<std::string, std::set<std::string>> were_ready_;
  // Answers that arrive after this object's end are dropped.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace outboard::host_pods

#endif  // OUTBOARD_SHIM_HOST_PODS_HOST_PODS_H_
