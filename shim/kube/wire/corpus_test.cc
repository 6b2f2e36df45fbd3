// Runs the fuzz targets over their seeds, and checks that bytes from upstream's encoder decode to
// their input.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "integration/fuzz/run_corpus.h"
#include "shim/kube/wire/decode.h"
#include "shim/kube/wire/testing/fuzz_targets.h"

namespace outboard::kube {
namespace {

constexpr char kTestdata[] = "shim/kube/wire/testdata/";

using fuzz::ReadSeed;
using fuzz::SeedBytes;

TEST(Corpus, Quantity) { fuzz::RunCorpus(absl::StrCat(kTestdata, "quantity"), 3, FuzzQuantity); }
TEST(Corpus, WatchFrame) {
  fuzz::RunCorpus(absl::StrCat(kTestdata, "watch_frame"), 6, FuzzWatchFrame);
}
TEST(Corpus, Object) { fuzz::RunCorpus(absl::StrCat(kTestdata, "object"), 6, FuzzObject); }

// Kubernetes' own encoder wrote the frames.
class UpstreamFrame {
 public:
  explicit UpstreamFrame(const std::string& name)
      : bytes_(SeedBytes(ReadSeed(std::string(kTestdata) + "watch_frame/" + name))) {
    absl::StatusOr<WatchFrame> frame = DecodeWatchFrame(bytes_);
    EXPECT_TRUE(frame.ok()) << frame.status();
    if (frame.ok()) frame_ = *frame;
  }
  const WatchFrame& operator*() const { return frame_; }
  const WatchFrame* operator->() const { return &frame_; }

 private:
  std::string bytes_;
  WatchFrame frame_;
};

TEST(Upstream, Pod) {
  UpstreamFrame frame("pod_added.hex");
  EXPECT_EQ(frame->type, WatchEventType::kAdded);
  EXPECT_EQ(std::string(frame->object.kind), "Pod");
  Decoder decoder;
  absl::StatusOr<PodPtr> decoded = decoder.DecodePod(frame->object.raw);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const PodObject& pod = **decoded;
  EXPECT_EQ(pod.key(), "shop/web-7d9c-x2x4z");
  EXPECT_EQ(pod.resource_version, "4711");
  EXPECT_EQ(pod.phase, "Pending");
  EXPECT_EQ(pod.scheduled.reason, "SchedulingGated");
  EXPECT_EQ(pod.scheduled.observed_generation, 1);
  const v1beta1::Pod& p = pod.pod;
  EXPECT_EQ(p.creation_unix_seconds(), 1769851800);
  EXPECT_EQ(p.labels().at("pod-template-hash"), "7d9c");
  EXPECT_EQ(p.annotations_size(), 1);
  EXPECT_EQ(p.controller().kind(), "ReplicaSet");
  EXPECT_EQ(p.scheduler_name(), "outboard");
  EXPECT_EQ(p.priority(), 100);
  EXPECT_EQ(p.node_selector().at("disk"), "ssd");
  ASSERT_EQ(p.tolerations_size(), 2);
  EXPECT_EQ(p.tolerations(1).value(), "web");
  EXPECT_EQ(p.containers(0).requests().cpu_millis(), 250);
  EXPECT_EQ(p.containers(0).requests().memory_bytes(), 512 << 20);
  EXPECT_EQ(p.containers(0).requests().scalar().at("nvidia.com/gpu"), 1);
  EXPECT_EQ(p.containers(0).ports(0).host_port(), 8080);
  EXPECT_EQ(p.containers(0).ports(0).host_ip(), "10.0.0.1");
  EXPECT_TRUE(p.init_containers(0).restart_policy_always());
  EXPECT_EQ(p.volumes(0).claim_name(), "data-0");
  EXPECT_EQ(p.volumes(1).source(), "projected");
  EXPECT_EQ(p.affinity()
                .node_affinity()
                .required_during_scheduling_ignored_during_execution()
                .node_selector_terms(0)
                .match_expressions(0)
                .operator_(),
            v1beta1::SelectorRequirement::OPERATOR_GT);
  EXPECT_EQ(p.affinity()
                .pod_anti_affinity()
                .preferred_during_scheduling_ignored_during_execution(0)
                .weight(),
            50);
  EXPECT_EQ(p.topology_spread_constraints(0).max_skew(), 1);
  EXPECT_EQ(p.scheduling_gates(0), "example.com/gate");
  EXPECT_EQ(p.overhead().cpu_millis(), 10);
  EXPECT_EQ(p.pod_group_name(), "gang");
  EXPECT_EQ(p.nominated_node_name(), "n7");
  EXPECT_EQ(p.container_statuses(0).allocated_requests().cpu_millis(), 250);
}

TEST(Upstream, NodeNamespaceBookmarkAndError) {
  Decoder decoder;
  UpstreamFrame node("node_modified.hex");
  absl::StatusOr<NodePtr> decoded = decoder.DecodeNode(node->object.raw);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ((*decoded)->key(), "n7");
  EXPECT_EQ((*decoded)->conditions, "Ready=True");
  EXPECT_TRUE((*decoded)->node.unschedulable());
  EXPECT_EQ((*decoded)->node.taints(0).effect(), v1beta1::TAINT_EFFECT_NO_SCHEDULE);
  EXPECT_EQ((*decoded)->node.allocatable().cpu_millis(), 3920);
  EXPECT_EQ((*decoded)->node.allocatable().scalar().at("nvidia.com/gpu"), 8);
  EXPECT_EQ((*decoded)->node.images(0).size_bytes(), 70000000);

  UpstreamFrame ns("namespace_deleted.hex");
  EXPECT_EQ(ns->type, WatchEventType::kDeleted);
  absl::StatusOr<NamespacePtr> decoded_ns = decoder.DecodeNamespace(ns->object.raw);
  ASSERT_TRUE(decoded_ns.ok());
  EXPECT_EQ((*decoded_ns)->uid(), "ns-uid");

  UpstreamFrame bookmark("bookmark.hex");
  EXPECT_EQ(bookmark->type, WatchEventType::kBookmark);
  absl::StatusOr<Bookmark> decoded_bookmark = decoder.DecodeBookmark(bookmark->object.raw);
  ASSERT_TRUE(decoded_bookmark.ok());
  EXPECT_EQ(decoded_bookmark->resource_version, "99");
  EXPECT_TRUE(decoded_bookmark->initial_events_end);

  UpstreamFrame error("error_410.hex");
  EXPECT_EQ(error->type, WatchEventType::kError);
  EXPECT_EQ(std::string(error->object.kind), "Status");
  absl::StatusOr<ApiStatus> status = decoder.DecodeStatus(error->object.raw);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->code, 410);
  EXPECT_EQ(status->reason, "Expired");
  EXPECT_EQ(status->retry_after_seconds, 1);
  EXPECT_EQ(status->causes[0].reason, "ResourceVersionTooLarge");
}

}  // namespace
}  // namespace outboard::kube
