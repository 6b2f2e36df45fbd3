#include "shim/bind/api_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace outboard::bind {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1700000000);

std::string Json(absl::string_view text) {
  std::string out;
  AppendJsonString(text, &out);
  return out;
}

TEST(AppendJsonString, EscapesForJsonAndReplacesInvalidUtf8) {
  EXPECT_EQ(Json(""), "\"\"");
  EXPECT_EQ(Json("plain 0/1 <&>"), "\"plain 0/1 <&>\"");
  EXPECT_EQ(Json("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(Json(absl::string_view("\0\n\x1f", 3)), "\"\\u0000\\u000a\\u001f\"");
  EXPECT_EQ(Json("é€😀"), "\"é€😀\"");
  EXPECT_EQ(Json("\xff\xc0\xaf"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(Json("\xed\xa0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");  // a surrogate
  EXPECT_EQ(Json("x\xe2\x82"), "\"x\xEF\xBF\xBD\xEF\xBF\xBD\"");                // truncated
}

// A strict parser accepts the output for any input bytes.
TEST(AppendJsonString, EveryPairOfBytesIsValidJson) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const char bytes[] = {static_cast<char>(a), static_cast<char>(b)};
      ASSERT_TRUE(nlohmann::json::accept(Json(absl::string_view(bytes, 2)))) << a << " " << b;
    }
  }
}

TEST(Binding, CarriesTheUid) {
  BindRequest request{"ns", "pod-1", "uid-1", "node-1"};
  EXPECT_EQ(BindingPath(request), "/api/v1/namespaces/ns/pods/pod-1/binding");
  EXPECT_EQ(
      BindingBody(request),
      R"({"kind":"Binding","apiVersion":"v1","metadata":{"name":"pod-1","namespace":"ns","uid":"uid-1"},)"
      R"("target":{"kind":"Node","name":"node-1"}})");
  request.annotations = {{"a/b", "1"}, {"c", "\"x\""}};
  EXPECT_EQ(
      BindingBody(request),
      R"({"kind":"Binding","apiVersion":"v1","metadata":{"name":"pod-1","namespace":"ns","uid":"uid-1",)"
      R"("annotations":{"a/b":"1","c":"\"x\""}},"target":{"kind":"Node","name":"node-1"}})");
  EXPECT_EQ(PodPath("n/s", "a?b c"), "/api/v1/namespaces/n%2Fs/pods/a%3Fb%20c");
  EXPECT_EQ(PodStatusPath("ns", "p"), "/api/v1/namespaces/ns/pods/p/status");
  EXPECT_EQ(AssignedNote(request), "Successfully assigned ns/pod-1 to node-1");
}

TEST(RequestOf, BindsAVolume) {
  v1beta1::Effect effect;
  v1beta1::BindVolume* bind = effect.mutable_bind_volume();
  bind->set_name("pv1");
  bind->set_uid("u1");
  bind->set_resource_version("7");
  bind->mutable_claim()->set_namespace_("ns");
  bind->mutable_claim()->set_name("data");
  bind->mutable_claim()->set_uid("u2");
  bind->set_claim_resource_version("8");
  bind->set_bound_by_controller(true);
  EXPECT_EQ(RequestOf(effect, nullptr, kNow)->path, "/api/v1/persistentvolumes/pv1");
  EXPECT_EQ(
      RequestOf(effect, nullptr, kNow)->body,
      R"({"metadata":{"uid":"u1","resourceVersion":"7","annotations":{"pv.kubernetes.io/bound-by-controller":"yes"}},)"
      R"("spec":{"claimRef":{"kind":"PersistentVolumeClaim","apiVersion":"v1","namespace":"ns","name":"data","uid":"u2","resourceVersion":"8"}}})");
  bind->set_bound_by_controller(false);
  EXPECT_TRUE(nlohmann::json::accept(RequestOf(effect, nullptr, kNow)->body));
  EXPECT_EQ(RequestOf(effect, nullptr, kNow)->body.find("annotations"), std::string::npos);
}

