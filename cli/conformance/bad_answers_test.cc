// The shim's whole side against a host with randomly wrong answers. No answer breaks the shim,
// overcommits a node or causes a forbidden action. When the host recovers, scheduling continues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "cli/conformance/mutation.h"
#include "proto/testing/fake_host.h"
#include "proto/testing/proxy_host.h"
#include "shim/clock.h"
#include "shim/framework/testing/volumes.h"
#include "shim/hosts/host_registry.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::hosts {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using conformance::Mutate;
using conformance::Random;
using google::protobuf::Message;
using ::testing::Gt;

constexpr int kNodes = 5;
constexpr int64_t kPodsPerNode = 40;
constexpr int64_t kNodeCpuMillis = 20000;
constexpr size_t kTooLarge = size_t{17} << 20;

// Without postFilter the host cannot preempt, so pods of the test keep their nodes.
constexpr char kConfiguration[] = R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: p
  plugins:
    multiPoint: {disabled: [{name: "*"}], enabled: [{name: Sorter}, {name: NodeResourcesFit}, {name: NodePorts}, {name: Keeper}, {name: DefaultBinder}]}
    preFilter: {disabled: [{name: NotServed}]}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: main, address: "unix:/main"}]
replacement: {shadowCycles: 0, keepWarm: 1s, rollbackFailures: 10000}
)";

const std::map<std::string, std::vector<ExtensionPoint>>& PointsOfPlugins() {
  static const auto* const kPoints = new std::map<std::string, std::vector<ExtensionPoint>>{
      {"Sorter", {EXTENSION_POINT_QUEUE_SORT}},
      {"NodeResourcesFit",
       {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER, EXTENSION_POINT_PRE_SCORE,
        EXTENSION_POINT_SCORE}},
      {"NodePorts", {EXTENSION_POINT_FILTER}},
      {"Keeper",
       {EXTENSION_POINT_PRE_ENQUEUE, EXTENSION_POINT_POST_FILTER, EXTENSION_POINT_RESERVE,
        EXTENSION_POINT_PERMIT, EXTENSION_POINT_PRE_BIND}},
      {"DefaultBinder", {EXTENSION_POINT_BIND}},
  };
  return *kPoints;
}

// The cluster: executes orders, and checks them.
class World final : public scheduler::NoClusterActions, public scheduler::Observer {
 public:
  void Bind(const scheduler::BindOrder& order, absl::Time) override { binds.push_back(order); }
  void Evict(const scheduler::EvictOrder& order, absl::Time) override {
    evictions.push_back(order);
  }
  void Write(const scheduler::EffectOrder& order, absl::Time) override { writes.push_back(order); }
  void RecordFailed(const kube::PodObject&, const std::string&, const std::string& message,
                    absl::Time) override {
    EXPECT_LT(message.size(), 200u << 10) << "a readable length";
  }
  void OnProtocolError(const std::string&, const std::string&,
                       const absl::Status& status) override {
    ++protocol_errors;
    last_error = status;
  }
  void OnHostCallFailed(const std::string& instance, const absl::Status& status) override {
    if (hosts != nullptr) hosts->OnHostCallFailed(instance, status);
  }
  void OnAttemptEnd(const kube::PodObject& pod, const std::string&, scheduler::AttemptResult result,
                    const std::string&, const std::string& message, absl::Duration) override {
    ++ended[result];
    last_message = message;
  }

  HostRegistry* hosts = nullptr;
  std::vector<scheduler::BindOrder> binds;
  std::vector<scheduler::EvictOrder> evictions;
  std::vector<scheduler::EffectOrder> writes;
  std::map<scheduler::AttemptResult, int> ended;
  std::string last_message;
  absl::Status last_error;
  int protocol_errors = 0;
};

