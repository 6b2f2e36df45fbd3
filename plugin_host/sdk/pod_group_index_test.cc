#include "plugin_host/sdk/pod_group_index.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/plugin.h"
#include "plugin_host/sdk/pod_group_objects.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::sdk {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

// A plugin that only keeps the index, fed by the real cache.
class Keeper : public Plugin, public PreFilterPlugin, public ClusterObserver {
 public:
  Verdict PreFilter(const Attempt&, PreFilterResult*) const override { return Verdict::Skip(); }
  void OnReset() override { index.Clear(); }
  void OnPodChanged(const PodRecord& pod) override { last = index.SetPod(pod); }
  void OnPodRemoved(const PodRecord& pod) override { index.RemovePod(pod); }
  void OnObjectChanged(const v1beta1::ClusterObject*,
                       const v1beta1::ClusterObject& object) override {
    last = index.SetObject(object);
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    index.RemoveObject(object);
  }
  PodGroupIndex index{"Keeper"};
  PodGroupIndex::Change last;
};

PluginDescriptor KeeperDescriptor() {
  PluginDescriptor d;
  d.name = "Keeper";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER};
  d.needed_fields = GroupAnnotationFields();
  d.declared_resources = PodGroupResources();
  d.create = [](const PluginContext&) -> absl::StatusOr<std::unique_ptr<Plugin>> {
    return std::make_unique<Keeper>();
  };
  return d;
}

v1beta1::ClusterObject PodGroup(GroupDialect dialect, const std::string& name,
                                const std::string& json) {
  v1beta1::ClusterObject object;
  v1beta1::GenericObject& custom = *object.mutable_generic_object();
  custom.set_resource(std::string(GroupResource(dialect)));
  custom.set_namespace_("default");
  custom.set_name(name);
  custom.set_uid(absl::StrCat("uid-", name));
  custom.set_resource_version("1");
  custom.set_json(json);
  return object;
}

class PodGroupIndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto harness = PluginHarness::Create(KeeperDescriptor());
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    harness_->AddNode(NodeBuilder("n1"));
    harness_->AddNode(NodeBuilder("n2"));
  }
  Keeper& keeper() { return dynamic_cast<Keeper&>(harness_->plugin()); }
  const PodGroupIndex& index() { return keeper().index; }
  const Group* Find(const v1beta1::Pod& pod) { return index().Find(GroupOf(pod)->key); }

  std::unique_ptr<PluginHarness> harness_;
};

