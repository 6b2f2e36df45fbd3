// Columns say what inline nodes would have said, in any cluster and for any parts; and what is
// special about columns.
#include "shim/hosts/node_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/hosts/inline_host.h"
#include "shim/hosts/needed_fields.h"
#include "shim/hosts/resource_list.h"
#include "shim/hosts/testing/received.h"

namespace outboard::hosts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using v1beta1::FilterRequest;
using v1beta1::GetHostInfoResponse;
using v1beta1::InlineNode;
using v1beta1::NodeColumns;

// What both forms say about a node.
struct Said {
  std::string name;
  std::string uid;
  int64_t created = 0;
  bool unschedulable = false;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> taints;  // serialised
  std::map<std::string, int64_t> allocatable;
  // Without zeros: whether a resource is absent or 0 makes no difference here.
  std::map<std::string, int64_t> requested;
  std::map<std::string, int64_t> nominated;

  bool operator==(const Said&) const = default;
};

void PrintTo(const Said& said, std::ostream* out) {
  const auto print = [&](const char* what, const auto& map) {
    *out << " " << what;
    for (const auto& [key, value] : map) *out << " " << key << "=" << value;
  };
  *out << said.name << " " << said.uid << " " << said.created << (said.unschedulable ? " !" : "");
  print("labels", said.labels);
  print("annotations", said.annotations);
  *out << " taints " << said.taints.size();
  print("allocatable", said.allocatable);
  print("requested", said.requested);
  print("nominated", said.nominated);
}

std::map<std::string, int64_t> AmountsIn(const v1beta1::ResourceList& list, bool with_zeros) {
  std::map<std::string, int64_t> amounts;
  ForEachResource(list, [&](absl::string_view name, int64_t amount) {
    if (with_zeros || amount != 0) amounts[std::string(name)] = amount;
  });
  return amounts;
}

Said SaidBy(const InlineNode& inline_node) {
  const v1beta1::Node& node = inline_node.node();
  Said said{node.name(),
            node.uid(),
            node.creation_unix_seconds(),
            node.unschedulable(),
            {node.labels().begin(), node.labels().end()},
            {node.annotations().begin(), node.annotations().end()},
            {},
            AmountsIn(node.allocatable(), true),
            AmountsIn(inline_node.requested(), false),
            AmountsIn(inline_node.nominated_requested(), false)};
  for (const v1beta1::Taint& taint : node.taints())
    said.taints.push_back(taint.SerializeAsString());
  return said;
}

std::map<std::string, std::string> TextsAt(
    int i, const google::protobuf::RepeatedPtrField<v1beta1::TextColumn>& columns) {
  std::map<std::string, std::string> texts;
  for (const v1beta1::TextColumn& column : columns) {
    if (const uint32_t index = column.indexes(i); index != 0)
      texts[column.key()] = column.values(static_cast<int>(index) - 1);
  }
  return texts;
}

std::map<std::string, int64_t> AmountsAt(
    int i, int64_t absent,
    const google::protobuf::RepeatedPtrField<v1beta1::ResourceColumn>& columns) {
  std::map<std::string, int64_t> amounts;
  for (const v1beta1::ResourceColumn& column : columns) {
    if (column.amounts(i) != absent) amounts[column.resource()] = column.amounts(i);
  }
  return amounts;
}

Said SaidBy(const NodeColumns& columns, int i) {
  Said said{columns.names(i),
            columns.uids(i),
            columns.creation_unix_seconds(i),
            columns.unschedulable(i),
            TextsAt(i, columns.labels()),
            TextsAt(i, columns.annotations()),
            {},
            AmountsAt(i, -1, columns.allocatable()),
            AmountsAt(i, 0, columns.requested()),
            AmountsAt(i, 0, columns.nominated_requested())};
  if (!columns.has_taints() || columns.taints().indexes(i) == 0) return said;
  const int list = static_cast<int>(columns.taints().indexes(i)) - 1;
  for (const v1beta1::Taint& taint : columns.taints().values(list).taints())
    said.taints.push_back(taint.SerializeAsString());
  return said;
}

