#include "shim/informer/informer.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shim/clock.h"
#include "shim/kube/curl_api_client.h"
#include "shim/kube/testing/fake_api_encoding.h"
#include "shim/kube/testing/fake_api_server.h"

namespace outboard::informer {
namespace {

using kube::PodObject;
using kube::testing::FakeApiServer;
using kube::testing::Fault;
using nlohmann::json;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::Ge;

// Keeps the state that the handler's calls describe, and checks the guarantees of InformerHandler.
class Picture : public InformerHandler<PodObject> {
 public:
  void OnAdd(const Ptr& object) override {
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(uids_.emplace(object->uid(), object->resource_version).second);
    EXPECT_TRUE(nodes_.emplace(object->key(), object->pod.node_name()).second);
    ++adds_;
  }
  void OnUpdate(const Ptr& old_object, const Ptr& object) override {
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(old_object->uid(), object->uid());
    EXPECT_EQ(uids_[object->uid()], old_object->resource_version);
    uids_[object->uid()] = object->resource_version;
    nodes_[object->key()] = object->pod.node_name();
    ++updates_;
  }
  void OnDelete(const Ptr& object) override {
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(uids_.erase(object->uid()), 1u);
    EXPECT_EQ(nodes_.erase(object->key()), 1u);
    ++deletes_;
  }
  void OnSynced() override {
    absl::MutexLock lock(&mutex_);
    ++synced_;
  }

  // Waits until the state is `nodes` (by "namespace/name") and the first state was delivered.
  bool Reaches(const std::map<std::string, std::string>& nodes, absl::Duration timeout) {
    absl::MutexLock lock(&mutex_);
    auto reached = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return synced_ == 1 && nodes_ == nodes;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), timeout);
  }
  void Expect(const std::map<std::string, std::string>& nodes) {
    EXPECT_TRUE(Reaches(nodes, absl::Seconds(20)));
  }
  int deletes() {
    absl::MutexLock lock(&mutex_);
    return deletes_;
  }
  int adds() {
    absl::MutexLock lock(&mutex_);
    return adds_;
  }

 private:
  absl::Mutex mutex_;
  std::map<std::string, std::string> uids_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> nodes_ ABSL_GUARDED_BY(mutex_);
  int adds_ ABSL_GUARDED_BY(mutex_) = 0;
  int updates_ ABSL_GUARDED_BY(mutex_) = 0;
  int deletes_ ABSL_GUARDED_BY(mutex_) = 0;
  int synced_ ABSL_GUARDED_BY(mutex_) = 0;
};

json Pod(const std::string& name, const std::string& node = "", const std::string& uid = "") {
  json pod = {{"metadata", {{"name", name}, {"namespace", "ns"}}},
              {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}},
              {"status", {{"phase", "Pending"}}}};
  if (!node.empty()) pod["spec"]["nodeName"] = node;
  if (!uid.empty()) pod["metadata"]["uid"] = uid;
  return pod;
}

// The same test with both encodings, with WatchList and with pages of two.
struct Way {
  bool protobuf;
  bool watch_list;
};

class InformerTest : public ::testing::TestWithParam<Way> {
 protected:
  InformerTest() {
    server_.SetProtobufSupported(GetParam().protobuf);
    server_.SetWatchListSupported(GetParam().watch_list);
    kube::CurlApiClientOptions options;
    options.qps = -1;
    client_ = std::make_unique<kube::CurlApiClient>(server_.Config(), options);
  }

  void Start() {
    ReflectorPolicyOptions options;
    options.page_size = 2;
    options.min_backoff = absl::Milliseconds(20);
    options.max_backoff = absl::Milliseconds(100);
    options.initial_silence = absl::Seconds(2);
    informer_ = std::make_unique<Informer<PodObject>>(*client_, resource_, &picture_, options);
    informer_->Start();
  }

  // By ListReason, and by type.
  std::vector<uint64_t> Lists() const {
    const auto& lists = informer_->stats().lists;
    return {lists.begin(), lists.end()};
  }
  std::vector<uint64_t> Events() const {
    const auto& events = informer_->stats().events;
    return {events.begin(), events.end()};
  }