class BadAnswersTest : public ::testing::Test {
 protected:
  // An answer that is late on a busy machine would be another fault than the one under test.
  BadAnswersTest()
      : BadAnswersTest("deadlines: {cycle: 20s, reserve: 20s, permit: 20s, queue: 20s}") {}
  explicit BadAnswersTest(const std::string& deadlines)
      : scheduler_({}, queue::QueueOptions(), &world_, &world_, nullptr, now_),
        hosts_(Configuration(deadlines), "session", &loop_, &scheduler_) {
    world_.hosts = &hosts_;
    hosts_.SetCallbacks({[this](const std::string&) { lost_ = true; }, [](const std::string&) {}});
    scheduler_.SetShadowObserver(&hosts_);
    scheduler_.SetProfileNames({"p"});
    fake_ = testing::FakeHost::Start(
        absl::StrCat("unix:", ::testing::TempDir(), "outboard-good-", getpid()), "good");
    MakeGood();
    for (int i = 0; i < kNodes; ++i) {
      auto node = std::make_shared<kube::NodeObject>();
      node->node.set_name(absl::StrCat("n", i));
      node->node.set_uid(absl::StrCat("uid-n", i));
      node->node.mutable_allocatable()->set_pods(kPodsPerNode);
      node->node.mutable_allocatable()->set_cpu_millis(kNodeCpuMillis);
      node->node.mutable_allocatable()->set_memory_bytes(int64_t{1} << 34);
      scheduler_.events()->OnNodeUpsert(node, now_);
    }
    scheduler_.events()->OnObjectUpsert(framework::testing::DelayedClass(), now_);
    scheduler_.events()->OnObjectUpsert(
        framework::testing::WaitingClaim("ns", "claim", "claim-uid", "1"), now_);
    // With another tenant's data.
    auto volume = framework::testing::FreeVolume("pv", "pv-uid", "1");
    volume->object.mutable_persistent_volume()->set_phase("Released");
    ClaimReference* secrets = volume->object.mutable_persistent_volume()->mutable_claim_ref();
    secrets->set_namespace_("tenant");
    secrets->set_name("secrets");
    secrets->set_uid("secrets-uid");
    scheduler_.events()->OnObjectUpsert(volume, now_);
  }
  ~BadAnswersTest() override { scheduler_.SetShadowObserver(nullptr); }

