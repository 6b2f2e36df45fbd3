#include "shim/bind/event_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/kube/testing/scripted_api_client.h"

namespace outboard::bind {
namespace {

using kube::Delivery;
using kube::Method;
using ::testing::HasSubstr;

class EventRecorderTest : public ::testing::Test {
 protected:
  EventRecorderTest() { Make(EventRecorderOptions()); }

  void Make(EventRecorderOptions options) {
    options.hostname = "host-1";
    options.fence.clock = [this] { return now_; };
    options.wall = [this] { return now_ - kUptime; };
    recorder_ = std::make_unique<EventRecorder>(
        &client_,
        [this](std::function<void(absl::Time)> closure) {
          executor_.push_back(std::move(closure));
        },
        options);
  }
  static kube::PodObject Pod(const std::string& name) {
    kube::PodObject pod;
    pod.pod.set_uid("uid-" + name);
    pod.pod.set_namespace_("ns");
    pod.pod.set_name(name);
    pod.resource_version = "5";
    return pod;
  }
  void Failed(const std::string& note, const std::string& name = "p") {
    recorder_->Record(FailedSchedulingEvent(Pod(name), "default-scheduler", note), now_);
  }
  void Drain() {
    std::vector<std::function<void(absl::Time)>> closures;
    closures.swap(executor_);
    for (auto& closure : closures) closure(now_);
  }
  void Answer(int status) {
    client_.Answer(status, "{}");
    Drain();
  }
  void Fail(Delivery delivery) {
    client_.Fail(kube::WithDelivery(absl::UnavailableError("lost"), delivery));
    Drain();
  }
  void Advance(absl::Duration duration) {
    const absl::Time end = now_ + duration;
    while (recorder_->NextTick() <= end) {
      now_ = std::max(now_, recorder_->NextTick());
      recorder_->Tick(now_);
    }
    now_ = end;
  }

  // From the wall clock to that of waits.
  static constexpr absl::Duration kUptime = absl::Hours(500000);
  absl::Time now_ = absl::FromUnixSeconds(1700000000) + kUptime;
  // Declared before the client, whose destructor posts answers.
  std::vector<std::function<void(absl::Time)>> executor_;
  kube::ScriptedApiClient client_;
  std::unique_ptr<EventRecorder> recorder_;
};

TEST_F(EventRecorderTest, WritesKubeSchedulersEvents) {
  recorder_->Record(ScheduledEvent(Pod("p"), "default-scheduler", "n1"), now_);
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPost);
  EXPECT_EQ(client_.request().path, "/apis/events.k8s.io/v1/namespaces/ns/events");
  EXPECT_EQ(
      client_.request().body,
      R"({"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"p.17979cfe362a0000","namespace":"ns"},)"
      R"("eventTime":"2023-11-14T22:13:20.000000Z","reportingController":"default-scheduler",)"
      R"("reportingInstance":"default-scheduler-host-1","action":"Binding","reason":"Scheduled",)"
      R"("regarding":{"kind":"Pod","namespace":"ns","name":"p","uid":"uid-p","apiVersion":"v1","resourceVersion":"5"},)"
      R"("note":"Successfully assigned ns/p to n1","type":"Normal"})");
  Answer(201);
  EXPECT_EQ(recorder_->stats().written, 1u);
  EXPECT_EQ(recorder_->pending(), 0u);

  Failed(std::string(2000, 'x'));
  EXPECT_THAT(client_.request().body,
              HasSubstr(R"("action":"Scheduling","reason":"FailedScheduling")"));
  EXPECT_THAT(client_.request().body, HasSubstr(R"(x ...","type":"Warning")"));
}

TEST_F(EventRecorderTest, EqualEventsBecomeASeries) {
  Failed("a");
  Answer(201);
  now_ += absl::Seconds(1);
  Failed("b");  // the note is not compared
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPatch);
  EXPECT_EQ(client_.request().path,
            "/apis/events.k8s.io/v1/namespaces/ns/events/p.17979cfe362a0000");
  EXPECT_EQ(client_.request().content_type, kube::kStrategicMergePatch);
  EXPECT_EQ(client_.request().body,
            R"({"series":{"count":2,"lastObservedTime":"2023-11-14T22:13:21.000000Z"}})");
  Answer(200);
  Failed("c");
  Failed("d");
  EXPECT_EQ(client_.waiting(), 0u);
  EXPECT_EQ(recorder_->stats().merged, 2u);
  Failed("a", "other");
  EXPECT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPost);
}

