#include "shim/scheduler/testing/fuzz_hostile_host.h"

#include <glog/logging.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"
#include "integration/fuzz/seeds.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/scheduler/scheduler.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::scheduler {
namespace {

using fuzz::Require;
using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

constexpr char kProfile[] = "p";
constexpr char kHost[] = "h";
constexpr int kNodes = 3;
constexpr int64_t kNodeCpu = 1000;
constexpr int32_t kHighPriority = 100;
constexpr size_t kMaxScript = 16 << 10;

enum Kind {
  kCycle,
  kPreFilter,
  kFilter,
  kPostFilter,
  kPreScore,
  kScore,
  kSortKeys,
  kPreEnqueue,
  kReserve,
  kUnreserve,
  kPermit,
  kPreBind,
  kPush,
  kPause,
  kKinds,
};

// Checks the scheduler's orders, and executes them when told.
class Cluster final : public NoClusterActions {
 public:
  void AddNode(const std::string& name) { nodes_[name] = 0; }
  void AddPod(const kube::PodPtr& pod) {
    pods_[pod->uid()] = pod;
    if (pod->pod.node_name().empty()) return;
    nodes_[pod->pod.node_name()] += CpuOf(*pod);
    bound_.insert(pod->uid());
  }

  void Bind(const BindOrder& order, absl::Time) override {
    Require(pods_.contains(order.pod->uid()), "a bound pod exists");
    Require(nodes_.contains(order.node_name), "a pod is bound to a node that exists");
    Require(bound_.insert(order.pod->uid()).second, "a pod is bound once");
    int64_t& used = nodes_[order.node_name];
    used += CpuOf(*order.pod);
    Require(used <= kNodeCpu, "no node is overcommitted");
    binds.push_back(order);
  }
  void Evict(const EvictOrder& order, absl::Time) override {
    Require(pods_.contains(order.victim->uid()), "a victim exists");
    Require(order.victim->pod.priority() < kHighPriority, "a victim has a lower priority");
    evictions.push_back(order);
  }
  void Write(const EffectOrder& order, absl::Time) override {
    const Effect& effect = order.effect;
    Require(effect.has_bind_volume() || effect.has_select_node() || effect.has_put_object() ||
                effect.has_report_extended_resource_claim(),
            "a write is of a kind that a rule allows");
    if (effect.has_put_object())
      Require(effect.put_object().resource() == "things.v1.example.com", "a write is allowed");
    if (effect.has_select_node())
      Require(effect.select_node().name() == "data", "a claim is the pod's own");
    writes.push_back(order);
  }
  void PatchStatus(const kube::PodObject& pod, const std::optional<PodScheduledFalse>& condition,
                   const std::optional<std::string>& nominated, absl::Time) override {
    Require(pods_.contains(pod.uid()), "a patched pod exists");
    if (condition.has_value())
      Require(condition->message.size() <= 128 << 10, "a message is bounded");
    if (nominated.has_value() && !nominated->empty())
      Require(nodes_.contains(*nominated), "a nominated node exists");
  }

  // The pod left its node.
  void Remove(const kube::PodPtr& pod, const std::string& node) {
    if (bound_.erase(pod->uid()) > 0) nodes_[node] -= CpuOf(*pod);
    pods_.erase(pod->uid());
  }

  std::vector<BindOrder> binds;
  std::vector<EvictOrder> evictions;
  std::vector<EffectOrder> writes;

