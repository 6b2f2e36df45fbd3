#include "plugins/static_ip/static_ip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/object_store.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/static_ip/static_ip_objects.h"

namespace outboard::static_ip {
namespace {

using nlohmann::json;
using sdk::Verdict;
using sdk::testing::NodeBuilder;
using sdk::testing::ObjectStore;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(StaticIp, Cases) { sdk::testing::RunCases(Descriptor(), "plugins/static_ip/testdata"); }

constexpr char kNoFree[] = "no free static IP in a pool that node can serve";

class StaticIpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto harness =
        PluginHarness::Create(Descriptor(), R"({"releaseAfter": "10s", "scaledDownAfter": "1m"})");
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    store_ = std::make_unique<ObjectStore>(harness_.get());
    harness_->SetNow(now_);
    harness_->AddNode(NodeBuilder("n1").Label("rack", "r1"));
    harness_->AddNode(NodeBuilder("n2").Label("rack", "r2"));
    store_->Apply(kPools, "", "a",
                  R"({"spec":{"cidr":"10.0.0.0/24","ranges":["10.0.0.5-10.0.0.6"],)"
                  R"("nodeSelector":{"rack":"r1"}}})");
    v1beta1::ClusterObject set;
    set.mutable_pod_controller()->set_kind("StatefulSet");
    set.mutable_pod_controller()->set_namespace_("default");
    set.mutable_pod_controller()->set_name("db");
    set.mutable_pod_controller()->set_uid("set");
    harness_->AddObject(set);
    set_ = set;
  }
  static v1beta1::Pod Pod(const std::string& name, const std::string& uid = "",
                          const std::string& release = "") {
    PodBuilder pod(name);
    if (!uid.empty()) pod.proto().set_uid(uid);
    pod.Annotation("outboard/static-ip", "true");
    if (!release.empty()) pod.Annotation("outboard/static-ip-release", release);
    pod.proto().mutable_controller()->set_kind("StatefulSet");
    pod.proto().mutable_controller()->set_name("db");
    pod.proto().mutable_controller()->set_uid("set");
    return pod.Build();
  }
  Verdict FilterOn(const v1beta1::Pod& pod, const std::string& node) {
    return harness_->Filter(pod).at(node);
  }
  std::vector<v1beta1::Effect> Reserve(const v1beta1::Pod& pod, const std::string& node) {
    EXPECT_TRUE(FilterOn(pod, node).ok())
        << ::testing::PrintToString(FilterOn(pod, node).reasons());
    sdk::ReserveAnswer answer;
    const Verdict verdict = harness_->Reserve(pod, node, &answer);
    EXPECT_TRUE(verdict.ok()) << ::testing::PrintToString(verdict.reasons());
    return answer.effects;
  }
  // As the shim: applies the effects, then binds. Returns the IP; empty if an effect failed.
  std::string Bind(v1beta1::Pod pod, const std::string& node) {
    for (const v1beta1::Effect& effect : Reserve(pod, node)) {
      if (!store_->Write(effect).ok()) return "";
    }
    pod.set_node_name(node);
    harness_->AddPod(pod);
    for (const std::string& name : store_->Names(kReservations)) {
      if (sdk::TextAt(Get(name), {"spec", "owner", "podUID"}) == pod.uid())
        return Get(name)["spec"]["ip"];
    }
    return "none";
  }
  json Get(const std::string& name) { return store_->Get(kReservations, "", name); }
  // Message of the condition Accepted.
  std::string Message(const std::string& name) {
    const json object = Get(name);
    const json* status = sdk::JsonAt(object, {"status"});
    const json* accepted = status == nullptr ? nullptr : sdk::FindCondition(*status, "Accepted");
    return accepted == nullptr ? "" : accepted->value("message", "");
  }
  std::string Phase(const std::string& name) {
    return sdk::TextAt(Get(name), {"status", "phase"}).value_or("");
  }
  int Settle() { return store_->Settle(&now_); }
  void Wait(absl::Duration duration) {
    store_->Tick(now_);
    now_ += duration;
    Settle();
  }
  static std::string Text(const Verdict& verdict) {
    return verdict.reasons().empty() ? "" : verdict.reasons()[0];
  }

