// Every metric of the shim has a sample in a run of outboard-shim, against an API server and a host
// in this process. Only what takes minutes runs on a virtual clock instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "proto/testing/fake_host.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/http/client.h"
#include "shim/http/testing/authority.h"
#include "shim/kube/testing/fake_api_encoding.h"
#include "shim/kube/testing/fake_api_server.h"
#include "shim/kube/testing/shim_program.h"
#include "shim/metrics/metrics.h"
#include "shim/metrics_observer.h"
#include "shim/scheduler/scheduler.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::shim {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using nlohmann::json;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(60);

constexpr char kConfiguration[] = R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, resourceName: metrics-test}
profiles:
- schedulerName: outboard
  plugins:
    multiPoint: {disabled: [{name: "*"}], enabled: [{name: Sorter}, {name: NodeResourcesFit}, {name: Keeper}, {name: DefaultBinder}]}
    preFilter: {disabled: [{name: NotServed}]}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: main, address: "unix:$DIRECTORY/host"}]
servingAddress: 127.0.0.1:0
secureServing: {address: "localhost:0", certFile: $DIRECTORY/crt, keyFile: $DIRECTORY/key}
extender: {address: "127.0.0.1:0", profile: outboard, admitsBindings: true}
failurePolicies: [{plugin: Keeper, point: reserve, policy: FailOpen}]
preemption: {maxEvictionsPerMinute: 1}
unknownProfiles: {prefixes: [outboard-]}
metrics: $METRICS
)";

// The families of a page in Prometheus' text format that have a sample other than 0; a histogram,
// an observation.
std::set<std::string> FamiliesWithSamples(const std::string& page) {
  std::set<std::string> histograms, found;
  for (absl::string_view line : absl::StrSplit(page, '\n', absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&line, "# TYPE ")) {
      if (absl::ConsumeSuffix(&line, " histogram")) histograms.emplace(line);
      continue;
    }
    double value = 0;
    if (line[0] == '#' || !absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value) || value == 0)
      continue;
    absl::string_view name = line.substr(0, line.find_first_of("{ "));
    absl::string_view family = name;
    if (absl::ConsumeSuffix(&family, "_count") && histograms.contains(std::string(family)))
      name = family;
    found.emplace(name);
  }
  return found;
}

json Node(const std::string& name) {
  const json resources = {{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "20"}};
  return {{"metadata", {{"name", name}}},
          {"status", {{"allocatable", resources}, {"capacity", resources}}}};
}

// Its uid is its name.
json Pod(const std::string& name, const std::string& cpu = "100m",
         const std::string& scheduler = "outboard") {
  return {{"metadata", {{"name", name}, {"namespace", "ns"}, {"uid", name}}},
          {"spec",
           {{"schedulerName", scheduler},
            {"containers",
             {{{"name", "c"}, {"image", "i"}, {"resources", {{"requests", {{"cpu", cpu}}}}}}}}}},
          {"status", {{"phase", "Pending"}}}};
}

void AddPlugin(GetHostInfoResponse* info, const char* name,
               const std::vector<ExtensionPoint>& points) {
  PluginInfo* const plugin = info->add_plugins();
  plugin->set_name(name);
  plugin->mutable_extension_points()->Assign(points.begin(), points.end());
  ClusterEvent* const event = plugin->add_wake_up_events();
  event->set_resource("Node");
  event->add_actions(ClusterEvent::ACTION_UPDATE_NODE_LABEL);
}

void Reject(const char* plugin, PluginStatus* rejection) {
  rejection->set_plugin(plugin);
  rejection->set_code(CODE_UNSCHEDULABLE);
  rejection->add_reasons("no");
}

class ShimMetricsTest : public ::testing::Test {
 protected:
  ShimMetricsTest() {
    host_ = outboard::testing::FakeHost::Start(absl::StrCat("unix:", shim_.directory(), "/host"));
    ProgramHost();
    for (const char* name : {"n1", "n2"}) api_.Put("nodes", Node(name));
    WriteCertificate("first");
    Configure("{jobNameLabels: [example.com/run]}");
    shim_.Start();
    page_.server = absl::StrCat("127.0.0.1:", Port("Serving health and metrics on port "));
  }
  ~ShimMetricsTest() override {
    shim_.End();
    host_ = nullptr;
  }