TEST_F(PodGroupIndexTest, AMemberIsInOneState) {
  PodBuilder builder("p");
  v1beta1::Pod pod = builder.Label("scheduling.x-k8s.io/pod-group", "g");
  const auto state = [&](MemberState expected) {
    const Group* group = Find(pod);
    ASSERT_NE(group, nullptr);
    for (size_t i = 0; i < kMemberStates; ++i)
      EXPECT_EQ(group->counts[i], i == static_cast<size_t>(expected) ? 1 : 0) << i;
  };
  pod.add_scheduling_gates("wait");
  harness_->AddPod(pod);
  state(MemberState::kGated);
  EXPECT_EQ(Find(pod)->existing(), 0);
  pod.clear_scheduling_gates();
  harness_->AddPod(pod);
  state(MemberState::kPending);
  EXPECT_EQ(keeper().last.existed, 0);
  EXPECT_EQ(Find(pod)->existing(), 1);
  harness_->Place(pod.uid(), v1beta1::PLACEMENT_STATE_NOMINATED, "n1");
  state(MemberState::kPending);
  harness_->Place(pod.uid(), v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
  state(MemberState::kAssumed);
  EXPECT_EQ(keeper().last.existed, 1);
  harness_->Place(pod.uid(), v1beta1::PLACEMENT_STATE_WAITING, "n1");
  state(MemberState::kWaiting);
  EXPECT_EQ(Find(pod)->placed(), 1);
  harness_->Place(pod.uid(), v1beta1::PLACEMENT_STATE_UNPLACED, "");
  state(MemberState::kPending);
  pod.set_node_name("n1");
  harness_->AddPod(pod);
  state(MemberState::kBound);
  pod.set_deletion_unix_seconds(1);
  harness_->AddPod(pod);
  state(MemberState::kTerminating);
  EXPECT_EQ(Find(pod)->existing(), 0);
  harness_->RemovePod(pod.uid());
  EXPECT_EQ(Find(pod), nullptr);
  EXPECT_EQ(index().size(), 0u);
}

TEST_F(PodGroupIndexTest, AGroupWithoutItsObjectIsNotFoundAndHasNoDefault) {
  const v1beta1::Pod pod = PodBuilder("p").Label("scheduling.x-k8s.io/pod-group", "g");
  harness_->AddPod(pod);
  const GroupRef ref = *GroupOf(pod);
  EXPECT_TRUE(index().SpecFor(ref).not_found);
  // Of another dialect, or namespace.
  harness_->AddObject(PodGroup(GroupDialect::kVolcano, "g", R"({"spec": {"minMember": 2}})"));
  EXPECT_TRUE(index().SpecFor(ref).not_found);
  const v1beta1::ClusterObject object =
      PodGroup(GroupDialect::kSchedulerPlugins, "g", R"({"spec": {"minMember": 2}})");
  harness_->AddObject(object);
  EXPECT_EQ(keeper().last.group, Find(pod));
  EXPECT_TRUE(keeper().last.size_changed);
  EXPECT_FALSE(index().SpecFor(ref).not_found);
  EXPECT_EQ(index().SpecFor(ref).min->value, 2);
  harness_->AddObject(PodGroup(GroupDialect::kSchedulerPlugins, "g",
                               R"({"spec": {"minMember": 2}, "status": {"phase": "Running"}})"));
  EXPECT_FALSE(keeper().last.size_changed);
  harness_->RemoveObject(object);
  EXPECT_TRUE(index().SpecFor(ref).not_found);
  EXPECT_EQ(Find(pod)->members.size(), 1u) << "its members stay";
  harness_->RemovePod(pod.uid());
  EXPECT_EQ(index().size(), 1u) << "Volcano's object";
}

TEST_F(PodGroupIndexTest, WarnsOnceOfWhatCannotBeRead) {
  const auto put = [&](const std::string& timeout) {
    harness_->AddObject(PodGroup(
        GroupDialect::kSchedulerPlugins, "g",
        absl::StrCat(R"({"spec": {"minMember": 2, "scheduleTimeoutSeconds": )", timeout, "}}")));
  };
  put("\"soon\"");
  put("\"soon\"");
  EXPECT_EQ(index().warned(), 1);
  put("5");
  put("0");
  EXPECT_EQ(index().warned(), 2) << "it was valid in between";
  const v1beta1::Pod pod = PodBuilder("p")
                               .Annotation("gang.scheduling.koordinator.sh/name", "k")
                               .Annotation("gang.scheduling.koordinator.sh/min-available", "some");
  harness_->AddPod(pod);
  harness_->Place(pod.uid(), v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
  EXPECT_EQ(index().warned(), 3);
}

// The expected index, recounted from the cache.
std::map<std::string, std::string> Recount(const ClusterView& cluster) {
  std::map<std::string, std::array<int64_t, kMemberStates>> counts;
  std::map<std::string, std::set<std::string>> members;
  std::map<std::string, std::string> objects;
  for (const auto& [uid, pod] : cluster.pods()) {
    const std::optional<GroupRef> ref = GroupOf(pod->pod);
    if (!ref) continue;
    ++counts[ref->key.Text()][static_cast<size_t>(StateOf(*pod))];
    members[ref->key.Text()].insert(absl::StrCat(uid, ref->sub_group));
  }
  cluster.objects().ForEach<v1beta1::GenericObject>([&](const v1beta1::GenericObject& object) {
    const PodGroupObject read = *ReadPodGroup(object);
    objects[read.key.Text()] = read.spec.min ? absl::StrCat(read.spec.min->value) : "no size";
    counts.try_emplace(read.key.Text());
  });
  std::map<std::string, std::string> texts;
  for (const auto& [key, of_group] : counts) {
    texts[key] = absl::StrCat(absl::StrJoin(of_group, " "), ": ", absl::StrJoin(members[key], " "),
                              ": ", objects[key]);
  }
  return texts;
}

std::map<std::string, std::string> Held(const PodGroupIndex& index) {
  std::map<std::string, std::string> texts;
  index.ForEach([&](const Group& group) {
    std::set<std::string> members;
    for (const auto& [uid, member] : group.members)
      members.insert(absl::StrCat(uid, member.sub_group));
    std::string object;
    if (group.object)
      object = group.object->min ? absl::StrCat(group.object->min->value) : "no size";
    texts[group.key.Text()] = absl::StrCat(absl::StrJoin(group.counts, " "), ": ",
                                           absl::StrJoin(members, " "), ": ", object);
  });
  return texts;
}

TEST_F(PodGroupIndexTest, HoldsWhatACountFromScratchFinds) {
  int64_t most_groups = 0;
  for (int seed = 0; seed < 20; ++seed) {
    SetUp();
    std::mt19937_64 random(seed);
    const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    std::map<std::string, v1beta1::Pod> pods;
    for (int step = 0; step < 400; ++step) {
      const std::string name = absl::StrCat("p", below(12));
      const std::string uid = absl::StrCat("default/", name);
      const bool known = pods.contains(uid);
      const std::string group = absl::StrCat("g", below(3));
      switch (below(8)) {
        case 0:
        case 1:
        case 2: {  // Added, or changed in any way; a bound pod stays bound.
          PodBuilder builder(name);
          const char* labels[] = {"scheduling.x-k8s.io/pod-group", "job-name",
                                  "pod-group.scheduling.sigs.k8s.io/name"};
          const char* annotations[] = {"pod-group-name", "scheduling.k8s.io/group-name",
                                       "gang.scheduling.koordinator.sh/name"};
          if (below(2) == 0) builder.Label(labels[below(3)], group);
          if (below(3) == 0) builder.Annotation(annotations[below(3)], group);
          if (below(2) == 0) builder.Label("kai.scheduler/subgroup-name", "s");
          v1beta1::Pod pod = builder;
          if (below(4) == 0) pod.set_pod_group_name(group);
          if (below(3) == 0) pod.mutable_controller()->set_uid(absl::StrCat("c", below(2)));
          if (below(5) == 0) pod.set_deletion_unix_seconds(1);
          if (known && !pods[uid].node_name().empty()) {
            pod.set_node_name(pods[uid].node_name());
          } else if (below(4) == 0) {
            pod.set_node_name(below(2) == 0 ? "n1" : "unknown");
          } else if (!known && below(4) == 0) {
            pod.add_scheduling_gates("gate");
          }
          pods[uid] = pod;
          harness_->AddPod(pod);
          break;
        }
        case 3:
          if (known) harness_->RemovePod(uid);
          pods.erase(uid);
          break;
        case 4:
        case 5: {
          if (!known || !pods[uid].node_name().empty()) break;
          const v1beta1::PlacementState states[] = {
              v1beta1::PLACEMENT_STATE_UNPLACED, v1beta1::PLACEMENT_STATE_ASSUMED,
              v1beta1::PLACEMENT_STATE_WAITING, v1beta1::PLACEMENT_STATE_NOMINATED};
          const int which = below(4);
          harness_->Place(uid, states[which], which == 0 ? "" : "n2");
          break;
        }
        default: {
          const GroupDialect dialect = kGroupDialects[below(4)];
          const v1beta1::ClusterObject object =
              PodGroup(dialect, group, absl::StrCat(R"({"spec": {"minMember": )", below(4), "}}"));
          if (below(3) == 0) {
            harness_->RemoveObject(object);
          } else {
            harness_->AddObject(object);
          }
        }
      }
      ASSERT_EQ(Held(index()), Recount(harness_->cluster())) << "seed " << seed << " step " << step;
      most_groups = std::max(most_groups, static_cast<int64_t>(index().size()));
    }
  }
  EXPECT_GE(most_groups, 10);
}

}  // namespace
}  // namespace outboard::sdk
