#include "plugins/latest_start_sort/latest_start_sort.h"

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/sort_key.h"

namespace outboard::latest_start_sort {
namespace {

constexpr char kName[] = "LatestStartSort";
// Of Objectives, which rejects the pod once it is too late; and of CostOptimized, which ends the
// pod's wait for cheap hours. The first counts.
constexpr const char* kAnnotations[] = {"outboard/sla-latest-start", "outboard/latest-start"};
constexpr absl::Duration kMaxSlack = absl::Hours(24 * 365);

constexpr char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false, "properties": {
    "assumedSlack": {"type": "string", "default": "24h", "description":
      "Pods without a latest start sort as if it were this long after their creation, 0s to 8760h."}}})json";

std::string PodName(const v1beta1::Pod& pod) {
  return absl::StrCat("pod ", pod.namespace_(), "/", pod.name());
}

absl::Duration ReadAssumedSlack(const sdk::ArgsObject& root) {
  const absl::Duration slack = root.Duration("assumedSlack", absl::Hours(24));
  if (slack < absl::ZeroDuration() || slack > kMaxSlack) {
    root.Problem("assumedSlack", absl::StrCat("Invalid value: ", absl::FormatDuration(slack),
                                              ": not in valid range [0, 8760h]"));
  }
  return slack;
}

class LatestStartSort : public sdk::Plugin,
                        public sdk::QueueSortPlugin,
                        public sdk::ClusterObserver {
 public:
  explicit LatestStartSort(absl::Duration assumed_slack) : assumed_slack_(assumed_slack) {}

  // Slack is the latest start minus now. All pods have the same now, so that the order by latest
  // start is the order by slack, and a key stays valid while its pod waits.
  std::string SortKey(const sdk::PodView& pod, const sdk::ClusterView&) const override {
    const v1beta1::Pod& proto = pod.proto();
    std::string key;
    sdk::AppendPriority(pod.priority(), &key);
    sdk::AppendTime(LatestStartOf(proto).value_or(
                        absl::FromUnixSeconds(proto.creation_unix_seconds()) + assumed_slack_),
                    &key);
    return key;
  }

  void OnReset() override { malformed_.Clear(); }
  void OnPodRemoved(const sdk::PodRecord& pod) override { malformed_.Forget(PodName(pod.pod)); }

 private:
  std::optional<absl::Time> LatestStartOf(const v1beta1::Pod& pod) const {
    for (const char* annotation : kAnnotations) {
      const std::string* text = sdk::FindValue(pod.annotations(), annotation);
      if (text == nullptr) continue;
      const std::optional<absl::Time> time = sdk::ParseTimestamp(*text);
      if (time) return time;
      malformed_.Warn(PodName(pod), annotation, *text, "a time such as 2026-01-31T22:00:00Z");
    }
    return std::nullopt;
  }

  const absl::Duration assumed_slack_;
  mutable sdk::MalformedValues malformed_{kName};
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_QUEUE_SORT};
  d.args_schema = kArgsSchema;
  for (const char* annotation : kAnnotations)
    d.needed_fields.push_back(sdk::AnnotationField(annotation));
  d.maturity = sdk::Maturity::kAlpha;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<LatestStartSort>(ReadAssumedSlack(context.args->root()));
  };
  return d;
}

}  // namespace outboard::latest_start_sort