  static std::shared_ptr<const config::Config> Configuration(const std::string& deadlines) {
    auto config = config::ParseConfig(absl::StrCat(kConfiguration, deadlines, "\n"), "f.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return std::make_shared<config::Config>(*config);
  }

  // The fake host serves the configuration's plugins; `feasible_` are the feasible slots.
  void MakeGood() {
    fake_->Answer<FilterRequest, FilterResponse>([this](const FilterRequest& request,
                                                        FilterResponse* response) {
      const NodeSearch& search = request.search();
      std::vector<uint32_t> slots(search.nodes().slots().begin(), search.nodes().slots().end());
      for (const SimulatedNode& hypothesis : request.simulation().nodes())
        slots.push_back(hypothesis.slot());
      if (slots.empty()) slots = {0, 1, 2, 3, 4};
      std::rotate(slots.begin(), slots.begin() + search.start_offset() % slots.size(), slots.end());
      response->set_processed(static_cast<uint32_t>(slots.size()));
      std::string bits((slots.size() + 7) / 8, '\0');
      for (size_t i = 0; i < slots.size(); ++i) {
        if ((feasible_ >> slots[i]) & 1) {
          bits[i / 8] |= static_cast<char>(1 << (i % 8));
        } else {
          response->add_rejected(0);
        }
      }
      response->set_feasible(bits);
      if (response->rejected().empty()) return grpc::Status::OK;
      PluginStatus* reason = response->add_reasons();
      reason->set_plugin("NodeResourcesFit");
      reason->set_code(CODE_UNSCHEDULABLE);
      reason->add_reasons("no room");
      return grpc::Status::OK;
    });
    fake_->Answer<ScoreRequest, ScoreResponse>(
        [](const ScoreRequest& request, ScoreResponse* response) {
          PluginScores* scores = response->add_plugins();
          scores->set_plugin("NodeResourcesFit");
          scores->set_scores(std::string(request.nodes().slots_size(), 50));
          return grpc::Status::OK;
        });
    fake_->Answer<ReserveRequest, ReserveResponse>(
        [](const ReserveRequest& request, ReserveResponse* response) {
          if (request.pod_uid().find("volume") == std::string::npos) return grpc::Status::OK;
          Effect* effect = response->add_effects();
          effect->set_key("select");
          effect->set_plugin("Keeper");
          effect->mutable_select_node()->set_namespace_("ns");
          effect->mutable_select_node()->set_name("claim");
          effect->mutable_select_node()->set_uid("claim-uid");
          effect->mutable_select_node()->set_resource_version("1");
          effect->mutable_select_node()->set_node_name(request.node_name());
          return grpc::Status::OK;
        });
    fake_->Answer<PermitRequest, PermitResponse>(
        [this](const PermitRequest& request, PermitResponse* response) {
          // No plugin would ever allow it.
          if (!is_bad_) return grpc::Status::OK;
          if (request.pod_uid().find("patient") == std::string::npos) return grpc::Status::OK;
          PermitWait* wait = response->add_waits();
          wait->set_plugin("Keeper");
          wait->set_timeout_micros(1'000'000);
          return grpc::Status::OK;
        });
    fake_->Answer<PostFilterRequest, PostFilterResponse>(
        [](const PostFilterRequest&, PostFilterResponse* response) {
          PluginStatus* const status = response->mutable_rejection()->mutable_status();
          status->set_plugin("Keeper");
          status->set_code(CODE_UNSCHEDULABLE);
          status->add_reasons("nothing helps");
          return grpc::Status::OK;
        });
  }

  hosts::HostConnection Connection() const {
    hosts::HostConnection host{NewHostChannel(proxy_->address()), {}, Info()};
    host.identity.add_contract_versions("v1beta1");
    host.identity.set_instance("good");
    host.identity.set_build("good");
    return host;
  }

  GetHostInfoResponse Info() const {
    GetHostInfoResponse info;
    for (const Capability capability : capabilities_) info.add_capabilities(capability);
    info.add_capabilities(CAPABILITY_QUEUEING_HINTS);
    for (const auto& [name, points] : PointsOfPlugins()) {
      PluginInfo* plugin = info.add_plugins();
      plugin->set_name(name);
      for (const ExtensionPoint point : points) plugin->add_extension_points(point);
      ClusterEvent* event = plugin->add_wake_up_events();
      event->set_resource("*");
      event->add_actions(ClusterEvent::ACTION_ADD);
    }
    return info;
  }

  // Replaces the current host by a host with these hooks.
  void Connect(testing::ProxyHooks hooks, std::vector<Capability> capabilities) {
    lost_ = false;
    capabilities_ = std::move(capabilities);
    proxy_.reset();
    testing::ProxyHooks all = hooks;
    all.on_answer = [this, hooks](const Message& request, Message* response, grpc::Status* status) {
      // The fake host does not serve it.
      if (response->GetDescriptor() == PreBindResponse::descriptor()) *status = grpc::Status::OK;
      if (hooks.on_answer) hooks.on_answer(request, response, status);
    };
    const std::string address =
        absl::StrCat("unix:", ::testing::TempDir(), "outboard-proxy-", getpid(), "-", ++proxies_);
    proxy_ = testing::ProxyHost::Start(address, NewHostChannel(fake_->address()), all);
    ASSERT_NE(proxy_, nullptr);
    Handshake();
  }
  void Handshake() {
    lost_ = false;
    const absl::Status taken =
        hosts_.OnHandshake({"main", proxy_->address(), std::nullopt, 0}, Connection(), now_);
    EXPECT_TRUE(taken.ok()) << taken;
  }

  kube::PodPtr AddPod(const std::string& name, int64_t cpu_millis = 100) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_name(name);
    pod->pod.set_namespace_("ns");
    pod->pod.set_uid(absl::StrCat("uid-", name));
    pod->pod.set_scheduler_name("p");
    Container* container = pod->pod.add_containers();
    container->set_name("main");
    container->mutable_requests()->set_cpu_millis(cpu_millis);
    if (name.find("port") != std::string::npos) container->add_ports()->set_host_port(8080);
    if (name.find("volume") != std::string::npos) {
      Volume* volume = pod->pod.add_volumes();
      volume->set_name("data");
      volume->set_source("persistentVolumeClaim");
      volume->set_claim_name("claim");
    }
    pods_[pod->uid()] = pod;
    scheduler_.events()->OnPodUpsert(pod, now_);
    return pod;
  }

