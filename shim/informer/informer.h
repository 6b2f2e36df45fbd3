// Keeps one resource of the API server up to date and reports changes to a handler.
#ifndef OUTBOARD_SHIM_INFORMER_INFORMER_H_
#define OUTBOARD_SHIM_INFORMER_INFORMER_H_

#include <glog/logging.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "shim/informer/informer_handler.h"
#include "shim/informer/reflector.h"
#include "shim/informer/resources.h"
#include "shim/informer/snapshot.h"
#include "shim/informer/store.h"
#include "shim/informer/undecoded_objects.h"

namespace outboard::informer {

// Typical use:
//
//   Informer<kube::PodObject> pods(client, Pods(), &handler);
//   pods.Start();
//
// Threading: Start and Stop from one thread. The handler is called on the informer's own thread.
// Counters and synced() may be read from any thread.
// Lifetime: client, resource and handler outlive this object; the destructor stops it.
// Errors: retried forever (see Reflector). An object that cannot be decoded is logged and in
// undecoded() until it can be decoded or is deleted; the handler keeps its last known state.
template <typename T>
class Informer : private ReflectorTarget {
 public:
  using Ptr = std::shared_ptr<const T>;

  Informer(kube::ApiClient& client, const Resource<T>& resource, InformerHandler<T>* handler,
           ReflectorPolicyOptions options = {})
      : resource_(resource),
        handler_(handler),
        store_(handler),
        reflector_(client, *this,
                   ReflectorOptions{resource.name, resource.path, resource.field_selector,
                                    resource.label_selector, resource.may_be_absent,
                                    resource.only_json, options}) {}
  ~Informer() override { Stop(); }

  void Start() { reflector_.Start(); }
  void Stop() { reflector_.Stop(); }

  const std::string& name() const { return resource_.name; }
  // Whether the first complete state was delivered.
  bool synced() const { return synced_.load(std::memory_order_acquire); }
  const ReflectorStats& stats() const { return reflector_.stats(); }
  // Events with an older version of an object than the store's.
  uint64_t stale_events() const { return stale_events_; }
  // Objects that could not be decoded.
  uint64_t rejected_objects() const { return rejected_objects_; }
  // Objects that exist, but whose last version could not be decoded.
  const UndecodedObjects& undecoded() const { return undecoded_; }
  size_t objects() const { return objects_; }

 private:
  void BeginSnapshot() override { snapshot_.Clear(); }

  absl::StatusOr<PageInfo> AddPage(Encoding encoding, absl::string_view body) override {
    absl::StatusOr<kube::ListPage<T>> page = DecodePage(encoding, body);
    if (!page.ok()) return page.status();
    rejected_objects_ += page->rejected.size();
    for (Ptr& object : page->items) snapshot_.Add(store_.Known(std::move(object)));
    for (kube::RejectedObject& rejected : page->rejected) snapshot_.Reject(std::move(rejected));
    return PageInfo{page->resource_version, page->continue_token};
  }

  absl::StatusOr<EventInfo> Decode(Encoding encoding, absl::string_view frame) override {
    object_ = nullptr;
    rejected_.reset();
    return encoding == Encoding::kProtobuf ? DecodeProtobuf(frame) : DecodeJson(frame);
  }

  absl::StatusOr<kube::ApiStatus> DecodeStatus(Encoding encoding, absl::string_view body) override {
    if (encoding == Encoding::kProtobuf) {
      auto envelope = kube::OpenEnvelope(body);
      if (!envelope.ok()) return envelope.status();
      return decoder_.DecodeStatus(envelope->raw);
    }
    auto document = kube::ParseJson(resource_.name, body);
    if (!document.ok()) return document.status();
    return kube::DecodeStatusJson(*document);
  }

  void Apply() override {
    const bool deleted = type_ == kube::WatchEventType::kDeleted;
    bool news = true;
    if (object_ != nullptr) {
      undecoded_.Remove(object_->uid());
      news = deleted ? store_.Delete(object_) : store_.Put(object_);
    } else if (rejected_.has_value() && deleted) {
      undecoded_.Remove(rejected_->identity.uid);
      news = store_.DeleteUndecoded(rejected_->identity.uid, rejected_->identity.resource_version);
    } else if (rejected_.has_value()) {
      undecoded_.Add(*rejected_);
      LogUndecoded(*rejected_);
    }
    if (!news) ++stale_events_;
    objects_ = store_.size();
  }

  void Collect() override {
    const bool deleted = type_ == kube::WatchEventType::kDeleted;
    if (object_ != nullptr) {
      deleted ? snapshot_.Delete(object_->uid()) : snapshot_.Add(store_.Known(object_));
    } else if (rejected_.has_value()) {
      deleted ? snapshot_.Delete(rejected_->identity.uid) : snapshot_.Reject(*rejected_);
    }
  }

