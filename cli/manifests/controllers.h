// What controllers of a cluster write soon after an object is created, for objects that have no
// status because a person wrote them. An object with a status is taken as it is.
//
// Threading: pure functions.
#ifndef OUTBOARD_CLI_MANIFESTS_CONTROLLERS_H_
#define OUTBOARD_CLI_MANIFESTS_CONTROLLERS_H_

#include "cli/manifests/drafts.h"

namespace outboard::manifests {

// The disruption controller: how many pods of a budget may be evicted. A running pod counts as
// healthy unless its condition Ready says otherwise; all pods of the manifests are expected.
void CompleteBudgets(Drafts* drafts);

// Claims get the default class. The volume controller binds claims that name a volume or that a
// volume names, and, unless their class waits for the first consumer, all others: to the smallest
// volume that fits, else to a new one of the class's provisioner, which every node can use.
void CompleteClaims(Drafts* drafts);

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_CONTROLLERS_H_