// One entry per node in every column, and every value of a dictionary once and in use.
template <typename Column>
void ExpectDictionary(const Column& column, int nodes) {
  EXPECT_EQ(column.indexes_size(), nodes);
  std::vector<bool> used(static_cast<size_t>(column.values_size()));
  uint32_t next = 1;
  for (const uint32_t index : column.indexes()) {
    ASSERT_LE(index, used.size());
    if (index == 0) continue;
    EXPECT_LE(index, next) << "values come in the order in which nodes first have them";
    next = std::max(next, index + 1);
    used[index - 1] = true;
  }
  EXPECT_EQ(std::count(used.begin(), used.end(), true), column.values_size());
  std::vector<std::string> values;
  for (const auto& value : column.values()) {
    if constexpr (requires { value.SerializeAsString(); }) {
      values.push_back(value.SerializeAsString());
    } else {
      values.push_back(value);
    }
  }
  std::sort(values.begin(), values.end());
  EXPECT_EQ(std::unique(values.begin(), values.end()), values.end());
}

void ExpectWellFormed(const NodeColumns& columns, int nodes) {
  EXPECT_EQ(columns.names_size(), nodes);
  EXPECT_EQ(columns.unschedulable_size(), nodes);
  for (const auto* texts : {&columns.labels(), &columns.annotations()}) {
    for (const v1beta1::TextColumn& column : *texts) ExpectDictionary(column, nodes);
    EXPECT_TRUE(std::is_sorted(texts->begin(), texts->end(),
                               [](const auto& a, const auto& b) { return a.key() < b.key(); }));
  }
  if (columns.has_taints()) ExpectDictionary(columns.taints(), nodes);
  for (const auto* amounts :
       {&columns.allocatable(), &columns.requested(), &columns.nominated_requested()}) {
    for (const v1beta1::ResourceColumn& column : *amounts)
      EXPECT_EQ(column.amounts_size(), nodes) << column.resource();
    EXPECT_TRUE(std::is_sorted(amounts->begin(), amounts->end(), [](const auto& a, const auto& b) {
      return a.resource() < b.resource();
    }));
  }
}

GetHostInfoResponse InfoWith(const std::vector<std::string>& fields, bool columns) {
  GetHostInfoResponse info;
  info.add_capabilities(v1beta1::CAPABILITY_INLINE_NODES);
  if (columns) info.add_capabilities(v1beta1::CAPABILITY_NODE_COLUMNS);
  v1beta1::PluginInfo* plugin = info.add_plugins();
  plugin->set_name("P");
  plugin->mutable_needed_fields()->Assign(fields.begin(), fields.end());
  return info;
}

InlineParts Parts(const std::vector<std::string>& fields, bool columns) {
  const GetHostInfoResponse info = InfoWith(fields, columns);
  return PartsOf(info, NeededFields(info));
}

