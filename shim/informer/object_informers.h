// The informers of the kinds of objects.proto and of the configuration's custom resources, which
// may change while they run.
#ifndef OUTBOARD_SHIM_INFORMER_OBJECT_INFORMERS_H_
#define OUTBOARD_SHIM_INFORMER_OBJECT_INFORMERS_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "shim/informer/informer.h"
#include "shim/informer/informer_handler.h"
#include "shim/informer/resources.h"
#include "shim/kube/api_client.h"
#include "shim/kube/objects.h"
#include "shim/kube/wire/custom_resource_name.h"

namespace outboard::informer {

// Reports every object once as what hosts get: a kind of objects.proto, a custom resource, or both
// for a kind that the configuration names as a custom resource.
//
// A resource that is added is listed beside the others. A removed one is stopped, and its
// objects are then reported as removed. A kind that changes between the two forms keeps its
// objects: the old informer ends only after the new one has listed the resource.
//
// Threading: Start, Stop, SetCustomResources, Unsynced and all callbacks but `post` on the
// scheduling thread; the others on any thread. Changes never block it: informers end on threads of
// their own.
// Lifetime: the client outlives this object, and `post` runs nothing after Stop.
// Errors: those of the informers, which retry forever.
class ObjectInformers {
 public:
  using Work = std::function<void(absl::Time now)>;
  using ObjectInformer = Informer<kube::ClusterObject>;
  struct Callbacks {
    // Runs work on the scheduling thread, in order. Called on the informers' threads.
    std::function<void(Work)> post;
    std::function<void(const kube::ClusterObjectPtr&, absl::Time)> upsert;
    std::function<void(const kube::ClusterObjectPtr&, absl::Time)> remove;
    // All objects that were reported, of a kind as kube::KindOf names it.
    std::function<std::vector<kube::ClusterObjectPtr>(absl::string_view kind)> objects_of_kind;
    // The informer of this name has ended; another one of the name counts from 0 again.
    std::function<void(const std::string& name)> ended = [](const std::string&) {};
  };

  // `custom`: without resources that are only written.
  ObjectInformers(kube::ApiClient& client, const std::vector<kube::CustomResourceName>& custom,
                  Callbacks callbacks);
  ~ObjectInformers();
  ObjectInformers(const ObjectInformers&) = delete;
  ObjectInformers& operator=(const ObjectInformers&) = delete;

  void Start();
  // Returns when all threads have ended.
  void Stop();

  // Replaces the custom resources. Changes that are under way end first.
  void SetCustomResources(std::vector<kube::CustomResourceName> custom);
  // Those of the resources, by RESOURCE.VERSION.GROUP, that have not been listed yet.
  std::vector<std::string> Unsynced(const std::vector<kube::CustomResourceName>& of) const;

  // Whether all resources of the start were listed.
  bool synced() const { return unsynced_at_start_.load() == 0; }
  // Visits the informers that report their resource. An informer that is about to replace another
  // is left out.
  void ForEach(absl::FunctionRef<void(const ObjectInformer&)> visit) const;

 private:
  // One resource. Its fields are the scheduling thread's.
  struct Watched final : public InformerHandler<kube::ClusterObject> {
    using Ptr = kube::ClusterObjectPtr;
    void OnAdd(const Ptr& object) override { Upsert(object); }
    void OnUpdate(const Ptr& old_object, const Ptr& new_object) override { Upsert(new_object); }
    void OnDelete(const Ptr& object) override;
    void OnSynced() override;
    void Upsert(const Ptr& object);

    ObjectInformers* owner = nullptr;
    Resource<kube::ClusterObject> resource;
    std::string custom;  // RESOURCE.VERSION.GROUP; empty: a kind of objects.proto
    bool is_of_start = false;
    bool synced = false;
    bool ends = false;     // it is being stopped, or its objects are being removed
    bool stopped = false;  // its objects are being removed
    // The informer of the same path that it replaces once it has synced, and what it has listed
    // meanwhile, by key.
    Watched* replaced = nullptr;
    absl::flat_hash_map<std::string, Ptr> listed;
    std::vector<Ptr> leftovers;  // objects to be reported as removed
    std::unique_ptr<ObjectInformer> informer;
    std::thread stopper;
  };

  Watched* Add(Resource<kube::ClusterObject> resource, std::string custom, bool is_of_start);
  void Report(const kube::ClusterObjectPtr& object, absl::Time now);
  void ReportRemoved(const kube::ClusterObjectPtr& object, absl::Time now);
  void HandleSynced(Watched* watched);
  // Takes the next steps towards `wanted_`.
  void Advance();
  // Whether `wanted_` has the informer's resource in its form.
  bool IsWanted(const Watched& watched) const;
  Watched* SuccessorOf(const Watched* watched) const;
  void End(Watched* watched);
  // Its informer has stopped.
  void HandleStopped(Watched* watched, absl::Time now);
  void TakeOver(Watched* successor, absl::Time now);
  void RemoveLeftovers(Watched* watched, absl::Time now);
  void Erase(Watched* watched);

  kube::ApiClient& client_;
  const Callbacks callbacks_;
  std::vector<kube::CustomResourceName> wanted_;
  bool started_ = false;
  std::atomic<int> unsynced_at_start_{0};
  mutable absl::Mutex mutex_;  // the scheduling thread writes, other threads read
  std::vector<std::unique_ptr<Watched>> watched_;
};

}  // namespace outboard::informer

#endif  // OUTBOARD_SHIM_INFORMER_OBJECT_INFORMERS_H_