// Several requests are in flight at a time, so a patch could arrive first: it would get 404, create
// the event, and the POST would fail.
TEST_F(EventRecorderTest, ASeriesWaitsForTheAnswerToItsEvent) {
  Failed("a");
  now_ += absl::Seconds(1);
  Failed("b");
  Failed("c");
  ASSERT_EQ(client_.waiting(), 1u) << "only the POST";
  EXPECT_EQ(client_.request().method, Method::kPost);
  EXPECT_EQ(recorder_->pending(), 2u);
  EXPECT_EQ(recorder_->stats().queued, 1u);
  Answer(201);
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPatch);
  EXPECT_THAT(client_.request().body, HasSubstr(R"("count":3)"));
  Answer(200);
  EXPECT_EQ(recorder_->pending(), 0u);
  EXPECT_EQ(recorder_->stats().written, 2u);
  EXPECT_EQ(recorder_->stats().rejected, 0u);
}

TEST_F(EventRecorderTest, ASeriesWaitsForTheRetriesOfItsEventToo) {
  Failed("a");
  Failed("b");
  Fail(Delivery::kNotSent);
  EXPECT_EQ(client_.waiting(), 0u) << "the POST is retried later, the patch after it";
  Advance(absl::Seconds(13));
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPost);
  // Whatever the answer is: the patch creates an event that is not there.
  Answer(403);
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPatch);
  Answer(404);
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPost);
  EXPECT_THAT(client_.request().body, HasSubstr(R"("series":{"count":2)"));
  Answer(201);
  EXPECT_EQ(recorder_->pending(), 0u);
}

TEST_F(EventRecorderTest, NamesDifferWithinOneMoment) {
  for (const char* node : {"n1", "n2"})
    recorder_->Record(ScheduledEvent(Pod("p"), "default-scheduler", node), now_);
  EXPECT_THAT(client_.request(0).body, HasSubstr("p.17979cfe362a0000"));
  EXPECT_THAT(client_.request(1).body, HasSubstr("p.17979cfe362a0001"));
}

TEST_F(EventRecorderTest, AnotherResourceVersionIsAnotherEvent) {
  Failed("a");
  Answer(201);
  kube::PodObject pod = Pod("p");
  pod.resource_version = "6";
  recorder_->Record(FailedSchedulingEvent(pod, "default-scheduler", "a"), now_);
  EXPECT_EQ(client_.request().method, Method::kPost);
}

TEST_F(EventRecorderTest, SeriesEndsSixMinutesAfterItsLastEvent) {
  Failed("a");
  Answer(201);
  Failed("a");
  Answer(200);
  Failed("a");                // count 3, not written yet
  Advance(absl::Minutes(6));  // not over: exactly six minutes is not more than six
  EXPECT_EQ(client_.waiting(), 0u);
  Advance(absl::Minutes(6));
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_THAT(client_.request().body, HasSubstr(R"("count":3)"));
  Answer(200);
  Failed("a");
  EXPECT_EQ(client_.request().method, Method::kPost);  // a new event
}

TEST_F(EventRecorderTest, SingleEventsAreForgotten) {
  Failed("a");
  Answer(201);
  Advance(absl::Minutes(12));
  EXPECT_EQ(client_.waiting(), 0u);
  Failed("a");
  EXPECT_EQ(client_.request().method, Method::kPost);
}

TEST_F(EventRecorderTest, LongSeriesAreRefreshed) {
  Failed("a");
  Answer(201);
  Failed("a");
  Answer(200);
  for (int i = 0; i < 14; ++i) {
    Advance(absl::Minutes(2));
    Failed("a");
    ASSERT_EQ(client_.waiting(), 0u) << i;
  }
  Advance(absl::Minutes(3));
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_THAT(client_.request().body, HasSubstr(R"("count":16)"));
}

TEST_F(EventRecorderTest, ASeriesWithAnExpiredEventBeginsAgain) {
  Failed("a");
  Answer(201);
  Failed("a");
  Answer(404);
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPost);
  EXPECT_THAT(client_.request().body, HasSubstr(R"("series":{"count":2,)"));
  // It exists after all: the first create was still in flight. Patch again, later.
  Answer(409);
  EXPECT_EQ(client_.waiting(), 0u);
  Advance(absl::Seconds(13));
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPatch);
  Answer(200);
  EXPECT_EQ(recorder_->pending(), 0u);
}

