#include "plugins/pod_topology_spread/logarithm.h"

#include <cmath>

namespace outboard::pod_topology_spread {
namespace {

// The constants of fdlibm's logarithm (Sun, 1993), which Go uses too: ln(2) in two parts, and a
// polynomial of Remez in s².
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kL1 = 6.666666666666735130e-01;
constexpr double kL2 = 3.999999999940941908e-01;
constexpr double kL3 = 2.857142874366239149e-01;
constexpr double kL4 = 2.222219843214978396e-01;
constexpr double kL5 = 1.818357216161805012e-01;
constexpr double kL6 = 1.531383769920937332e-01;
constexpr double kL7 = 1.479819860511658591e-01;
constexpr double kHalfSqrt2 = 7.07106781186547524401e-01;

}  // namespace

double GoLog(double x) {
  // x = 2^k · (1 + f) with 1 + f in [√½, √2). The order of operations affects the result. On amd64
  // neither Go's compiler (below GOAMD64=v3) nor ours fuses them.
  int exponent = 0;
  double fraction = std::frexp(x, &exponent);
  if (fraction < kHalfSqrt2) {
    fraction *= 2;
    --exponent;
  }
  const double f = fraction - 1;
  const double k = exponent;
  const double s = f / (2 + f);
  const double s2 = s * s;
  const double s4 = s2 * s2;
  const double odd = s2 * (kL1 + s4 * (kL3 + s4 * (kL5 + s4 * kL7)));
  const double even = s4 * (kL2 + s4 * (kL4 + s4 * kL6));
  const double half_square = 0.5 * f * f;
  return k * kLn2High - ((half_square - (s * (half_square + (odd + even)) + k * kLn2Low)) - f);
}

}  // namespace outboard::pod_topology_spread
