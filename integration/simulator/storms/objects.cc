#include "integration/simulator/storms/objects.h"

#include <memory>

#include "absl/strings/str_cat.h"

namespace outboard::simulate::storms {
namespace {

constexpr char kGpu[] = "nvidia.com/gpu";

void Fill(const Amounts& amounts, v1beta1::ResourceList* list) {
  list->set_cpu_millis(amounts.cpu_millis);
  if (amounts.gpus > 0) (*list->mutable_scalar())[kGpu] = amounts.gpus;
}

}  // namespace

kube::PodPtr PodOf(const Gang& gang, int life, size_t member, int incarnation, absl::Time now) {
  auto made = std::make_shared<kube::PodObject>();
  v1beta1::Pod& pod = made->pod;
  pod.set_namespace_("default");
  pod.set_name(absl::StrCat(gang.name, "-", member));
  pod.set_uid(absl::StrCat(gang.name, "-", member, ".", life, ".", incarnation));
  pod.set_creation_unix_seconds(absl::ToUnixSeconds(now));
  pod.set_scheduler_name("storm");
  pod.set_priority(gang.priority);
  v1beta1::Container* container = pod.add_containers();
  container->set_name("main");
  container->set_image("train");
  Fill(gang.members[member], container->mutable_requests());
  made->resource_version = absl::StrCat("made-", pod.uid());
  made->phase = "Pending";

  auto& labels = *pod.mutable_labels();
  auto& annotations = *pod.mutable_annotations();
  const std::string min = absl::StrCat(gang.min);
  switch (gang.dialect) {
    case Dialect::kJob:
      labels["job-name"] = gang.name;
      annotations["outboard/min-replicas"] = min;
      pod.mutable_controller()->set_api_version("batch/v1");
      pod.mutable_controller()->set_kind("Job");
      pod.mutable_controller()->set_name(gang.name);
      pod.mutable_controller()->set_uid(absl::StrCat("job-", gang.name, ".", life));
      break;
    case Dialect::kKoordinator:
      annotations["gang.scheduling.koordinator.sh/name"] = gang.name;
      annotations["gang.scheduling.koordinator.sh/min-available"] = min;
      break;
    case Dialect::kLegacy:
      labels["pod-group.scheduling.sigs.k8s.io/name"] = gang.name;
      labels["pod-group.scheduling.sigs.k8s.io/min-available"] = min;
      break;
    case Dialect::kSchedulerPlugins:
      labels["scheduling.x-k8s.io/pod-group"] = gang.name;
      break;
    case Dialect::kVolcano:
      annotations["scheduling.k8s.io/group-name"] = gang.name;
      break;
    case Dialect::kKai:
      annotations["pod-group-name"] = gang.name;
      break;
    case Dialect::kKubernetes:
      pod.set_pod_group_name(gang.name);
      break;
  }
  return made;
}

kube::ClusterObjectPtr ObjectOf(const Gang& gang, int life, absl::Time now) {
  std::string resource, api_version;
  std::string spec = absl::StrCat(R"({"minMember":)", gang.min, "}");
  switch (gang.dialect) {
    case Dialect::kSchedulerPlugins:
      resource = "podgroups.v1alpha1.scheduling.x-k8s.io";
      api_version = "scheduling.x-k8s.io/v1alpha1";
      spec = absl::StrCat(R"({"minMember":)", gang.min, R"(,"scheduleTimeoutSeconds":20})");
      break;
    case Dialect::kVolcano:
      resource = "podgroups.v1beta1.scheduling.volcano.sh";
      api_version = "scheduling.volcano.sh/v1beta1";
      break;
    case Dialect::kKai:
      resource = "podgroups.v2alpha2.scheduling.run.ai";
      api_version = "scheduling.run.ai/v2alpha2";
      break;
    case Dialect::kKubernetes:
      resource = "podgroups.v1alpha2.scheduling.k8s.io";
      api_version = "scheduling.k8s.io/v1alpha2";
      spec = absl::StrCat(R"({"schedulingPolicy":{"gang":{"minCount":)", gang.min, "}}}");
      break;
    default:
      return nullptr;
  }
  auto made = std::make_shared<kube::ClusterObject>();
  made->object_uid = absl::StrCat("group-", gang.name, ".", life);
  made->resource_version = made->object_uid;
  v1beta1::GenericObject* object = made->object.mutable_generic_object();
  object->set_resource(resource);
  object->set_namespace_("default");
  object->set_name(gang.name);
  object->set_uid(made->object_uid);
  object->set_resource_version(made->resource_version);
  object->set_json(absl::StrCat(R"({"apiVersion":")", api_version,
                                R"(","kind":"PodGroup","metadata":{"name":")", gang.name,
                                R"(","namespace":"default","creationTimestamp":")",
                                absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone()),
                                R"("},"spec":)", spec, "}"));
  return made;
}

std::string NodeName(size_t index) { return absl::StrCat("n", index); }

kube::NodePtr NodeOf(size_t index, int incarnation, const Amounts& amounts) {
  auto made = std::make_shared<kube::NodeObject>();
  made->node.set_name(NodeName(index));
  made->node.set_uid(absl::StrCat(NodeName(index), ".", incarnation));
  made->resource_version = made->node.uid();
  v1beta1::ResourceList* allocatable = made->node.mutable_allocatable();
  Fill(amounts, allocatable);
  allocatable->set_memory_bytes(int64_t{1} << 40);
  allocatable->set_pods(250);
  (*made->node.mutable_labels())["kubernetes.io/hostname"] = NodeName(index);
  return made;
}

}  // namespace outboard::simulate::storms