  FakeApiServer server_;
  Picture picture_;
  Resource<PodObject> resource_ = Pods();
  std::unique_ptr<kube::CurlApiClient> client_;
  std::unique_ptr<Informer<PodObject>> informer_;
};

TEST_P(InformerTest, TheStateAndThenItsChanges) {
  for (int i = 0; i < 5; ++i) server_.Put("pods", Pod(absl::StrCat("p", i)));
  server_.Put("pods", [] {
    json done = Pod("done");
    done["status"]["phase"] = "Succeeded";
    return done;
  }());
  Start();
  picture_.Expect({{"ns/p0", ""}, {"ns/p1", ""}, {"ns/p2", ""}, {"ns/p3", ""}, {"ns/p4", ""}});
  server_.Put("pods", Pod("p0", "n1"));
  server_.Put("pods", Pod("p5"));
  server_.Delete("pods", "ns/p1");
  json failed = server_.Get("pods", "ns/p2");
  failed["status"]["phase"] = "Failed";
  server_.Put("pods", failed);
  picture_.Expect({{"ns/p0", "n1"}, {"ns/p3", ""}, {"ns/p4", ""}, {"ns/p5", ""}});
  informer_->Stop();
  EXPECT_TRUE(informer_->synced());
  EXPECT_EQ(informer_->rejected_objects(), 0u);
  EXPECT_THAT(Lists(), ElementsAre(1, 0, 0, 0));
  // Five of the additions are the first state.
  EXPECT_THAT(Events(), ElementsAre(GetParam().watch_list ? 6 : 1, 1, 2));
  EXPECT_EQ(informer_->stats().failures, GetParam().watch_list ? 0u : 1u);
  EXPECT_EQ(informer_->objects(), 4u);
  for (const auto& request : server_.Requests()) {
    EXPECT_EQ(request.headers.count("accept-encoding"), 0u);
    EXPECT_EQ(request.query.at("fieldSelector"), "status.phase!=Succeeded,status.phase!=Failed");
  }
}

TEST_P(InformerTest, ResumesAfterALostConnectionWithoutListingAgain) {
  server_.Put("pods", Pod("a"));
  Start();
  picture_.Expect({{"ns/a", ""}});
  for (int i = 0; i < 5; ++i) {
    server_.CloseConnections();
    server_.Put("pods", Pod("a", absl::StrCat("n", i)));
    picture_.Expect({{"ns/a", absl::StrCat("n", i)}});
  }
  EXPECT_THAT(Lists(), ElementsAre(1, 0, 0, 0));
  EXPECT_EQ(picture_.adds(), 1);
}

