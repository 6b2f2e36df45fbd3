#include "shim/informer/object_informers.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"

namespace outboard::informer {
namespace {

// Removing an object may move many waiting pods: other work comes in between.
constexpr size_t kRemovedAtOnce = 64;

}  // namespace

void ObjectInformers::Watched::Upsert(const Ptr& object) {
  owner->callbacks_.post([this, object](absl::Time now) {
    if (replaced != nullptr) listed[object->key()] = object;
    owner->Report(object, now);
  });
}

void ObjectInformers::Watched::OnDelete(const Ptr& object) {
  owner->callbacks_.post([this, object](absl::Time now) {
    listed.erase(object->key());
    owner->ReportRemoved(object, now);
  });
}

void ObjectInformers::Watched::OnSynced() {
  owner->callbacks_.post([this](absl::Time) { owner->HandleSynced(this); });
}

ObjectInformers::ObjectInformers(kube::ApiClient& client,
                                 const std::vector<kube::CustomResourceName>& custom,
                                 Callbacks callbacks)
    : client_(client), callbacks_(std::move(callbacks)), wanted_(custom) {
  const std::vector<Resource<kube::ClusterObject>> resources = ObjectResources(wanted_);
  for (size_t i = 0; i < resources.size(); ++i)
    Add(resources[i], i < wanted_.size() ? wanted_[i].full_name() : "", /*is_of_start=*/true);
  unsynced_at_start_ = static_cast<int>(watched_.size());
}

ObjectInformers::~ObjectInformers() { Stop(); }

void ObjectInformers::Start() {
  started_ = true;
  for (const auto& watched : watched_) watched->informer->Start();
}

void ObjectInformers::Stop() {
  for (const auto& watched : watched_) {
    if (watched->stopper.joinable()) watched->stopper.join();
    watched->informer->Stop();
  }
}

void ObjectInformers::ForEach(absl::FunctionRef<void(const ObjectInformer&)> visit) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& watched : watched_) {
    if (watched->replaced == nullptr && !watched->stopped) visit(*watched->informer);
  }
}

std::vector<std::string> ObjectInformers::Unsynced(
    const std::vector<kube::CustomResourceName>& of) const {
  std::vector<std::string> unsynced;
  for (const kube::CustomResourceName& name : of) {
    const bool is_synced = absl::c_any_of(watched_, [&](const auto& watched) {
      return watched->synced && !watched->ends && watched->custom == name.full_name();
    });
    if (!is_synced) unsynced.push_back(name.full_name());
  }
  return unsynced;
}

void ObjectInformers::SetCustomResources(std::vector<kube::CustomResourceName> custom) {
  wanted_ = std::move(custom);
  Advance();
}

ObjectInformers::Watched* ObjectInformers::Add(Resource<kube::ClusterObject> resource,
                                               std::string custom, bool is_of_start) {
  auto added = std::make_unique<Watched>();
  added->owner = this;
  added->resource = std::move(resource);
  added->custom = std::move(custom);
  added->is_of_start = is_of_start;
  added->informer = std::make_unique<ObjectInformer>(client_, added->resource, added.get());
  for (const auto& other : watched_) {
    if (other->resource.path == added->resource.path) added->replaced = other.get();
  }
  absl::MutexLock lock(&mutex_);
  return watched_.emplace_back(std::move(added)).get();
}

void ObjectInformers::Report(const kube::ClusterObjectPtr& object, absl::Time now) {
  callbacks_.upsert(object, now);
  if (auto own = BuiltInObject(*object)) callbacks_.upsert(own, now);
}

void ObjectInformers::ReportRemoved(const kube::ClusterObjectPtr& object, absl::Time now) {
  callbacks_.remove(object, now);
  if (auto own = BuiltInObject(*object)) callbacks_.remove(own, now);
}

void ObjectInformers::HandleSynced(Watched* watched) {
  watched->synced = true;
  if (watched->is_of_start) --unsynced_at_start_;
  Advance();
}

bool ObjectInformers::IsWanted(const Watched& watched) const {
  const auto has_its_path = [&](const kube::CustomResourceName& name) {
    return name.path() == watched.resource.path;
  };
  if (!watched.custom.empty()) {
    return absl::c_any_of(wanted_, [&](const kube::CustomResourceName& name) {
      return name.full_name() == watched.custom;
    });
  }
  return absl::c_none_of(wanted_, has_its_path);
}

