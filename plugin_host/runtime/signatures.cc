#include "plugin_host/runtime/signatures.h"

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/canonical_bytes.h"

namespace outboard::runtime {

std::string Signatures::Of(const Profile& profile, const v1beta1::Pod& pod) {
  if (!profile.signed_parts()) return "";
  v1beta1::Pod signed_pod;
  profile.signed_parts()->Copy(pod, &signed_pod);
  std::string key = absl::StrCat(profile.name(), "\n", sdk::CanonicalBytes(signed_pod));
  if (numbers_.size() >= max_kept_ && !numbers_.contains(key)) numbers_.clear();
  uint64_t& number = numbers_[std::move(key)];
  if (number == 0) number = ++last_;
  return absl::StrCat(absl::Hex(number));
}

}  // namespace outboard::runtime