TEST_P(InformerTest, BothFormsOfExpiryListAgainAndReportTheDifference) {
  server_.Put("pods", Pod("a"));
  server_.Put("pods", Pod("b", "", "old-b"));
  Start();
  picture_.Expect({{"ns/a", ""}, {"ns/b", ""}});
  // As an event in the stream.
  server_.Compact();
  server_.Delete("pods", "ns/a");
  server_.Put("pods", Pod("b", "n1", "new-b"));
  server_.Put("pods", Pod("c"));
  server_.Compact();
  server_.CloseConnections();
  picture_.Expect({{"ns/b", "n1"}, {"ns/c", ""}});
  EXPECT_EQ(picture_.deletes(), 2);
  // The state may have come from the old stream; the list after it is the relevant one.
  ASSERT_TRUE(
      server_.AwaitCount("GET", GetParam().watch_list ? "sendInitialEvents" : "limit=2", 2));
  // As an HTTP status.
  Fault gone;
  gone.path_part = "resourceVersion=1";
  gone.http_status = 410;
  gone.body = "gone";
  const uint64_t expired_before = informer_->stats().expired;
  // A connection cut in the middle of the second list only restarts that list, and the 410 answer
  // may be cut too. Repeat both faults until a resumed watch has received 410.
  const absl::Time give_up = SteadyNow() + absl::Seconds(20);
  while (informer_->stats().expired == expired_before && SteadyNow() < give_up) {
    server_.Inject(gone);
    server_.CloseConnections();
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_GT(informer_->stats().expired, expired_before);
  server_.Put("pods", Pod("d"));
  picture_.Expect({{"ns/b", "n1"}, {"ns/c", ""}, {"ns/d", ""}});
  EXPECT_THAT(Lists(), ElementsAre(1, Ge(1), 0, _));
}

// Decoded pods that exist, and their largest number so far.
class Census {
 public:
  void Watch(Resource<PodObject>* resource) {
    resource->decode = [this, decode = resource->decode](kube::Decoder& decoder,
                                                         absl::string_view raw) {
      auto pod = decode(decoder, raw);
      if (pod.ok()) Count({*pod});
      return pod;
    };
    resource->decode_json = [this, decode = resource->decode_json](const kube::DocNode& document) {
      auto pod = decode(document);
      if (pod.ok()) Count({*pod});
      return pod;
    };
    resource->decode_list = [this, decode = resource->decode_list](kube::Decoder& decoder,
                                                                   absl::string_view raw) {
      auto page = decode(decoder, raw);
      if (page.ok()) Count(page->items);
      return page;
    };
    resource->decode_list_json =
        [this, decode = resource->decode_list_json](const kube::DocNode& document) {
          auto page = decode(document);
          if (page.ok()) Count(page->items);
          return page;
        };
  }
  size_t largest() const { return largest_; }

 private:
  void Count(const std::vector<kube::PodPtr>& pods) {
    std::erase_if(pods_, [](const auto& pod) { return pod.expired(); });
    pods_.insert(pods_.end(), pods.begin(), pods.end());
    largest_ = std::max<size_t>(largest_, pods_.size());
  }
  std::vector<std::weak_ptr<const PodObject>> pods_;
  std::atomic<size_t> largest_ = 0;
};

// A second complete state of a large cluster must not need the memory of a second cluster.
TEST_P(InformerTest, AnotherCompleteStateKeepsNoSecondCopyOfWhatIsKnown) {
  constexpr int kPods = 30;
  std::map<std::string, std::string> nodes;
  for (int i = 0; i < kPods; ++i) {
    server_.Put("pods", Pod(absl::StrCat("p", i)));
    nodes[absl::StrCat("ns/p", i)] = "";
  }
  Census census;
  census.Watch(&resource_);
  Start();
  picture_.Expect(nodes);
  server_.Put("pods", Pod("p3", "n1"));
  nodes["ns/p3"] = "n1";
  picture_.Expect(nodes);
  server_.Compact();
  server_.Delete("pods", "ns/p4");
  server_.Put("pods", Pod("p5", "n2"));
  nodes.erase("ns/p4");
  nodes["ns/p5"] = "n2";
  server_.Compact();
  server_.CloseConnections();
  picture_.Expect(nodes);
  const absl::Time give_up = SteadyNow() + absl::Seconds(20);
  const auto lists = [&] {
    const std::vector<uint64_t> all = Lists();
    return std::accumulate(all.begin(), all.end(), uint64_t{0});
  };
  while (lists() < 2 && SteadyNow() < give_up) absl::SleepFor(absl::Milliseconds(5));
  ASSERT_GE(lists(), 2u);
  informer_->Stop();
  // Besides: a page of two, the two that changed, and the last event.
  EXPECT_LE(census.largest(), kPods + 5u);
}

TEST_P(InformerTest, AStreamThatIsCutAnywhereLosesNothing) {
  server_.Put("pods", Pod("a"));
  Start();
  picture_.Expect({{"ns/a", ""}});
  for (size_t cut = 60; cut < 700; cut += 41) {
    Fault fault;
    fault.path_part = "resourceVersion=1";
    fault.cut_after = cut;
    server_.Inject(fault);
    server_.CloseConnections();
    const std::string node = absl::StrCat("n", cut);
    server_.Put("pods", Pod("a", node));
    picture_.Expect({{"ns/a", node}});
  }
  EXPECT_EQ(picture_.adds(), 1);
  EXPECT_EQ(picture_.deletes(), 0);
}

TEST_P(InformerTest, OverloadAndErrorsInTheStreamArePassing) {
  server_.Put("pods", Pod("a"));
  Fault busy;
  busy.http_status = 429;
  busy.times = 3;
  server_.Inject(busy);
  Start();
  picture_.Expect({{"ns/a", ""}});
  Fault error;
  error.path_part = "resourceVersion=1";
  error.event_status = 500;
  error.times = 2;
  server_.Inject(error);
  server_.CloseConnections();
  server_.Put("pods", Pod("b"));
  picture_.Expect({{"ns/a", ""}, {"ns/b", ""}});
  EXPECT_GE(informer_->stats().failures, 4u);
}

TEST_P(InformerTest, AServerThatWentBackInTimeIsNoticedByItsBookmark) {
  for (int i = 0; i < 20; ++i) server_.Put("pods", Pod("a", absl::StrCat("n", i)));
  server_.Put("pods", Pod("b"));
  Start();
  picture_.Expect({{"ns/a", "n19"}, {"ns/b", ""}});
  server_.Rewind(110);
  server_.Delete("pods", "ns/b");
  // A real server sends it repeatedly: the first may arrive before the watch is open.
  bool noticed = false;
  for (int i = 0; i < 100 && !noticed; ++i) {
    server_.SendBookmarks();
    noticed = picture_.Reaches({{"ns/a", "n19"}}, absl::Milliseconds(200));
  }
  EXPECT_TRUE(noticed);
  EXPECT_GE(informer_->stats().rewinds, 1u);
  EXPECT_THAT(Lists(), ElementsAre(1, 0, Ge(1), _));
}

// A pod whose request cannot be read: a format of a later version, or a fault of the server.
json Undecodable(json pod) {
  pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = kube::testing::kNotAQuantityText;
  return pod;
}

TEST_P(InformerTest, APodThatCanNoLongerBeDecodedStaysAsItWasAndIsAnAlarm) {
  server_.Put("pods", Pod("a", "n1", "uid-a"));
  server_.Put("pods", Pod("b"));
  Start();
  picture_.Expect({{"ns/a", "n1"}, {"ns/b", ""}});
  EXPECT_EQ(informer_->undecoded().size(), 0u);

  server_.Put("pods", Undecodable(Pod("a", "n1", "uid-a")));
  server_.Put("pods", Pod("c"));
  picture_.Expect({{"ns/a", "n1"}, {"ns/b", ""}, {"ns/c", ""}});
  EXPECT_EQ(informer_->undecoded().Names(), "ns/a");

  // Nor does a new list remove it, because it is in that list.
  server_.Compact();
  server_.Delete("pods", "ns/b");
  server_.Compact();
  server_.CloseConnections();
  picture_.Expect({{"ns/a", "n1"}, {"ns/c", ""}});
  server_.Put("pods", Pod("d"));
  picture_.Expect({{"ns/a", "n1"}, {"ns/c", ""}, {"ns/d", ""}});
  EXPECT_EQ(informer_->undecoded().Names(), "ns/a");
  EXPECT_EQ(picture_.deletes(), 1);

  server_.Put("pods", Pod("a", "n2", "uid-a"));
  picture_.Expect({{"ns/a", "n2"}, {"ns/c", ""}, {"ns/d", ""}});
  EXPECT_EQ(informer_->undecoded().size(), 0u);
}

TEST_P(InformerTest, APodThatCanNoLongerBeDecodedCanBeDeleted) {
  server_.Put("pods", Pod("a", "n1", "uid-a"));
  Start();
  picture_.Expect({{"ns/a", "n1"}});
  server_.Put("pods", Undecodable(Pod("a", "n1", "uid-a")));
  server_.Delete("pods", "ns/a");
  picture_.Expect({});
  server_.Put("pods", Pod("b"));
  picture_.Expect({{"ns/b", ""}});
  EXPECT_EQ(informer_->undecoded().size(), 0u);
}

TEST_P(InformerTest, APodThatNeverCouldBeDecodedIsNamed) {
  server_.Put("pods", Undecodable(Pod("a", "n1", "uid-a")));
  server_.Put("pods", Pod("b"));
  Start();
  picture_.Expect({{"ns/b", ""}});
  EXPECT_EQ(informer_->undecoded().Names(), "ns/a");
  server_.Put("pods", Pod("a", "n1", "uid-a"));
  picture_.Expect({{"ns/a", "n1"}, {"ns/b", ""}});
  EXPECT_EQ(informer_->undecoded().size(), 0u);
}

TEST_P(InformerTest, StopsWhileTheServerIsSilent) {
  Fault slow;
  slow.delay = absl::Minutes(1);
  slow.times = 10;
  server_.Inject(slow);
  Start();
  ASSERT_TRUE(server_.AwaitCount("GET", "/pods", 1));
  informer_->Stop();
  EXPECT_FALSE(informer_->synced());
}

INSTANTIATE_TEST_SUITE_P(Ways, InformerTest,
                         ::testing::Values(Way{true, true}, Way{true, false}, Way{false, true},
                                           Way{false, false}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.protobuf ? "Protobuf" : "Json",
                                               info.param.watch_list ? "WatchList" : "Pages");
                         });