  // Polls until `done`; false after too long.
  static bool Await(const std::function<bool()>& done) {
    const absl::Time limit = absl::Now() + kPatience;
    while (!done()) {
      if (absl::Now() > limit) return false;
      absl::SleepFor(absl::Milliseconds(20));
    }
    return true;
  }
  // The port that the shim names in its log.
  int Port(const std::string& text) {
    int port = 0;
    EXPECT_TRUE(Await([&] {
      const std::string log = shim_.Log();
      const size_t at = log.find(text);
      if (at == log.npos) return false;
      const size_t begin = at + text.size();
      const size_t end = log.find_first_not_of("0123456789", begin);
      return end != log.npos && absl::SimpleAtoi(log.substr(begin, end - begin), &port);
    })) << text
        << "\n"
        << shim_.Log();
    return port;
  }
  void WriteCertificate(const char* authority) {
    const auto pair = http::testing::Authority(authority).Issue("shim", "serverAuth");
    shim_.Write("key", pair.key);
    shim_.Write("crt", pair.certificate);
  }

  void Configure(const std::string& metrics) {
    shim_.Write("config", absl::StrReplaceAll(kConfiguration, {{"$DIRECTORY", shim_.directory()},
                                                               {"$METRICS", metrics}}));
  }

  bool Scrape() {
    const auto page = http::GetPage(page_, "/metrics", {}, absl::Seconds(10));
    if (!page.ok()) return false;
    last_page_ = *page;
    sampled_.merge(FamiliesWithSamples(last_page_));
    return true;
  }
  void AwaitText(const std::string& text) {
    EXPECT_TRUE(Await([&] { return Scrape() && absl::StrContains(last_page_, text); }))
        << text << "\n"
        << last_page_;
  }
  // Waits until each of these families has had a sample.
  void AwaitSamples(const std::set<std::string>& families) {
    std::vector<std::string> missing;
    EXPECT_TRUE(Await([&] {
      Scrape();
      missing.clear();
      std::set_difference(families.begin(), families.end(), sampled_.begin(), sampled_.end(),
                          std::back_inserter(missing));
      return missing.empty();
    })) << absl::StrJoin(missing, ", ")
        << "\n"
        << shim_.Log();
  }
  void AwaitBound(const std::string& pod) {
    EXPECT_TRUE(Await([&] { return api_.Get("pods", "ns/" + pod)["spec"].contains("nodeName"); }))
        << pod << "\n"
        << shim_.Log();
  }