  // Checks an order, and executes it.
  void CarryOut() {
    for (const scheduler::EffectOrder& order : std::exchange(world_.writes, {})) {
      ASSERT_TRUE(order.effect.has_select_node()) << order.effect.ShortDebugString();
      const SelectNode& select = order.effect.select_node();
      EXPECT_EQ(select.namespace_(), "ns");
      EXPECT_EQ(select.name(), "claim");
      EXPECT_FALSE(select.uid().empty());
      EXPECT_FALSE(select.resource_version().empty());
      order.ordered_by->OnEffectEnded(order, {absl::OkStatus(), "2"}, now_);
    }
    for (const scheduler::EvictOrder& order : std::exchange(world_.evictions, {})) {
      const auto victim = pods_.find(order.victim->uid());
      ASSERT_NE(victim, pods_.end());
      EXPECT_FALSE(victim->second->pod.node_name().empty());
      order.ordered_by->OnEvictionEnded(order.preemption_id, order.victim,
                                        scheduler::EvictEnd::kFailed, "not today", now_);
    }
    for (const scheduler::BindOrder& order : std::exchange(world_.binds, {})) {
      auto bound = std::make_shared<kube::PodObject>(*pods_.at(order.pod->uid()));
      ASSERT_EQ(bound->pod.node_name(), "") << "bound twice";
      bound->pod.set_node_name(order.node_name);
      pods_[bound->uid()] = bound;
      order.ordered_by->OnBindEnded(order.attempt_id, scheduler::BindEnd::kBound, "", now_);
      scheduler_.events()->OnPodUpsert(bound, now_);
      ++bound_;
    }
    struct Sums {
      int64_t pods = 0, cpu = 0, ports = 0;
    };
    std::map<std::string, Sums> sums;
    for (int i = 0; i < kNodes; ++i) sums[absl::StrCat("n", i)];
    for (const auto& [uid, pod] : pods_) {
      if (pod->pod.node_name().empty()) continue;
      Sums& node = sums[pod->pod.node_name()];
      ++node.pods;
      node.cpu += pod->pod.containers(0).requests().cpu_millis();
      node.ports += pod->pod.containers(0).ports_size();
    }
    uint32_t with_room = 0;
    for (const auto& [name, node] : sums) {
      const bool has_room = node.pods < kPodsPerNode - 10 && node.cpu < kNodeCpuMillis - 4000;
      if (has_room) with_room |= 1u << (name[1] - '0');
      EXPECT_LE(node.pods, kPodsPerNode) << name;
      EXPECT_LE(node.cpu, kNodeCpuMillis) << name;
      EXPECT_LE(node.ports, 1) << name;
    }
    // A bad host does not check capacity, so the shim must.
    feasible_ = is_bad_ ? 0b10111u : with_room;
  }

  // One iteration of the shim's loop, `later` after the previous one.
  void RunOnce(absl::Duration later) {
    now_ += later;
    if (lost_) Handshake();
    loop_.Wait(SteadyNow() + absl::Milliseconds(1));
    hosts_.Tick(now_);
    // Simulates answered probes; otherwise the shim would stop calling.
    scheduler_.OnProbeAnswered("main", now_);
    scheduler_.Tick(now_);
    for (int i = 0; i < 20 && scheduler_.ScheduleOne(now_); ++i) {
    }
    CarryOut();
  }
  // Iterates until `done`.
  template <typename Done>
  bool TurnUntil(absl::Duration step, Done done) {
    const absl::Time limit = SteadyNow() + absl::Seconds(30);
    while (!done() && SteadyNow() < limit && !HasFatalFailure()) RunOnce(step);
    return done();
  }
  bool Serves() const {
    const auto views = hosts_.Describe();
    return std::any_of(views.begin(), views.end(),
                       [](const auto& view) { return view.state == InstanceState::kServing; });
  }
  bool IsBound(const std::string& name) const {
    return !pods_.at(absl::StrCat("uid-", name))->pod.node_name().empty();
  }

  absl::Time now_ = absl::FromUnixSeconds(100000);
  HostLoop loop_;
  World world_;
  scheduler::Scheduler scheduler_;
  std::unique_ptr<testing::FakeHost> fake_;
  HostRegistry hosts_;
  // Declared after its callers.
  std::unique_ptr<testing::ProxyHost> proxy_;
  std::map<std::string, kube::PodPtr> pods_;
  std::atomic<uint32_t> feasible_{31};  // slots
  std::atomic<bool> is_bad_{false};
  bool lost_ = false;
  std::vector<Capability> capabilities_;
  int proxies_ = 0, bound_ = 0;
};