class NodeColumnsTest : public ::testing::Test {
 protected:
  void PutNode(v1beta1::Node node) {
    auto object = std::make_shared<kube::NodeObject>();
    object->node = std::move(node);
    object->resource_version = absl::StrCat(++resource_version_);
    cluster_.UpsertNode(object);
  }
  void PutNode(const std::string& name, const std::map<std::string, std::string>& labels) {
    v1beta1::Node node;
    node.set_name(name);
    node.set_uid("uid-" + name);
    for (const auto& [key, value] : labels) (*node.mutable_labels())[key] = value;
    PutNode(std::move(node));
  }
  void PutPod(const std::string& name, int cpu_millis, const std::string& node, int priority = 0,
              int gpus = 0) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid("uid-" + name);
    pod->pod.set_name(name);
    pod->pod.set_namespace_("default");
    pod->pod.set_node_name(node);
    pod->pod.set_priority(priority);
    v1beta1::ResourceList* requests = pod->pod.add_containers()->mutable_requests();
    requests->set_cpu_millis(cpu_millis);
    if (gpus != 0) (*requests->mutable_scalar())["example.com/gpu"] = gpus;
    pod->resource_version = absl::StrCat(++resource_version_);
    cluster_.UpsertPod(pod);
  }
  const kube::PodObject& Pod(const std::string& name) { return *cluster_.FindPod("uid-" + name); }
  FilterRequest Search(const std::vector<uint32_t>& slots) {
    FilterRequest request;
    request.mutable_search()->mutable_nodes()->mutable_slots()->Assign(slots.begin(), slots.end());
    return request;
  }
  FilterRequest SearchAll() { return Search(cluster_.node_order()); }
  // The columns of a search about all nodes.
  NodeColumns Columns(const std::vector<std::string>& fields) {
    ColumnContent content(&cluster_, Parts(fields, true));
    FilterRequest request = SearchAll();
    EXPECT_TRUE(content.AddNodesFor(Pod("p"), &request).ok());
    return testing::Received(request).node_columns();
  }

  int resource_version_ = 0;
  cache::ClusterState cluster_;
};

// A cluster that changes, and two hosts with the same plugins that get it in both forms.
class RandomColumnsTest : public NodeColumnsTest, public ::testing::WithParamInterface<int> {
 protected:
  RandomColumnsTest() : random_(static_cast<uint32_t>(GetParam())) {}

