// One profile and two hosts, "a" and "b", whose answers a test writes.
#ifndef OUTBOARD_SHIM_SCHEDULER_TESTING_SEVERAL_HOSTS_H_
#define OUTBOARD_SHIM_SCHEDULER_TESTING_SEVERAL_HOSTS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/framework/testing/volumes.h"
#include "shim/scheduler/scheduler.h"
#include "shim/scheduler/testing/recorded_actions.h"

namespace outboard::framework::several_hosts {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using v1beta1::FilterRequest;
using v1beta1::FilterResponse;

inline constexpr char kProfile[] = "outboard";
inline constexpr int kNodes = 3;

class Errors final : public scheduler::Observer {
 public:
  void OnProtocolError(const std::string&, const std::string&,
                       const absl::Status& status) override {
    all.push_back(std::string(status.message()));
  }
  std::vector<std::string> all;
};

inline v1beta1::PostFilterResponse NoPodHasToLeave() {
  v1beta1::PostFilterResponse answer;
  answer.mutable_none();
  return answer;
}

// Host "a" serves Fit, host "b" Ports, which stands first; both score.
class SeveralHostsTest : public ::testing::Test {
 protected:
  SeveralHostsTest() : scheduler_({}, queue::QueueOptions(), &effects_, &errors_, nullptr, now_) {
    scheduler_.SetProfileNames({kProfile});
    ProfilePlan plan = AlgorithmOfBoth({"Ports", "Fit"});
    plan.reserve = {{"a", {{"Volumes", {}, 0}}}, {"b", {{"Gang", {}, 1}}}};
    plan.pre_bind_plugins = {"Volumes", "Gang"};
    plan.permit = {{"b", {{"Gang", {}, 0}}}, {"a", {{"Other", {}, 1}}}};
    plan.pre_enqueue = {{"a", {{"LateGate", {}, 1}}}, {"b", {{"EarlyGate", {}, 0}}}};
    plan.wake_up_events["Fit"] = {queue::NodeEvent(queue::kAdd)};
    for (const char* plugin : {"Fit", "ScoreA", "Volumes", "Other", "LateGate"})
      plan.host_of[plugin] = "a";
    for (const char* plugin : {"Ports", "ScoreB", "Gang", "EarlyGate"}) plan.host_of[plugin] = "b";
    scheduler_.SetPlan(plan);
    for (auto& [name, host] : hosts_) {
      Program(name, &host);
      scheduler_.SetHost(name, &host, scheduler_.cluster()->AddHost({}), now_);
    }
    for (int i = 1; i <= kNodes; ++i) {
      auto node = std::make_shared<kube::NodeObject>();
      node->node.set_uid(absl::StrCat("uid-n", i));
      node->node.set_name(absl::StrCat("n", i));
      node->node.mutable_allocatable()->set_pods(10);
      node->resource_version = absl::StrCat(++resource_version_);
      scheduler_.events()->OnNodeUpsert(node, now_);
    }
  }

