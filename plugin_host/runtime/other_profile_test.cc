// A plugin costs nothing for pods of profiles without it: it is never called.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "plugin_host/runtime/session.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::runtime {
namespace {

using sdk::Verdict;
using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;

// Calls by extension point.
using Calls = std::map<std::string, int>;

// Counts calls about pods; implements all points.
class CountingPlugin : public sdk::Plugin,
                       public sdk::QueueSortPlugin,
                       public sdk::PreEnqueuePlugin,
                       public sdk::PreFilterPlugin,
                       public sdk::FilterPlugin,
                       public sdk::PreScorePlugin,
                       public sdk::ScorePlugin,
                       public sdk::ReservePlugin,
                       public sdk::PermitPlugin {
 public:
  explicit CountingPlugin(Calls* calls) : calls_(calls) {}
  std::string SortKey(const sdk::PodView&, const sdk::ClusterView&) const override {
    ++(*calls_)["queueSort"];
    return "";
  }
  Verdict PreEnqueue(const sdk::PodView&, const sdk::ClusterView&, absl::Time) const override {
    return Count("preEnqueue");
  }
  Verdict PreFilter(const sdk::Attempt&, sdk::PreFilterResult*) const override {
    return Count("preFilter");
  }
  void Filter(const sdk::Attempt&, const sdk::NodeBlock&, sdk::FilterSink&) const override {
    Count("filter");
  }
  Verdict PreScore(const sdk::Attempt&, absl::Span<const sdk::Slot>) const override {
    return Count("preScore");
  }
  Verdict Score(const sdk::Attempt&, absl::Span<const sdk::Slot>,
                absl::Span<int64_t> raw) const override {
    std::fill(raw.begin(), raw.end(), 0);
    return Count("score");
  }
  Verdict Normalize(const sdk::Attempt&, absl::Span<const sdk::Slot>,
                    absl::Span<int64_t>) const override {
    return Count("normalize");
  }
  bool TieKeys(const sdk::Attempt&, absl::Span<const sdk::Slot>,
               absl::Span<int64_t>) const override {
    Count("tieKeys");
    return false;
  }
  Verdict Reserve(const sdk::Attempt&, const sdk::NodeView&, sdk::ReserveAnswer*) override {
    return Count("reserve");
  }
  void Unreserve(const sdk::Attempt&, absl::string_view, std::vector<sdk::WaitDecision>*) override {
    Count("unreserve");
  }
  Verdict Permit(const sdk::Attempt&, const sdk::NodeView&, sdk::PermitAnswer*) override {
    return Count("permit");
  }

 private:
  Verdict Count(const char* point) const {
    ++(*calls_)[point];
    return Verdict::Success();
  }
  Calls* const calls_;
};

class OtherProfileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    v1beta1::ConfigureRequest request;
    request.set_session_id("s");
    for (const std::string name : {"with", "without"}) {
      // Each profile's own plugin, at all points.
      auto* profile = request.add_profiles();
      profile->set_name(name);
      sdk::PluginDescriptor descriptor;
      descriptor.name = "Counts-" + name;
      descriptor.extension_points = {
          v1beta1::EXTENSION_POINT_QUEUE_SORT, v1beta1::EXTENSION_POINT_PRE_ENQUEUE,
          v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
          v1beta1::EXTENSION_POINT_PRE_SCORE,  v1beta1::EXTENSION_POINT_SCORE,
          v1beta1::EXTENSION_POINT_RESERVE,    v1beta1::EXTENSION_POINT_PERMIT};
      for (const auto point : descriptor.extension_points) {
        auto* config = profile->add_points();
        config->set_extension_point(point);
        config->add_plugins(descriptor.name);
      }
      descriptor.create =
          [calls = &calls_[name]](
              const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
        return std::make_unique<CountingPlugin>(calls);
      };
      ASSERT_TRUE(registry_.Add(std::move(descriptor)).ok());
    }
    v1beta1::ConfigureResponse response;
    session_.Configure(request, &response);
    ASSERT_TRUE(response.problems().empty()) << response.DebugString();
    v1beta1::SyncRequest sync;
    sync.set_version(1);
    sync.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
    *sync.add_changes()->mutable_node_upsert()->mutable_node() = NodeBuilder("n0").Build();
    auto* second = sync.add_changes()->mutable_node_upsert();
    second->set_slot(1);
    *second->mutable_node() = NodeBuilder("n1").Build();
    *sync.add_changes()->mutable_pod_upsert()->mutable_pod() = PodBuilder("p").Build();
    ASSERT_TRUE(session_.Apply(sync, now_).ok());
    sync.Clear();
    sync.set_version(1);
    sync.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
    ASSERT_TRUE(session_.Apply(sync, now_).ok());
  }

  template <typename Request>
  Request Call(const std::string& profile) {
    Request request;
    request.mutable_header()->set_attempt_id(attempt_);
    request.mutable_header()->set_exact_version(1);
    request.mutable_header()->set_profile(profile);
    return request;
  }
  template <typename Request>
  Request CallOnNode(const std::string& profile) {
    Request request = Call<Request>(profile);
    request.set_pod_uid("default/p");
    request.set_node_name("n0");
    return request;
  }

  // All calls about a pod, from queue to bind.
  void Schedule(const std::string& profile) {
    ++attempt_;
    auto sort = Call<v1beta1::SortKeysRequest>(profile);
    sort.add_pod_uids("default/p");
    v1beta1::SortKeysResponse sorted;
    EXPECT_TRUE(session_.SortKeys(sort, &sorted).ok());
    auto gate = Call<v1beta1::PreEnqueueRequest>(profile);
    gate.add_pod_uids("default/p");
    v1beta1::PreEnqueueResponse gated;
    EXPECT_TRUE(session_.PreEnqueue(gate, now_, &gated).ok());
    auto cycle = Call<v1beta1::CycleRequest>(profile);
    cycle.set_pod_uid("default/p");
    v1beta1::CycleResponse cycled;
    EXPECT_TRUE(session_.Cycle(cycle, now_, &cycled).ok());
    EXPECT_EQ(cycled.evaluation().score().plugins_size(), 1) << cycled.DebugString();
    v1beta1::ReserveResponse reserved;
    EXPECT_TRUE(
        session_.Reserve(CallOnNode<v1beta1::ReserveRequest>(profile), now_, &reserved).ok());
    v1beta1::PermitResponse permitted;
    EXPECT_TRUE(
        session_.Permit(CallOnNode<v1beta1::PermitRequest>(profile), now_, &permitted).ok());
    v1beta1::UnreserveResponse unreserved;
    EXPECT_TRUE(
        session_.Unreserve(CallOnNode<v1beta1::UnreserveRequest>(profile), now_, &unreserved).ok());
  }

  const absl::Time now_ = absl::UnixEpoch();
  uint64_t attempt_ = 0;
  std::map<std::string, Calls> calls_;  // By profile.
  sdk::PluginRegistry registry_;
  Session session_{"s", &registry_};
};

TEST_F(OtherProfileTest, APluginIsNeverCalledForPodsOfAProfileWithoutIt) {
  for (int i = 0; i < 3; ++i) Schedule("without");
  EXPECT_TRUE(calls_["with"].empty()) << calls_["with"].begin()->first;
  // It is called at every point for pods of its own profile.
  const Calls each = {{"filter", 1},    {"normalize", 1}, {"permit", 1},    {"preEnqueue", 1},
                      {"preFilter", 1}, {"preScore", 1},  {"queueSort", 1}, {"reserve", 1},
                      {"score", 1},     {"tieKeys", 1},   {"unreserve", 1}};
  Schedule("with");
  EXPECT_EQ(calls_["with"], each);
}

}  // namespace
}  // namespace outboard::runtime