// Names come from hosts. Each of these would lead to another path, or to another object.
TEST(RequestOf, RefusesNamesThatLeadToAnotherPath) {
  for (const char* name : {"", ".", "..", "a/b", "a%2Fb", "../../nodes/n1"}) {
    SCOPED_TRACE(name);
    v1beta1::Effect volume, claim, put, patch, del;
    volume.mutable_bind_volume()->set_name(name);
    claim.mutable_select_node()->set_namespace_("ns");
    claim.mutable_select_node()->set_name(name);
    for (auto* object : {put.mutable_put_object()}) {
      object->set_resource("things.v1.example.com");
      object->set_name(name);
      object->set_json(R"({"apiVersion": "example.com/v1", "kind": "Thing"})");
    }
    patch.mutable_patch_object()->set_resource("things.v1.example.com");
    patch.mutable_patch_object()->set_name(name);
    patch.mutable_patch_object()->set_json("{}");
    del.mutable_delete_object()->set_resource("things.v1.example.com");
    del.mutable_delete_object()->set_name(name);
    for (const v1beta1::Effect* effect : {&volume, &claim, &put, &patch, &del}) {
      EXPECT_TRUE(absl::IsInvalidArgument(RequestOf(*effect, nullptr, kNow).status()))
          << effect->ShortDebugString();
    }
  }
  for (const char* ns : {".", "..", "a/b"}) {
    v1beta1::Effect claim;
    claim.mutable_select_node()->set_namespace_(ns);
    claim.mutable_select_node()->set_name("data");
    EXPECT_TRUE(absl::IsInvalidArgument(RequestOf(claim, nullptr, kNow).status())) << ns;
  }
}

TEST(RequestOf, SelectsANode) {
  v1beta1::Effect effect;
  v1beta1::SelectNode* select = effect.mutable_select_node();
  select->set_namespace_("ns");
  select->set_name("data");
  select->set_uid("u2");
  select->set_resource_version("8");
  select->set_node_name("n1");
  EXPECT_EQ(RequestOf(effect, nullptr, kNow)->path,
            "/api/v1/namespaces/ns/persistentvolumeclaims/data");
  EXPECT_EQ(
      RequestOf(effect, nullptr, kNow)->body,
      R"({"metadata":{"uid":"u2","resourceVersion":"8","annotations":{"volume.kubernetes.io/selected-node":"n1"}}})");
  EXPECT_TRUE(absl::IsUnimplemented(RequestOf(v1beta1::Effect(), nullptr, kNow).status()));
}

v1beta1::Effect PutWidget() {
  v1beta1::Effect effect;
  v1beta1::PutObject* put = effect.mutable_put_object();
  put->set_resource("widgets.v1.example.com");
  put->set_namespace_("ns");
  put->set_name("w");
  put->set_json(R"({"apiVersion":"example.com/v1","kind":"Widget"})");
  return effect;
}

TEST(RequestOf, CreatesAnObject) {
  const auto request = RequestOf(PutWidget(), nullptr, kNow);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->method, kube::Method::kPost);
  EXPECT_EQ(request->path, "/apis/example.com/v1/namespaces/ns/widgets");
  EXPECT_EQ(request->content_type, kube::kJson);
  EXPECT_EQ(
      request->body,
      R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"ns"}})");
}

TEST(RequestOf, ReplacesAnObjectOrItsStatus) {
  v1beta1::Effect effect = PutWidget();
  effect.mutable_put_object()->set_uid("u");
  effect.mutable_put_object()->set_resource_version("7");
  EXPECT_EQ(RequestOf(effect, nullptr, kNow)->method, kube::Method::kPut);
  EXPECT_EQ(RequestOf(effect, nullptr, kNow)->path, "/apis/example.com/v1/namespaces/ns/widgets/w");
  EXPECT_NE(RequestOf(effect, nullptr, kNow)->body.find(R"("resourceVersion":"7")"),
            std::string::npos);
  effect.mutable_put_object()->set_status(true);
  EXPECT_EQ(RequestOf(effect, nullptr, kNow)->path,
            "/apis/example.com/v1/namespaces/ns/widgets/w/status");
  effect.mutable_put_object()->set_json("nonsense");
  EXPECT_TRUE(absl::IsInvalidArgument(RequestOf(effect, nullptr, kNow).status()));
}

