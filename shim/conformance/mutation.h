// Messages made wrong at random.
#ifndef OUTBOARD_SHIM_CONFORMANCE_MUTATION_H_
#define OUTBOARD_SHIM_CONFORMANCE_MUTATION_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <random>
#include <string>

namespace outboard::conformance {

// Where all randomness of a run comes from: the same seed, the same run.
using Random = std::mt19937_64;

// Changes something in the message or in one of its parts: a field gets an extreme or an odd value,
// goes, comes twice, is cut. Strings stay UTF-8, so that it can be sent as a message.
void Mutate(Random* random, google::protobuf::Message* message);

// Changes serialised bytes so that they most likely are no message any more.
std::string MutateBytes(Random* random, std::string bytes);

}  // namespace outboard::conformance

#endif  // OUTBOARD_SHIM_CONFORMANCE_MUTATION_H_
