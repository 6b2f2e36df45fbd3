#include "plugins/node_resources_fit/hints.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/resources.h"

namespace outboard::node_resources_fit {
namespace {

using sdk::Hint;

int64_t ExtendedOf(const v1beta1::Node& node, const std::string& name) {
  const auto& extended = node.allocatable().scalar();
  const auto it = extended.find(name);
  return it == extended.end() ? 0 : it->second;
}

// Calls fn(requested amount, amount of `before`, amount of `after`, whether DynamicResources checks
// `after`) for every resource that the pod requests. Returns true as soon as fn does.
template <typename Fn>
bool AnyRequest(const sdk::Resources& wanted, const v1beta1::Node& before,
                const v1beta1::Node& after, const sdk::DeviceClasses& classes, Fn fn) {
  const v1beta1::ResourceList& a = before.allocatable();
  const v1beta1::ResourceList& b = after.allocatable();
  const auto any = [&](int64_t amount, int64_t had, int64_t has, bool delegated) {
    return amount > 0 && fn(amount, had, has, delegated);
  };
  if (any(wanted.cpu_millis, a.cpu_millis(), b.cpu_millis(), false) ||
      any(wanted.memory_bytes, a.memory_bytes(), b.memory_bytes(), false) ||
      any(wanted.ephemeral_storage_bytes, a.ephemeral_storage_bytes(), b.ephemeral_storage_bytes(),
          false)) {
    return true;
  }
  for (const auto& [name, amount] : wanted.extended) {
    if (!sdk::IsScalarResourceName(name)) continue;
    const int64_t has = ExtendedOf(after, name);
    if (any(amount, ExtendedOf(before, name), has, has <= 0 && classes.ClassOf(name) != nullptr))
      return true;
  }
  return false;
}

Hint AfterNode(const v1beta1::Pod& pod, const v1beta1::Node* before, const v1beta1::Node& after,
               const sdk::DeviceClasses& classes) {
  const sdk::Resources wanted = sdk::ComputePodRequests(pod);
  const bool too_small = after.allocatable().pods() < 1 ||
                         AnyRequest(wanted, after, after, classes,
                                    [](int64_t amount, int64_t, int64_t has, bool delegated) {
                                      return amount > has && !delegated;
                                    });
  if (too_small) return Hint::kSkip;
  if (before == nullptr) return Hint::kQueue;
  const bool grew = after.allocatable().pods() > before->allocatable().pods() ||
                    AnyRequest(wanted, *before, after, classes,
                               [](int64_t, int64_t had, int64_t has, bool delegated) {
                                 return has > had || delegated;
                               });
  return grew ? Hint::kQueue : Hint::kSkip;
}

Hint AfterScaleDown(const v1beta1::Pod& pod, const v1beta1::Pod& before,
                    const v1beta1::Pod& after) {
  if (after.uid() == pod.uid()) return Hint::kQueue;
  if (after.node_name().empty()) return Hint::kSkip;
  sdk::PodRequestsOptions options;
  options.use_status = true;
  const sdk::Resources had = sdk::ComputePodRequests(before, options);
  const sdk::Resources has = sdk::ComputePodRequests(after, options);
  const sdk::Resources wanted = sdk::ComputePodRequests(pod, options);
  if ((wanted.cpu_millis != 0 && had.cpu_millis > has.cpu_millis) ||
      (wanted.memory_bytes != 0 && had.memory_bytes > has.memory_bytes) ||
      (wanted.ephemeral_storage_bytes != 0 &&
       had.ephemeral_storage_bytes > has.ephemeral_storage_bytes)) {
    return Hint::kQueue;
  }
  for (const auto& [name, amount] : wanted.extended) {
    if (amount != 0 && sdk::IsScalarResourceName(name) && had.Get(name) > has.Get(name)) {
      return Hint::kQueue;
    }
  }
  return Hint::kSkip;
}

Hint AfterDeviceClass(const v1beta1::Pod& pod, const v1beta1::DeviceClass* before,
                      const v1beta1::DeviceClass& after) {
  if (before != nullptr && before->extended_resource_name() == after.extended_resource_name()) {
    return Hint::kSkip;
  }
  const sdk::Resources wanted = sdk::ComputePodRequests(pod);
  const auto wants = [&](const std::string& name) { return wanted.extended.contains(name); };
  if (before == nullptr && wants(absl::StrCat(sdk::kDeviceClassPrefix, after.name()))) {
    return Hint::kQueue;
  }
  return !after.extended_resource_name().empty() && wants(after.extended_resource_name())
             ? Hint::kQueue
             : Hint::kSkip;
}

}  // namespace

Hint HintOf(const v1beta1::Pod& pod, const sdk::ObjectChange& change,
            const sdk::DeviceClasses& classes) {
  if (change.new_node != nullptr) return AfterNode(pod, change.old_node, *change.new_node, classes);
  if (change.new_object != nullptr) {
    return AfterDeviceClass(
        pod, change.old_object == nullptr ? nullptr : &change.old_object->device_class(),
        change.new_object->device_class());
  }
  if (change.new_pod != nullptr) return AfterScaleDown(pod, *change.old_pod, *change.new_pod);
  // A pod was deleted: any of its resources may be the missing one.
  const v1beta1::Pod& gone = *change.old_pod;
  return gone.node_name().empty() && gone.nominated_node_name().empty() ? Hint::kSkip
                                                                        : Hint::kQueue;
}

}  // namespace outboard::node_resources_fit