// Against a host whose answers are random, and some late.
class RandomAnswersTest : public BadAnswersTest {
 protected:
  RandomAnswersTest()
      : BadAnswersTest("deadlines: {cycle: 150ms, reserve: 150ms, permit: 150ms, queue: 100ms}") {}
  void Fuzz(uint64_t seed, std::vector<Capability> capabilities);
};

SyncResponse RandomPush(Random* random) {
  SyncResponse push;
  const std::string uid = absl::StrCat("uid-pod-", (*random)() % 50);
  switch ((*random)() % 7) {
    case 0:
      push.mutable_ack()->set_version(static_cast<int64_t>((*random)()));
      break;
    case 1: {
      WaitDecision* decision = push.mutable_wait_decision();
      decision->set_attempt_id((*random)() % 200);
      decision->set_pod_uid(uid);
      decision->set_plugin("Keeper");
      decision->set_allow((*random)() % 2 == 0);
      decision->set_message("said so");
      break;
    }
    case 2:
      push.mutable_sort_keys_changed()->add_pod_uids(uid);
      break;
    case 3:
      push.mutable_gate_changed()->add_pod_uids(uid);
      break;
    case 4: {
      QueueHint* hint = push.mutable_queue_hints()->add_hints();
      hint->set_uid(uid);
      hint->set_plugin("NodeResourcesFit");
      hint->set_number((*random)() % 50);
      hint->mutable_event()->set_resource("Node");
      hint->mutable_event()->add_actions(ClusterEvent::ACTION_ADD);
      break;
    }
    case 5:
      push.mutable_activate()->set_plugin("Keeper");
      push.mutable_activate()->add_pod_uids(uid);
      break;
    default:
      break;
  }
  if ((*random)() % 2 == 0) Mutate(random, &push);
  return push;
}

grpc::Status RandomStatus(Random* random) {
  if ((*random)() % 2 == 0) {
    return testing::CallFailure(static_cast<CallError::Reason>((*random)() % 12), "no",
                                static_cast<int64_t>((*random)()));
  }
  return grpc::Status(static_cast<grpc::StatusCode>(1 + (*random)() % 16), "no",
                      std::string((*random)() % 100, static_cast<char>((*random)())));
}

void RandomAnswersTest::Fuzz(uint64_t seed, std::vector<Capability> capabilities) {
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  // Calls may still be in progress when this returns.
  struct State {
    explicit State(uint64_t seed) : random(seed) {}
    absl::Mutex mu;
    Random random;
    std::atomic<int> changed{0};
  };
  const auto state = std::make_shared<State>(seed);
  testing::ProxyHooks hooks;
  hooks.on_answer = [this, state](const Message&, Message* response, grpc::Status* status) {
    auto& [mu, random, changed] = *state;
    // Another test covers wrong handshakes.
    if (!is_bad_ || response->GetDescriptor() == ConfigureResponse::descriptor()) return;
    absl::MutexLock lock(&mu);
    if (random() % 3 == 0) return;
    ++changed;
    if (random() % 12 == 0) {
      const auto reason = static_cast<CallError::Reason>(random() % 12);
      if (response->GetDescriptor() == CycleResponse::descriptor()) {
        static_cast<CycleResponse*>(response)->mutable_error()->set_reason(reason);
      } else if (response->GetDescriptor() == PlanResponse::descriptor()) {
        static_cast<PlanResponse*>(response)->mutable_error()->set_reason(reason);
      } else {
        *status = RandomStatus(&random);
      }
      return;
    }
    if (random() % 400 == 0) {
      // Not part of the result.
      auto* reflection = response->GetReflection();
      for (int i = 0; i < 3; ++i)
        reflection->MutableUnknownFields(response)->AddLengthDelimited(
            1000, std::string(kTooLarge / 3, 'z'));
      return;
    }
    if (random() % 60 == 0) {
      const auto never = [] { return false; };
      mu.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(200));
    }
    for (uint64_t n = 1 + random() % 3; n > 0; --n) Mutate(&random, response);
  };
  hooks.on_push = [this, state](SyncResponse* push) {
    if (!is_bad_) return true;
    auto& [mu, random, changed] = *state;
    absl::MutexLock lock(&mu);
    if (random() % 4 == 0) Mutate(&random, push);
    return random() % 8 != 0;
  };
  Connect(hooks, std::move(capabilities));
  is_bad_ = false;
  ASSERT_TRUE(TurnUntil(absl::Milliseconds(10), [&] { return Serves(); }));
  is_bad_ = true;
  const std::vector<std::string> kinds = {"plain", "port", "volume", "patient", "large"};
  for (int i = 0; i < 60 && !HasFatalFailure(); ++i) {
    const std::string& kind = kinds[static_cast<size_t>(i) % kinds.size()];
    AddPod(absl::StrCat("pod-", i, "-", kind, "-", seed), kind == "large" ? 3000 : 100);
    for (int k = 0; k < 3; ++k) {
      SyncResponse push;
      {
        absl::MutexLock lock(&state->mu);
        push = RandomPush(&state->random);
      }
      proxy_->Push(push);
    }
    RunOnce(absl::Seconds(i % 3 * 12));  // often long enough to be called again
  }
  EXPECT_GT(state->changed, 30);
  EXPECT_GT(world_.protocol_errors, 0);
  // The host recovers: pods that fit are placed, also parked and delayed ones.
  is_bad_ = false;
  AddPod(absl::StrCat("last-", seed));
  const auto all_placed = [&] {
    return std::all_of(pods_.begin(), pods_.end(), [](const auto& entry) {
      const std::string& name = entry.second->pod.name();
      const bool may_not_fit =
          name.find("port") != std::string::npos || name.find("large") != std::string::npos;
      return may_not_fit || !entry.second->pod.node_name().empty();
    });
  };
  EXPECT_TRUE(TurnUntil(absl::Seconds(20), all_placed));
  for (const auto& [uid, pod] : pods_) {
    if (pod->pod.node_name().empty())
      std::cout << uid << " is left; " << world_.last_message << "\n";
  }
  // For the next seed.
  for (const auto& [uid, pod] : std::exchange(pods_, {}))
    scheduler_.events()->OnPodDelete(uid, now_);
  for (int i = 0; i < 3; ++i) RunOnce(absl::Seconds(1));
}

