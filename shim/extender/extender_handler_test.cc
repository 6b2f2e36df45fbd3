#include "shim/extender/extender_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/clock.h"
#include "shim/extender/endpoint.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::extender {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kProfile[] = "extender";

class RecordedBinds final : public scheduler::NoClusterActions {
 public:
  void Bind(const scheduler::BindOrder& order, absl::Time) override { binds.push_back(order); }
  std::vector<scheduler::BindOrder> binds;
};

class ExtenderHandlerTest : public ::testing::Test {
 protected:
  ExtenderHandlerTest()
      : scheduler_(scheduler::SchedulerOptions(), queue::QueueOptions(), &effects_, &observer_,
                   nullptr, now_) {
    scheduler_.SetProfileNames({kProfile});
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.filter_plugins = {"Model"};
    plan.algorithm.score_plugins = {{"Score", 1}};
    plan.host_names = {"main"};
    plan.permit = {{"main", {{"Gang", {"metadata.labels['gang']"}}}}};
    plan.guard.resources = false;
    scheduler_.SetPlan(plan);
    scheduler_.SetHost("main", &host_, scheduler_.cluster()->AddHost({}), now_);
    // Node i scores 100 - 26 i; the last of three is rejected.
    host_.cycle = [](const v1beta1::PlanRequest& request, v1beta1::PlanResponse* response) {
      response->mutable_evaluation()->mutable_pre_filter();
      v1beta1::FilterResponse* filter = response->mutable_evaluation()->mutable_filter();
      const auto& slots = request.cycle().search().nodes().slots();
      filter->set_processed(static_cast<uint32_t>(slots.size()));
      filter->add_reasons()->set_plugin("Model");
      filter->mutable_reasons(0)->set_code(v1beta1::CODE_UNSCHEDULABLE);
      filter->mutable_reasons(0)->add_reasons("mismatch");
      std::string scores;
      char feasible = 0;
      for (int i = 0; i < slots.size(); ++i) {
        if (slots[i] == 2) {
          filter->add_rejected(0);
        } else {
          feasible = static_cast<char>(feasible | 1 << i);
          scores.push_back(static_cast<char>(100 - 26 * slots[i]));
        }
      }
      filter->set_feasible(std::string(slots.empty() ? 0 : 1, feasible));
      response->mutable_evaluation()->mutable_score()->add_plugins()->set_plugin("Score");
      response->mutable_evaluation()->mutable_score()->mutable_plugins(0)->set_scores(scores);
      return absl::OkStatus();
    };
    for (const char* name : {"a", "b", "c"}) AddNode(name);
    AddPod("p");
  }