  std::unique_ptr<PluginHarness> harness_;
  std::unique_ptr<ObjectStore> store_;
  v1beta1::ClusterObject set_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
};

TEST_F(StaticIpTest, GivesTheLowestIpAndKeepsIt) {
  EXPECT_EQ(Bind(Pod("db-0"), "n1"), "10.0.0.5");
  EXPECT_EQ(Bind(Pod("db-1"), "n1"), "10.0.0.6");
  EXPECT_EQ(Text(FilterOn(Pod("db-2"), "n1")), kNoFree);
  Settle();
  EXPECT_EQ(Phase("10-0-0-5"), "InUse");
  EXPECT_EQ(Get("10-0-0-5")["status"]["podUID"], "default/db-0");
  EXPECT_EQ(Get("10-0-0-5")["spec"]["releasePolicy"], "OnScaleDown");
  harness_->RemovePod("default/db-0");
  Wait(absl::Hours(1));
  EXPECT_EQ(Phase("10-0-0-5"), "Reserved") << "db-1 exists, so db-0 will return";
  EXPECT_EQ(Bind(Pod("db-0", "new"), "n1"), "10.0.0.5");
  Settle();
  EXPECT_EQ(Get("10-0-0-5")["status"]["podUID"], "new");
  EXPECT_EQ(Settle(), 0) << "no write without a change";
}

TEST_F(StaticIpTest, GoesOnlyWhereTheIpCanBeServed) {
  EXPECT_EQ(Text(FilterOn(Pod("db-0"), "n2")), kNoFree);
  Bind(Pod("db-0"), "n1");
  harness_->RemovePod("default/db-0");
  EXPECT_EQ(Text(FilterOn(Pod("db-0", "new"), "n2")), "reserved IP 10.0.0.5 cannot be served here");
  harness_->AddNode(NodeBuilder("n2").Label("rack", "r1"));
  EXPECT_TRUE(FilterOn(Pod("db-0", "new"), "n2").ok());
  const auto effects = Reserve(Pod("db-0", "new"), "n2");
  ASSERT_EQ(effects.size(), 1u);
  EXPECT_EQ(json::parse(effects[0].put_object().json())["spec"]["node"], "n2");
}

TEST_F(StaticIpTest, CountsWhatIsOnItsWay) {
  const auto effects = Reserve(Pod("db-0"), "n1");
  harness_->Place("default/db-0", v1beta1::PLACEMENT_STATE_ASSUMED, "n1", effects);
  const auto second = Reserve(Pod("db-1"), "n1");
  EXPECT_EQ(second[0].put_object().name(), "10-0-0-6");
  harness_->Place("default/db-0", v1beta1::PLACEMENT_STATE_UNPLACED, "");
  EXPECT_EQ(Reserve(Pod("db-2"), "n1")[0].put_object().name(), "10-0-0-5");
}

TEST_F(StaticIpTest, AnIpThatAnotherReplicaTookIsNotGivenTwice) {
  const auto ours = Reserve(Pod("db-0"), "n1");
  ASSERT_TRUE(store_->Write(Reserve(Pod("db-1"), "n1")[0]).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(store_->Write(ours[0])));
  EXPECT_EQ(Bind(Pod("db-0"), "n1"), "10.0.0.6");
}

TEST_F(StaticIpTest, ReleasesOnDelete) {
  EXPECT_EQ(Bind(Pod("db-0", "", "OnDelete"), "n1"), "10.0.0.5");
  Settle();
  harness_->RemovePod("default/db-0");
  store_->Tick(now_);
  store_->Tick(now_ + absl::Seconds(9));
  EXPECT_NE(Get("10-0-0-5"), json());
  EXPECT_TRUE(Get("10-0-0-5")["metadata"].value("deletionTimestamp", "").empty());
  Wait(absl::Seconds(10));
  EXPECT_THAT(store_->Names(kReservations), IsEmpty());
}