TEST(RequestOf, PatchesAnObjectOrItsStatus) {
  v1beta1::Effect effect;
  v1beta1::PatchObject* patch = effect.mutable_patch_object();
  patch->set_resource("resourceclaims.v1.resource.k8s.io");
  patch->set_namespace_("ns");
  patch->set_name("gpu");
  patch->set_uid("u");
  patch->set_json(R"({"metadata":{"finalizers":["f"],"uid":"another"}})");
  const auto request = RequestOf(effect, nullptr, kNow);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->method, kube::Method::kPatch);
  EXPECT_EQ(request->path, "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/gpu");
  EXPECT_EQ(request->content_type, kube::kStrategicMergePatch);
  EXPECT_EQ(request->body, R"({"metadata":{"finalizers":["f"],"uid":"u"}})");
  patch->set_status(true);
  patch->set_resource_version("7");
  patch->set_json(R"({"status":{"reservedFor":[{"uid":"p"}]}})");
  EXPECT_EQ(RequestOf(effect, nullptr, kNow)->path,
            "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/gpu/status");
  EXPECT_EQ(
      RequestOf(effect, nullptr, kNow)->body,
      R"({"status":{"reservedFor":[{"uid":"p"}]},"metadata":{"uid":"u","resourceVersion":"7"}})");
  patch->set_resource("widgets.v1.example.com");
  EXPECT_EQ(RequestOf(effect, nullptr, kNow)->content_type, kube::kMergePatch)
      << "the API server supports only this patch type for custom resources";
  patch->set_json("[]");
  EXPECT_TRUE(absl::IsInvalidArgument(RequestOf(effect, nullptr, kNow).status()));
}

TEST(RequestOf, ReportsAClaimForExtendedResources) {
  v1beta1::Effect effect;
  auto* report = effect.mutable_report_extended_resource_claim();
  report->set_claim_name("c");
  for (const char* container : {"a", "b"}) {
    auto* mapping = report->add_request_mappings();
    mapping->set_container_name(container);
    mapping->set_resource_name("example.com/gpu");
    mapping->set_request_name("r");
  }
  EXPECT_TRUE(absl::IsInvalidArgument(RequestOf(effect, nullptr, kNow).status()))
      << "without a pod";
  v1beta1::Pod pod;
  pod.set_namespace_("ns");
  pod.set_name("p");
  pod.set_uid("u");
  EXPECT_EQ(RequestOf(effect, &pod, kNow)->path, "/api/v1/namespaces/ns/pods/p/status");
  EXPECT_EQ(RequestOf(effect, &pod, kNow)->content_type, kube::kStrategicMergePatch);
  EXPECT_EQ(
      RequestOf(effect, &pod, kNow)->body,
      R"({"metadata":{"uid":"u"},"status":{"extendedResourceClaimStatus":{"resourceClaimName":"c","requestMappings":[)"
      R"({"containerName":"a","resourceName":"example.com/gpu","requestName":"r"},)"
      R"({"containerName":"b","resourceName":"example.com/gpu","requestName":"r"}]}}})");
}

TEST(RequestOf, DeletesAnObject) {
  v1beta1::Effect effect;
  v1beta1::DeleteObject* del = effect.mutable_delete_object();
  del->set_resource("widgets.v1.example.com");
  del->set_name("w");
  del->set_uid("u");
  del->set_resource_version("7");
  const auto request = RequestOf(effect, nullptr, kNow);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->method, kube::Method::kDelete);
  EXPECT_EQ(request->path, "/apis/example.com/v1/widgets/w");
  EXPECT_EQ(
      request->body,
      R"({"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u","resourceVersion":"7"}})");
}

struct PatchCase {
  const char* what;
  kube::PodScheduledCondition old;
  std::string old_nominated;
  StatusChange change;
  int64_t generation;
  const char* body;  // null: no patch
};

