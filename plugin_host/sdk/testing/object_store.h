// Stands for the API server's custom resources in tests of plugins that keep objects.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_TESTING_OBJECT_STORE_H_
#define OUTBOARD_PLUGIN_HOST_SDK_TESTING_OBJECT_STORE_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "proto/outboard/v1alpha1/effect.pb.h"

namespace outboard::sdk::testing {

// Writes objects as the API server does (names are unique, versions must match, a status is written
// apart, finalizers keep what was deleted) and tells the harness what became of them.
//
// Threading: one thread. Lifetime: the harness outlives it. Errors: as the API server's.
class ObjectStore {
 public:
  explicit ObjectStore(PluginHarness* harness) : harness_(harness) {}

  absl::Status Write(const v1alpha1::Effect& effect);
  // Ticks, and carries out what the plugin wants, until it wants nothing more; a second between.
  // Returns how many writes there were.
  int Settle(absl::Time* now);
  // Ticks once.
  int Tick(absl::Time now);

  // A person's kubectl: creates or replaces, with what `text` (JSON) says; status too.
  void Apply(const std::string& resource, const std::string& ns, const std::string& name,
             const std::string& text);
  void Delete(const std::string& resource, const std::string& ns, const std::string& name);
  // Null: there is none.
  nlohmann::json Get(const std::string& resource, const std::string& ns,
                     const std::string& name) const;
  std::vector<std::string> Names(const std::string& resource) const;

 private:
  struct Entry {
    std::string resource, ns, name;
    nlohmann::json whole;
  };
  std::string NextVersion() { return std::to_string(++version_); }
  v1alpha1::ClusterObject ToObject(const Entry& entry) const;
  // Tells the harness; an object that is to go and that nobody holds goes.
  void Publish(const std::string& key);

  PluginHarness* const harness_;
  std::map<std::string, Entry> entries_;
  int64_t version_ = 100;
};

}  // namespace outboard::sdk::testing

#endif  // OUTBOARD_PLUGIN_HOST_SDK_TESTING_OBJECT_STORE_H_
