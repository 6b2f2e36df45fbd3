// Objects that were read from manifests and miss what depends on other objects.
#ifndef OUTBOARD_CLI_MANIFESTS_DRAFTS_H_
#define OUTBOARD_CLI_MANIFESTS_DRAFTS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/manifests/problems.h"
#include "google/protobuf/message.h"
#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/object_kinds.h"
#include "shim/kube/wire/scheduling_v1.pb.h"

namespace outboard::manifests {

template <typename Message>
struct Draft {
  Message message;
  Position at;  // of the name
  // Of the fields that decide on priorities.
  std::map<std::string, Position> fields;
  bool to_schedule = false;
};

// An object of a kind in object_kinds.h.
struct ObjectDraft {
  const kube::ObjectKind* kind = nullptr;
  std::unique_ptr<google::protobuf::Message> message;
  Position at;
  bool has_status = false;  // in the manifest
};

// An object whose kind is known but not interpreted here: custom resources, and Kubernetes' own
// kinds that only plugins read (ResourceClaim, ResourceSlice, PodGroup; DeviceClass too).
struct OtherObject {
  std::string api_version;
  std::string kind;
  std::string ns;  // "" without one
  std::string name;
  std::string json;  // the whole object
  Position at;
  std::string place;  // of its name, "FILE:LINE:COLUMN"; set when all files are read
};

struct Drafts {
  std::vector<Draft<kube::wire::Pod>> pods;
  std::vector<Draft<kube::wire::Node>> nodes;
  std::vector<Draft<kube::wire::Namespace>> namespaces;
  std::vector<Draft<kube::wire::PriorityClass>> priority_classes;
  std::vector<ObjectDraft> objects;
  std::vector<OtherObject> others;
};

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_DRAFTS_H_