// Without the UID, the bodies equal those of strategicpatch.CreateTwoWayMergePatch for the same
// statuses, except <, & and >, which Go escapes.
TEST(PodStatusPatchBody, IsKubeSchedulers) {
  const PatchCase cases[] = {
      {"first condition",
       {},
       "",
       {"Unschedulable", "0/1 \"x\"", {}},
       3,
       R"({"metadata":{"uid":"u"},"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"2023-11-14T22:13:20Z","message":"0/1 \"x\"",)"
       R"("observedGeneration":3,"reason":"Unschedulable","status":"False","type":"PodScheduled"}]}})"},
      {"another message",
       {"False", "Unschedulable", "old", 3},
       "",
       {"Unschedulable", "other", {}},
       4,
       R"({"metadata":{"uid":"u"},"status":{"$setElementOrder/conditions":[{"type":"PodScheduled"}],"conditions":[{"message":"other",)"
       R"("observedGeneration":4,"type":"PodScheduled"}]}})"},
      {"another reason",
       {"False", "Unschedulable", "m", 4},
       "",
       {"SchedulerError", "m", {}},
       4,
       R"({"metadata":{"uid":"u"},"status":{"$setElementOrder/conditions":[{"type":"PodScheduled"}],"conditions":[{"reason":"SchedulerError",)"
       R"("type":"PodScheduled"}]}})"},
      {"another status",
       {"True", "", "", 0},
       "",
       {"Unschedulable", "other", {}},
       4,
       R"({"metadata":{"uid":"u"},"status":{"$setElementOrder/conditions":[{"type":"PodScheduled"}],"conditions":[{"lastTransitionTime":)"
       R"("2023-11-14T22:13:20Z","message":"other","observedGeneration":4,"reason":"Unschedulable","status":"False",)"
       R"("type":"PodScheduled"}]}})"},
      {"the message goes",
       {"False", "Unschedulable", "m", 4},
       "",
       {"Unschedulable", "", {}},
       0,
       R"({"metadata":{"uid":"u"},"status":{"$setElementOrder/conditions":[{"type":"PodScheduled"}],"conditions":[{"message":null,)"
       R"("observedGeneration":null,"type":"PodScheduled"}]}})"},
      {"the same",
       {"False", "Unschedulable", "m", 3},
       "n",
       {"Unschedulable", "m", "n"},
       3,
       nullptr},
      {"only another generation",
       {"False", "Unschedulable", "m", 3},
       "",
       {"Unschedulable", "m", {}},
       4,
       nullptr},
      {"a nominated node",
       {},
       "",
       {"", "", "n"},
       3,
       R"({"metadata":{"uid":"u"},"status":{"nominatedNodeName":"n"}})"},
      {"no nominated node",
       {},
       "n",
       {"", "", ""},
       3,
       R"({"metadata":{"uid":"u"},"status":{"nominatedNodeName":null}})"},
      {"nominated node left alone", {}, "n", {"", "", {}}, 3, nullptr},
      {"both",
       {"False", "Unschedulable", "m", 3},
       "n",
       {"Unschedulable", "k", "o"},
       3,
       R"({"metadata":{"uid":"u"},"status":{"$setElementOrder/conditions":[{"type":"PodScheduled"}],"conditions":[{"message":"k",)"
       R"("type":"PodScheduled"}],"nominatedNodeName":"o"}})"},
  };
  for (const PatchCase& c : cases) {
    PodFacts pod;
    pod.pod_uid = "u";
    pod.generation = c.generation;
    pod.scheduled = c.old;
    pod.nominated_node_name = c.old_nominated;
    EXPECT_EQ(PodStatusPatchBody(pod, c.change, kNow).value_or("nothing"),
              c.body == nullptr ? "nothing" : c.body)
        << c.what;
  }
}

EventFields Event() {
  EventFields event;
  event.name = "p.17";
  event.object_namespace = "ns";
  event.object_name = "p";
  event.object_uid = "u";
  event.object_resource_version = "9";
  event.event_time = kNow + absl::Microseconds(123456);
  event.reporting_controller = "default-scheduler";
  event.reporting_instance = "default-scheduler-host";
  event.action = "Binding";
  event.reason = "Scheduled";
  event.note = "Successfully assigned ns/p to n";
  event.type = "Normal";
  return event;
}

