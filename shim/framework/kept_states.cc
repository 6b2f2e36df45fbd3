#include "shim/framework/kept_states.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "shim/cut_text.h"
#include "shim/framework/answer_check.h"

namespace outboard::framework {
namespace {

constexpr size_t kMaxStateBytes = 4 << 10;
constexpr size_t kMaxStatesBytes = 16 << 10;  // of an answer

}  // namespace

std::string FaultOfStates(const google::protobuf::RepeatedPtrField<v1beta1::PluginState>& states,
                          const std::vector<std::string>& plugins) {
  absl::flat_hash_set<absl::string_view> named;
  size_t bytes = 0;
  for (const v1beta1::PluginState& its : states) {
    if (!absl::c_linear_search(plugins, its.plugin())) {
      return absl::StrCat("answers for \"", CutText(its.plugin(), 100),
                          "\", which the profile does not have there");
    }
    if (!named.insert(its.plugin()).second) return absl::StrCat("has two states of ", its.plugin());
    if (its.state().empty() || its.state().size() > kMaxStateBytes)
      return absl::StrCat("has a state of ", its.state().size(), " bytes of ", its.plugin());
    bytes += its.state().size();
  }
  return bytes <= kMaxStatesBytes ? "" : absl::StrCat("has states of ", bytes, " bytes");
}

}  // namespace outboard::framework