TEST(InformerWatchList, WithoutItsEndMarkFallsBackToAList) {
  FakeApiServer server;
  server.SetInitialEventsEnd(false);
  server.Put("pods", Pod("a"));
  kube::CurlApiClient client(server.Config(), {});
  Picture picture;
  ReflectorPolicyOptions options;
  options.min_backoff = absl::Milliseconds(20);
  options.initial_silence = absl::Milliseconds(300);
  Informer<PodObject> informer(client, Pods(), &picture, options);
  informer.Start();
  picture.Expect({{"ns/a", ""}});
  EXPECT_EQ(server.Count("GET", "sendInitialEvents"), 1);
}

// Remembers objects by key, and whether the first state has arrived.
class ObjectPicture : public InformerHandler<kube::ClusterObject> {
 public:
  void OnAdd(const Ptr& object) override { Set(object); }
  void OnUpdate(const Ptr&, const Ptr& object) override { Set(object); }
  void OnDelete(const Ptr& object) override {
    absl::MutexLock lock(&mutex_);
    objects_.erase(object->key());
  }
  void OnSynced() override {
    absl::MutexLock lock(&mutex_);
    synced_ = true;
  }
  // Waits until the first state has arrived and the keys, joined by blanks, are `keys`.
  bool Reaches(const std::string& keys, absl::Duration timeout = absl::Seconds(20)) {
    absl::MutexLock lock(&mutex_);
    auto reached = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      std::string known;
      for (const auto& [key, object] : objects_)
        absl::StrAppend(&known, known.empty() ? "" : " ", key);
      return synced_ && known == keys;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), timeout);
  }

 private:
  void Set(const Ptr& object) {
    absl::MutexLock lock(&mutex_);
    objects_[object->key()] = object;
  }
  absl::Mutex mutex_;
  std::map<std::string, Ptr> objects_ ABSL_GUARDED_BY(mutex_);
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;
};

