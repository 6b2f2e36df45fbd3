#include "plugin_host/runtime/attempt_record.h"

#include <utility>

namespace outboard::runtime {

void AttemptRecord::Begin(uint64_t attempt_id, absl::string_view uid,
                          std::shared_ptr<const Profile> p) {
  id = attempt_id;
  pod_uid = std::string(uid);
  profile = std::move(p);
  const size_t count = profile->plugins().size();
  for (sdk::PluginState& state : states) state = sdk::PluginState();
  states.resize(count);
  skip_filter.assign(count, 0);
  skip_score.assign(count, 0);
  rejected_nodes.clear();
  answers.clear();
  questions.clear();
  group_plugin.reset();
  group_node_sets.clear();
  other_nodes = v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
}

StateCopies::StateCopies(AttemptRecord* attempt)
    : attempt_(attempt), saved_(attempt->states.size()) {
  for (size_t i = 0; i < saved_.size(); ++i) {
    std::unique_ptr<sdk::AttemptState>& state = attempt->states[i].filter;
    if (state == nullptr) continue;
    if (std::unique_ptr<sdk::AttemptState> clone = state->Clone()) {
      saved_[i] = std::exchange(state, std::move(clone));
    }
  }
}

StateCopies::~StateCopies() {
  for (size_t i = 0; i < saved_.size(); ++i) {
    if (saved_[i] != nullptr) attempt_->states[i].filter = std::move(saved_[i]);
  }
}

}  // namespace outboard::runtime
