#include "plugin_host/runtime/signatures.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace outboard::runtime {

std::string Signatures::Of(const Profile& profile, const v1alpha1::Pod& pod) {
  if (!profile.signed_parts()) return "";
  v1alpha1::Pod signed_pod;
  profile.signed_parts()->Copy(pod, &signed_pod);
  std::string key = absl::StrCat(profile.name(), "\n");
  {
    google::protobuf::io::StringOutputStream stream(&key);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    signed_pod.SerializeToCodedStream(&out);
  }
  if (numbers_.size() >= max_kept_ && !numbers_.contains(key)) numbers_.clear();
  uint64_t& number = numbers_[std::move(key)];
  if (number == 0) number = ++last_;
  return absl::StrCat(absl::Hex(number));
}

}  // namespace outboard::runtime