ReflectorPolicyOptions Impatient() {
  ReflectorPolicyOptions options;
  options.page_size = 2;
  options.min_backoff = absl::Milliseconds(20);
  options.max_backoff = absl::Milliseconds(40);
  return options;
}

TEST(ObjectInformer, EveryKindIsListedAndWatchedInBothEncodings) {
  for (const bool protobuf : {true, false}) {
    for (const auto& resource : ClusterObjects()) {
      SCOPED_TRACE(absl::StrCat(resource.name, protobuf ? " protobuf" : " JSON"));
      const std::string plural = resource.path.substr(resource.path.rfind('/') + 1);
      FakeApiServer server;
      server.SetProtobufSupported(protobuf);
      // Without WatchList the same server also tests lists.
      server.SetWatchListSupported(protobuf);
      kube::CurlApiClientOptions client_options;
      client_options.qps = -1;
      kube::CurlApiClient client(server.Config(), client_options);
      const auto object = [](const char* name) {
        return json{{"metadata", {{"name", name}, {"namespace", "n"}}}};
      };
      for (const char* name : {"a", "b", "c"}) server.Put(plural, object(name));
      ObjectPicture picture;
      Informer<kube::ClusterObject> informer(client, resource, &picture, Impatient());
      informer.Start();
      const bool namespaced =
          kube::FindObjectKind(resource.path.substr(0, 5) == "/api/"
                                   ? ""
                                   : resource.path.substr(6, resource.path.find('/', 6) - 6),
                               resource.list_kind.substr(0, resource.list_kind.size() - 4))
              ->namespaced;
      EXPECT_TRUE(picture.Reaches(namespaced ? "n/a n/b n/c" : "a b c"));
      server.Put(plural, object("d"));
      server.Delete(plural, "n/b");
      EXPECT_TRUE(picture.Reaches(namespaced ? "n/a n/c n/d" : "a c d"));
      informer.Stop();
      EXPECT_EQ(informer.rejected_objects(), 0u);
      for (const auto& request : server.Requests()) EXPECT_EQ(request.path, resource.path);
    }
  }
}

