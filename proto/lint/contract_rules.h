// What every file of the contract has to keep to, as functions from descriptors to complaints.
#ifndef OUTBOARD_PROTO_LINT_CONTRACT_RULES_H_
#define OUTBOARD_PROTO_LINT_CONTRACT_RULES_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace outboard::lint {

// Complaints about one file, each `file:line: element: what`, in the file's order; empty if it is
// in order. The rules:
//   - the directory is the package, the package ends in a version;
//   - a comment on every message, field, enum, value, service and RPC; a field's says more than
//   nothing;
//   - an enum's zero value is named …_UNSPECIFIED, but for those whose zero is a real and safe
//   value (listed in the source);
//   - amounts of time name their unit in full (…_millis, …_micros, …_seconds), never …_ms, …_us,
//   …_sec;
//   - every RPC has a request and a response of its own, named after it; `Sync`, `Cycle`, … streams
//   as well;
//   - field numbers of removed fields are reserved together with the name (see CheckRemoved).
//
// The file must come from a pool that was built with source info.
// Threading: pure. Errors: none; everything found is a complaint.
std::vector<std::string> CheckFile(const google::protobuf::FileDescriptor& file);

// Complaints about elements that `golden` (what Render gave for an earlier state) has and the files
// have not: the number and the name of a removed field must be reserved, as must those of a removed
// enum value.
std::vector<std::string> CheckRemoved(
    const std::string& golden, const std::vector<const google::protobuf::FileDescriptor*>& files);

}  // namespace outboard::lint

#endif  // OUTBOARD_PROTO_LINT_CONTRACT_RULES_H_
