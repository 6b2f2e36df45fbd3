// Amounts of time that v1alpha1 has in other units than microseconds.
#ifndef OUTBOARD_SHIM_HOSTS_ADAPTER_UNITS_H_
#define OUTBOARD_SHIM_HOSTS_ADAPTER_UNITS_H_

#include <google/protobuf/descriptor.h>

#include <cstdint>

namespace outboard::hosts::adapter {

// v1alpha1's unit of one field: `times` units are `per` microseconds.
//
// Threading: a value.
// Lifetime:  any.
// Errors:    none; an amount that is too large to say in the other unit becomes the largest.
class Unit {
 public:
  constexpr Unit(int64_t times, int64_t per) : times_(times), per_(per) {}
  int64_t FromMicros(int64_t micros) const;
  int64_t ToMicros(int64_t amount) const;

 private:
  const int64_t times_, per_;
};

// Null for a field that has the same unit in both versions. Pure.
const Unit* UnitOf(const google::protobuf::FieldDescriptor* field);

}  // namespace outboard::hosts::adapter

#endif  // OUTBOARD_SHIM_HOSTS_ADAPTER_UNITS_H_
