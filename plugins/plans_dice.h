// Random clusters from small sets of values, so that many of the values matter.
#ifndef OUTBOARD_PLUGINS_PLANS_DICE_H_
#define OUTBOARD_PLUGINS_PLANS_DICE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "outboard/v1beta1/types.pb.h"

namespace outboard::plans {

// The default profile's plugins from PreFilter to Score that declare a signature; and the same with
// Outboard's own.
std::vector<std::string> DefaultPlugins();
std::vector<std::string> AllPlugins();

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  bool Flip(int one_in = 2) { return Below(one_in) == 0; }
  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  std::string Pick(const std::vector<std::string>& words) {
    return words[static_cast<size_t>(Below(static_cast<int>(words.size())))];
  }

 private:
  std::mt19937_64 random_;
};

v1beta1::Node RandomNode(Dice& dice, const std::string& name);
v1beta1::Pod RandomPod(Dice& dice, const std::string& name);

}  // namespace outboard::plans

#endif  // OUTBOARD_PLUGINS_PLANS_DICE_H_
