// The natural logarithm, bit for bit as Go computes it.
#ifndef OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_LOGARITHM_H_
#define OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_LOGARITHM_H_

namespace outboard::pod_topology_spread {

// ln(x) for finite x > 0.
//
// C's logarithm is rounded better than Go's: for 68 of the first 5,000 integers the last bit
// differs, for example ln(3), the weight of a topology with one domain. A score is multiplied by a
// count and then rounded to an integer, so this bit can change the score.
double GoLog(double x);

}  // namespace outboard::pod_topology_spread

#endif  // OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_LOGARITHM_H_