// One error in one kind of answer.
struct WrongAnswer {
  const char* name;
  std::function<void(Message*)> change;
};

template <typename Response>
WrongAnswer Wrong(const char* name, std::function<void(Response*)> change) {
  return {name, [change](Message* response) {
            if (response->GetDescriptor() == Response::descriptor())
              change(static_cast<Response*>(response));
          }};
}

void Reject(PluginStatus* status, const std::string& plugin, Code code,
            const std::string& reason = "no") {
  status->set_plugin(plugin);
  status->set_code(code);
  status->clear_reasons();
  status->add_reasons(reason);
}

std::vector<WrongAnswer> WrongAnswers() {
  const std::string long_text(1025, 'x');
  return {
      Wrong<CycleResponse>("another attempt", [](auto* a) { a->set_attempt_id(77777); }),
      Wrong<CycleResponse>("no outcome", [](auto* a) { a->clear_outcome(); }),
      Wrong<CycleResponse>("a rejection that PreFilter did not give",
                           [](auto* a) { a->mutable_rejection()->mutable_pre_filter(); }),
      Wrong<CycleResponse>("nodes of a pod that PreFilter rejected",
                           [](auto* a) {
                             Reject(
                                 a->mutable_evaluation()->mutable_pre_filter()->mutable_rejection(),
                                 "NodeResourcesFit", CODE_UNSCHEDULABLE);
                           }),
      Wrong<CycleResponse>(
          "a bitmap that is too short",
          [](auto* a) { a->mutable_evaluation()->mutable_filter()->clear_feasible(); }),
      Wrong<CycleResponse>(
          "more nodes than exist",
          [](auto* a) { a->mutable_evaluation()->mutable_filter()->set_processed(4000000000u); }),
      Wrong<CycleResponse>("a rejection without a reason",
                           [](auto* a) {
                             a->mutable_evaluation()->mutable_filter()->mutable_feasible()->at(0) =
                                 0;
                             a->mutable_evaluation()->mutable_filter()->clear_rejected();
                           }),
      Wrong<CycleResponse>("a rejection by an unknown plugin",
                           [](auto* a) {
                             Reject(
                                 a->mutable_rejection()->mutable_pre_filter()->mutable_rejection(),
                                 "Stranger", CODE_UNSCHEDULABLE);
                           }),
      Wrong<CycleResponse>("a rejection with code SUCCESS",
                           [](auto* a) {
                             Reject(
                                 a->mutable_rejection()->mutable_pre_filter()->mutable_rejection(),
                                 "NodeResourcesFit", CODE_SUCCESS);
                           }),
      Wrong<CycleResponse>("a reason that is too long",
                           [=](auto* a) {
                             Reject(
                                 a->mutable_rejection()->mutable_pre_filter()->mutable_rejection(),
                                 "NodeResourcesFit", CODE_UNSCHEDULABLE, long_text);
                           }),
      Wrong<CycleResponse>(
          "a score over 100",
          [](auto* a) {
            a->mutable_evaluation()->mutable_score()->mutable_plugins(0)->mutable_scores()->at(0) =
                101;
          }),
      Wrong<CycleResponse>("a missing score",
                           [](auto* a) {
                             a->mutable_evaluation()
                                 ->mutable_score()
                                 ->mutable_plugins(0)
                                 ->mutable_scores()
                                 ->pop_back();
                           }),
      Wrong<CycleResponse>(
          "scores of an unknown plugin",
          [](auto* a) {
            a->mutable_evaluation()->mutable_score()->mutable_plugins(0)->set_plugin("Stranger");
          }),
      Wrong<CycleResponse>("a PreScore error that is too long",
                           [=](auto* a) {
                             Reject(a->mutable_evaluation()->mutable_pre_score()->mutable_error(),
                                    "NodeResourcesFit", CODE_ERROR, long_text);
                           }),
      Wrong<ReserveResponse>(
          "a Reserve rejection by an unknown plugin",
          [](auto* a) { Reject(a->mutable_rejection(), "Stranger", CODE_UNSCHEDULABLE); }),
      Wrong<ReserveResponse>(
          "a Reserve rejection without a code",
          [](auto* a) { Reject(a->mutable_rejection(), "Keeper", CODE_UNSPECIFIED); }),
      Wrong<ReserveResponse>("a Reserve rejection that is too long",
                             [=](auto* a) {
                               Reject(a->mutable_rejection(), "Keeper", CODE_UNSCHEDULABLE,
                                      long_text);
                             }),
      Wrong<ReserveResponse>("a state of an unknown plugin",
                             [](auto* a) {
                               a->add_states()->set_plugin("Stranger");
                               a->mutable_states(0)->set_state("s");
                             }),
      Wrong<ReserveResponse>("a state that is too large",
                             [](auto* a) {
                               a->add_states()->set_plugin("Keeper");
                               a->mutable_states(0)->set_state(std::string(4097, 's'));
                             }),
      Wrong<ReserveResponse>(
          "an effect on another pod's claim",
          [](auto* a) { a->mutable_effects(0)->mutable_select_node()->set_name("another"); }),
      Wrong<ReserveResponse>(
          "an effect without a precondition",
          [](auto* a) { a->mutable_effects(0)->mutable_select_node()->clear_uid(); }),
      Wrong<ReserveResponse>(
          "an effect for another node",
          [](auto* a) { a->mutable_effects(0)->mutable_select_node()->set_node_name("n9"); }),
      Wrong<ReserveResponse>(
          "a version of the claim that the shim does not have",
          [](auto* a) { a->mutable_effects(0)->mutable_select_node()->set_resource_version("2"); }),
      Wrong<ReserveResponse>("another tenant's volume",
                             [](auto* a) {
                               BindVolume* bind = a->mutable_effects(0)->mutable_bind_volume();
                               bind->set_name("pv");
                               bind->set_uid("pv-uid");
                               bind->set_resource_version("1");
                               bind->mutable_claim()->set_namespace_("ns");
                               bind->mutable_claim()->set_name("claim");
                               bind->mutable_claim()->set_uid("claim-uid");
                               bind->set_claim_resource_version("1");
                               bind->set_bound_by_controller(true);
                             }),
      Wrong<ReserveResponse>("an unknown effect",
                             [](auto* a) { a->mutable_effects(0)->clear_action(); }),
      Wrong<ReserveResponse>("a duplicate effect",
                             [](auto* a) {
                               *a->add_effects() = a->effects(0);
                               a->mutable_effects(1)->set_key("again");
                             }),
      Wrong<PermitResponse>("a wait of an unknown plugin",
                            [](auto* a) {
                              a->add_waits()->set_plugin("Stranger");
                              a->mutable_waits(0)->set_timeout_micros(1'000'000);
                            }),
      Wrong<PermitResponse>("a wait without a timeout",
                            [](auto* a) { a->add_waits()->set_plugin("Keeper"); }),
      Wrong<PermitResponse>(
          "a Permit rejection without a plugin",
          [](auto* a) { Reject(a->mutable_rejection(), "", CODE_UNSCHEDULABLE); }),
      Wrong<PermitResponse>("a decision that is too long",
                            [=](auto* a) {
                              WaitDecision* decision = a->add_decisions();
                              decision->set_attempt_id(1);
                              decision->set_pod_uid("uid");
                              decision->set_plugin("Keeper");
                              decision->set_message(long_text);
                            }),
  };
}

