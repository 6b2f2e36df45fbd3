#include "plugin_host/reload/plugin_set.h"

#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace outboard::reload {
namespace {

constexpr size_t kShortDigest = 8;

absl::Status About(absl::string_view name, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(name, ": ", why));
}

// The host runs this code. Directories are not checked: an emptyDir of Kubernetes is
// world-writable, but only the pod sees it.
absl::Status CheckMode(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & S_IWOTH) != 0) {
    return About(path, "all users may write to it; run chmod o-w");
  }
  return absl::OkStatus();
}

}  // namespace

std::string DirectoryContent::Digest() const {
  return Sha256(ManifestText(manifest)).substr(0, 16);
}

absl::StatusOr<DirectoryContent> ReadDirectory(const std::string& directory,
                                               const std::string& without) {
  if (absl::Status mode = CheckMode(absl::StrCat(directory, "/", kManifestName)); !mode.ok())
    return mode;
  absl::StatusOr<Manifest> manifest = ReadManifest(directory);
  if (!manifest.ok()) return manifest.status();
  std::set<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entries(directory, error), end; !error && entries != end;
       entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    // Names that begin with a dot are temporary files, or belong to Kubernetes' volumes.
    if (absl::EndsWith(name, ".so") && !absl::StartsWith(name, ".")) names.insert(name);
  }
  if (error)
    return absl::UnavailableError(absl::StrCat("cannot read ", directory, ": ", error.message()));
  DirectoryContent content;
  content.manifest = *std::move(manifest);
  content.manifest.erase(without);
  names.erase(without);
  for (const std::string& name : names) {
    if (content.manifest.count(name) == 0) {
      return About(name, absl::StrCat("it is not in ", kManifestName,
                                      ", and what is not there is not loaded"));
    }
  }
  for (const auto& [name, digest] : content.manifest) {
    const std::string path = absl::StrCat(directory, "/", name);
    if (absl::Status mode = CheckMode(path); !mode.ok()) return mode;
    absl::StatusOr<std::string> bytes = ReadFile(path);
    if (!bytes.ok())
      return About(name, absl::StrCat(kManifestName, " names it: ", bytes.status().message()));
    if (const std::string actual = Sha256(*bytes); actual != digest) {
      return About(
          name, absl::StrCat("its sha256 is ", actual, ", but ", kManifestName, " says ", digest));
    }
    content.objects.emplace(name, *std::move(bytes));
  }
  return content;
}

absl::StatusOr<std::unique_ptr<PluginSet>> PluginSet::Load(const sdk::PluginRegistry& builtin,
                                                           const DirectoryContent& content,
                                                           const Choose& choose,
                                                           const PluginSet* previous) {
  std::unique_ptr<PluginSet> set(new PluginSet);
  sdk::PluginRegistry all;
  for (const auto& [name, bytes] : content.objects) {
    const std::string& digest = content.manifest.at(name);
    const auto with_name = [name = &name](const absl::Status& why) {
      return absl::Status(why.code(), absl::StrCat(*name, ": ", why.message()));
    };
    std::shared_ptr<LoadedObject>& object = set->objects_[digest];
    if (object != nullptr)
      return About(name, "another object of the directory has the same content");
    if (previous != nullptr) {
      if (const auto same = previous->objects_.find(digest); same != previous->objects_.end())
        object = same->second;
    }
    if (object == nullptr) {
      absl::StatusOr<std::unique_ptr<LoadedObject>> loaded = LoadedObject::Load(name, bytes);
      if (!loaded.ok()) return with_name(loaded.status());
      object = *std::move(loaded);
    }
    if (absl::Status registered = object->Register(&all); !registered.ok())
      return with_name(registered);
    absl::StrAppend(&set->description_, set->description_.empty() ? "" : ", ", name, "@",
                    digest.substr(0, kShortDigest));
  }
  for (const auto& [name, descriptor] : all.descriptors()) set->from_objects_.push_back(name);
  for (const auto& [name, descriptor] : builtin.descriptors()) {
    if (all.Find(name) != nullptr) {
      LOG(WARNING) << "Plugin " << name
                   << ": an object of the directory replaces the built-in plugin";
    } else if (absl::Status added = all.Add(descriptor); !added.ok()) {
      return added;
    }
  }
  if (absl::Status chosen = choose(all, &set->registry_); !chosen.ok()) return chosen;
  if (!content.objects.empty()) set->digest_ = content.Digest();
  return set;
}

}  // namespace outboard::reload