 private:
  static int64_t CpuOf(const kube::PodObject& pod) {
    return pod.pod.containers(0).requests().cpu_millis();
  }
  std::map<std::string, int64_t> nodes_;  // → CPU of the pods on it
  std::map<std::string, kube::PodPtr> pods_;
  std::set<std::string> bound_;
};

class World {
 public:
  explicit World(absl::string_view script)
      : script_(script),
        scheduler_(Options(), queue::QueueOptions(), &cluster_, &observer_, nullptr, now_) {
    scheduler_.SetProfileNames({kProfile});
    scheduler_.SetPlan(Plan());
    for (const Capability capability : {CAPABILITY_BATCH, CAPABILITY_GROUP_PLAN})
      host_.CanAlso(capability);
    host_.EvaluateHints();
    PluginInfo* plugin = host_.AddPlugin("A");
    DeclaredResource* used = plugin->add_declared_resources();
    used->set_resource("things.v1.example.com");
    used->add_verbs(DeclaredResource::VERB_CREATE);
    Answer();
    for (int i = 1; i <= kNodes; ++i) {
      auto node = std::make_shared<kube::NodeObject>();
      node->node.set_uid(absl::StrCat("uid-n", i));
      node->node.set_name(absl::StrCat("n", i));
      node->node.mutable_allocatable()->set_cpu_millis(kNodeCpu);
      node->node.mutable_allocatable()->set_pods(10);
      node->resource_version = absl::StrCat(++version_);
      cluster_.AddNode(node->node.name());
      scheduler_.events()->OnNodeUpsert(node, now_);
    }
    host_.num_nodes = kNodes;
    scheduler_.SetHost(kHost, &host_, scheduler_.cluster()->AddHost({}), now_);
    for (int i = 1; i <= kNodes; ++i) AddPod(absl::StrCat("low", i), 500, 0, absl::StrCat("n", i));
    for (int i = 1; i <= 4; ++i) AddPod(absl::StrCat("p", i), 300, kHighPriority, "");
    AddPod("large", 800, kHighPriority, "");
  }

  void Run() {
    while (ReadRecord()) {
    }
    for (int i = 0; i < 4; ++i) Step(absl::Seconds(20));
  }

 private:
  static SchedulerOptions Options() {
    SchedulerOptions options;
    options.min_batch_size = 2;
    options.custom_resources = {{"things.v1.example.com", {DeclaredResource::VERB_CREATE}, {}}};
    return options;
  }
  static framework::ProfilePlan Plan() {
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.pre_filter_plugins = plan.algorithm.filter_plugins =
        plan.algorithm.post_filter_plugins = plan.algorithm.pre_score_plugins = {"A", "B"};
    plan.algorithm.score_plugins = {{"A", 1}, {"B", 2}};
    plan.host_names = plan.post_filter_hosts = {kHost};
    plan.host_of = {{"A", kHost}, {"B", kHost}};
    const framework::HostExtensionPoint all = {kHost, {{"A", {}, 0}, {"B", {}, 1}}};
    plan.pre_enqueue = plan.reserve = plan.permit = {all};
    plan.pre_bind_plugins = {"A"};
    plan.object_writers = {kHost};
    plan.sort_host = kHost;
    plan.preemption_gates = {"B"};
    plan.wake_up_events["A"] = {queue::NodeEvent(queue::kAdd), queue::AssignedPodDelete()};
    return plan;
  }

  void AddPod(const std::string& name, int64_t cpu, int32_t priority, const std::string& node) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(absl::StrCat("uid-", name));
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name(kProfile);
    pod->pod.set_priority(priority);
    pod->pod.set_node_name(node);
    Container* container = pod->pod.add_containers();
    container->set_name("main");
    container->mutable_requests()->set_cpu_millis(cpu);
    Volume* volume = pod->pod.add_volumes();
    volume->set_source("persistentVolumeClaim");
    volume->set_claim_name("data");
    pod->resource_version = absl::StrCat(++version_);
    cluster_.AddPod(pod);
    scheduler_.events()->OnPodUpsert(pod, now_);
  }

