#include "plugins/node_ports/node_ports.h"

#include <memory>
#include <string>
#include <vector>

#include "plugin_host/sdk/node_local_plugin.h"
#include "plugin_host/sdk/queueing_hint.h"

namespace outboard::node_ports {
namespace {

constexpr char kAnyIp[] = "0.0.0.0";

struct WantedPorts : sdk::AttemptState {
  std::vector<sdk::HostPort> ports;
};

void AppendPorts(const v1beta1::Container& container, std::vector<sdk::HostPort>* ports) {
  for (const v1beta1::ContainerPort& port : container.ports()) {
    if (port.host_port() <= 0) continue;
    sdk::HostPort wanted;
    wanted.ip = port.host_ip().empty() ? kAnyIp : port.host_ip();
    wanted.protocol =
        port.protocol() == v1beta1::PROTOCOL_UNSPECIFIED ? v1beta1::PROTOCOL_TCP : port.protocol();
    wanted.port = port.host_port();
    ports->push_back(std::move(wanted));
  }
}

std::vector<sdk::HostPort> PortsOf(const v1beta1::Pod& pod) {
  std::vector<sdk::HostPort> ports;
  // An init container releases its ports before the pod runs, unless it is a sidecar.
  for (const v1beta1::Container& container : pod.init_containers()) {
    if (container.restart_policy_always()) AppendPorts(container, &ports);
  }
  for (const v1beta1::Container& container : pod.containers()) AppendPorts(container, &ports);
  return ports;
}

bool Conflicts(const sdk::HostPort& a, const sdk::HostPort& b) {
  return a.port == b.port && a.protocol == b.protocol &&
         (a.ip == b.ip || a.ip == kAnyIp || b.ip == kAnyIp);
}

class NodePorts : public sdk::Plugin,
                  public sdk::NodeLocalPlugin,
                  public sdk::PreFilterPlugin,
                  public sdk::FilterPlugin,
                  public sdk::QueueingHintPlugin {
 public:
  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult* result) const override {
    std::vector<sdk::HostPort> ports = PortsOf(attempt.pod().proto());
    if (ports.empty()) return sdk::Verdict::Skip();
    attempt.NewFilterState<WantedPorts>().ports = std::move(ports);
    return sdk::Verdict::Success();
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* wanted = attempt.filter_state<WantedPorts>();
    const auto& used = attempt.cluster().nodes().host_ports;
    block.ForEach([&](int i, sdk::Slot slot) {
      if (wanted == nullptr) {
        sink.Fail(i, "reading \"PreFilterNodePorts\" from cycleState: not found");
      } else if (AnyConflict(wanted->ports, used[slot])) {
        sink.Reject(i, taken_);
      }
    });
  }

  // A deleted pod helps if it had a port that this pod requests, on any node.
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (change.old_pod == nullptr) return sdk::Hint::kQueue;  // A node was added.
    const v1beta1::Pod& gone = *change.old_pod;
    if (gone.node_name().empty() && gone.nominated_node_name().empty()) return sdk::Hint::kSkip;
    return AnyConflict(PortsOf(pod.proto()), PortsOf(gone)) ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

 private:
  static bool AnyConflict(const std::vector<sdk::HostPort>& wanted,
                          const std::vector<sdk::HostPort>& used) {
    for (const sdk::HostPort& taken : used) {
      for (const sdk::HostPort& port : wanted) {
        if (Conflicts(port, taken)) return true;
      }
    }
    return false;
  }

  const sdk::Verdict taken_ =
      sdk::Verdict::Unschedulable("node(s) didn't have free ports for the requested pod ports");
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "NodePorts";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER};
  d.wake_up_events = {sdk::WakeOn("Pod", {v1beta1::ClusterEvent::ACTION_DELETE}),
                      sdk::WakeOn("Node", {v1beta1::ClusterEvent::ACTION_ADD})};
  d.signature = {{"spec.containers"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<NodePorts>();
  };
  sdk::RequireEarlierPoint(&d, v1beta1::EXTENSION_POINT_FILTER,
                           v1beta1::EXTENSION_POINT_PRE_FILTER);
  return d;
}

}  // namespace outboard::node_ports