// A wrong answer counts as no answer: it is counted, and the pod waits for the host. The pod is not
// marked unschedulable and not forgotten.
TEST_F(BadAnswersTest, ParkThePodForTheHost) {
  // Calls may still be under way when this returns.
  const auto mu = std::make_shared<absl::Mutex>();
  const auto change = std::make_shared<std::function<void(Message*)>>([](Message*) {});
  testing::ProxyHooks hooks;
  hooks.on_answer = [mu, change](const Message&, Message* response, grpc::Status*) {
    absl::MutexLock lock(mu.get());
    (*change)(response);
  };
  Connect(hooks, {CAPABILITY_FUSED_CYCLE});
  ASSERT_TRUE(TurnUntil(absl::Milliseconds(10), [&] { return Serves(); }));
  int number = 0;
  for (const WrongAnswer& wrong : WrongAnswers()) {
    SCOPED_TRACE(wrong.name);
    {
      absl::MutexLock lock(mu.get());
      *change = wrong.change;
    }
    world_.protocol_errors = 0;
    world_.ended.clear();
    const std::string name = absl::StrCat("volume-", ++number);
    AddPod(name);
    ASSERT_TRUE(TurnUntil(absl::ZeroDuration(), [&] { return !world_.ended.empty(); }));
    EXPECT_GT(world_.protocol_errors, 0);
    EXPECT_GT(world_.ended[scheduler::AttemptResult::kHostUnavailable], 0) << world_.last_message;
    EXPECT_EQ(world_.ended[scheduler::AttemptResult::kUnschedulable], 0) << world_.last_message;
    EXPECT_FALSE(IsBound(name));
    {
      absl::MutexLock lock(mu.get());
      *change = [](Message*) {};
    }
    EXPECT_TRUE(TurnUntil(absl::Seconds(5), [&] { return IsBound(name); })) << world_.last_message;
  }
}