  void AddNode(const std::string& name) {
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid(absl::StrCat("uid-", name));
    node->node.set_name(name);
    node->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnNodeUpsert(node, now_);
  }
  void AddPod(const std::string& name, const std::string& node = "", const std::string& gang = "") {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(absl::StrCat("uid-", name));
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name("default-scheduler");
    pod->pod.set_node_name(node);
    if (!gang.empty()) (*pod->pod.mutable_labels())["gang"] = gang;
    pod->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(pod, now_);
    handler_.OnPod(pod->uid(), now_);
  }
  // Over HTTP; the posting thread runs the closures for the scheduling thread.
  void StartEndpoint(bool admits = false) {
    EndpointOptions options;
    options.server.host = "127.0.0.1";
    options.server.serves_bind = true;
    options.bind_deadline = absl::Minutes(1);
    options.post = [this](const std::function<void(absl::Time)>& work) {
      work(now_);
      after_work_();
    };
    options.server.serves_admit = admits;
    options.is_ready = [] { return absl::OkStatus(); };
    options.may_bind = [this] { return may_bind_; };
    options.observe = [](Verb, absl::string_view, absl::Duration) {};
    now_ = SteadyNow();
    endpoint_ = *Endpoint::Start(std::move(options), &handler_);
  }
  httplib::Response Post(const std::string& path, const std::string& pod,
                         const std::vector<std::string>& names) {
    const std::string body =
        absl::StrCat(R"({"Pod":{"metadata":{"name":")", pod, R"(","namespace":"ns","uid":"uid-)",
                     pod, R"("}},"NodeNames":[")", absl::StrJoin(names, R"(",")"), R"("]})");
    auto answer =
        httplib::Client("127.0.0.1", endpoint_->port()).Post(path, body, "application/json");
    EXPECT_TRUE(answer);
    return answer ? *answer : httplib::Response();
  }
  static std::shared_ptr<NodesQuestion> About(const std::string& pod,
                                              std::vector<std::string> names) {
    auto question = std::make_shared<NodesQuestion>();
    question->pod = {absl::StrCat("uid-", pod), absl::StrCat("ns/", pod)};
    question->by_name = true;
    question->names = std::move(names);
    return question;
  }
  // Asks; `answer_` receives the answer.
  void Evaluate(const std::string& pod, std::vector<std::string> names) {
    handler_.Evaluate(About(pod, std::move(names)), now_ + absl::Seconds(2), now_, Into());
  }
  ExtenderHandler::NodesReply Into() {
    answers_ = 0;
    return [this](absl::StatusOr<NodesAnswer> answer) {
      ++answers_;
      answer_ = std::move(answer);
    };
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(24);
  int resource_version_ = 0;
  RecordedBinds effects_;
  scheduler::Observer observer_;
  framework::ScriptedHost host_;
  scheduler::Scheduler scheduler_;
  scheduler::ExternallyScheduledPods pods_{scheduler_.shared_parts(), &effects_};
  ExtenderHandler handler_{&pods_, kProfile};
  absl::StatusOr<NodesAnswer> answer_;
  int answers_ = 0;
  absl::Status may_bind_;
  std::function<void()> after_work_ = [] {};
  std::unique_ptr<Endpoint> endpoint_;
};

TEST_F(ExtenderHandlerTest, AnswersOneVerdictAName) {
  Evaluate("p", {"b", "unheard-of", "c", "a", "b"});
  ASSERT_TRUE(answer_.ok()) << answer_.status();
  EXPECT_THAT(answer_->verdicts, ElementsAre(NodesAnswer::kFeasible, NodesAnswer::kUnknown, 0,
                                             NodesAnswer::kFeasible, NodesAnswer::kFeasible));
  EXPECT_EQ(answer_->reasons[0].reasons(0), "mismatch");
  // 74, no score, rejected, 100, 74: rounded to tenths.
  EXPECT_THAT(answer_->scores, ElementsAre(7, 0, 0, 10, 7));
  // Each node once, even if it is listed several times.
  EXPECT_THAT(host_.cycles.back().cycle().search().nodes().slots(), ElementsAre(1, 2, 0));
}

TEST_F(ExtenderHandlerTest, PodThatIsNotKnownYetIsWaitedFor) {
  Evaluate("late", {"a"});
  EXPECT_EQ(answers_, 0);
  EXPECT_EQ(handler_.NextTick(), now_ + absl::Seconds(2));
  AddPod("another");
  EXPECT_EQ(answers_, 0);
  AddPod("late");
  EXPECT_EQ(answers_, 1);
  ASSERT_TRUE(answer_.ok());
  EXPECT_EQ(handler_.NextTick(), absl::InfiniteFuture());

  Evaluate("never", {"a"});
  now_ += absl::Seconds(2);
  handler_.Tick(now_);
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(answer_.status().message(), "pod ns/never (uid-never) is unknown");
}

TEST_F(ExtenderHandlerTest, PodOnANodeIsNotEvaluated) {
  AddPod("placed", "a");
  Evaluate("placed", {"a"});
  EXPECT_EQ(answer_.status().message(), "pod ns/placed is already on node a");
}

TEST_F(ExtenderHandlerTest, AnUnavailableHostIsReported) {
  host_.is_usable = false;
  Evaluate("p", {"a"});
  EXPECT_EQ(answer_.status().message(), "plugin host \"main\" is unavailable");
}

