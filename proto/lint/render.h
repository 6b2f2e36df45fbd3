// The contract as stable text, which shows what a change does to the wire.
#ifndef OUTBOARD_PROTO_LINT_RENDER_H_
#define OUTBOARD_PROTO_LINT_RENDER_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace outboard::lint {

// One line for each element that the wire or generated code depends on, in the order of files and
// declarations, without comments. Pure.
std::string Render(const std::vector<const google::protobuf::FileDescriptor*>& files);

// The lines that only one of the texts has, `-` for `before` and `+` for `after`; empty if they are
// equal.
std::string Difference(const std::string& before, const std::string& after);

}  // namespace outboard::lint

#endif  // OUTBOARD_PROTO_LINT_RENDER_H_
