#include "plugins/builtin_plugins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "outboard/v1beta1/objects.pb.h"
#include "proto/short_names.h"

namespace outboard {
namespace {

using v1beta1::ClusterEvent;
using v1beta1::ExtensionPoint;

const sdk::PluginRegistry& Builtins() {
  static const sdk::PluginRegistry& registry = *[] {
    auto* made = new sdk::PluginRegistry();
    EXPECT_TRUE(RegisterBuiltinPlugins(made).ok());
    return made;
  }();
  return registry;
}

// `Node: ADD, UPDATE_NODE_LABEL; Pod: DELETE`.
std::string EventsOf(const sdk::PluginDescriptor& descriptor) {
  std::map<std::string, std::set<ClusterEvent::Action>> actions;
  for (const ClusterEvent& event : descriptor.wake_up_events) {
    for (const int action : event.actions()) {
      actions[event.resource()].insert(static_cast<ClusterEvent::Action>(action));
    }
  }
  std::vector<std::string> events;
  for (const auto& [resource, of_resource] : actions) {
    std::vector<std::string> names;
    for (const ClusterEvent::Action action : of_resource) {
      names.push_back(ShortName(action));
    }
    events.push_back(absl::StrCat(resource, ": ", absl::StrJoin(names, ", ")));
  }
  return absl::StrJoin(events, "; ");
}

// EventsToRegister of kube-scheduler v1.36 with default feature gates. UPDATE_OTHER is Update
// there, which covers every kind of update in a registration for pods.
TEST(BuiltinPluginsTest, EventsAreThoseThatKubeSchedulersPluginsRegister) {
  const std::map<std::string, std::string> expected = {
      {"SchedulingGates", "Pod: UPDATE_POD_SCHEDULING_GATES_ELIMINATED"},
      {"NodeName", "Node: ADD"},
      {"NodeUnschedulable", "Node: ADD, UPDATE_NODE_TAINT; Pod: UPDATE_POD_TOLERATION"},
      {"TaintToleration", "Node: ADD, UPDATE_NODE_TAINT; Pod: UPDATE_POD_TOLERATION"},
      {"NodeAffinity", "Node: ADD, UPDATE_NODE_LABEL"},
      {"NodePorts", "Node: ADD; Pod: DELETE"},
      {"NodeResourcesFit",
       "DeviceClass: ADD, UPDATE_OTHER; Node: ADD, UPDATE_NODE_ALLOCATABLE; "
       "Pod: DELETE, UPDATE_POD_SCALE_DOWN"},
      {"VolumeRestrictions", "Node: ADD; PersistentVolumeClaim: ADD; Pod: DELETE"},
      {"NodeVolumeLimits",
       "CSINode: ADD, UPDATE_OTHER; PersistentVolumeClaim: ADD; Pod: DELETE; "
       "VolumeAttachment: DELETE"},
      {"VolumeBinding",
       "CSIDriver: UPDATE_OTHER; CSINode: ADD, UPDATE_OTHER; CSIStorageCapacity: ADD, "
       "UPDATE_OTHER; Node: ADD, UPDATE_NODE_LABEL; PersistentVolume: ADD, UPDATE_OTHER; "
       "PersistentVolumeClaim: ADD, UPDATE_OTHER; StorageClass: ADD, UPDATE_OTHER"},
      {"VolumeZone",
       "Node: ADD, UPDATE_NODE_LABEL; PersistentVolume: ADD, UPDATE_OTHER; "
       "PersistentVolumeClaim: ADD, UPDATE_OTHER; StorageClass: ADD"},
      {"InterPodAffinity", "Node: ADD, UPDATE_NODE_LABEL; Pod: ADD, DELETE, UPDATE_POD_LABEL"},
      {"PodTopologySpread",
       "Node: ADD, DELETE, UPDATE_NODE_LABEL, UPDATE_NODE_TAINT; "
       "Pod: ADD, DELETE, UPDATE_POD_LABEL, UPDATE_POD_TOLERATION"},
      {"DefaultPreemption", "Pod: DELETE"},
      {"NodeDeclaredFeatures",
       "Node: ADD, UPDATE_NODE_DECLARED_FEATURE; Pod: UPDATE_POD_LABEL, UPDATE_POD_SCALE_DOWN, "
       "UPDATE_POD_TOLERATION, UPDATE_POD_SCHEDULING_GATES_ELIMINATED, UPDATE_OTHER"}};
  for (const auto& [name, events] : expected) {
    const sdk::PluginDescriptor* descriptor = Builtins().Find(name);
    ASSERT_NE(descriptor, nullptr) << name;
    EXPECT_EQ(EventsOf(*descriptor), events) << name;
  }
}

// An event of any other name would never occur.
TEST(BuiltinPluginsTest, EventsAreOfKindsThatTheShimSends) {
  const auto* kinds = v1beta1::ClusterObject::descriptor();
  for (const auto& [name, descriptor] : Builtins().descriptors()) {
    for (const ClusterEvent& event : descriptor.wake_up_events) {
      bool known = event.resource() == "Pod" || event.resource() == "Node";
      for (const v1beta1::DeclaredResource& used : descriptor.declared_resources)
        known |= used.resource() == event.resource();
      for (int i = 0; i < kinds->field_count(); ++i) {
        known |= absl::EqualsIgnoreCase(kinds->field(i)->message_type()->name(), event.resource());
      }
      EXPECT_TRUE(known) << name << " registers " << event.resource();
    }
  }
}

// Rows of docs/plugins.md: `| [Name](target) | on | what it does | ...`. The column `on` is the
// shim's default profile: shim/config/reference_test.cc compares it.
TEST(PluginsPage, HasOneRowForEachServedPlugin) {
  std::ifstream page("docs/plugins.md");
  ASSERT_TRUE(page.good());
  std::vector<std::string> have;
  for (std::string line; std::getline(page, line);) {
    if (!absl::StartsWith(line, "| [")) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, absl::ByAnyChar("[]()"));
    ASSERT_GE(parts.size(), 5u) << line;
    have.push_back(parts[1]);
    std::ifstream readme(absl::StrCat("docs/", parts[3]));
    std::string title;
    EXPECT_TRUE(std::getline(readme, title)) << "no file behind the link of " << line;
    EXPECT_EQ(title, absl::StrCat("# ", parts[1])) << line;
  }
  std::vector<std::string> want;
  for (const auto& [name, descriptor] : Builtins().descriptors()) want.push_back(name);
  std::sort(have.begin(), have.end());
  std::sort(want.begin(), want.end());
  EXPECT_EQ(have, want);
}

// Users see what a plugin reads, who publishes it, and what happens without it.
TEST(PluginsPage, EachRowSaysWhatIsReadWhoPublishesItAndWhatHappensWithoutIt) {
  constexpr char kHeader[] =
      "| plugin | on | what it does | input | who publishes it | where it is missing |";
  const std::vector<std::string> names = absl::StrSplit(kHeader, '|');
  std::ifstream page("docs/plugins.md");
  ASSERT_TRUE(page.good());
  std::string header;
  size_t rows = 0;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "| plugin |")) header = line;
    if (!absl::StartsWith(line, "| [")) continue;
    ++rows;
    EXPECT_EQ(header, kHeader) << "above " << line;
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    ASSERT_EQ(cells.size(), names.size()) << line;
    for (size_t i = 1; i + 1 < names.size(); ++i)
      EXPECT_GT(absl::StripAsciiWhitespace(cells[i]).size(), 1u) << names[i] << "of " << line;
  }
  EXPECT_EQ(rows, Builtins().descriptors().size());
}