TEST_F(StaticIpTest, ReleasesOnScaleDownAndNeverNever) {
  Bind(Pod("db-0", "", "Never"), "n1");
  Bind(Pod("db-1"), "n1");
  Settle();
  harness_->RemovePod("default/db-1");
  Wait(absl::Seconds(40));
  EXPECT_NE(Get("10-0-0-6"), json());
  Wait(absl::Seconds(30));
  EXPECT_EQ(Get("10-0-0-6"), json());
  harness_->RemovePod("default/db-0");
  harness_->RemoveObject(set_);
  Wait(absl::Hours(10));
  EXPECT_THAT(store_->Names(kReservations), ElementsAre("10-0-0-5"));
}

TEST_F(StaticIpTest, ReleasesWithTheStatefulSet) {
  Bind(Pod("db-0"), "n1");
  Settle();
  harness_->RemovePod("default/db-0");
  harness_->RemoveObject(set_);
  Wait(absl::Seconds(15));
  EXPECT_THAT(store_->Names(kReservations), IsEmpty());
}

TEST_F(StaticIpTest, PodsOfOtherControllersKeepNothing) {
  v1beta1::Pod pod = Pod("web-x1", "", "Never");
  pod.mutable_controller()->set_kind("ReplicaSet");
  Bind(pod, "n1");
  Settle();
  harness_->RemovePod("default/web-x1");
  Wait(absl::Seconds(15));
  EXPECT_THAT(store_->Names(kReservations), IsEmpty());
}

TEST_F(StaticIpTest, HonoursAReservationThatAPersonMakes) {
  store_->Apply(
      kReservations, "", "10-0-0-77",
      R"({"spec":{"ip":"10.0.0.77","pool":"a","owner":{"namespace":"default","pod":"db-0"}}})");
  Settle();
  EXPECT_EQ(Phase("10-0-0-77"), "Reserved");
  EXPECT_EQ(Bind(Pod("db-0"), "n1"), "10.0.0.77");
  Settle();
  EXPECT_EQ(Phase("10-0-0-77"), "InUse");
  harness_->RemovePod("default/db-0");
  Wait(absl::Hours(10));
  EXPECT_NE(Get("10-0-0-77"), json()) << "without a policy it is never released";
}

TEST_F(StaticIpTest, RefusesContradictionsWithAReason) {
  const auto make = [&](const std::string& name, const std::string& spec) {
    store_->Apply(kReservations, "", name, absl::StrCat("{\"spec\":", spec, "}"));
    Settle();
    EXPECT_FALSE(sdk::IsConditionTrue(Get(name)["status"], "Accepted")) << name;
    EXPECT_EQ(Phase(name), "Refused") << name;
    return Message(name);
  };
  const std::string owner = R"("owner":{"namespace":"default","pod":"db-0"}})";
  EXPECT_THAT(make("10-0-1-5", R"({"ip":"10.0.1.5","pool":"a",)" + owner),
              HasSubstr("10.0.1.5 is outside of StaticIPPool \"a\""));
  EXPECT_THAT(make("10-0-1-6", R"({"ip":"10.0.1.6","pool":"b",)" + owner),
              HasSubstr("StaticIPPool \"b\" does not exist"));
  EXPECT_THAT(make("10-0-1-7", R"({"ip":"10.0.1.7",)" + owner), HasSubstr("is in no StaticIPPool"));
  EXPECT_THAT(make("10-0-0-5", R"({"ip":"10.0.0.6","pool":"a",)" + owner),
              HasSubstr("spec.ip is not 10.0.0.5"));
  EXPECT_THAT(make("nonsense", R"({"ip":"10.0.0.6","pool":"a",)" + owner),
              HasSubstr("is not an IP"));
  EXPECT_EQ(Bind(Pod("db-0"), "n1"), "10.0.0.6") << "10-0-0-5 has no owner, but its name is taken";
  EXPECT_THAT(make("10-0-0-9", R"({"ip":"10.0.0.9","pool":"a",)" + owner),
              HasSubstr("pod default/db-0 already has 10.0.0.6"));
  Wait(absl::Hours(1));
  EXPECT_NE(Get("10-0-0-9"), json()) << "the plugin does not delete a user's object";
}

