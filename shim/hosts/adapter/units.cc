#include "shim/hosts/adapter/units.h"

#include <algorithm>
#include <limits>
#include <map>

#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/permit.pb.h"
#include "outboard/v1beta1/pre_bind.pb.h"

namespace outboard::hosts::adapter {
namespace {

int64_t Scaled(int64_t amount, int64_t times, int64_t per) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return std::clamp(amount, -(kMost / times), kMost / times) * times / per;
}

}  // namespace

int64_t Unit::FromMicros(int64_t micros) const { return Scaled(micros, times_, per_); }

int64_t Unit::ToMicros(int64_t amount) const { return Scaled(amount, per_, times_); }

const Unit* UnitOf(const google::protobuf::FieldDescriptor* field) {
  static const auto* const kUnits = [] {
    constexpr Unit kMillis(1, 1000), kNanos(1000, 1);
    auto* const units = new std::map<const google::protobuf::FieldDescriptor*, Unit>;
    const auto add = [&](const google::protobuf::Descriptor* type, const char* name, Unit unit) {
      units->emplace(type->FindFieldByName(name), unit);
    };
    add(v1beta1::SyncRequest::descriptor(), "time_unix_micros", kNanos);
    add(v1beta1::Ack::descriptor(), "time_unix_micros", kNanos);
    add(v1beta1::PluginWait::descriptor(), "remaining_micros", kMillis);
    add(v1beta1::PermitWait::descriptor(), "timeout_micros", kMillis);
    add(v1beta1::PreBindRequest::descriptor(), "elapsed_micros", kMillis);
    return units;
  }();
  const auto it = kUnits->find(field);
  return it == kUnits->end() ? nullptr : &it->second;
}

}  // namespace outboard::hosts::adapter