  // By the pod's uid.
  void ProgramHost() {
    host_->Answer<GetHostInfoRequest, GetHostInfoResponse>(
        [](const GetHostInfoRequest&, GetHostInfoResponse* info) {
          info->add_capabilities(CAPABILITY_FUSED_CYCLE);
          AddPlugin(info, "Sorter", {EXTENSION_POINT_QUEUE_SORT});
          AddPlugin(info, "NodeResourcesFit",
                    {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER, EXTENSION_POINT_PRE_SCORE,
                     EXTENSION_POINT_SCORE});
          AddPlugin(info, "Keeper",
                    {EXTENSION_POINT_PRE_ENQUEUE, EXTENSION_POINT_POST_FILTER,
                     EXTENSION_POINT_RESERVE, EXTENSION_POINT_PERMIT});
          AddPlugin(info, "DefaultBinder", {EXTENSION_POINT_BIND});
          return grpc::Status::OK;
        });
    host_->Answer<PreFilterRequest, PreFilterResponse>(
        [this](const PreFilterRequest& request, PreFilterResponse* response) {
          absl::MutexLock lock(&mutex_);
          asked_about_ = request.pod_uid();
          if (absl::StartsWith(asked_about_, "full") || absl::StartsWith(asked_about_, "preemptor"))
            Reject("NodeResourcesFit", response->mutable_rejection());
          return grpc::Status::OK;
        });
    host_->Answer<ScoreRequest, ScoreResponse>(
        [](const ScoreRequest& request, ScoreResponse* response) {
          PluginScores* const scores = response->add_plugins();
          scores->set_plugin("NodeResourcesFit");
          scores->set_scores(std::string(request.nodes().slots_size(), 50));
          return grpc::Status::OK;
        });
    host_->Answer<PostFilterRequest, PostFilterResponse>(
        [this](const PostFilterRequest&, PostFilterResponse* response) {
          absl::MutexLock lock(&mutex_);
          if (!absl::StartsWith(asked_about_, "preemptor")) {
            Reject("Keeper", response->mutable_rejection()->mutable_status());
            return grpc::Status::OK;
          }
          PreemptionCandidate* const candidate = response->mutable_candidates()->add_candidates();
          for (const auto& [slot, node] : host_->nodes()) {
            if (node.name() == "n1") candidate->set_slot(slot);
          }
          candidate->add_victim_uids("victim");
          candidate->set_plugin("Keeper");
          return grpc::Status::OK;
        });
    host_->Answer<ReserveRequest, ReserveResponse>(
        [this](const ReserveRequest& request, ReserveResponse* response) {
          if (request.pod_uid() != "claimant") return grpc::Status::OK;
          const json claim = api_.Get("persistentvolumeclaims", "ns/claim");
          Effect* const effect = response->add_effects();
          effect->set_key("select");
          effect->set_plugin("Keeper");
          SelectNode* const select = effect->mutable_select_node();
          select->set_namespace_("ns");
          select->set_name("claim");
          select->set_uid(claim["metadata"]["uid"]);
          select->set_resource_version(claim["metadata"]["resourceVersion"]);
          select->set_node_name(request.node_name());
          return grpc::Status::OK;
        });
    host_->Answer<PermitRequest, PermitResponse>(
        [this](const PermitRequest& request, PermitResponse* response) {
          if (request.pod_uid() != "member") return grpc::Status::OK;
          PermitWait* const wait = response->add_waits();
          wait->set_plugin("Keeper");
          wait->set_timeout_micros(absl::ToInt64Microseconds(kPatience));
          absl::MutexLock lock(&mutex_);
          waiting_ = request.header().attempt_id();
          return grpc::Status::OK;
        });
  }
  uint64_t waiting() {
    absl::MutexLock lock(&mutex_);
    return waiting_;
  }

