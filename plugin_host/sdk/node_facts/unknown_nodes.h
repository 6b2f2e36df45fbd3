// Nodes of which a plugin does not know a fact: what happens then, one warning, and a metric.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_UNKNOWN_NODES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_UNKNOWN_NODES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/metrics.h"
#include "plugin_host/sdk/node_table.h"

namespace outboard::sdk {

// What a plugin does with a node of which a fact that it needs is unknown.
enum class OnUnknown { kPass, kReject, kScoreLast };

// Reads the argument `unknown`: `pass`, `reject` and, if `may_score`, `score-last`; reports
// problems in `root`.
OnUnknown ReadOnUnknown(const ArgsObject& root, OnUnknown default_value, bool may_score);

// Counts such nodes. Logs one warning, at the first of them.
//
// Threading: thread-compatible.
// Lifetime:  a gauge, as the holder.
// Errors:    none.
class UnknownNodes {
 public:
  // `fact`: `how GPUs are connected`. `then`: what the plugin does with them.
  UnknownNodes(std::string plugin, std::string fact, std::string then, std::shared_ptr<Gauge> gauge)
      : plugin_(std::move(plugin)),
        fact_(std::move(fact)),
        then_(std::move(then)),
        gauge_(std::move(gauge)) {}

  void Set(Slot slot, absl::string_view node, bool unknown);
  void Forget(Slot slot) { Set(slot, "", false); }
  void Clear();
  int64_t count() const { return count_; }

 private:
  const std::string plugin_, fact_, then_;
  const std::shared_ptr<Gauge> gauge_;
  std::vector<uint8_t> unknown_;  // By slot.
  int64_t count_ = 0;
  bool warned_ = false;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_UNKNOWN_NODES_H_