// Pushes about unknown objects are ignored; impossible ones are counted.
TEST_F(BadAnswersTest, PushesAboutNothingAreNothing) {
  Connect({}, {CAPABILITY_FUSED_CYCLE});
  ASSERT_TRUE(TurnUntil(absl::Milliseconds(10), [&] { return Serves(); }));
  SyncResponse push;
  push.mutable_ack()->set_version(1000000);
  proxy_->Push(push);
  ASSERT_TRUE(TurnUntil(absl::ZeroDuration(), [&] { return world_.protocol_errors > 0; }));
  EXPECT_THAT(world_.last_error.message(), ::testing::HasSubstr("acknowledges version 1000000"));
  EXPECT_LT(hosts_.Describe()[0].acknowledged_version, 1000);
  for (int i = 0; i < 1000; ++i) {
    push.mutable_wait_decision()->set_attempt_id(1000 + i % 10);
    push.mutable_wait_decision()->set_pod_uid("unknown");
    push.mutable_wait_decision()->set_plugin("Keeper");
    push.mutable_wait_decision()->set_allow(true);
    proxy_->Push(push);
  }
  AddPod("plain");
  EXPECT_TRUE(TurnUntil(absl::Seconds(1), [&] { return IsBound("plain"); }));
}

TEST_F(RandomAnswersTest, ChangeNothingThatIsSafe) {
  const std::vector<Capability> kinds[] = {
      {},
      {CAPABILITY_FUSED_CYCLE},
      {CAPABILITY_FUSED_CYCLE, CAPABILITY_BATCH, CAPABILITY_GROUP_PLAN}};
  for (uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) Fuzz(seed, kinds[seed % 3]);
  std::cout << world_.protocol_errors << " protocol errors, " << bound_ << " pods bound\n";
}

}  // namespace
}  // namespace outboard::hosts