TEST_F(StaticIpTest, APoolThatShrinksOrGoesKeepsItsReservations) {
  Bind(Pod("db-0"), "n1");
  Settle();
  store_->Apply(kPools, "", "a", R"({"spec":{"cidr":"10.0.9.0/24","nodeSelector":{"rack":"r1"}}})");
  Settle();
  EXPECT_EQ(Phase("10-0-0-5"), "InUse");
  EXPECT_TRUE(sdk::IsConditionTrue(Get("10-0-0-5")["status"], "Accepted"));
  harness_->RemovePod("default/db-0");
  EXPECT_TRUE(FilterOn(Pod("db-0", "new"), "n1").ok());
  store_->Delete(kPools, "", "a");
  EXPECT_THAT(Text(harness_->PreFilter(Pod("db-0", "newer")).verdict),
              HasSubstr("reserved IP 10.0.0.5: StaticIPPool \"a\" does not exist"));
}

TEST_F(StaticIpTest, ADeletedReservationStaysWhileThePodRuns) {
  Bind(Pod("db-0"), "n1");
  Bind(Pod("db-1"), "n1");
  Settle();
  store_->Delete(kReservations, "", "10-0-0-5");
  Settle();
  EXPECT_TRUE(sdk::IsConditionTrue(Get("10-0-0-5")["status"], "DeletionPending"));
  EXPECT_EQ(Text(FilterOn(Pod("db-2"), "n1")), kNoFree) << "the IP is still in use";
  harness_->RemovePod("default/db-0");
  Wait(absl::Seconds(15));
  EXPECT_EQ(Get("10-0-0-5"), json());
  EXPECT_TRUE(FilterOn(Pod("db-2"), "n1").ok());
}

TEST_F(StaticIpTest, AReservationThatWasForcedAwayComesBackWhileThePodRuns) {
  Bind(Pod("db-0"), "n1");
  Settle();
  json stripped = Get("10-0-0-5");
  stripped["metadata"].erase("finalizers");
  store_->Apply(kReservations, "", "10-0-0-5", stripped.dump());
  store_->Delete(kReservations, "", "10-0-0-5");
  EXPECT_EQ(Get("10-0-0-5"), json());
  Settle();
  EXPECT_EQ(Get("10-0-0-5")["spec"]["owner"]["pod"], "db-0");
  EXPECT_EQ(Phase("10-0-0-5"), "InUse");
}

TEST_F(StaticIpTest, AnIpThatAPersonGivesToAnotherPodIsGivenWhenItIsFree) {
  Bind(Pod("db-0"), "n1");
  Settle();
  json edited = Get("10-0-0-5");
  edited["spec"]["owner"] = {{"namespace", "default"}, {"pod", "db-7"}};
  store_->Apply(kReservations, "", "10-0-0-5", edited.dump());
  Settle();
  EXPECT_EQ(Get("10-0-0-5")["status"]["podUID"], "default/db-0");
  EXPECT_THAT(Message("10-0-0-5"), HasSubstr("pod default/db-0 uses the IP"));
  EXPECT_EQ(Text(harness_->PreFilter(Pod("db-7")).verdict),
            "reserved IP 10.0.0.5 is still used by pod default/db-0");
  harness_->RemovePod("default/db-0");
  EXPECT_EQ(Bind(Pod("db-7"), "n1"), "10.0.0.5");
}

