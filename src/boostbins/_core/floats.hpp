// Doubles as ordered integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace boostbins {

using std::size_t;
using std::uint64_t;

constexpr uint64_t kSignBit = uint64_t{1} << 63;
constexpr uint64_t kMagnitude = ~kSignBit;
constexpr int kMantissaBits = 52;
constexpr uint64_t kInfinity = uint64_t{0x7ff} << kMantissaBits;
constexpr int kExponents = 2048;  // values of the exponent field

inline uint64_t bits_of(double x) {
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

inline double double_of(uint64_t bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// -0.0 and 0.0 are one value.
inline uint64_t canonical_bits(double x) { return bits_of(x + 0.0); }

// The key of a double: keys compare as the doubles do.
inline uint64_t key_of(uint64_t bits) { return bits & kSignBit ? ~bits : bits | kSignBit; }

inline bool is_negative_key(uint64_t key) { return !(key & kSignBit); }

// The bits of |x|, from the key of x.
inline uint64_t magnitude_of(uint64_t key) { return (is_negative_key(key) ? ~key : key) & kMagnitude; }

inline uint64_t key_with_magnitude(uint64_t key, uint64_t magnitude) {
    return is_negative_key(key) ? ~magnitude & kMagnitude : magnitude | kSignBit;
}

inline uint64_t bits_of_key(uint64_t key) { return is_negative_key(key) ? ~key : key & kMagnitude; }

inline double double_of_key(uint64_t key) { return double_of(bits_of_key(key)); }
inline uint64_t key_of(double x) { return key_of(canonical_bits(x)); }

inline int exponent_field(uint64_t magnitude) { return static_cast<int>(magnitude >> kMantissaBits); }

// Position of the highest set bit of x, 0 < x < 2^53 (so the conversion is exact).
inline int highest_bit(uint64_t x) {
    return static_cast<int>(bits_of(static_cast<double>(x)) >> kMantissaBits) - 1023;
}

// An invertible hash whose high bits are well mixed (Knuth's multiplicative one, on the two halves folded).
inline uint64_t hash_of(uint64_t x) { return (x ^ (x >> 32)) * 0x9e3779b97f4a7c15u; }

}  // namespace boostbins