ObjectInformers::Watched* ObjectInformers::SuccessorOf(const Watched* watched) const {
  for (const auto& other : watched_) {
    if (other->replaced == watched) return other.get();
  }
  return nullptr;
}

void ObjectInformers::Advance() {
  // Before Start nothing is listed, and a changed list starts with the rest.
  bool is_changing = false;
  for (const auto& watched : watched_) {
    if (watched->ends) {
      is_changing = true;
    } else if (watched->replaced != nullptr) {
      is_changing = true;
      if (watched->synced) {
        End(watched->replaced);
      } else if (!IsWanted(*watched)) {
        // It has reported nothing yet.
        End(watched.get());
      }
    }
  }
  if (is_changing) return;
  const std::vector<Resource<kube::ClusterObject>> resources = ObjectResources(wanted_);
  std::vector<Watched*> unwanted;
  for (const auto& watched : watched_) {
    if (!IsWanted(*watched)) unwanted.push_back(watched.get());
  }
  for (size_t i = 0; i < resources.size(); ++i) {
    const std::string custom = i < wanted_.size() ? wanted_[i].full_name() : "";
    const bool is_watched = absl::c_any_of(watched_, [&](const auto& watched) {
      return watched->resource.path == resources[i].path && watched->custom == custom;
    });
    if (is_watched) continue;
    Watched* const added = Add(resources[i], custom, /*is_of_start=*/false);
    if (started_) added->informer->Start();
  }
  for (Watched* const watched : unwanted) {
    if (SuccessorOf(watched) == nullptr) End(watched);
  }
}

void ObjectInformers::End(Watched* watched) {
  if (std::exchange(watched->ends, true)) return;
  watched->stopper = std::thread([this, watched] {
    watched->informer->Stop();
    callbacks_.post([this, watched](absl::Time now) { HandleStopped(watched, now); });
  });
}

void ObjectInformers::HandleStopped(Watched* watched, absl::Time now) {
  watched->stopper.join();
  {
    absl::MutexLock lock(&mutex_);
    watched->stopped = true;
  }
  // An informer that never took over was not counted.
  if (watched->replaced == nullptr) callbacks_.ended(watched->resource.name);
  if (!watched->custom.empty()) watched->leftovers = callbacks_.objects_of_kind(watched->custom);
  if (Watched* const successor = SuccessorOf(watched)) TakeOver(successor, now);
  RemoveLeftovers(watched, now);
}

void ObjectInformers::TakeOver(Watched* successor, absl::Time now) {
  // The two were not in step: what the old informer reported last may be older than what the new
  // one knows.
  absl::flat_hash_map<std::string, Watched::Ptr> missing = std::move(successor->listed);
  const std::string kind = KindOfPath(successor->resource.path);
  for (const kube::ClusterObjectPtr& object : callbacks_.objects_of_kind(kind)) {
    const auto known = missing.find(object->key());
    if (known == missing.end()) {
      callbacks_.remove(object, now);
    } else if (known->second->resource_version == object->resource_version) {
      missing.erase(known);
    }
  }
  for (const auto& [key, object] : missing) Report(object, now);
  absl::MutexLock lock(&mutex_);
  successor->replaced = nullptr;
  successor->listed.clear();
}

void ObjectInformers::RemoveLeftovers(Watched* watched, absl::Time now) {
  for (size_t i = 0; i < kRemovedAtOnce && !watched->leftovers.empty(); ++i) {
    callbacks_.remove(watched->leftovers.back(), now);
    watched->leftovers.pop_back();
  }
  if (watched->leftovers.empty()) return Erase(watched);
  callbacks_.post([this, watched](absl::Time later) { RemoveLeftovers(watched, later); });
}

void ObjectInformers::Erase(Watched* watched) {
  if (watched->is_of_start && !watched->synced) --unsynced_at_start_;
  std::unique_ptr<Watched> ended;
  {
    absl::MutexLock lock(&mutex_);
    const auto it =
        absl::c_find_if(watched_, [&](const auto& other) { return other.get() == watched; });
    ended = std::move(*it);
    watched_.erase(it);
  }
  Advance();
}

}  // namespace outboard::informer