  // The host's next answer of this kind; without a script it fails.
  template <typename Response>
  absl::StatusOr<Response> Next(Kind kind) {
    std::deque<std::string>& queue = answers_[kind];
    if (queue.empty()) return absl::UnavailableError("not scripted");
    const std::string bytes = std::move(queue.front());
    queue.pop_front();
    Response response;
    if (!response.ParseFromString(bytes)) return absl::InternalError("not a message");
    return response;
  }
  void Answer() {
    host_.cycle = [this](const PlanRequest& request, PlanResponse* response) {
      if (answers_[kCycle].empty()) {
        host_.Feasible(response);
        response->mutable_evaluation()->mutable_score()->mutable_plugins(0)->set_plugin("A");
        return absl::OkStatus();
      }
      absl::StatusOr<PlanResponse> next = Next<PlanResponse>(kCycle);
      if (!next.ok()) return next.status();
      *response = *std::move(next);
      // The client has compared it.
      response->set_attempt_id(request.cycle().header().attempt_id());
      return absl::OkStatus();
    };
    host_.pre_filter = [this](const auto&) { return Next<PreFilterResponse>(kPreFilter); };
    host_.filter = [this](const auto&) { return Next<FilterResponse>(kFilter); };
    host_.post_filter = [this](const auto&) { return Next<PostFilterResponse>(kPostFilter); };
    host_.pre_score = [this](const auto&) { return Next<PreScoreResponse>(kPreScore); };
    host_.score = [this](const auto&) { return Next<ScoreResponse>(kScore); };
    host_.sort_keys = [this](const auto&) { return Next<SortKeysResponse>(kSortKeys); };
    host_.unreserve = [this](const auto&) { return Next<UnreserveResponse>(kUnreserve); };
    host_.pre_bind = [this](const auto&) { return Next<PreBindResponse>(kPreBind); };
    // Without a script these do not object, so that scripts reach what follows.
    host_.pre_enqueue = [this](const PreEnqueueRequest& request) {
      absl::StatusOr<PreEnqueueResponse> next = Next<PreEnqueueResponse>(kPreEnqueue);
      if (next.ok() || !absl::IsUnavailable(next.status())) return next;
      PreEnqueueResponse passes;
      for (int i = 0; i < request.pod_uids_size(); ++i)
        passes.add_verdicts()->set_code(CODE_SUCCESS);
      return absl::StatusOr<PreEnqueueResponse>(passes);
    };
    host_.reserve = [this](const auto&) {
      absl::StatusOr<ReserveResponse> next = Next<ReserveResponse>(kReserve);
      return absl::IsUnavailable(next.status()) ? ReserveResponse() : next;
    };
    host_.permit = [this](const auto&) {
      absl::StatusOr<PermitResponse> next = Next<PermitResponse>(kPermit);
      return absl::IsUnavailable(next.status()) ? PermitResponse() : next;
    };
  }

  bool ReadRecord() {
    if (script_.size() < 3) return false;
    const auto byte = [this](size_t i) { return static_cast<unsigned char>(script_[i]); };
    const Kind kind = static_cast<Kind>(byte(0) % kKinds);
    const size_t length = byte(1) | size_t{byte(2)} << 8;
    script_.remove_prefix(3);
    const absl::string_view bytes = script_.substr(0, length);
    script_.remove_prefix(bytes.size());
    if (kind == kPause) {
      Step(absl::Milliseconds(100) * static_cast<int64_t>(length));
    } else if (kind == kPush) {
      SyncResponse push;
      if (push.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
        host_.pushes.push_back(std::move(push));
    } else if (answers_[kind].size() < 16) {
      answers_[kind].emplace_back(bytes);
    }
    return true;
  }

  void Step(absl::Duration pause) {
    now_ += pause;
    scheduler_.OnProbeAnswered(kHost, now_);
    scheduler_.Tick(now_);
    for (int i = 0; i < 8 && scheduler_.ScheduleOne(now_); ++i) {
    }
    for (const EffectOrder& order : std::exchange(cluster_.writes, {}))
      order.ordered_by->OnEffectEnded(order, {absl::OkStatus(), "9", "uid-effect"}, now_);
    for (const EvictOrder& order : std::exchange(cluster_.evictions, {})) {
      order.ordered_by->OnEvictionEnded(order.preemption_id, order.victim, EvictEnd::kEvicted, "",
                                        now_);
      scheduler_.events()->OnPodDelete(order.victim->uid(), now_);
      cluster_.Remove(order.victim, order.victim->pod.node_name());
    }
    for (const BindOrder& order : std::exchange(cluster_.binds, {})) {
      auto bound = std::make_shared<kube::PodObject>(*order.pod);
      bound->pod.set_node_name(order.node_name);
      bound->resource_version = absl::StrCat(++version_);
      scheduler_.events()->OnPodUpsert(bound, now_);
      order.ordered_by->OnBindEnded(order.attempt_id, BindEnd::kBound, "", now_);
    }
  }

  absl::string_view script_;
  std::array<std::deque<std::string>, kKinds> answers_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  int version_ = 0;
  Cluster cluster_;
  Observer observer_;
  framework::ScriptedHost host_;
  Scheduler scheduler_;
};

}  // namespace

void FuzzHostileHost(absl::string_view script) {
  const google::protobuf::LogSilencer silencer;  // of lines about invalid UTF-8
  if (script.size() > kMaxScript) return;
  // A line for each unusable answer would be most of the time.
  const int level = std::exchange(FLAGS_minloglevel, google::GLOG_FATAL);
  {
    World world(script);
    world.Run();
  }
  FLAGS_minloglevel = level;
}

}  // namespace outboard::scheduler
