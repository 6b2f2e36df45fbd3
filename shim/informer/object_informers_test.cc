#include "shim/informer/object_informers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "shim/kube/curl_api_client.h"
#include "shim/kube/testing/fake_api_server.h"

namespace outboard::informer::object_informers_test {
namespace {

using kube::testing::FakeApiServer;
using kube::testing::Fault;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Seconds(20);

kube::CustomResourceName Name(const std::string& text) {
  return *kube::ParseCustomResourceName(text);
}

json Object(const std::string& name) { return {{"metadata", {{"name", name}}}}; }

// The test's thread is the scheduling thread.
class ObjectInformersTest : public ::testing::Test {
 protected:
  ObjectInformersTest() {
    kube::CurlApiClientOptions options;
    options.qps = -1;
    client_ = std::make_unique<kube::CurlApiClient>(server_.Config(), options);
  }
  ~ObjectInformersTest() override {
    if (informers_ != nullptr) informers_->Stop();
  }

  void Start(const std::vector<std::string>& custom) {
    informers_ = std::make_unique<ObjectInformers>(
        *client_, Names(custom),
        ObjectInformers::Callbacks{[this](ObjectInformers::Work work) {
                                     absl::MutexLock lock(&mutex_);
                                     work_.push_back(std::move(work));
                                   },
                                   [this](const kube::ClusterObjectPtr& object, absl::Time) {
                                     objects_[KeyOf(*object)] = object;
                                   },
                                   [this](const kube::ClusterObjectPtr& object, absl::Time) {
                                     removed_.insert(KeyOf(*object));
                                     objects_.erase(KeyOf(*object));
                                   },
                                   [this](absl::string_view kind) {
                                     std::vector<kube::ClusterObjectPtr> found;
                                     for (const auto& [key, object] : objects_) {
                                       if (kube::KindOf(object->object) == kind)
                                         found.push_back(object);
                                     }
                                     return found;
                                   },
                                   [this](const std::string& name) { ended_.push_back(name); }});
    informers_->Start();
    ASSERT_TRUE(Await([this] { return informers_->synced(); }));
  }
  void Set(const std::vector<std::string>& custom) {
    informers_->SetCustomResources(Names(custom));
  }
  // Runs what was posted until `done`; false after too long.
  bool Await(const std::function<bool()>& done) {
    const absl::Time limit = absl::Now() + kPatience;
    while (!done()) {
      if (absl::Now() > limit) return false;
      std::vector<ObjectInformers::Work> work;
      {
        absl::MutexLock lock(&mutex_);
        const auto is_posted = [this]()
                                   ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !work_.empty(); };
        mutex_.AwaitWithTimeout(absl::Condition(&is_posted), absl::Milliseconds(20));
        work.swap(work_);
      }
      for (const ObjectInformers::Work& one : work) one(absl::Now());
    }
    return true;
  }
  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, object] : objects_) keys.push_back(key);
    return keys;
  }
  bool AwaitKeys(const std::vector<std::string>& keys) {
    return Await([&] { return Keys() == keys; });
  }
  bool AwaitEnded(size_t count) {
    return Await([&] { return ended_.size() == count; });
  }
  int InformersOf(const std::string& name) const {
    int count = 0;
    informers_->ForEach([&](const auto& informer) { count += informer.name() == name; });
    return count;
  }

  FakeApiServer server_;
  std::unique_ptr<kube::CurlApiClient> client_;
  absl::Mutex mutex_;
  std::vector<ObjectInformers::Work> work_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, kube::ClusterObjectPtr> objects_;
  std::set<std::string> removed_;
  std::vector<std::string> ended_;
  std::unique_ptr<ObjectInformers> informers_;

 private:
  static std::string KeyOf(const kube::ClusterObject& object) {
    return kube::KeyOf(kube::ReferenceTo(object.object));
  }
  static std::vector<kube::CustomResourceName> Names(const std::vector<std::string>& custom) {
    std::vector<kube::CustomResourceName> names;
    for (const std::string& name : custom) names.push_back(Name(name));
    return names;
  }
};

constexpr char kWidgets[] = "widgets.v1.example.com";
constexpr char kDeviceClasses[] = "deviceclasses.v1.resource.k8s.io";

TEST_F(ObjectInformersTest, AResourceIsAddedAndRemoved) {
  server_.Put("widgets", Object("w"));
  server_.Put("deviceclasses", Object("gpu"));
  Start({});
  EXPECT_TRUE(AwaitKeys({"DeviceClass/gpu"}));
  Set({kWidgets});
  EXPECT_THAT(informers_->Unsynced({Name(kWidgets)}), ElementsAre(kWidgets));
  EXPECT_TRUE(informers_->synced()) << "scheduling goes on while it is listed";
  EXPECT_TRUE(Await([this] { return informers_->Unsynced({Name(kWidgets)}).empty(); }));
  EXPECT_THAT(Keys(), ElementsAre("DeviceClass/gpu", "widgets.v1.example.com/w"));
  server_.Put("widgets", Object("x"));
  EXPECT_TRUE(
      AwaitKeys({"DeviceClass/gpu", "widgets.v1.example.com/w", "widgets.v1.example.com/x"}));

  Set({});
  EXPECT_TRUE(AwaitKeys({"DeviceClass/gpu"}));
  EXPECT_TRUE(AwaitEnded(1));
  EXPECT_THAT(ended_, ElementsAre("widgets.example.com"));
  EXPECT_EQ(InformersOf("widgets.example.com"), 0);
  // And again, from the beginning.
  Set({kWidgets});
  EXPECT_TRUE(
      AwaitKeys({"DeviceClass/gpu", "widgets.v1.example.com/w", "widgets.v1.example.com/x"}));
}