  int Draw(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool Coin() { return Draw(2) == 0; }

  v1beta1::Node RandomNode(int number) {
    v1beta1::Node node;
    node.set_name(absl::StrCat("n", number));
    node.set_uid(absl::StrCat("uid-n", number));
    node.set_creation_unix_seconds(Draw(100));
    node.set_unschedulable(Draw(5) == 0);
    for (const char* key : {"a", "b", "c"}) {
      if (Coin()) (*node.mutable_labels())[key] = std::string(static_cast<size_t>(Draw(3)), 'v');
      if (Coin()) (*node.mutable_annotations())[key] = absl::StrCat("w", Draw(3));
    }
    (*node.mutable_labels())["host"] = node.name();
    for (int i = Draw(3); i > 0; --i) {
      v1beta1::Taint* taint = node.add_taints();
      taint->set_key(absl::StrCat("t", Draw(2)));
      taint->set_effect(v1beta1::TAINT_EFFECT_NO_SCHEDULE);
    }
    if (Draw(10) == 0) return node;
    v1beta1::ResourceList* allocatable = node.mutable_allocatable();
    allocatable->set_cpu_millis(Draw(3) * 1000);
    if (Coin()) allocatable->set_memory_bytes(int64_t{Draw(1000)} << 30);
    if (Coin()) allocatable->set_pods(Draw(110));
    if (Draw(4) == 0) (*allocatable->mutable_scalar())["example.com/gpu"] = Draw(9);
    return node;
  }

  void Change() {
    const int number = Draw(12);
    const std::string pod = absl::StrCat("pod", Draw(20));
    switch (Draw(6)) {
      case 0:
        cluster_.RemoveNode(absl::StrCat("n", number));
        break;
      case 1:
        cluster_.RemovePod("uid-" + pod);
        break;
      case 2:
        cluster_.RemovePod("uid-" + pod);
        PutPod(pod, Draw(5) * 100, absl::StrCat("n", number), Draw(3), Draw(4) == 0 ? 1 : 0);
        break;
      case 3: {
        const std::string waiting = absl::StrCat("waiting", Draw(4));
        PutPod(waiting, Draw(5) * 100, "", Draw(3), Draw(2));
        // The node may be gone.
        if (cluster_.node_count() > 0) cluster_.Nominate("uid-" + waiting, AnySlot()).IgnoreError();
        break;
      }
      default:
        PutNode(RandomNode(number));
    }
  }

  uint32_t AnySlot() {
    const auto& order = cluster_.node_order();
    return order[static_cast<size_t>(Draw(static_cast<int>(order.size())))];
  }
  FilterRequest RandomSearch() {
    std::vector<uint32_t> slots = cluster_.node_order();
    std::shuffle(slots.begin(), slots.end(), random_);
    slots.resize(static_cast<size_t>(Draw(static_cast<int>(slots.size()) + 1)));
    return Search(slots);
  }
  FilterRequest RandomSimulation() {
    FilterRequest request;
    v1beta1::NodeSimulation* simulation = request.mutable_simulation();
    for (int i = cluster_.node_count() == 0 ? 0 : Draw(6); i > 0; --i) {
      const uint32_t slot = AnySlot();
      std::vector<std::string> uids;
      cluster_.ForEachPodOn(slot, [&](const kube::PodPtr& pod) { uids.push_back(pod->uid()); });
      v1beta1::SimulatedNode* without = simulation->add_nodes();
      without->set_slot(slot);
      for (const std::string& uid : uids) {
        if (Coin()) without->add_removed_pod_uids(uid);
      }
      if (Coin()) continue;
      v1beta1::SimulatedNode* with = simulation->add_nodes();
      with->set_slot(slot);
      with->set_continues(true);
      for (const std::string& uid : without->removed_pod_uids()) {
        if (Coin()) with->add_added_pod_uids(uid);
      }
    }
    return request;
  }

  std::mt19937 random_;
};

TEST_P(RandomColumnsTest, SayWhatInlineNodesSay) {
  // Inline nodes always have these two. The first host gets nothing else.
  const std::vector<std::string> always = {"Node.metadata.uid", "Node.metadata.creationTimestamp"};
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"Node.metadata.labels", "Node.spec.taints", "Node.status.allocatable", "Node.requested",
       "Node.metadata.annotations['a']"},
      {"Node.metadata.labels['a']", "Node.metadata.labels['none']",
       "Node.status.allocatable['example.com/gpu']", "Node.status.allocatable['cpu']",
       "Node.requested['example.com/gpu']", "Node.requested['pods']"},
      {"Node.requested['memory']", "Node.status.allocatable"}};
  std::vector<std::unique_ptr<InlineContent>> inlines;
  std::vector<std::unique_ptr<ColumnContent>> columns;
  for (std::vector<std::string> fields : cases) {
    fields.insert(fields.end(), always.begin(), always.end());
    inlines.push_back(std::make_unique<InlineContent>(&cluster_, Parts(fields, false)));
    columns.push_back(std::make_unique<ColumnContent>(&cluster_, Parts(fields, true)));
  }
  PutPod("p", 100, "", 1);
  for (int i = 0; i < 6; ++i) PutNode(RandomNode(i));
  for (int round = 0; round < 60; ++round) {
    for (int i = Draw(5); i > 0; --i) Change();
    const bool is_simulation = Draw(3) == 0;
    const FilterRequest request = is_simulation ? RandomSimulation() : RandomSearch();
    for (size_t c = 0; c < cases.size(); ++c) {
      FilterRequest as_nodes = request;
      FilterRequest as_columns = request;
      if (is_simulation) {
        ASSERT_TRUE(inlines[c]->AppendHypotheses(Pod("p"), &as_nodes).ok());
        ASSERT_TRUE(columns[c]->AddSimulated(Pod("p"), &as_columns).ok());
      } else {
        ASSERT_TRUE(inlines[c]->AppendNodesFor(Pod("p"), &as_nodes).ok());
        ASSERT_TRUE(columns[c]->AddNodesFor(Pod("p"), &as_columns).ok());
      }
      const FilterRequest nodes = testing::Received(as_nodes);
      const NodeColumns sent = testing::Received(as_columns).node_columns();
      ExpectWellFormed(sent, nodes.inline_nodes_size());
      ASSERT_FALSE(HasFailure()) << "round " << round << ", parts " << c;
      for (int i = 0; i < nodes.inline_nodes_size(); ++i) {
        EXPECT_EQ(SaidBy(sent, i), SaidBy(nodes.inline_nodes(i)))
            << "round " << round << ", parts " << c << ", node " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomColumnsTest, ::testing::Range(1, 9));

std::vector<std::string> KeysOf(
    const google::protobuf::RepeatedPtrField<v1beta1::TextColumn>& columns) {
  std::vector<std::string> keys;
  for (const v1beta1::TextColumn& column : columns) keys.push_back(column.key());
  return keys;
}

std::vector<std::string> ResourcesOf(
    const google::protobuf::RepeatedPtrField<v1beta1::ResourceColumn>& columns) {
  std::vector<std::string> names;
  for (const v1beta1::ResourceColumn& column : columns) names.push_back(column.resource());
  return names;
}

TEST_F(NodeColumnsTest, NamedPartsHaveAColumnAlsoIfNoNodeHasThem) {
  PutPod("p", 100, "");
  PutNode("n1", {{"a", ""}, {"b", "y"}});
  PutNode("n2", {{"b", "y"}});
  const NodeColumns named =
      Columns({"Node.metadata.labels['a']", "Node.metadata.labels['none']",
               "Node.status.allocatable['example.com/gpu']", "Node.requested['example.com/gpu']"});
  ASSERT_THAT(KeysOf(named.labels()), ElementsAre("a", "none"));
  EXPECT_THAT(named.labels(0).values(), ElementsAre("")) << "an empty value is a value";
  EXPECT_THAT(named.labels(1).values(), IsEmpty());
  EXPECT_THAT(named.labels(1).indexes(), ElementsAre(0, 0));
  ASSERT_THAT(ResourcesOf(named.allocatable()), ElementsAre("example.com/gpu"));
  EXPECT_THAT(named.allocatable(0).amounts(), ElementsAre(-1, -1));
  ASSERT_THAT(ResourcesOf(named.requested()), ElementsAre("example.com/gpu"));
  EXPECT_THAT(named.requested(0).amounts(), ElementsAre(0, 0));
  EXPECT_FALSE(named.has_taints());
  EXPECT_THAT(named.uids(), IsEmpty());
  EXPECT_THAT(named.creation_unix_seconds(), IsEmpty());
}

TEST_F(NodeColumnsTest, WithoutNamesThereIsAColumnForWhatNodesHave) {
  PutPod("p", 100, "");
  PutNode("n1", {{"a", "x"}, {"b", "y"}});
  PutNode("n2", {{"b", "z"}});
  PutPod("q", 300, "n2", 0, 2);
  const NodeColumns all = Columns({});
  ASSERT_THAT(KeysOf(all.labels()), ElementsAre("a", "b"));
  EXPECT_THAT(all.labels(1).indexes(), SizeIs(2));
  EXPECT_THAT(all.labels(1).values(), SizeIs(2));
  EXPECT_THAT(ResourcesOf(all.allocatable()),
              ElementsAre("cpu", "ephemeral-storage", "memory", "pods"));
  EXPECT_THAT(ResourcesOf(all.requested()),
              ElementsAre("cpu", "ephemeral-storage", "example.com/gpu", "memory", "pods"));
  EXPECT_TRUE(all.has_taints());
  EXPECT_THAT(all.taints().indexes(), ElementsAre(0, 0));
  EXPECT_THAT(all.nominated_requested(), IsEmpty());
}

TEST_F(NodeColumnsTest, AColumnGoesWithTheLastNodeThatHasIt) {
  PutPod("p", 100, "");
  PutNode("n1", {{"a", "x"}});
  PutNode("n2", {});
  ColumnContent content(&cluster_, Parts({"Node.metadata.labels"}, true));
  const auto keys = [&] {
    FilterRequest request = SearchAll();
    EXPECT_TRUE(content.AddNodesFor(Pod("p"), &request).ok());
    return KeysOf(request.node_columns().labels());
  };
  EXPECT_THAT(keys(), ElementsAre("a"));
  PutNode("n1", {{"b", "x"}});
  EXPECT_THAT(keys(), ElementsAre("b"));
}

TEST_F(NodeColumnsTest, ForgetsTheTextsOfPastNodesInTime) {
  PutPod("p", 100, "");
  PutNode("stays", {{"host", "stays"}});
  ColumnContent content(&cluster_, Parts({"Node.metadata.labels['host']"}, true));
  size_t most = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string name = absl::StrCat("n", i);
    PutNode(name, {{"host", name}});
    FilterRequest request = Search({cluster_.SlotOf("stays"), cluster_.SlotOf(name)});
    ASSERT_TRUE(content.AddNodesFor(Pod("p"), &request).ok());
    ASSERT_THAT(request.node_columns().labels(0).values(), ElementsAre("stays", name));
    ASSERT_THAT(request.node_columns().labels(0).indexes(), ElementsAre(1, 2));
    most = std::max(most, content.num_texts());
    cluster_.RemoveNode(name);
  }
  EXPECT_GT(most, 1000u) << "they are kept for a while";
  EXPECT_LT(most, 1100u);
}

TEST_F(NodeColumnsTest, RefusesMoreEntriesThanItsLimit) {
  static_assert(ColumnContent::kMaxEntries == 16777216, "as in node_columns.proto");
  PutPod("p", 100, "");
  constexpr int kNodes = 10;
  for (int i = 0; i < kNodes; ++i) {
    const std::string name = absl::StrCat("n", i);
    PutNode(name, {{name, "x"}});
  }
  ColumnContent content(&cluster_, Parts({"Node.metadata.labels"}, true), /*max_entries=*/100);
  FilterRequest request = SearchAll();
  const absl::Status refused = content.AddNodesFor(Pod("p"), &request);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("limit 100"));
  EXPECT_THAT(refused.message(), HasSubstr("should name the labels"));
  // The nodes change, and the columns of before do not count any more.
  for (int i = 0; i < kNodes; ++i) PutNode(absl::StrCat("n", i), {{"zone", "x"}});
  request = SearchAll();
  ASSERT_TRUE(content.AddNodesFor(Pod("p"), &request).ok());
  EXPECT_THAT(KeysOf(request.node_columns().labels()), ElementsAre("zone"));
}

