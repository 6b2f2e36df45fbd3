// A fake of the API server's custom resources, for tests of plugins that write objects.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_TESTING_OBJECT_STORE_H_
#define OUTBOARD_PLUGIN_HOST_SDK_TESTING_OBJECT_STORE_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "outboard/v1beta1/effect.pb.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::sdk::testing {

// Writes objects like the API server (unique names, matching versions, separate status, finalizers
// delay deletion) and sends the results to the harness.
//
// Threading: one thread.
// Lifetime: the harness outlives it.
// Errors: as the API server's.
class ObjectStore {
 public:
  explicit ObjectStore(PluginHarness* harness) : harness_(harness) {}

  absl::Status Write(const v1beta1::Effect& effect);
  // Ticks once a second and carries out the plugin's writes, until there are none. Returns the
  // number of writes.
  int Settle(absl::Time* now);
  // Ticks once.
  int Tick(absl::Time now);

  // Like kubectl: creates or replaces the object with `text` (JSON), including its status.
  void Apply(const std::string& resource, const std::string& ns, const std::string& name,
             const std::string& text);
  void Delete(const std::string& resource, const std::string& ns, const std::string& name);
  // Null: not found.
  nlohmann::json Get(const std::string& resource, const std::string& ns,
                     const std::string& name) const;
  std::vector<std::string> Names(const std::string& resource) const;

 private:
  struct Entry {
    std::string resource, ns, name;
    nlohmann::json whole;
  };
  std::string NextVersion() { return std::to_string(++version_); }
  v1beta1::ClusterObject ToObject(const Entry& entry) const;
  // Sends the object to the harness; removes a deleted object without finalizers.
  void Publish(const std::string& key);

  PluginHarness* const harness_;
  std::map<std::string, Entry> entries_;
  int64_t version_ = 100;
};

}  // namespace outboard::sdk::testing

#endif  // OUTBOARD_PLUGIN_HOST_SDK_TESTING_OBJECT_STORE_H_