TEST_F(EventRecorderTest, TriesTwelveTimesWhereNoAnswerCame) {
  Failed("a");
  for (int i = 1; i < 12; ++i) {
    EXPECT_EQ(recorder_->under_way(), 1u);
    Fail(Delivery::kUnknown);
    EXPECT_EQ(client_.waiting(), 0u);
    EXPECT_EQ(recorder_->pending(), 1u);
    EXPECT_EQ(recorder_->under_way(), 0u);  // A shutdown does not wait for the next try.
    const absl::Duration delay = recorder_->NextTick() - now_;
    EXPECT_GE(delay, absl::Seconds(10));
    EXPECT_LE(delay, absl::Seconds(12.5));
    Advance(absl::Seconds(13));
    ASSERT_EQ(client_.waiting(), 1u) << i;
  }
  Fail(Delivery::kNotSent);
  EXPECT_EQ(recorder_->pending(), 0u);
  EXPECT_EQ(recorder_->stats().rejected, 1u);
}

TEST_F(EventRecorderTest, AnAnswerIsFinal) {
  for (int status : {400, 403, 409, 500}) {
    Failed("a", absl::StrCat("p", status));
    Answer(status);
    EXPECT_EQ(recorder_->pending(), 0u) << status;
  }
  EXPECT_EQ(recorder_->stats().rejected, 4u);
}

TEST_F(EventRecorderTest, IsBounded) {
  EventRecorderOptions options;
  options.min_in_flight = options.max_in_flight = 2;
  options.max_queued = 3;
  options.max_series = 4;
  Make(options);
  for (int i = 0; i < 10; ++i) Failed("a", absl::StrCat("p", i));
  EXPECT_EQ(client_.waiting(), 2u);
  EXPECT_EQ(recorder_->stats().queued, 3u);
  EXPECT_EQ(recorder_->stats().dropped, 5u);
  while (client_.waiting() > 0) Answer(201);
  EXPECT_EQ(recorder_->stats().written, 5u);
  // Five events are accepted. The series of the oldest was evicted, so it is created again, while
  // the others are patched.
  Failed("a", "p0");
  EXPECT_EQ(client_.request(0).method, Method::kPost);
  Failed("a", "p4");
  EXPECT_EQ(client_.request(1).method, Method::kPatch);
}

TEST_F(EventRecorderTest, LeavesTheApiServerToBindsUnlessManyWait) {
  EventRecorderOptions options;
  options.min_in_flight = 1;
  options.max_in_flight = 3;
  options.waiting_per_more_in_flight = 10;
  Make(options);
  size_t most = 0;
  for (int i = 0; i < 60; ++i) {
    Failed("a", absl::StrCat("p", i));
    if (i < 10) {
      EXPECT_EQ(client_.waiting(), 1u) << i;
    }
    most = std::max(most, client_.waiting());
  }
  EXPECT_EQ(most, 3u);
  while (recorder_->stats().queued > 20) Answer(201);
  EXPECT_EQ(client_.waiting(), 3u);
  while (recorder_->stats().queued > 9) Answer(201);
  EXPECT_LE(client_.waiting(), 2u);
  while (client_.waiting() > 0) Answer(201);
  EXPECT_EQ(recorder_->stats().written, 60u);
}

TEST_F(EventRecorderTest, WritesMoreAtATimeAsEventsGetOld) {
  EventRecorderOptions options;
  options.min_in_flight = 1;
  options.max_in_flight = 4;
  options.age_per_more_in_flight = absl::Seconds(2);
  Make(options);
  for (int i = 0; i < 10; ++i) Failed("a", absl::StrCat("p", i));
  ASSERT_EQ(client_.waiting(), 1u);
  // The API server answers one event every two seconds.
  now_ += absl::Seconds(2);
  Answer(201);
  EXPECT_EQ(client_.waiting(), 2u);
  now_ += absl::Seconds(2);
  Answer(201);
  EXPECT_EQ(client_.waiting(), 3u);
  now_ += absl::Seconds(20);
  Answer(201);
  EXPECT_EQ(client_.waiting(), 4u);
  // New events are not in a hurry.
  while (client_.waiting() > 0) Answer(201);
  Failed("a", "p10");
  Failed("a", "p11");
  EXPECT_EQ(client_.waiting(), 1u);
}