TEST_F(NodeColumnsTest, AFreeSlotIsAnError) {
  PutPod("p", 100, "");
  PutNode("n1", {});
  ColumnContent content(&cluster_, Parts({}, true));
  FilterRequest request = Search({0, 7});
  EXPECT_EQ(content.AddNodesFor(Pod("p"), &request).code(), absl::StatusCode::kInternal);
  FilterRequest simulation;
  simulation.mutable_simulation()->add_nodes()->set_slot(7);
  EXPECT_EQ(content.AddSimulated(Pod("p"), &simulation).code(), absl::StatusCode::kInternal);
}

TEST_F(NodeColumnsTest, AHostWithTheCapabilityGetsColumnsInPlaceOfNodes) {
  PutPod("p", 100, "");
  PutPod("higher", 700, "", 5);
  PutNode("n1", {{"price", "1"}});
  PutNode("n2", {{"price", "2"}});
  ASSERT_TRUE(cluster_.Nominate("uid-higher", cluster_.SlotOf("n2")).ok());
  framework::ScriptedHost scripted;
  FilterRequest filter;
  v1beta1::PreScoreRequest pre_score;
  v1beta1::ScoreRequest score;
  v1beta1::ReserveRequest reserve;
  scripted.filter = [&](const FilterRequest& request) {
    filter = testing::Received(request);
    return v1beta1::FilterResponse();
  };
  scripted.pre_score = [&](const v1beta1::PreScoreRequest& request) {
    pre_score = testing::Received(request);
    return v1beta1::PreScoreResponse();
  };
  scripted.score = [&](const v1beta1::ScoreRequest& request) {
    score = testing::Received(request);
    return v1beta1::ScoreResponse();
  };
  scripted.reserve = [&](const v1beta1::ReserveRequest& request) {
    reserve = testing::Received(request);
    return v1beta1::ReserveResponse();
  };
  InlineHost host(&scripted, &cluster_,
                  Parts({"Node.metadata.labels['price']", "Node.requested['cpu']"}, true), {});
  v1beta1::PreFilterRequest begin;
  begin.mutable_header()->set_attempt_id(1);
  begin.set_pod_uid("uid-p");
  ASSERT_TRUE(host.PreFilter(begin, absl::InfiniteFuture()).ok());
  FilterRequest search;
  search.mutable_header()->set_attempt_id(1);
  search.mutable_search()->set_start_offset(1);
  ASSERT_TRUE(host.Filter(search, absl::InfiniteFuture()).ok());
  EXPECT_EQ(filter.pod().name(), "p");
  EXPECT_THAT(filter.inline_nodes(), IsEmpty());
  EXPECT_THAT(filter.node_columns().names(), ElementsAre("n2", "n1"));
  EXPECT_THAT(filter.node_columns().labels(0).values(), ElementsAre("2", "1"));
  ASSERT_THAT(filter.node_columns().nominated_requested(), SizeIs(1));
  EXPECT_THAT(filter.node_columns().nominated_requested(0).amounts(), ElementsAre(700, 0));

  v1beta1::PreScoreRequest before;
  before.mutable_header()->set_attempt_id(1);
  before.mutable_nodes()->add_slots(cluster_.SlotOf("n1"));
  ASSERT_TRUE(host.PreScore(before, absl::InfiniteFuture()).ok());
  EXPECT_THAT(pre_score.node_columns().names(), ElementsAre("n1"));
  v1beta1::ScoreRequest last;
  last.mutable_header()->set_attempt_id(1);
  last.mutable_nodes()->add_slots(cluster_.SlotOf("n2"));
  ASSERT_TRUE(host.Score(last, absl::InfiniteFuture()).ok());
  EXPECT_THAT(score.node_columns().names(), ElementsAre("n2"));
  EXPECT_THAT(score.node_columns().nominated_requested(), IsEmpty());
  EXPECT_THAT(score.inline_nodes(), IsEmpty());

  v1beta1::ReserveRequest placed;
  placed.set_pod_uid("uid-p");
  placed.set_node_name("n1");
  ASSERT_TRUE(host.Reserve(placed, absl::InfiniteFuture()).ok());
  EXPECT_EQ(reserve.inline_node().node().labels().at("price"), "1");
}