  void CommitSnapshot() override {
    const std::vector<kube::RejectedObject> rejected = snapshot_.TakeRejected();
    absl::flat_hash_set<std::string> undecoded;
    undecoded_.Clear();
    for (const kube::RejectedObject& object : rejected) {
      undecoded.insert(object.identity.uid);
      undecoded_.Add(object);
    }
    store_.Replace(snapshot_.TakeObjects(), undecoded);
    objects_ = store_.size();
    for (const kube::RejectedObject& object : rejected) LogUndecoded(object);
    if (!synced_.exchange(true, std::memory_order_acq_rel)) handler_->OnSynced();
  }

  absl::StatusOr<kube::ListPage<T>> DecodePage(Encoding encoding, absl::string_view body) {
    if (encoding == Encoding::kProtobuf) {
      auto envelope = kube::OpenEnvelope(body);
      if (!envelope.ok()) return envelope.status();
      if (!resource_.list_kind.empty() && envelope->kind != resource_.list_kind)
        return WrongKind(envelope->kind);
      return resource_.decode_list(decoder_, envelope->raw);
    }
    auto document = kube::ParseJson(resource_.name, body);
    if (!document.ok()) return document.status();
    if (!resource_.list_kind.empty() && document->FindString("kind") != resource_.list_kind) {
      return WrongKind(document->FindString("kind"));
    }
    return resource_.decode_list_json(*document);
  }

  absl::StatusOr<EventInfo> DecodeProtobuf(absl::string_view bytes) {
    auto frame = kube::DecodeWatchFrame(bytes);
    if (!frame.ok()) return frame.status();
    EventInfo event;
    event.type = type_ = frame->type;
    if (frame->type == kube::WatchEventType::kError) {
      auto status = decoder_.DecodeStatus(frame->object.raw);
      if (!status.ok()) return status.status();
      event.status = *std::move(status);
      return event;
    }
    if (frame->type != kube::WatchEventType::kBookmark) {
      auto object = resource_.decode(decoder_, frame->object.raw);
      if (object.ok()) return Keep(*std::move(object), std::move(event));
      Reject(kube::ReadIdentity(frame->object.raw), object.status().message());
    }
    return FromBookmark(decoder_.DecodeBookmark(frame->object.raw), std::move(event));
  }

  absl::StatusOr<EventInfo> DecodeJson(absl::string_view line) {
    auto document = kube::ParseJson(resource_.name, line);
    if (!document.ok()) return document.status();
    EventInfo event;
    if (document->FindString("kind") == "Status") {
      // Some proxies and servers answer a watch with 200 and a bare Status.
      auto status = kube::DecodeStatusJson(*document);
      if (!status.ok()) return status.status();
      event.status = *std::move(status);
      return event;
    }
    auto frame = kube::DecodeWatchFrameJson(*document);
    if (!frame.ok()) return frame.status();
    event.type = type_ = frame->type;
    if (frame->type == kube::WatchEventType::kError) {
      auto status = kube::DecodeStatusJson(*frame->object);
      if (!status.ok()) return status.status();
      event.status = *std::move(status);
      return event;
    }
    if (frame->type != kube::WatchEventType::kBookmark) {
      auto object = resource_.decode_json(*frame->object);
      if (object.ok()) return Keep(*std::move(object), std::move(event));
      Reject(kube::ReadIdentityJson(*frame->object), object.status().message());
    }
    return FromBookmark(kube::DecodeBookmarkJson(*frame->object), std::move(event));
  }

  EventInfo Keep(Ptr object, EventInfo event) {
    event.resource_version = object->resource_version;
    object_ = std::move(object);
    return event;
  }

  absl::StatusOr<EventInfo> FromBookmark(absl::StatusOr<kube::Bookmark> bookmark, EventInfo event) {
    if (!bookmark.ok()) return bookmark.status();
    event.resource_version = bookmark->resource_version;
    event.initial_events_end = bookmark->initial_events_end;
    return event;
  }

  absl::Status WrongKind(absl::string_view kind) const {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a ", resource_.list_kind, ", got \"", kind, "\""));
  }

  void Reject(kube::ObjectIdentity identity, absl::string_view why) {
    ++rejected_objects_;
    rejected_ = {std::move(identity), std::string(why)};
  }

  void LogUndecoded(const kube::RejectedObject& rejected) const {
    const Ptr known = store_.Find(rejected.identity.uid);
    LOG(ERROR) << resource_.name << ": "
               << UndecodedText(rejected, known == nullptr ? "" : known->resource_version);
  }

  const Resource<T>& resource_;
  InformerHandler<T>* const handler_;
  std::atomic<bool> synced_{false};
  std::atomic<uint64_t> stale_events_{0};
  std::atomic<uint64_t> rejected_objects_{0};
  std::atomic<size_t> objects_{0};
  UndecodedObjects undecoded_;
  // Of the reflector's thread.
  kube::Decoder decoder_;
  Store<T> store_;
  Snapshot<T> snapshot_;
  // Of the last event: its object, or what is known of an object that could not be decoded.
  Ptr object_;
  std::optional<kube::RejectedObject> rejected_;
  kube::WatchEventType type_ = kube::WatchEventType::kError;

  // Last, so that its thread ends before the members it uses are destroyed.
  Reflector reflector_;
};

}  // namespace outboard::informer

#endif  // OUTBOARD_SHIM_INFORMER_INFORMER_H_