TEST_F(ExtenderHandlerTest, PluginThatCannotScoreDoesNotAffectFilter) {
  const auto evaluate = host_.cycle;
  host_.cycle = [evaluate](const v1beta1::PlanRequest& request, v1beta1::PlanResponse* response) {
    (void)evaluate(request, response);
    response->mutable_evaluation()->mutable_score()->mutable_error()->set_plugin("Score");
    response->mutable_evaluation()->mutable_score()->mutable_error()->add_reasons("no idea");
    return absl::OkStatus();
  };
  Evaluate("p", {"a"});
  ASSERT_TRUE(answer_.ok());
  EXPECT_THAT(answer_->verdicts, ElementsAre(NodesAnswer::kFeasible));
  EXPECT_EQ(answer_->scoring.message(), "no idea");
  StartEndpoint();
  EXPECT_EQ(Post("/filter", "p", {"a"}).status, 200);
  const httplib::Response got = Post("/prioritize", "p", {"a"});
  EXPECT_EQ(got.status, 503);
  EXPECT_EQ(got.body, "no idea\n");
}

TEST_F(ExtenderHandlerTest, ACycleScoresWithWhatItFilteredWith) {
  StartEndpoint();
  EXPECT_EQ(Post("/filter", "p", {"a", "b", "c"}).status, 200);
  AddPod("another", "a");
  AddNode("d");
  const std::string scores = R"([{"Host":"a","Score":10},{"Host":"b","Score":7}])";
  EXPECT_EQ(Post("/prioritize", "p", {"a", "b"}).body, scores);
  EXPECT_THAT(host_.cycles, SizeIs(1));
  EXPECT_EQ(Post("/prioritize", "p", {"a", "b"}).body, scores) << "no matching Filter";
  EXPECT_THAT(host_.cycles, SizeIs(2));
}

TEST_F(ExtenderHandlerTest, PreemptAsksAboutVictimsThatAreThere) {
  AddPod("v1", "a");
  AddPod("v2", "b");
  std::vector<v1beta1::SimulatedNode> asked;
  host_.pre_filter = [](const v1beta1::PreFilterRequest&) { return v1beta1::PreFilterResponse(); };
  host_.filter = [&](const v1beta1::FilterRequest& request) {
    asked.assign(request.simulation().nodes().begin(), request.simulation().nodes().end());
    v1beta1::FilterResponse response;
    response.set_processed(2);
    response.set_feasible(std::string(1, '\x01'));
    response.add_reasons()->set_plugin("Model");
    response.mutable_reasons(0)->set_code(v1beta1::CODE_UNSCHEDULABLE);
    response.add_rejected(0);
    return response;
  };
  auto question = std::make_shared<PreemptionQuestion>();
  question->pod = {"uid-p", "ns/p"};
  question->nodes = {{"nowhere", {"uid-v1"}, 0},
                     {"a", {"uid-v1", "uid-v1", "uid-gone", "uid-v2"}, 0},
                     {"b", {"uid-v2"}, 0},
                     {"a", {}, 0}};
  absl::StatusOr<std::vector<bool>> fits;
  handler_.Preempt(question, now_ + absl::Seconds(2), now_,
                   [&](absl::StatusOr<std::vector<bool>> answer) { fits = std::move(answer); });
  ASSERT_TRUE(fits.ok()) << fits.status();
  EXPECT_THAT(*fits, ElementsAre(false, true, false, false));
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_THAT(asked[0].removed_pod_uids(), ElementsAre("uid-v1"));
  EXPECT_THAT(asked[1].removed_pod_uids(), ElementsAre("uid-v2"));
}

TEST_F(ExtenderHandlerTest, BindGoesTheShimsWay) {
  auto order = std::make_shared<BindingOrder>();
  order->pod = {"uid-p", "ns/p"};
  order->node = "a";
  absl::Status ended = absl::UnknownError("not yet");
  handler_.Bind(order, now_ + absl::Seconds(2), now_, [&](absl::Status end) { ended = end; });
  ASSERT_THAT(effects_.binds, SizeIs(1));
  EXPECT_EQ(ended.message(), "not yet");
  const scheduler::BindOrder& sent = effects_.binds[0];
  sent.ordered_by->OnBindEnded(sent.attempt_id, scheduler::BindEnd::kBound, "", now_);
  EXPECT_TRUE(ended.ok());
  handler_.Bind(order, now_ + absl::Seconds(2), now_, [&](absl::Status end) { ended = end; });
  EXPECT_FALSE(ended.ok()) << "it has a node already";
}

