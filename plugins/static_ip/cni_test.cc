// What StaticIP tells CNIs, and where pods go whose IP a CNI keeps. Further: testdata/cni.case.
#include "plugins/static_ip/cni.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/custom_objects.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/object_store.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/static_ip/static_ip.h"
#include "plugins/static_ip/static_ip_objects.h"

namespace outboard::static_ip::cni_test {
namespace {

using sdk::Verdict;
using sdk::testing::NodeBuilder;
using sdk::testing::ObjectStore;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kCalicoIps[] = "cni.projectcalico.org/ipAddrs";
constexpr char kAntreaIps[] = "ipam.antrea.io/pod-ips";
constexpr char kCalicoPools[] = "ippools.v3.projectcalico.org";

class CniTest : public ::testing::Test {
 protected:
  void Start(const std::string& cni) {
    auto harness = PluginHarness::Create(
        Descriptor(), absl::StrCat(R"({"releaseAfter": "10s", "cni": ")", cni, R"("})"));
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    store_ = std::make_unique<ObjectStore>(harness_.get());
    harness_->SetNow(now_);
    harness_->AddNode(NodeBuilder("n1").Label("rack", "r1"));
    harness_->AddNode(NodeBuilder("n2").Label("rack", "r2"));
    store_->Apply(kPools, "", "a",
                  R"({"spec":{"cidr":"10.0.0.0/24","ranges":["10.0.0.5-10.0.0.6",)"
                  R"("10.0.0.200"]}})");
  }
  static v1beta1::Pod Pod(const std::string& name, const std::string& kind = "",
                          const std::map<std::string, std::string>& annotations = {}) {
    PodBuilder pod(name);
    pod.Annotation("outboard/static-ip", "true");
    for (const auto& [key, value] : annotations) pod.Annotation(key, value);
    if (!kind.empty()) {
      pod.proto().mutable_controller()->set_kind(kind);
      pod.proto().mutable_controller()->set_name("db");
      pod.proto().mutable_controller()->set_uid("set");
    }
    return pod.Build();
  }
  std::vector<v1beta1::Effect> Reserve(const v1beta1::Pod& pod, const std::string& node) {
    EXPECT_TRUE(harness_->Filter(pod).at(node).ok());
    sdk::ReserveAnswer answer;
    const Verdict verdict = harness_->Reserve(pod, node, &answer);
    EXPECT_TRUE(verdict.ok()) << ::testing::PrintToString(verdict.reasons());
    return answer.effects;
  }
  // The annotations that the effects set.
  static std::map<std::string, std::string> AnnotationsOf(
      const std::vector<v1beta1::Effect>& effects) {
    std::map<std::string, std::string> annotations;
    for (const v1beta1::Effect& effect : effects) {
      if (!effect.has_patch_pod()) continue;
      const auto& set = effect.patch_pod().set_annotations();
      annotations.insert(set.begin(), set.end());
    }
    return annotations;
  }
  // As the shim: one effect after the other; the first that fails ends it.
  bool Write(const std::vector<v1beta1::Effect>& effects) {
    for (const v1beta1::Effect& effect : effects) {
      if (effect.has_patch_pod()) {
        patched_ = true;
      } else if (!store_->Write(effect).ok()) {
        return false;
      }
    }
    return true;
  }

