// Randomly malformed messages.
#ifndef OUTBOARD_CLI_CONFORMANCE_MUTATION_H_
#define OUTBOARD_CLI_CONFORMANCE_MUTATION_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <random>
#include <string>

namespace outboard::conformance {

// The only source of randomness: the same seed gives the same run.
using Random = std::mt19937_64;

// Changes a field of the message or of one of its parts: sets an extreme or unusual value, removes,
// repeats or truncates it. Strings stay UTF-8, so that the message can be sent.
void Mutate(Random* random, google::protobuf::Message* message);

// Changes serialized bytes; the result is probably not a valid message.
std::string MutateBytes(Random* random, std::string bytes);

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_MUTATION_H_
