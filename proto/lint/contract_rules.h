// The rules for every file of the contract, as functions from descriptors to complaints.
#ifndef OUTBOARD_PROTO_LINT_CONTRACT_RULES_H_
#define OUTBOARD_PROTO_LINT_CONTRACT_RULES_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace outboard::lint {

// Complaints about one file, each `file:line: element: what`, in the file's order; empty if the
// file keeps the rules:
//   - the directory is the package, the package ends in a version;
//   - a comment on every message, field, enum, value, service and RPC, not empty;
//   - an enum's zero value is named …_UNSPECIFIED, and its values begin with its name;
//   - no comment states in words what a shape can say: fields that exclude each other are a oneof,
//     an object is named by ObjectReference, and an empty list does not mean all;
//   - times and amounts of time are an int64 named …_micros, or …_seconds where Kubernetes' API has
//     seconds; …_ms, …_millis, …_sec and the like are refused;
//   - every RPC has its own request and response, named after it; also streams such as `Sync`;
//   - field numbers of removed fields are reserved together with the name (see CheckRemoved).
//
// The file must come from a pool built with source info.
// Threading: pure.
// Errors: none; every finding is a complaint.
std::vector<std::string> CheckFile(const google::protobuf::FileDescriptor& file);

// Complaints about elements that `golden` (Render's text of an earlier state) has and the files
// lack: the number and the name of a removed field or enum value must be reserved.
std::vector<std::string> CheckRemoved(
    const std::string& golden, const std::vector<const google::protobuf::FileDescriptor*>& files);

}  // namespace outboard::lint

#endif  // OUTBOARD_PROTO_LINT_CONTRACT_RULES_H_
