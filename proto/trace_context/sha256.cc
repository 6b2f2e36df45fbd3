#include "proto/trace_context/sha256.h"

#include <algorithm>

#include "absl/numeric/bits.h"

namespace outboard::trace_context {
namespace {

constexpr size_t kBlockSize = 64;
constexpr size_t kLengthSize = 8;  // the message's length in bits, at the end of the last block

constexpr std::array<uint32_t, 64> kConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using Sha256State = std::array<uint32_t, 8>;

void AddBlock(const uint8_t* block, Sha256State* state) {
  using absl::rotr;
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) {
    const uint8_t* const word = block + 4 * i;
    w[i] = uint32_t{word[0]} << 24 | uint32_t{word[1]} << 16 | uint32_t{word[2]} << 8 | word[3];
  }
  for (size_t i = 16; i < w.size(); ++i) {
    const uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = *state;
  for (size_t i = 0; i < w.size(); ++i) {
    const uint32_t s1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kConstants[i] + w[i];
    const uint32_t s0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const Sha256State sum = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < sum.size(); ++i) (*state)[i] += sum[i];
}

}  // namespace

std::array<uint8_t, kSha256Size> Sha256(absl::string_view text) {
  Sha256State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(text.data());
  size_t left = text.size();
  for (; left >= kBlockSize; left -= kBlockSize, bytes += kBlockSize) AddBlock(bytes, &state);
  // The rest, a bit of 1, zeros, and the length.
  std::array<uint8_t, 2 * kBlockSize> last = {};
  std::copy_n(bytes, left, last.begin());
  last[left] = 0x80;
  const size_t size = left + 1 + kLengthSize <= kBlockSize ? kBlockSize : 2 * kBlockSize;
  uint64_t bits = uint64_t{text.size()} * 8;
  for (size_t i = size; i > size - kLengthSize; bits >>= 8) last[--i] = bits & 0xff;
  for (size_t i = 0; i < size; i += kBlockSize) AddBlock(last.data() + i, &state);
  std::array<uint8_t, kSha256Size> digest;
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

}  // namespace outboard::trace_context