// For example Kubernetes' own pod group API, which a plugin reads like other projects' resources.
TEST(ObjectInformer, ResourcesThatPluginsNameAreAskedForAsJsonWhereThereIsMore) {
  FakeApiServer server;
  server.SetProtobufSupported(true);
  kube::CurlApiClientOptions client_options;
  client_options.qps = -1;
  kube::CurlApiClient client(server.Config(), client_options);
  server.Put("replicasets", {{"metadata", {{"name", "a"}, {"namespace", "n"}}}});
  ObjectPicture picture;
  const Resource<kube::ClusterObject> resource = CustomObjects({"replicasets", "v1", "apps"});
  Informer<kube::ClusterObject> informer(client, resource, &picture, Impatient());
  informer.Start();
  EXPECT_TRUE(picture.Reaches("n/a"));
  server.Put("replicasets", {{"metadata", {{"name", "b"}, {"namespace", "n"}}}});
  EXPECT_TRUE(picture.Reaches("n/a n/b"));
  informer.Stop();
  EXPECT_EQ(informer.rejected_objects(), 0u);
}

TEST(ObjectInformer, PluginsReadObjectsOfTheCoreGroup) {
  const auto resource = CustomObjects(*kube::ParseCustomResourceName("configmaps.v1"));
  EXPECT_EQ(resource.name, "configmaps");
  EXPECT_EQ(resource.path, "/api/v1/configmaps");
  const auto document = kube::ParseJson("", R"({"metadata": {"name": "c", "namespace": "ns",
      "uid": "u1", "resourceVersion": "7"}, "data": {"a": "1"}})");
  ASSERT_TRUE(document.ok());
  const auto object = resource.decode_json(*document);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ((*object)->object.generic_object().resource(), "configmaps.v1");
  EXPECT_THAT((*object)->object.generic_object().json(), ::testing::HasSubstr("data"));
  EXPECT_EQ(BuiltInObject(**object), nullptr);
  // A kind that the contract has, too: watched once, under the path of both.
  const auto services = *kube::ParseCustomResourceName("services.v1");
  EXPECT_EQ(ObjectResources({services}).size(), ClusterObjects().size());
}