  // The answer to a bind is late, and then lost; events are late.
  void BindAPod() {
    kube::testing::Fault lost;
    lost.method = "POST";
    lost.path_part = "/binding";
    lost.delay = absl::Seconds(3);
    lost.drop_answer = true;
    api_.Inject(lost);
    kube::testing::Fault late;
    late.method = "POST";
    late.path_part = "/events";
    late.delay = absl::Seconds(3);
    api_.Inject(late);
    api_.Put("pods", Pod("plain"));
    AwaitSamples({"outboard_binds_in_flight", "scheduler_cache_size"});
    AwaitBound("plain");
    AwaitSamples({"outboard_events_queued", "outboard_binds_settled_by_read_total"});
  }
  void RejectAPod() {
    api_.Put("pods", Pod("full"));
    AwaitSamples({"outboard_status_patches_total", "scheduler_unschedulable_pods",
                  "scheduler_pending_pods", "outboard_events_total"});
  }
  // It waits at Permit, and something happens in the cluster.
  void HoldAPod() {
    json pod = Pod("member");
    pod["metadata"]["labels"]["example.com/run"] = "run-7";
    api_.Put("pods", pod);
    ASSERT_TRUE(Await([this] { return waiting() != 0; })) << shim_.Log();
    json node = Node("n2");
    node["metadata"]["labels"]["a"] = "b";
    api_.Put("nodes", node);
    AwaitSamples({"scheduler_inflight_events"});
    SyncResponse push;
    WaitDecision* const decision = push.mutable_wait_decision();
    decision->set_attempt_id(waiting());
    decision->set_pod_uid("member");
    decision->set_plugin("Keeper");
    decision->set_allow(true);
    ASSERT_TRUE(host_->Push(push));
    AwaitBound("member");
  }
  // The first preemption breaks a budget; the second is beyond the minute's limit.
  void Preempt() {
    api_.Put("poddisruptionbudgets",
             {{"metadata", {{"name", "budget"}, {"namespace", "ns"}}},
              {"spec", {{"selector", {{"matchLabels", {{"app", "victim"}}}}}}},
              {"status", {{"disruptionsAllowed", 0}}}});
    AwaitText("outboard_informer_objects{resource=\"poddisruptionbudgets.policy\"} 1");
    json victim = Pod("victim");
    victim["metadata"]["labels"]["app"] = "victim";
    victim["spec"]["nodeName"] = "n1";
    api_.Put("pods", victim);
    json pod = Pod("preemptor");
    pod["spec"]["priority"] = 1000;
    api_.Put("pods", pod);
    ASSERT_TRUE(Await([this] { return api_.Get("pods", "ns/victim").is_null(); })) << shim_.Log();
    api_.Put("pods", victim);
    pod = Pod("preemptor-2");
    pod["spec"]["priority"] = 1000;
    api_.Put("pods", pod);
    AwaitSamples(
        {"outboard_preemption_budget_violations_total", "outboard_preemptions_limited_total"});
    for (const char* name : {"ns/preemptor", "ns/preemptor-2"}) api_.Delete("pods", name);
    api_.Delete("pods", "ns/victim");
  }
  // The host says that it fits.
  void PlaceAPodThatDoesNotFit() {
    api_.Put("pods", Pod("huge", "100"));
    AwaitSamples({"outboard_guard_refusals_total", "outboard_host_protocol_errors_total"});
    api_.Delete("pods", "ns/huge");
  }
  void WriteAnEffect() {
    api_.Put("storageclasses", {{"metadata", {{"name", "delayed"}}},
                                {"provisioner", "csi.example.com"},
                                {"volumeBindingMode", "WaitForFirstConsumer"}});
    api_.Put("persistentvolumeclaims", {{"metadata", {{"name", "claim"}, {"namespace", "ns"}}},
                                        {"spec", {{"storageClassName", "delayed"}}}});
    // The host answers from the API server: the shim must know as much.
    AwaitText("outboard_informer_objects{resource=\"storageclasses.storage.k8s.io\"} 1");
    AwaitText("outboard_informer_objects{resource=\"persistentvolumeclaims\"} 1");
    json pod = Pod("claimant");
    pod["spec"]["volumes"] = {{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", "claim"}}}}};
    api_.Put("pods", pod);
    AwaitBound("claimant");
  }
  // Half a minute later it counts.
  void PutAPodOfAnUnknownProfile() { api_.Put("pods", Pod("lost", "100m", "outboard-old")); }
  void ChangeWhatNeedsARestart() {
    shim_.Write("config", absl::StrReplaceAll(kConfiguration, {{"$DIRECTORY", shim_.directory()},
                                                               {"$METRICS", "{}"},
                                                               {"metrics-test", "another-lease"}}));
    AwaitText("outboard_config_restart_required 1");
  }
  void ShowAPodThatCannotBeDecoded() {
    json pod = Pod("odd");
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = kube::testing::kNotAQuantityText;
    api_.Put("pods", pod);
    AwaitText("outboard_informer_undecoded_objects{resource=\"pods\"} 1");
  }
  void FailAtReserve() {
    host_->Inject<ReserveRequest>({.status = grpc::Status(grpc::StatusCode::INTERNAL, "no")});
    api_.Put("pods", Pod("open"));
    AwaitBound("open");
  }
  void FailAtPreEnqueue() {
    host_->Inject<PreEnqueueRequest>(
        {.status = grpc::Status(grpc::StatusCode::INTERNAL, "no"), .times = -1});
    api_.Put("pods", Pod("parked"));
    AwaitSamples({"outboard_parked_pods"});
    host_->ClearFaults();
    AwaitBound("parked");
  }
  // As a kube-scheduler whose extender the shim is.
  void AskTheExtender() {
    api_.Put("pods", Pod("foreign", "100", "default-scheduler"));
    httplib::Client client("127.0.0.1", Port("Serving the kube-scheduler extender on port "));
    const json filter = {{"Pod", {{"metadata", Pod("foreign")["metadata"]}}},
                         {"NodeNames", {"n1", "n2"}}};
    const auto filtered = client.Post("/filter", filter.dump(), "application/json");
    ASSERT_TRUE(filtered);
    EXPECT_EQ(filtered->status, 200) << filtered->body;
    json review = json::parse(std::ifstream("shim/extender/testdata/bind_review.json"));
    review["request"]["name"] = "foreign";
    review["request"]["object"]["metadata"] = Pod("foreign")["metadata"];
    const auto admitted = client.Post("/admit", review.dump(), "application/json");
    ASSERT_TRUE(admitted);
    EXPECT_THAT(admitted->body, HasSubstr("\"allowed\":false")) << admitted->body;
  }
  void ReloadTheCertificate() {
    http::ShimAddress secure;
    secure.server = absl::StrCat("https://localhost:", Port("Serving over HTTPS on port "));
    secure.insecure_skip_tls_verify = true;
    const auto handshake = [&] {
      EXPECT_FALSE(http::GetPage(secure, "/metrics", {}, absl::Seconds(10)).ok()) << "no token";
    };
    handshake();
    WriteCertificate("second");
    // A handshake looks at the files, at most once a second.
    EXPECT_TRUE(Await([&] {
      handshake();
      return Scrape() && sampled_.contains("outboard_serving_certificate_reloads_total");
    })) << shim_.Log();
  }

  kube::testing::FakeApiServer api_;
  testing::ShimProgram shim_{"shim-metrics", api_.url()};
  std::unique_ptr<outboard::testing::FakeHost> host_;
  http::ShimAddress page_;
  std::set<std::string> sampled_;
  std::string last_page_;
  absl::Mutex mutex_;
  std::string asked_about_ ABSL_GUARDED_BY(mutex_);  // the uid at the last PreFilter
  uint64_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;     // the attempt at Permit
};

// On a virtual clock: a pod that no event helped is retried after minutes.
std::set<std::string> SamplesOfAFlushedPod() {
  struct Actions final : public scheduler::NoClusterActions {
    void Bind(const scheduler::BindOrder& order, absl::Time now) override {
      orders.push_back(order);
    }
    std::vector<scheduler::BindOrder> orders;
  } actions;
  metrics::Metrics metrics("test");
  MetricsObserver observer(&metrics, config::WorkloadLabels());
  absl::Time now = absl::FromUnixSeconds(1000);
  scheduler::Scheduler scheduler({}, queue::QueueOptions(), &actions, &observer, &observer, now);
  scheduler.SetProfileNames({"outboard"});
  framework::ProfilePlan plan;
  plan.algorithm.name = "outboard";
  plan.algorithm.filter_plugins = {"Fit"};
  plan.host_names = {"main"};
  scheduler.SetPlan(plan);
  framework::ScriptedHost host;
  host.cycle = [&](const PlanRequest&, PlanResponse* response) {
    host.Infeasible("Fit", "no", response);
    return absl::OkStatus();
  };
  scheduler.SetHost("main", &host, scheduler.cluster()->AddHost({}), now);
  auto node = std::make_shared<kube::NodeObject>();
  node->node.set_name("n");
  node->node.set_uid("n");
  node->node.mutable_allocatable()->set_pods(1);
  scheduler.events()->OnNodeUpsert(node, now);
  auto pod = std::make_shared<kube::PodObject>();
  pod->pod.set_name("p");
  pod->pod.set_uid("p");
  pod->pod.set_scheduler_name("outboard");
  scheduler.events()->OnPodUpsert(pod, now);
  EXPECT_TRUE(scheduler.ScheduleOne(now));
  host.cycle = nullptr;
  for (int minute = 0; minute < 10 && actions.orders.empty(); ++minute) {
    now += absl::Minutes(1);
    scheduler.Tick(now);
    scheduler.ScheduleOne(now);
  }
  EXPECT_EQ(actions.orders.size(), 1u);
  for (const scheduler::BindOrder& order : actions.orders)
    order.ordered_by->OnBindEnded(order.attempt_id, scheduler::BindEnd::kBound, "", now);
  return FamiliesWithSamples(metrics.Text());
}

TEST_F(ShimMetricsTest, EveryFamilyHasASampleInARunThatExercisesIt) {
  PutAPodOfAnUnknownProfile();
  BindAPod();
  RejectAPod();
  HoldAPod();
  Preempt();
  PlaceAPodThatDoesNotFit();
  WriteAnEffect();
  FailAtReserve();
  FailAtPreEnqueue();
  AskTheExtender();
  ReloadTheCertificate();
  ShowAPodThatCannotBeDecoded();
  ChangeWhatNeedsARestart();

  std::set<std::string> families;
  for (const metrics::MetricSpec* spec : metrics::AllMetrics()) families.insert(spec->name);
  families.erase("outboard_log_lines_dropped_total");  // 0 here; logging/stderr_log_test.cc
  // Only this one takes minutes.
  const std::string flushed = "scheduler_pod_scheduled_after_flush_total";
  if (SamplesOfAFlushedPod().contains(flushed)) sampled_.insert(flushed);
  AwaitSamples(families);

  // What labels say, where a wrong one would not be noticed otherwise.
  for (const char* sample :
       {"outboard_host_calls_total{call=\"Cycle\",host=\"main\",result=\"OK\"}",
        "outboard_host_calls_total{call=\"Reserve\",host=\"main\",result=\"INTERNAL\"} 1",
        "outboard_host_evaluation_duration_seconds_count{call=\"Cycle\",host=\"main\"}",
        "outboard_host_failure_policies_total{extension_point=\"Reserve\",host=\"main\",policy="
        "\"FailOpen\"} 1",
        "outboard_host_protocol_errors_total{host=\"main\"}",
        "outboard_guard_refusals_total{reason=\"cpu\"}",
        "outboard_preemptions_limited_total{limit=\"minute\"}",
        "outboard_preemption_budget_violations_total 1",
        "outboard_informer_lists_total{reason=\"start\",resource=\"pods\"} 1",
        "outboard_informer_objects{resource=\"nodes\"} 2",
        "outboard_informer_events_total{resource=\"pods\",type=\"DELETED\"}",
        "gang_scheduling_wait_seconds_count{namespace=\"ns\",result=\"bound\"} 1",
        "outboard_effects_total{plugin=\"Keeper\",result=\"applied\"} 1",
        "scheduler_inflight_events{event=\"PodPopped\"}"}) {
    EXPECT_THAT(last_page_, HasSubstr(sample));
  }
  EXPECT_THAT(last_page_, HasSubstr(absl::StrCat("rest_client_requests_total{code=\"200\",host=\"",
                                                 api_.url().substr(7), "\",method=\"GET\"}")));
}

TEST_F(ShimMetricsTest, LabelsFollowTheConfiguration) {
  json pod = Pod("before");
  pod["metadata"]["labels"]["example.com/kind"] = "etl";
  api_.Put("pods", pod);
  AwaitBound("before");
  Configure("{workloadTypeLabel: example.com/kind, workloadTypes: [ETL]}");
  EXPECT_TRUE(Await([&] { return absl::StrContains(shim_.Log(), "Config reloaded"); }));
  pod["metadata"]["name"] = pod["metadata"]["uid"] = "after";
  api_.Put("pods", pod);
  AwaitBound("after");
  const char* const counts = "ai_scheduler_attempts_total{result=\"scheduled\",workload_type=";
  AwaitText(absl::StrCat(counts, "\"ETL\"} 1\n"));
  EXPECT_THAT(last_page_, HasSubstr(absl::StrCat(counts, "\"none\"} 1\n")));
  EXPECT_THAT(last_page_, HasSubstr(absl::StrCat(counts, "\"training\"} 0\n")));
}

}  // namespace
}  // namespace outboard::shim