  // The verdicts of both from PreFilter to PostFilter, with the filters in the profile's order.
  static ProfilePlan AlgorithmOfBoth(std::vector<std::string> filters) {
    ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.filter_plugins = std::move(filters);
    plan.algorithm.score_plugins = {{"ScoreA", 1}, {"ScoreB", 2}};
    plan.algorithm.post_filter_plugins = {"DefaultPreemption"};
    plan.algorithm.shares.resize(2);
    plan.algorithm.shares[0].filter_plugins = {"Fit"};
    plan.algorithm.shares[0].score_plugins = {{"ScoreA", 1}};
    plan.algorithm.shares[1].filter_plugins = {"Ports"};
    plan.algorithm.shares[1].score_plugins = {{"ScoreB", 2}};
    plan.host_names = {"a", "b"};
    plan.post_filter_hosts = {"a"};
    plan.guard.resources = false;
    return plan;
  }
  static std::map<std::string, ScriptedHost> MakeHosts() {
    std::map<std::string, ScriptedHost> hosts;
    hosts["a"];
    hosts["b"];
    return hosts;
  }
  void Program(const std::string& name, ScriptedHost* host) {
    host->pre_filter = [this, name](const v1beta1::PreFilterRequest& request) {
      Note(name, " preFilter");
      EXPECT_EQ(request.header().profile(), kProfile);
      return v1beta1::PreFilterResponse();
    };
    host->filter = [this, name](const FilterRequest& request) {
      Note(name, " filter");
      return request.simulation().nodes().empty() ? AnswerFilter(name)
                                                  : AnswerHypotheses(name, request);
    };
    host->score = [this, name](const v1beta1::ScoreRequest& request) {
      Note(name, " score of ", request.nodes().slots_size());
      v1beta1::ScoreResponse response;
      auto* scores = response.add_plugins();
      scores->set_plugin(name == "a" ? "ScoreA" : "ScoreB");
      for (int i = 0; i < request.nodes().slots_size(); ++i) {
        scores->mutable_scores()->push_back(
            static_cast<char>(scores_[name][static_cast<size_t>(request.nodes().slots(i))]));
      }
      return response;
    };
    host->reserve = [this, name](const v1beta1::ReserveRequest&) {
      Note(name, " reserve");
      return reserved_[name];
    };
    host->unreserve = [this, name](const v1beta1::UnreserveRequest&) {
      Note(name, " unreserve");
      return v1beta1::UnreserveResponse();
    };
    host->permit = [this, name](const v1beta1::PermitRequest&) {
      Note(name, " permit");
      return permitted_[name];
    };
    host->pre_enqueue = [this, name](const v1beta1::PreEnqueueRequest& request) {
      v1beta1::PreEnqueueResponse response;
      for (int i = 0; i < request.pod_uids_size(); ++i) {
        *response.add_verdicts() = gate_[name];
        if (gate_[name].plugin().empty())
          response.mutable_verdicts(i)->set_code(v1beta1::CODE_SUCCESS);
      }
      return response;
    };
  }
  // By node: the plugin's reason, UNSCHEDULABLE unless it begins with "never"; none: feasible.
  FilterResponse AnswerFilter(const std::string& name) {
    FilterResponse response;
    std::string bits(1, '\0');
    for (int i = 0; i < kNodes; ++i) {
      Add(name, rejects_[name][absl::StrCat("n", i + 1)], i, &bits, &response);
    }
    response.set_processed(kNodes);
    response.set_feasible(bits);
    return response;
  }
  FilterResponse AnswerHypotheses(const std::string& name, const FilterRequest& request) {
    hypotheses_.push_back(request);
    FilterResponse response;
    std::string bits(static_cast<size_t>((request.simulation().nodes_size() + 7) / 8), '\0');
    for (int i = 0; i < request.simulation().nodes_size(); ++i) {
      const v1beta1::SimulatedNode& hypothesis = request.simulation().nodes(i);
      std::string key = scheduler_.cluster()->NodeAt(hypothesis.slot())->key();
      for (const std::string& uid : hypothesis.removed_pod_uids()) absl::StrAppend(&key, " ", uid);
      Add(name, rejects_[name][key], i, &bits, &response);
    }
    response.set_processed(static_cast<uint32_t>(request.simulation().nodes_size()));
    response.set_feasible(bits);
    return response;
  }
  static void Add(const std::string& name, const std::string& reason, int i, std::string* bits,
                  FilterResponse* response) {
    if (reason.empty()) {
      (*bits)[static_cast<size_t>(i / 8)] |= static_cast<char>(1 << (i % 8));
      return;
    }
    response->add_rejected(static_cast<uint32_t>(response->reasons_size()));
    auto* status = response->add_reasons();
    status->set_plugin(name == "a" ? "Fit" : "Ports");
    status->set_code(reason.substr(0, 5) == "never" ? v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE
                                                    : v1beta1::CODE_UNSCHEDULABLE);
    status->add_reasons(reason);
  }
  template <typename... Parts>
  void Note(const Parts&... parts) {
    log_.push_back(absl::StrCat(parts...));
  }
  std::vector<std::string> Log() { return std::exchange(log_, {}); }

  void Pass(absl::Duration duration) {
    now_ += duration;
    scheduler_.Tick(now_);
  }
  void AddPod(const std::string& name, int32_t priority = 0, const std::string& node = "") {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid("uid-" + name);
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name(kProfile);
    pod->pod.set_priority(priority);
    pod->pod.set_node_name(node);
    pod->pod.add_containers();
    pod->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(pod, now_);
  }
  // No node fits; b rejects n3 as unresolvable.
  void NothingFits() {
    rejects_["a"] = {{"n1", "cpu"}, {"n3", "cpu"}};
    rejects_["b"] = {{"n2", "port"}, {"n3", "never"}};
    AddPod("v1", 0, "n1");
    AddPod("v2", 0, "n2");
    AddPod("v3", 0, "n3");
  }
  void Propose(std::vector<std::string> nodes) {
    hosts_["a"].post_filter = [this, nodes](const v1beta1::PostFilterRequest& request) {
      post_filters_.push_back(request);
      v1beta1::PostFilterResponse answer;
      for (const std::string& node : nodes) {
        auto* candidate = answer.mutable_candidates()->add_candidates();
        candidate->set_slot(scheduler_.cluster()->SlotOf(node));
        candidate->set_plugin("DefaultPreemption");
        candidate->add_victim_uids("uid-v" + node.substr(1));
      }
      return answer;
    };
  }
  v1beta1::PluginStatus Status(const std::string& plugin, const std::string& reason) {
    v1beta1::PluginStatus status;
    status.set_plugin(plugin);
    status.set_code(v1beta1::CODE_UNSCHEDULABLE);
    status.add_reasons(reason);
    return status;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  int resource_version_ = 0;
  RecordedActions effects_;
  Errors errors_;
  std::map<std::string, ScriptedHost> hosts_ = MakeHosts();
  scheduler::Scheduler scheduler_;
  std::vector<std::string> log_;
  std::map<std::string, std::vector<int>> scores_ = {{"a", {0, 0, 0}}, {"b", {0, 0, 0}}};
  std::map<std::string, std::map<std::string, std::string>> rejects_;
  std::map<std::string, v1beta1::ReserveResponse> reserved_;
  std::map<std::string, v1beta1::PermitResponse> permitted_;
  std::map<std::string, v1beta1::PluginStatus> gate_;
  std::vector<FilterRequest> hypotheses_;
  std::vector<v1beta1::PostFilterRequest> post_filters_;
};

}  // namespace outboard::framework::several_hosts

#endif  // OUTBOARD_SHIM_SCHEDULER_TESTING_SEVERAL_HOSTS_H_
