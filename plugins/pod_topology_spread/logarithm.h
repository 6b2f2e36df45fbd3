// The natural logarithm, bit for bit as Go computes it.
#ifndef OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_LOGARITHM_H_
#define OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_LOGARITHM_H_

namespace outboard::pod_topology_spread {

// ln(x) for finite x > 0.
//
// C's logarithm is rounded better than Go's: of the first 5,000 integers 68 differ in the last bit,
// ln(3) among them, which weighs a topology of one domain. A score is rounded to an integer after
// it was multiplied by a count, so such a bit can tip it.
double GoLog(double x);

}  // namespace outboard::pod_topology_spread

#endif  // OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_LOGARITHM_H_