TEST(Event, HasClientGosFields) {
  EXPECT_EQ(EventsPath("ns"), "/apis/events.k8s.io/v1/namespaces/ns/events");
  EXPECT_EQ(EventPath("ns", "p.17"), "/apis/events.k8s.io/v1/namespaces/ns/events/p.17");
  EXPECT_EQ(
      EventBody(Event()),
      R"({"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"p.17","namespace":"ns"},)"
      R"("eventTime":"2023-11-14T22:13:20.123456Z","reportingController":"default-scheduler",)"
      R"("reportingInstance":"default-scheduler-host","action":"Binding","reason":"Scheduled",)"
      R"("regarding":{"kind":"Pod","namespace":"ns","name":"p","uid":"u","apiVersion":"v1","resourceVersion":"9"},)"
      R"("note":"Successfully assigned ns/p to n","type":"Normal"})");
  EventFields series = Event();
  series.series_count = 2;
  series.series_last_observed = kNow;
  EXPECT_EQ(EventSeriesPatchBody(series),
            R"({"series":{"count":2,"lastObservedTime":"2023-11-14T22:13:20.000000Z"}})");
  EXPECT_EQ(nlohmann::json::parse(EventBody(series))["series"],
            nlohmann::json::parse(EventSeriesPatchBody(series))["series"]);
}

TEST(EventName, IsThePodAndTheTimeOrAUuid) {
  EXPECT_EQ(EventName("pod-1", absl::FromUnixNanos(0x1797abcdef012345)), "pod-1.1797abcdef012345");
  EXPECT_EQ(EventName(std::string(236, 'a'), absl::FromUnixNanos(0x1797abcdef012345)).size(), 253u);
  const std::string uuid =
      EventName(std::string(237, 'a'), absl::FromUnixNanos(0x1797abcdef012345));
  EXPECT_THAT(uuid, ::testing::MatchesRegex(
                        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_NE(uuid, EventName(std::string(237, 'a'), absl::FromUnixNanos(0x1797abcdef012345)));
}

TEST(TruncateNote, CutsAt1024Bytes) {
  EXPECT_EQ(TruncateNote(std::string(1024, 'x')), std::string(1024, 'x'));
  EXPECT_EQ(TruncateNote(std::string(1025, 'x')), std::string(1020, 'x') + " ...");
  EXPECT_EQ(TruncateNote(std::string(1019, 'x') + "\xc3\xa9\xc3\xa9\xc3\xa9"),
            std::string(1019, 'x') + " ...");
}

v1beta1::Pod PodForEffects() {
  v1beta1::Pod pod;
  pod.set_namespace_("ns");
  pod.set_name("p");
  pod.set_uid("u");
  pod.set_generation(3);
  return pod;
}

TEST(Effects, APodIsPatchedWithItsUidAsPrecondition) {
  v1beta1::Effect effect;
  v1beta1::PatchPod& patch = *effect.mutable_patch_pod();
  (*patch.mutable_set_annotations())["b"] = "2\"";
  (*patch.mutable_set_annotations())["c"] = "3";
  patch.add_remove_annotations("a");
  (*patch.mutable_set_labels())["l"] = "v";
  EXPECT_TRUE(absl::IsInvalidArgument(RequestOf(effect, nullptr, kNow).status()))
      << "without a pod";
  const v1beta1::Pod pod = PodForEffects();
  const auto request = RequestOf(effect, &pod, kNow);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->method, kube::Method::kPatch);
  EXPECT_EQ(request->content_type, kube::kStrategicMergePatch);
  EXPECT_EQ(request->path, "/api/v1/namespaces/ns/pods/p");
  EXPECT_EQ(request->body, R"({"metadata":{"uid":"u","annotations":{"a":null,"b":"2\"","c":"3"},)"
                           R"("labels":{"l":"v"}}})");
  patch.Clear();
  patch.add_remove_labels("l");
  EXPECT_EQ(RequestOf(effect, &pod, kNow)->body, R"({"metadata":{"uid":"u","labels":{"l":null}}})");
}