// Plugins may read one of the contract's own kinds with all its fields. Two watches of it would
// cost the API server twice, and their counters would share one label.
TEST(ObjectInformer, AResourceThatPluginsNameIsWatchedOnce) {
  const auto device_classes = *kube::ParseCustomResourceName("deviceclasses.v1.resource.k8s.io");
  const auto jobs = *kube::ParseCustomResourceName("jobs.v1.example.com");
  std::map<std::string, int> paths;
  for (const auto& resource : ObjectResources({device_classes, jobs})) ++paths[resource.path];
  EXPECT_EQ(paths.size(), ClusterObjects().size() + 1);
  for (const auto& [path, count] : paths) EXPECT_EQ(count, 1) << path;

  const auto document = kube::ParseJson("", R"({"metadata": {"name": "gpu", "uid": "u1",
      "resourceVersion": "7"}, "spec": {"extendedResourceName": "example.com/gpu",
      "selectors": [{"cel": {"expression": "true"}}]}})");
  ASSERT_TRUE(document.ok());
  const Resource<kube::ClusterObject> watched = CustomObjects(device_classes);
  const auto custom = watched.decode_json(*document);
  ASSERT_TRUE(custom.ok()) << custom.status();
  EXPECT_THAT((*custom)->object.generic_object().json(), ::testing::HasSubstr("selectors"));
  // The other reading of the same object.
  const kube::ClusterObjectPtr own = BuiltInObject(**custom);
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->object.device_class().extended_resource_name(), "example.com/gpu");
  EXPECT_EQ(own->uid(), "u1");
  EXPECT_EQ(own->resource_version, "7");
  EXPECT_EQ(BuiltInObject(*own), nullptr);

  // What only one reading understands is an alarm.
  const auto bad = kube::ParseJson("", R"({"metadata": {"name": "gpu", "uid": "u1"},
                                           "spec": {"extendedResourceName": {}}})");
  EXPECT_FALSE(watched.decode_json(*bad).ok());
  const auto list = kube::ParseJson("", R"({"metadata": {"resourceVersion": "8"}, "items": [
      {"metadata": {"name": "gpu", "uid": "u1"}, "spec": {"extendedResourceName": {}}}]})");
  EXPECT_EQ(watched.decode_list_json(*list)->rejected.size(), 1u);
}

TEST(ObjectInformer, AKindThatIsNotServedIsEmptyUntilItIs) {
  for (const bool watch_list : {true, false}) {
    FakeApiServer server;
    server.Put("deviceclasses", {{"metadata", {{"name", "gpu"}}}});
    Fault unknown;
    unknown.path_part = "deviceclasses";
    unknown.http_status = 404;
    unknown.body = "404 page not found";
    unknown.times = 1000;
    server.Inject(unknown);
    kube::CurlApiClientOptions client_options;
    client_options.qps = -1;
    kube::CurlApiClient client(server.Config(), client_options);
    ObjectPicture picture;
    ReflectorPolicyOptions options = Impatient();
    options.watch_list = watch_list;
    Informer<kube::ClusterObject> informer(client, ClusterObjects().back(), &picture, options);
    informer.Start();
    EXPECT_TRUE(picture.Reaches(""));
    EXPECT_EQ(informer.stats().failures, 0u);
    ASSERT_TRUE(server.AwaitCount("GET", "deviceclasses", 4));
    server.ClearFaults();
    EXPECT_TRUE(picture.Reaches("gpu"));
    // Known objects are kept despite a proxy's 404.
    server.Compact();
    unknown.times = 12;
    server.Inject(unknown);
    const int before = server.Count("GET", "deviceclasses");
    server.CloseConnections();
    ASSERT_TRUE(server.AwaitCount("GET", "deviceclasses", before + 13));
    EXPECT_TRUE(picture.Reaches("gpu"));
  }
}

TEST(ObjectInformer, AForbiddenKindIsAFailureThatIsTriedAgain) {
  FakeApiServer server;
  Fault forbidden;
  forbidden.path_part = "deviceclasses";
  forbidden.http_status = 403;
  forbidden.body = "forbidden";
  forbidden.times = 3;
  server.Inject(forbidden);
  kube::CurlApiClient client(server.Config(), {});
  ObjectPicture picture;
  Informer<kube::ClusterObject> informer(client, ClusterObjects().back(), &picture, Impatient());
  informer.Start();
  EXPECT_TRUE(picture.Reaches(""));
  EXPECT_EQ(informer.stats().failures, 3u);
}

TEST(PodInformer, APodListThatIsNotFoundIsNotAnEmptyCluster) {
  FakeApiServer server;
  Fault unknown;
  unknown.http_status = 404;
  unknown.times = 1000;
  server.Inject(unknown);
  kube::CurlApiClient client(server.Config(), {});
  Picture picture;
  Informer<PodObject> informer(client, Pods(), &picture, Impatient());
  informer.Start();
  ASSERT_TRUE(server.AwaitCount("GET", "/pods", 4));
  EXPECT_FALSE(informer.synced());
}

}  // namespace
}  // namespace outboard::informer
