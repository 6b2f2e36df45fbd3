#include "shim/hosts/config_check.h"

#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"

namespace outboard::hosts {

void ConfigCheck::Ask(const std::string& host, std::unique_ptr<GrpcHostClient> client,
                      absl::Time deadline) {
  v1beta1::ConfigureRequest request = plans_.configure.at(host);
  request.set_validate_only(true);
  client->StartConfigure(std::move(request), deadline);
  questions_.push_back({host, std::move(client), std::nullopt});
}

bool ConfigCheck::IsNew(const std::string& host, const Plans& current) const {
  return plans_.configure.count(host) != 0 && !SameConfigure(plans_, current, host);
}

std::optional<absl::Status> ConfigCheck::Take() {
  for (Question& question : questions_) {
    if (!question.answer.has_value()) question.answer = question.client->TakeConfigured();
  }
  if (!std::all_of(questions_.begin(), questions_.end(),
                   [](const Question& question) { return question.answer.has_value(); }))
    return std::nullopt;
  std::set<std::string> accepted;
  std::map<std::string, std::string> refused;  // why, by host
  for (const Question& question : questions_) {
    const absl::Status& answered = question.answer->status();
    if (answered.ok()) {
      const absl::Status error = ConfigureError(*config_, plans_.resolved, **question.answer);
      if (error.ok()) {
        accepted.insert(question.host);
      } else {
        refused[question.host] = std::string(error.message());
      }
    } else if (!absl::IsUnimplemented(answered)) {  // Hosts of v1alpha1 cannot check.
      LOG(WARNING) << "Host \"" << question.host
                   << "\" did not check the new configuration: " << answered.message();
    }
  }
  std::vector<std::string> problems;
  for (const auto& [host, why] : refused) {
    if (accepted.count(host) == 0) problems.push_back(why);
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace outboard::hosts