// Longer than that of other requests; then kube-scheduler learns what the pod waited for.
TEST_F(ExtenderHandlerTest, ABindWaitsForItsGangUntilItsOwnDeadline) {
  AddPod("member", "", "ring");
  host_.permit = [](const v1beta1::PermitRequest&) {
    v1beta1::PermitResponse answer;
    v1beta1::PermitWait* wait = answer.add_waits();
    wait->set_plugin("Gang");
    wait->set_timeout_micros(absl::ToInt64Microseconds(absl::Minutes(5)));
    wait->set_reason("gang \"ring\": 1 of 3 members placed");
    return answer;
  };
  StartEndpoint();
  absl::Time due;
  after_work_ = [&] {
    EXPECT_EQ(scheduler_.waiting_pods(), 1u);
    due = handler_.NextTick();
    handler_.Tick(due);
  };
  const auto answer =
      httplib::Client("127.0.0.1", endpoint_->port())
          .Post("/bind",
                R"({"PodUID":"uid-member","PodName":"member","PodNamespace":"ns","Node":"a"})",
                "application/json");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->body, HasSubstr(R"(gang \"ring\": 1 of 3 members placed)"));
  EXPECT_GT(due, now_ + absl::Seconds(50));
  EXPECT_THAT(effects_.binds, IsEmpty());
  EXPECT_EQ(pods_.cluster().NodeOf("uid-member"), "");
}

TEST_F(ExtenderHandlerTest, APodThatDoesNotAppearEndsItsBindSoon) {
  auto order = std::make_shared<BindingOrder>();
  order->pod = {"uid-never", "ns/never"};
  order->node = "a";
  absl::Status ended;
  handler_.Bind(order, now_ + absl::Minutes(1), now_, [&](absl::Status end) { ended = end; });
  handler_.Tick(now_ + absl::Seconds(2));
  EXPECT_EQ(ended.message(), "pod ns/never (uid-never) is unknown");
}

TEST_F(ExtenderHandlerTest, OthersBindsAreAdmittedOverHttpOnlyIfConfigured) {
  const auto admit = [this] {
    const std::string body =
        R"({"request":{"uid":"r","resource":{"resource":"pods"},"subResource":"binding",)"
        R"("operation":"CREATE","namespace":"ns","object":{"metadata":{"name":"p"},)"
        R"("target":{"name":"a"}}}})";
    auto answer =
        httplib::Client("127.0.0.1", endpoint_->port()).Post("/admit", body, "application/json");
    EXPECT_TRUE(answer);
    return answer ? *answer : httplib::Response();
  };
  StartEndpoint();
  EXPECT_EQ(admit().status, 403);
  StartEndpoint(/*admits=*/true);
  EXPECT_EQ(admit().body, R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",)"
                          R"("response":{"uid":"r","allowed":true}})");
  EXPECT_EQ(pods_.cluster().NodeOf("uid-p"), "a");
  may_bind_ = absl::FailedPreconditionError("the lease is held by another replica");
  const httplib::Response refused = admit();
  EXPECT_EQ(refused.status, 503) << "the webhook's failurePolicy decides";
  EXPECT_EQ(refused.body, "the lease is held by another replica\n");
}

TEST(ExtenderScore, RoundsToTheNearest) {
  EXPECT_EQ(ExtenderScore(0), 0);
  EXPECT_EQ(ExtenderScore(49), 0);
  EXPECT_EQ(ExtenderScore(50), 1);
  EXPECT_EQ(ExtenderScore(949), 9);
  EXPECT_EQ(ExtenderScore(1000), 10);
}

}  // namespace
}  // namespace outboard::extender