TEST_F(StaticIpTest, ALateSecondReservationOfAPodGoes) {
  // A late write of a killed process; another process has already bound the pod.
  const auto late = Reserve(Pod("db-0"), "n1");
  store_->Apply(kReservations, "", "10-0-0-5", R"({"spec":{"ip":"10.0.0.5"}})");
  EXPECT_EQ(Bind(Pod("db-0"), "n1"), "10.0.0.6");
  Settle();
  store_->Delete(kReservations, "", "10-0-0-5");
  ASSERT_TRUE(store_->Write(late[0]).ok());
  Settle();
  EXPECT_EQ(Phase("10-0-0-6"), "InUse");
  EXPECT_NE(Phase("10-0-0-5"), "InUse");
  Wait(absl::Seconds(15));
  EXPECT_THAT(store_->Names(kReservations), ElementsAre("10-0-0-6"));
}

TEST_F(StaticIpTest, HeldIpsAreNotAssigned) {
  store_->Apply(kReservations, "", "10-0-0-5", R"({"spec":{"ip":"10.0.0.5"}})");
  Settle();
  EXPECT_EQ(Phase("10-0-0-5"), "Held");
  EXPECT_EQ(Bind(Pod("db-0"), "n1"), "10.0.0.6");
}

// Random adds, deletes and restarts of pods, lost and late writes, host restarts: two pods never
// share an IP, and at the end the reservations match the pods.
TEST_F(StaticIpTest, WhateverHappensNoIpIsTwoPods) {
  std::mt19937 random(5);
  store_->Apply(kPools, "", "a", R"({"spec":{"cidr":"10.0.0.0/28"}})");
  std::vector<v1beta1::Effect> late;
  std::map<std::string, v1beta1::Pod> bound;  // by name
  int uid = 0, binds = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::string name = absl::StrCat("db-", random() % 8);
    switch (random() % 5) {
      case 0:
      case 1: {
        if (bound.contains(name)) break;
        v1beta1::Pod pod = Pod(name, absl::StrCat("uid-", ++uid), random() % 2 ? "OnDelete" : "");
        harness_->AddPod(pod);
        bool written = false;
        for (int attempt = 0; attempt < 3 && !written; ++attempt) {
          if (!FilterOn(pod, "n1").ok()) break;
          sdk::ReserveAnswer answer;
          if (!harness_->Reserve(pod, "n1", &answer).ok()) break;
          written = true;
          for (const v1beta1::Effect& effect : answer.effects) {
            if (random() % 10 == 0) {
              late.push_back(effect);
              written = false;
            } else {
              written = store_->Write(effect).ok();
            }
          }
        }
        if (!written) {
          harness_->RemovePod(pod.uid());
          break;
        }
        ++binds;
        pod.set_node_name("n1");
        harness_->AddPod(pod);
        bound[name] = pod;
        break;
      }
      case 2:
        if (bound.contains(name)) {
          harness_->RemovePod(bound[name].uid());
          bound.erase(name);
        }
        break;
      case 3:
        if (!late.empty()) {
          store_->Write(late.back()).IgnoreError();
          late.pop_back();
        }
        break;
      case 4:
        now_ += absl::Seconds(random() % 8);
        store_->Tick(now_);
        break;
    }
    std::map<std::string, int> reservations_of;
    for (const std::string& object : store_->Names(kReservations))
      ++reservations_of[Get(object)["spec"]["owner"]["podUID"].get<std::string>()];
    for (const auto& [pod_name, pod] : bound)
      ASSERT_GE(reservations_of[pod.uid()], 1) << pod_name << " in round " << round;
  }
  Settle();
  Wait(absl::Minutes(3));
  Wait(absl::Minutes(3));
  std::set<std::string> used;
  for (const std::string& object : store_->Names(kReservations)) {
    const json reservation = Get(object);
    if (Phase(object) != "InUse") {
      // While db-7 runs, the others may return.
      EXPECT_EQ(reservation["spec"]["releasePolicy"], "OnScaleDown") << reservation;
      continue;
    }
    const std::string pod_uid = reservation["status"]["podUID"];
    EXPECT_TRUE(used.insert(pod_uid).second) << pod_uid;
  }
  EXPECT_EQ(used.size(), bound.size());
  EXPECT_GT(binds, 300);
}

}  // namespace
}  // namespace outboard::static_ip