TEST(CheckInlineInfoTest, ColumnsNeedInlineNodesAndPartsThatHaveColumns) {
  GetHostInfoResponse info = InfoWith({"Node.metadata.labels['a']", "Node.requested"}, true);
  EXPECT_TRUE(CheckInlineInfo(info).ok()) << CheckInlineInfo(info);
  info.mutable_plugins(0)->add_optional_fields("Node.pods");
  EXPECT_TRUE(CheckInlineInfo(info).ok()) << CheckInlineInfo(info);
  for (const char* path :
       {"Node.pods", "Node.status.images", "Node.status.declaredFeatures", "Node.status.capacity",
        "Node.status.conditions", "Node.status.addresses"}) {
    const absl::Status refused = CheckInlineInfo(InfoWith({path}, true));
    EXPECT_THAT(refused.message(), HasSubstr(absl::StrCat("plugin P needs field ", path)));
    EXPECT_THAT(refused.message(), HasSubstr("NODE_COLUMNS"));
    EXPECT_TRUE(CheckInlineInfo(InfoWith({path}, false)).ok()) << path;
  }
  info.mutable_capabilities()->Clear();
  info.add_capabilities(v1beta1::CAPABILITY_NODE_COLUMNS);
  EXPECT_THAT(CheckInlineInfo(info).message(), HasSubstr("must have INLINE_NODES too"));
}

}  // namespace
}  // namespace outboard::hosts
