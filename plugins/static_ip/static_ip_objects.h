// The valid parts of the custom resources StaticIPPool and StaticIPReservation, and the requests of
// pods.
#ifndef OUTBOARD_PLUGINS_STATIC_IP_STATIC_IP_OBJECTS_H_
#define OUTBOARD_PLUGINS_STATIC_IP_STATIC_IP_OBJECTS_H_

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/label_values.h"
#include "plugins/static_ip/address.h"

namespace outboard::static_ip {

inline constexpr char kPools[] = "staticippools.v1alpha1.accelerator.sched.io";
inline constexpr char kReservations[] = "staticipreservations.v1alpha1.accelerator.sched.io";
inline constexpr char kFinalizer[] = "accelerator.sched.io/static-ip";

enum class ReleasePolicy { kNever, kOnScaleDown, kOnDelete };
absl::string_view PolicyName(ReleasePolicy policy);
std::optional<ReleasePolicy> ParsePolicy(absl::string_view text);

// A pod's request.
struct IpRequest {
  bool wants_ip = false;
  std::string pool;                     // empty: any
  std::optional<ReleasePolicy> policy;  // absent: the pool's
};
// Reads our keys and those of Galaxy and Hybridnet. Reports invalid values unless `malformed` is
// null.
IpRequest IpRequestOf(const v1beta1::Pod& pod, sdk::MalformedValues* malformed);

struct PoolSpec {
  std::string fault;  // why the pool provides no IPs; empty: valid
  Range cidr;
  AddressSet allowed;  // within the cidr
  std::map<std::string, std::string> node_selector;
  std::optional<ReleasePolicy> policy;
};
PoolSpec ReadPool(const v1beta1::GenericObject& object);

// The owner of an IP.
struct Owner {
  std::string ns, pod, pod_uid;
  std::string stateful_set;  // empty: not in a StatefulSet
};

struct Reservation {
  std::string name, uid;
  // The address in the object's name; nullopt: the object reserves nothing.
  std::optional<Address> address;
  std::string fault;  // why it applies to no pod, independent of pools; empty: it may apply
  std::string pool;   // empty: any pool with the IP
  Owner owner;
  std::string node;
  std::optional<ReleasePolicy> policy;  // absent: never
  bool deleting = false;
  bool has_finalizer = false;
  bool made_by_plugin = false;
  std::string created;  // RFC 3339, as the API server writes it

  // From status.
  std::string phase;
  std::string user_uid;  // the pod that uses the IP
  bool was_accepted = false;
  std::string message;          // message of the condition Accepted
  bool deletion_waits = false;  // condition DeletionPending
};
Reservation ReadReservation(const v1beta1::GenericObject& object);

// A new object.
nlohmann::json MakeReservation(const Address& address, const std::string& pool, const Owner& owner,
                               const std::string& node, ReleasePolicy policy);

}  // namespace outboard::static_ip

#endif  // OUTBOARD_PLUGINS_STATIC_IP_STATIC_IP_OBJECTS_H_