TEST_F(EventRecorderTest, HurriesWhenNoMoreBindsCome) {
  EventRecorderOptions options;
  options.min_in_flight = 1;
  options.max_in_flight = 4;
  Make(options);
  for (int i = 0; i < 6; ++i) Failed("a", absl::StrCat("p", i));
  ASSERT_EQ(client_.waiting(), 1u);
  recorder_->UseAllRequests(now_);
  EXPECT_EQ(client_.waiting(), 4u);
  Answer(201);
  EXPECT_EQ(client_.waiting(), 4u);
  while (client_.waiting() > 0) Answer(201);
  EXPECT_EQ(recorder_->pending(), 0u);
}

TEST_F(EventRecorderTest, ScheduledIsNotRemembered) {
  for (int i = 0; i < 2; ++i) {
    recorder_->Record(ScheduledEvent(Pod("p"), "default-scheduler", "n1"), now_);
    EXPECT_EQ(client_.request().method, Method::kPost);
    Answer(201);
  }
}

TEST_F(EventRecorderTest, AnswersAfterItsEndAreDropped) {
  Failed("a");
  client_.Answer(201, "{}");
  recorder_.reset();
  Drain();
}

v1beta1::Effect EventEffect(const std::string& plugin) {
  v1beta1::Effect effect;
  effect.set_plugin(plugin);
  v1beta1::RecordEvent& event = *effect.mutable_record_event();
  event.set_type(v1beta1::RecordEvent::TYPE_WARNING);
  event.set_reason("Scheduled");
  event.set_action("Holding");
  event.set_note("n");
  return effect;
}

TEST_F(EventRecorderTest, APluginsEventNamesThePlugin) {
  const kube::PodObject pod = Pod("p");
  const auto event = PluginEvent(EventEffect("Keeper"), &pod, "prof");
  ASSERT_TRUE(event.ok()) << event.status();
  recorder_->Record(*event, now_);
  EXPECT_EQ(client_.request().path, "/apis/events.k8s.io/v1/namespaces/ns/events");
  for (
      const char* part :
      {R"("annotations":{"outboard.dev/plugin":"Keeper"})", R"("reportingController":"prof")",
       R"("type":"Warning")", R"("note":"n")",
       R"("regarding":{"kind":"Pod","namespace":"ns","name":"p","uid":"uid-p","apiVersion":"v1")"}) {
    EXPECT_THAT(client_.request().body, HasSubstr(part));
  }
  Answer(201);
  // The same event of another plugin is another one; of the same plugin it is counted.
  recorder_->Record(*PluginEvent(EventEffect("Other"), &pod, "prof"), now_);
  EXPECT_EQ(client_.request().method, Method::kPost);
  Answer(201);
  recorder_->Record(*event, now_);
  EXPECT_EQ(client_.request().method, Method::kPatch);
  Answer(200);
}

TEST_F(EventRecorderTest, AnEventAboutAnObjectIsInItsNamespace) {
  v1beta1::Effect effect = EventEffect("Keeper");
  EXPECT_TRUE(absl::IsInvalidArgument(PluginEvent(effect, nullptr, "prof").status()));
  v1beta1::RecordEvent& about = *effect.mutable_record_event();
  about.set_resource("jobs.v1.batch");
  about.set_namespace_("team");
  about.set_name("j");
  about.set_uid("u");
  about.set_kind("Job");
  recorder_->Record(*PluginEvent(effect, nullptr, "prof"), now_);
  EXPECT_EQ(client_.request().path, "/apis/events.k8s.io/v1/namespaces/team/events");
  EXPECT_THAT(client_.request().body,
              HasSubstr(R"("regarding":{"kind":"Job","namespace":"team","name":"j","uid":"u",)"
                        R"("apiVersion":"batch/v1"})"));
  Answer(201);
  about.set_resource("classes.v1.example.com");
  about.clear_namespace_();
  about.set_kind("Class");
  recorder_->Record(*PluginEvent(effect, nullptr, "prof"), now_);
  EXPECT_EQ(client_.request().path, "/apis/events.k8s.io/v1/namespaces/default/events");
  EXPECT_THAT(client_.request().body, HasSubstr(R"("namespace":"default")"));
  EXPECT_THAT(client_.request().body, HasSubstr(R"("regarding":{"kind":"Class","name":"j")"));
}

}  // namespace
}  // namespace outboard::bind