// "PreFilter" for PRE_FILTER.
std::string CamelCase(ExtensionPoint point) {
  std::string name;
  for (absl::string_view word : absl::StrSplit(ShortName(point), '_')) {
    absl::StrAppend(&name, word.substr(0, 1), absl::AsciiStrToLower(word.substr(1)));
  }
  return name;
}

// Rows of plugins/README.md: `| `folder` | Name | Point, Point: what |`. A host reports the points
// of its plugins from the same list (GetHostInfo).
TEST(PluginsFolderPage, HasThePointsOfEachServedPlugin) {
  std::ifstream page("plugins/README.md");
  ASSERT_TRUE(page.good());
  std::map<std::string, std::string> have;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "| folder | plugin | points |") inside = true;
    if (line.empty()) inside = false;
    if (!inside || !absl::StartsWith(line, "| `")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    ASSERT_EQ(cells.size(), 3u) << line;
    have[cells[1]] = cells[2].substr(0, cells[2].find_first_of(":|"));
    absl::StripTrailingAsciiWhitespace(&have[cells[1]]);
  }
  std::map<std::string, std::string> want;
  for (const auto& [name, descriptor] : Builtins().descriptors()) {
    std::vector<ExtensionPoint> points = descriptor.extension_points;
    std::sort(points.begin(), points.end());
    want[name] = absl::StrJoin(points, ", ", [](std::string* out, ExtensionPoint point) {
      out->append(CamelCase(point));
    });
  }
  EXPECT_EQ(have, want);
}

// One sentence instead of a column with the same value in every row. A plugin that comes later
// makes the sentence wrong: its row then says since when, and the sentence excepts it.
TEST(PluginsPage, SaysSinceWhenPluginsExist) {
  std::ifstream page("docs/plugins.md");
  const std::string text((std::istreambuf_iterator<char>(page)), std::istreambuf_iterator<char>());
  EXPECT_TRUE(absl::StrContains(text, "All exist since 0.1.0.")) << text.substr(0, 400);
}

}  // namespace
}  // namespace outboard
