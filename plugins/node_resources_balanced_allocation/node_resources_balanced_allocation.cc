#include "plugins/node_resources_balanced_allocation/node_resources_balanced_allocation.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "plugin_host/sdk/node_local_plugin.h"
#include "plugin_host/sdk/resources.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::node_resources_balanced_allocation {
namespace {

const char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {"resources": {
    "type": "array", "description": "Resources to balance; cpu and memory if absent or empty.",
    "items": {"type": "object", "additionalProperties": false, "required": ["name"],
      "properties": {
        "name": {"type": "string"}, "weight": {"type": "integer", "enum": [0, 1]}}}}}})json";

// A resource that the pod requests, and the columns of the nodes.
struct BalancedResource {
  const std::vector<int64_t>* allocatable;  // By slot.
  const std::vector<int64_t>* requested;
  int64_t pod_request;
};

// Amounts of one node, only for resources that it has.
struct NodeAmounts {
  std::vector<int64_t> with_pod, without_pod, allocatable;
};

struct PodRequestState : sdk::AttemptState {
  std::vector<int64_t> requests;  // In the order of the arguments.
};

// 100 if all resources are used to the same degree, 50 at worst. Operations and their order are
// kube-scheduler's, because the final truncation exposes the last bit of a double.
int64_t Balance(const std::vector<int64_t>& requested, const std::vector<int64_t>& allocatable) {
  double total = 0;
  auto fraction_of = [&](size_t i) {
    const double fraction = static_cast<double>(requested[i]) / static_cast<double>(allocatable[i]);
    return fraction > 1 ? 1.0 : fraction;
  };
  const size_t n = requested.size();
  double deviation = 0;
  if (n == 2) {
    deviation = std::fabs((fraction_of(0) - fraction_of(1)) / 2);
  } else if (n > 2) {
    for (size_t i = 0; i < n; ++i) total += fraction_of(i);
    const double mean = total / static_cast<double>(n);
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      const double difference = fraction_of(i) - mean;
      sum = sum + difference * difference;
    }
    deviation = std::sqrt(sum / static_cast<double>(n));
  }
  return static_cast<int64_t>((1 - deviation) * static_cast<double>(sdk::kMaxScore));
}

class NodeResourcesBalancedAllocation : public sdk::Plugin,
                                        public sdk::NodeLocalPlugin,
                                        public sdk::PreScorePlugin,
                                        public sdk::ScorePlugin {
 public:
  explicit NodeResourcesBalancedAllocation(std::vector<std::string> resources)
      : resources_(std::move(resources)) {}

  // A pod that requests none of the resources does not change the balance of any node.
  sdk::Verdict PreScore(const sdk::Attempt& attempt,
                        absl::Span<const sdk::Slot> nodes) const override {
    std::vector<int64_t> requests = PodRequests(attempt.pod().proto());
    if (std::all_of(requests.begin(), requests.end(), [](int64_t r) { return r == 0; })) {
      return sdk::Verdict::Skip();
    }
    attempt.NewScoreState<PodRequestState>().requests = std::move(requests);
    return sdk::Verdict::Success();
  }

  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    const auto* state = attempt.score_state<PodRequestState>();
    if (state == nullptr) {  // The profile may have no PreScore.
      if (PreScore(attempt, nodes).skip()) {
        std::fill(raw.begin(), raw.end(), 0);
        return sdk::Verdict::Success();
      }
      state = attempt.score_state<PodRequestState>();
    }
    const std::vector<BalancedResource> resources =
        Columns(attempt.cluster().nodes(), state->requests);
    NodeAmounts amounts;
    for (size_t i = 0; i < nodes.size(); ++i) raw[i] = ScoreNode(resources, nodes[i], &amounts);
    return sdk::Verdict::Success();
  }

 private:
  std::vector<int64_t> PodRequests(const v1beta1::Pod& pod) const {
    sdk::PodRequestsOptions options;
    options.use_status = true;
    const sdk::Resources requests = sdk::ComputePodRequests(pod, options);
    std::vector<int64_t> result;
    for (const std::string& name : resources_) result.push_back(requests.Get(name));
    return result;
  }

  std::vector<BalancedResource> Columns(const sdk::NodeTable& table,
                                        const std::vector<int64_t>& requests) const {
    std::vector<BalancedResource> result;
    for (size_t i = 0; i < resources_.size(); ++i) {
      const std::string& name = resources_[i];
      if (name == "cpu") {
        result.push_back({&table.allocatable_cpu, &table.requested_cpu, requests[i]});
      } else if (name == "memory") {
        result.push_back({&table.allocatable_memory, &table.requested_memory, requests[i]});
      } else if (name == "ephemeral-storage") {
        result.push_back({&table.allocatable_ephemeral, &table.requested_ephemeral, requests[i]});
      } else if (requests[i] != 0) {
        // Ignore resources that the pod does not request, and resources that no node has.
        auto it = table.extended_by_name.find(name);
        if (it == table.extended_by_name.end()) continue;
        const sdk::ExtendedColumn& column = table.extended[it->second];
        result.push_back({&column.allocatable, &column.requested, requests[i]});
      }
    }
    return result;
  }

  // How much the pod improves the balance; 75 means no change.
  static int64_t ScoreNode(const std::vector<BalancedResource>& resources, sdk::Slot slot,
                           NodeAmounts* amounts) {
    amounts->with_pod.clear();
    amounts->without_pod.clear();
    amounts->allocatable.clear();
    for (const BalancedResource& resource : resources) {
      const int64_t allocatable = (*resource.allocatable)[slot];
      if (allocatable == 0) continue;
      const int64_t requested = (*resource.requested)[slot];
      amounts->allocatable.push_back(allocatable);
      amounts->without_pod.push_back(requested);
      amounts->with_pod.push_back(requested + resource.pod_request);
    }
    const int64_t with_pod = Balance(amounts->with_pod, amounts->allocatable);
    const int64_t without_pod = Balance(amounts->without_pod, amounts->allocatable);
    return sdk::kMaxScore / 2 + (sdk::kMaxScore / 2 + with_pod - without_pod) / 2;
  }

  const std::vector<std::string> resources_;
};

std::vector<std::string> ReadResources(const sdk::ArgsObject& args) {
  std::vector<std::string> names;
  const std::vector<sdk::ArgsObject> resources = args.Objects("resources");
  for (size_t i = 0; i < resources.size(); ++i) {
    const std::string name = resources[i].String("name", "");
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      resources[i].Problem("name", sdk::DuplicateValue(name));
    }
    names.push_back(name);
    const int64_t weight = resources[i].Int("weight", 1);
    if (weight != 0 && weight != 1) {  // 0 means the default.
      resources[i].Problem("weight", sdk::InvalidValue(weight, "must be 1"));
    }
  }
  if (names.empty()) names = {"cpu", "memory"};
  return names;
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "NodeResourcesBalancedAllocation";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE};
  d.args_schema = kArgsSchema;
  d.signature = {{"spec.containers"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<NodeResourcesBalancedAllocation>(ReadResources(context.args->root()));
  };
  return d;
}

}  // namespace outboard::node_resources_balanced_allocation
