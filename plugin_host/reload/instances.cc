#include "plugin_host/reload/instances.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "glog/logging.h"
#include "plugin_host/runtime/cut_text.h"
#include "plugin_host/services/listen_address.h"

namespace outboard::reload {
namespace {

// How long a shim whose connection broke has to reconnect. A shim that knows a newer instance does
// not.
constexpr absl::Duration kIdle = absl::Seconds(2);

}  // namespace

Instances::Instances(Options options, const sdk::PluginRegistry* builtin)
    : options_(std::move(options)), builtin_(builtin) {}

// The newest first, so that a shim never switches back to an older one.
Instances::~Instances() {
  while (!instances_.empty()) instances_.pop_back();
}

absl::StatusOr<bool> Instances::Refresh() {
  DirectoryContent content;
  if (!options_.directory.empty()) {
    absl::StatusOr<DirectoryContent> read = ReadDirectory(options_.directory);
    if (!read.ok()) return read.status();
    content = *std::move(read);
  }
  const PluginSet* const newest = instances_.empty() ? nullptr : instances_.back()->plugins.get();
  const std::string digest = content.objects.empty() ? "" : content.Digest();
  if (newest != nullptr && newest->digest() == digest) return false;
  if (instances_.size() >= kMaxInstances) {
    return absl::ResourceExhaustedError(
        absl::StrCat(instances_.size(), " instances have not ended; restart this host"));
  }
  absl::StatusOr<std::unique_ptr<PluginSet>> plugins =
      PluginSet::Load(*builtin_, content, options_.choose, newest);
  if (!plugins.ok()) return plugins.status();
  if (absl::Status started = Start(*std::move(plugins)); !started.ok()) return started;
  return true;
}

absl::Status Instances::Start(std::unique_ptr<PluginSet> plugins) {
  auto instance = std::make_unique<Instance>();
  absl::BitGen random;
  instance->id = absl::StrFormat("host-%016x", absl::Uniform<uint64_t>(random));
  instance->listen = absl::StrReplaceAll(options_.listen, {{"{instance}", instance->id}});
  absl::StatusOr<services::ListenAddress> address =
      services::ListenAddress::Parse(instance->listen);
  if (!address.ok()) return address.status();
  services::Engine::Options engine = options_.engine;
  engine.address = address->target;
  if (address->is_unix) {
    engine.socket_path = address->path;
    if (absl::Status free = services::PrepareSocketPath(address->path); !free.ok()) return free;
    if (instance->listen != options_.listen) services::RemoveStaleSiblings(address->path);
  }
  engine.identity.instance = instance->id;
  engine.identity.build = options_.version;
  engine.identity.build_digest = options_.program_digest;
  engine.identity.started = absl::Now();
  if (!plugins->digest().empty()) {
    absl::StrAppend(&engine.identity.build, " with ", plugins->description());
    // The shim distinguishes builds by this, and `outboard plugin` waits for it.
    absl::StrAppend(&engine.identity.build_digest, "+", plugins->digest());
  }
  instance->plugins = std::move(plugins);
  absl::StatusOr<std::unique_ptr<services::Engine>> started =
      services::Engine::Start(engine, &instance->plugins->registry());
  if (!started.ok()) return started.status();
  instance->engine = *std::move(started);
  LOG(INFO) << "outboard-host " << engine.identity.build << " instance " << instance->id
            << " listens on " << instance->listen << " with "
            << instance->plugins->registry().descriptors().size() << " plugins";
  instances_.push_back(std::move(instance));
  // Never the newest.
  const auto oldest = std::find_if(instances_.begin(), std::prev(instances_.end()),
                                   [](const auto& held) { return !held->draining; });
  if (instances_.size() > kMaxWarm && oldest != std::prev(instances_.end())) {
    (*oldest)->draining = true;
    (*oldest)->engine->Drain(absl::ZeroDuration());
    LOG(INFO) << "Instance " << (*oldest)->id
              << " drains: too many instances: " << instances_.size();
  }
  return absl::OkStatus();
}

void Instances::SetWarning(absl::string_view warning) {
  if (!instances_.empty())
    instances_.back()->engine->SetWarning(std::string(runtime::CutText(warning)));
}

int Instances::Retire(absl::Time now) {
  int ended = 0;
  for (size_t i = instances_.size(); i-- > 0;) {
    Instance& instance = *instances_[i];
    const bool is_over = instance.engine->connected_sessions() == 0 ||
                         (instance.draining && instance.engine->Drain(absl::ZeroDuration()));
    if (i + 1 == instances_.size() || !is_over) {
      instance.idle_since = absl::InfiniteFuture();
      continue;
    }
    instance.idle_since = std::min(instance.idle_since, now);
    if (now - instance.idle_since < kIdle) continue;
    LOG(INFO) << "Instance " << instance.id << " was replaced and is no longer used; ending it";
    instances_.erase(instances_.begin() + static_cast<std::ptrdiff_t>(i));
    ++ended;
  }
  return ended;
}

bool Instances::Drain(absl::Duration timeout) {
  const absl::Time until = absl::Now() + timeout;
  // All begin to drain before the wait for any.
  for (const auto& instance : instances_) instance->engine->Drain(absl::ZeroDuration());
  bool drained = true;
  for (const auto& instance : instances_) {
    drained &= instance->engine->Drain(std::max(absl::ZeroDuration(), until - absl::Now()));
  }
  return drained;
}

std::vector<std::string> Instances::ids() const {
  std::vector<std::string> ids;
  for (const auto& instance : instances_) ids.push_back(instance->id);
  return ids;
}

}  // namespace outboard::reload