TEST_F(ObjectInformersTest, AKindThatBecomesACustomResourceKeepsItsObjects) {
  server_.Put("deviceclasses", Object("gpu"));
  Start({});
  EXPECT_TRUE(AwaitKeys({"DeviceClass/gpu"}));
  removed_.clear();
  Set({kDeviceClasses});
  EXPECT_TRUE(AwaitEnded(1));
  EXPECT_THAT(Keys(), ElementsAre("DeviceClass/gpu", absl::StrCat(kDeviceClasses, "/gpu")));
  EXPECT_EQ(InformersOf("deviceclasses.resource.k8s.io"), 1);
  server_.Put("deviceclasses", Object("tpu"));
  EXPECT_TRUE(AwaitKeys({"DeviceClass/gpu", "DeviceClass/tpu", absl::StrCat(kDeviceClasses, "/gpu"),
                         absl::StrCat(kDeviceClasses, "/tpu")}));
  EXPECT_THAT(removed_, IsEmpty());

  Set({});
  EXPECT_TRUE(AwaitEnded(2));
  EXPECT_THAT(Keys(), ElementsAre("DeviceClass/gpu", "DeviceClass/tpu"));
  EXPECT_FALSE(removed_.contains("DeviceClass/gpu")) << "not even for a moment";
  server_.Delete("deviceclasses", "tpu");
  EXPECT_TRUE(AwaitKeys({"DeviceClass/gpu"}));
}

// What only the old informer would have reported as removed.
TEST_F(ObjectInformersTest, TheNewInformerSettlesWhatTheOldOneMissed) {
  server_.Put("deviceclasses", Object("gpu"));
  Start({});
  EXPECT_TRUE(AwaitKeys({"DeviceClass/gpu"}));
  // Known to the receiver, not to the API server.
  auto stale = std::make_shared<kube::ClusterObject>();
  stale->object.mutable_device_class()->set_name("stale");
  objects_["DeviceClass/stale"] = stale;
  Set({kDeviceClasses});
  EXPECT_TRUE(AwaitEnded(1));
  EXPECT_THAT(Keys(), ElementsAre("DeviceClass/gpu", absl::StrCat(kDeviceClasses, "/gpu")));
}

TEST_F(ObjectInformersTest, AResourceThatCannotBeListedIsGivenUp) {
  server_.Put("deviceclasses", Object("gpu"));
  Start({});
  EXPECT_TRUE(AwaitKeys({"DeviceClass/gpu"}));
  Fault forbidden;
  forbidden.path_part = "/widgets";
  forbidden.http_status = 403;
  forbidden.times = 1000;
  server_.Inject(forbidden);
  forbidden.path_part = "/deviceclasses";
  server_.Inject(forbidden);
  const int lists = server_.Count("GET", "/deviceclasses");
  Set({kWidgets, kDeviceClasses});
  EXPECT_TRUE(Await([&] {
    return server_.Count("GET", "/widgets") > 0 && server_.Count("GET", "/deviceclasses") > lists;
  }));
  EXPECT_THAT(informers_->Unsynced({Name(kWidgets), Name(kDeviceClasses)}),
              ElementsAre(kWidgets, kDeviceClasses));
  Set({});
  EXPECT_TRUE(Await([this] { return InformersOf("widgets.example.com") == 0; }));
  server_.ClearFaults();
  // The informer of the kind is still there.
  server_.Put("deviceclasses", Object("tpu"));
  EXPECT_TRUE(AwaitKeys({"DeviceClass/gpu", "DeviceClass/tpu"}));
  EXPECT_EQ(InformersOf("deviceclasses.resource.k8s.io"), 1);
}

TEST_F(ObjectInformersTest, ChangesThatFollowEachOtherEndWithTheLast) {
  server_.Put("widgets", Object("w"));
  server_.Put("gadgets", Object("g"));
  Start({kWidgets});
  EXPECT_TRUE(AwaitKeys({"widgets.v1.example.com/w"}));
  Set({});
  Set({"gadgets.v1.example.com", kDeviceClasses});
  Set({kWidgets, "gadgets.v1.example.com"});
  EXPECT_TRUE(Await([this] {
    return informers_->Unsynced({Name(kWidgets), Name("gadgets.v1.example.com")}).empty();
  }));
  EXPECT_TRUE(AwaitKeys({"gadgets.v1.example.com/g", "widgets.v1.example.com/w"}));
  EXPECT_EQ(InformersOf("widgets.example.com"), 1);
}

// Objects are removed a few at a time.
TEST_F(ObjectInformersTest, ManyObjectsAreRemoved) {
  for (int i = 0; i < 200; ++i) server_.Put("widgets", Object(absl::StrCat("w", i)));
  Start({kWidgets});
  EXPECT_TRUE(Await([this] { return objects_.size() == 200; }));
  Set({});
  EXPECT_TRUE(AwaitEnded(1));
  EXPECT_LT(removed_.size(), 200u) << "a few at a time";
  EXPECT_TRUE(AwaitKeys({}));
  EXPECT_EQ(removed_.size(), 200u);
}

}  // namespace
}  // namespace outboard::informer::object_informers_test