TEST(Effects, AConditionIsMergedIntoThePodsStatus) {
  v1beta1::Effect effect;
  v1beta1::SetPodCondition& condition = *effect.mutable_set_pod_condition();
  condition.set_type("example.com/Held");
  condition.set_status(v1beta1::CONDITION_STATUS_FALSE);
  condition.set_reason("NotYet");
  EXPECT_TRUE(absl::IsInvalidArgument(RequestOf(effect, nullptr, kNow).status()))
      << "without a pod";
  const v1beta1::Pod pod = PodForEffects();
  const auto request = RequestOf(effect, &pod, kNow);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->path, "/api/v1/namespaces/ns/pods/p/status");
  EXPECT_EQ(request->content_type, kube::kStrategicMergePatch);
  EXPECT_EQ(request->body,
            R"({"metadata":{"uid":"u"},"status":{"conditions":[{"lastProbeTime":null,)"
            R"("lastTransitionTime":"2023-11-14T22:13:20Z","message":"","observedGeneration":3,)"
            R"("reason":"NotYet","status":"False","type":"example.com/Held"}]}})");
}

TEST(Effects, ObjectsOfKubernetesGetAStrategicMergePatch) {
  v1beta1::Effect effect;
  v1beta1::PatchObject& patch = *effect.mutable_patch_object();
  patch.set_resource("configmaps.v1");
  patch.set_namespace_("ns");
  patch.set_name("c");
  patch.set_uid("u");
  patch.set_json(R"({"data":{"a":"1"}})");
  const auto request = RequestOf(effect, nullptr, kNow);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->path, "/api/v1/namespaces/ns/configmaps/c");
  EXPECT_EQ(request->content_type, kube::kStrategicMergePatch);
  EXPECT_EQ(request->resource, "configmaps.v1");
  // Hosts have pods as messages: the answer must not become an object of their caches.
  patch.set_resource("pods.v1");
  EXPECT_EQ(RequestOf(effect, nullptr, kNow)->path, "/api/v1/namespaces/ns/pods/c");
  EXPECT_EQ(RequestOf(effect, nullptr, kNow)->resource, "");
  patch.set_resource("secrets.v1");
  EXPECT_TRUE(absl::IsInvalidArgument(RequestOf(effect, nullptr, kNow).status()));
}

TEST(Effects, AConfigMapIsPutUnderTheCoreGroup) {
  v1beta1::Effect effect;
  v1beta1::PutObject& put = *effect.mutable_put_object();
  put.set_resource("configmaps.v1");
  put.set_namespace_("ns");
  put.set_name("c");
  put.set_json(R"({"apiVersion":"v1","kind":"ConfigMap"})");
  const auto request = RequestOf(effect, nullptr, kNow);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->method, kube::Method::kPost);
  EXPECT_EQ(request->path, "/api/v1/namespaces/ns/configmaps");
  EXPECT_EQ(request->object_path, "/api/v1/namespaces/ns/configmaps/c");
}

TEST(StatusPatch, IsOutdatedWhenThePodIsGoneOrBound) {
  const auto answer = [](int http_status, const std::string& message) {
    kube::ApiResponse response;
    response.http_status = http_status;
    response.body = message;
    return response;
  };
  EXPECT_TRUE(IsPatchOutdated(answer(404, "")));
  EXPECT_TRUE(IsPatchOutdated(answer(422, "metadata.uid: Invalid value: \"uid-1\"")));
  // As Kubernetes 1.36 answers.
  EXPECT_TRUE(IsPatchOutdated(answer(
      422,
      "Pod \"p\" is invalid: status.nominatedNodeName: Forbidden: may not be set on pods that "
      "are already bound to a node")));
  EXPECT_FALSE(IsPatchOutdated(answer(422,
                                      "Pod \"p\" is invalid: status.nominatedNodeName: "
                                      "Invalid value: \"N\"")));
  EXPECT_FALSE(IsPatchOutdated(answer(403, "")));
}

}  // namespace
}  // namespace outboard::bind