  std::unique_ptr<PluginHarness> harness_;
  std::unique_ptr<ObjectStore> store_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  bool patched_ = false;
};

TEST_F(CniTest, CalicoIsToldTheIpAfterItIsReserved) {
  Start("calico");
  const auto effects = Reserve(Pod("db-0", "StatefulSet"), "n1");
  ASSERT_EQ(effects.size(), 2u);
  EXPECT_EQ(effects[0].put_object().name(), "10-0-0-5");
  EXPECT_THAT(AnnotationsOf(effects), ElementsAre(Pair(kCalicoIps, R"(["10.0.0.5"])")));
}

TEST_F(CniTest, APodThatComesBackGetsTheSameAnnotation) {
  Start("calico");
  v1beta1::Pod pod = Pod("db-0", "StatefulSet");
  ASSERT_TRUE(Write(Reserve(pod, "n1")));
  pod.set_node_name("n1");
  harness_->AddPod(pod);
  harness_->RemovePod(pod.uid());
  v1beta1::Pod again = Pod("db-0", "StatefulSet");
  again.set_uid("again");
  EXPECT_THAT(AnnotationsOf(Reserve(again, "n2")),
              ElementsAre(Pair(kCalicoIps, R"(["10.0.0.5"])")));
}

TEST_F(CniTest, OfTwoPodsThatRaceForAnIpOneIsToldToCalico) {
  Start("calico");
  const auto ours = Reserve(Pod("db-0"), "n1");
  ASSERT_TRUE(store_->Write(Reserve(Pod("db-1"), "n1")[0]).ok());
  EXPECT_FALSE(Write(ours)) << "another replica reserved the IP first";
  EXPECT_FALSE(patched_) << "the loser's annotation comes after its reservation";
  EXPECT_THAT(AnnotationsOf(Reserve(Pod("db-0"), "n1")),
              ElementsAre(Pair(kCalicoIps, R"(["10.0.0.6"])")));
}

TEST_F(CniTest, AReleasedIpIsToldToTheNextPod) {
  Start("calico");
  v1beta1::Pod pod = Pod("web", "ReplicaSet");  // Released when it is gone.
  ASSERT_TRUE(Write(Reserve(pod, "n1")));
  pod.set_node_name("n1");
  harness_->AddPod(pod);
  store_->Settle(&now_);
  EXPECT_THAT(AnnotationsOf(Reserve(Pod("next"), "n1")),
              ElementsAre(Pair(kCalicoIps, R"(["10.0.0.6"])")));
  harness_->RemovePod(pod.uid());
  store_->Tick(now_);
  now_ += absl::Seconds(15);
  store_->Settle(&now_);
  EXPECT_THAT(AnnotationsOf(Reserve(Pod("next"), "n1")),
              ElementsAre(Pair(kCalicoIps, R"(["10.0.0.5"])")));
}

TEST_F(CniTest, CalicosPoolsLimitTheIpsOfANode) {
  Start("calico");
  store_->Apply(kCalicoPools, "", "low",
                R"({"spec":{"cidr":"10.0.0.0/25","nodeSelector":"rack == 'r1'"}})");
  store_->Apply(kCalicoPools, "", "high",
                R"({"spec":{"cidr":"10.0.0.128/25","nodeSelector":"rack == 'r2'"}})");
  EXPECT_THAT(AnnotationsOf(Reserve(Pod("p"), "n1")),
              ElementsAre(Pair(kCalicoIps, R"(["10.0.0.5"])")));
  EXPECT_THAT(AnnotationsOf(Reserve(Pod("q"), "n2")),
              ElementsAre(Pair(kCalicoIps, R"(["10.0.0.200"])")));
}

TEST_F(CniTest, AntreaIsToldTheIpAndThePoolExceptForStatefulSets) {
  Start("antrea");
  EXPECT_THAT(AnnotationsOf(Reserve(Pod("p"), "n1")),
              UnorderedElementsAre(Pair(kAntreaIps, "10.0.0.5"), Pair(kAntreaPools, "a")));
  EXPECT_THAT(AnnotationsOf(Reserve(Pod("q", "ReplicaSet", {{kAntreaPools, "own"}}), "n1")),
              ElementsAre(Pair(kAntreaIps, "10.0.0.5")));
  EXPECT_THAT(Reserve(Pod("db-0", "StatefulSet"), "n1"), IsEmpty());
}

TEST_F(CniTest, NothingIsReservedWhereTheCniKeepsIps) {
  for (const char* cni : {"kube-ovn", "spiderpool", "hybridnet"}) {
    Start(cni);
    EXPECT_THAT(Reserve(Pod("db-0", "StatefulSet"), "n1"), IsEmpty()) << cni;
    EXPECT_THAT(Reserve(Pod("p"), "n1"), IsEmpty()) << cni;
  }
}

TEST_F(CniTest, WithoutACniNoPodIsAnnotated) {
  Start("none");
  const auto effects = Reserve(Pod("p"), "n1");
  ASSERT_EQ(effects.size(), 1u);
  EXPECT_TRUE(effects[0].has_put_object());
}

TEST(SpiderpoolPoolsTest, ReadsBothAnnotations) {
  const auto of = [](const char* key, const std::string& text) {
    return SpiderpoolPoolsOf(PodBuilder("p").Annotation(key, text).Build());
  };
  EXPECT_THAT(*of("other", "x"), IsEmpty());
  EXPECT_THAT(*of(kSpiderpoolPool, R"({"ipv4": ["a", "b"], "ipv6": ["c"]})"),
              ElementsAre(PoolNames{"a", "b"}, PoolNames{"c"}));
  EXPECT_THAT(*of(kSpiderpoolPools, R"([{"interface": "eth0", "ipv4": ["a"]}, {"ipv6": ["b"]}])"),
              ElementsAre(PoolNames{"a"}, PoolNames{"b"}));
  EXPECT_THAT(*of(kSpiderpoolPool, R"({"ipv4": null, "ipv6": []})"), IsEmpty());
  for (const char* text : {"", "a", "[]", "3", R"({"ipv4": "a"})", R"({"ipv4": [1]})", "{"})
    EXPECT_FALSE(of(kSpiderpoolPool, text).has_value()) << text;
  for (const char* text : {"", "{}", R"(["a"])", R"([{"ipv4": {}}])"})
    EXPECT_FALSE(of(kSpiderpoolPools, text).has_value()) << text;
  std::string many = R"({"ipv4": ["a")";
  for (int i = 0; i < 100; ++i) many += R"(,"a")";
  EXPECT_FALSE(of(kSpiderpoolPool, many + "]}").has_value());
}

TEST(KubeOvnPoolTest, OnlyANameIsAPool) {
  const auto of = [](const std::string& text) {
    return KubeOvnPoolOf(PodBuilder("p").Annotation(kKubeOvnPool, text).Build());
  };
  EXPECT_EQ(of("pool-1"), "pool-1");
  for (const char* text : {"", "10.0.0.5", "fd00::5", "10.0.0.5,10.0.0.6", "10.0.0.5;10.0.0.6"})
    EXPECT_EQ(of(text), "") << text;
}

}  // namespace
}  // namespace outboard::static_ip::cni_test
