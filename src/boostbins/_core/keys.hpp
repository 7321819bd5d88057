// Keys of rows, by what they hold: the same wherever a row stands.
#pragma once

#include "column.hpp"

namespace boostbins {

constexpr uint64_t kMissingBits = 0x7ff8000000000000u;

// A hash of which every bit depends on every bit (the finalizer of SplitMix64, Steele et al. 2014).
inline uint64_t scrambled(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Most bits of a key are of the values as float32, as some libraries see them, so that about the same rows
// have the least keys there; the others tell rows apart that differ beyond float32.
constexpr uint64_t kFineBits = (uint64_t{1} << 24) - 1;

inline uint64_t key_part(double x, uint64_t salt) {
    if (x != x) return scrambled(salt ^ kMissingBits);
    const double near = static_cast<double>(static_cast<float>(x));
    return (scrambled(salt ^ canonical_bits(near)) & ~kFineBits) |
           (scrambled(salt ^ canonical_bits(x)) & kFineBits);
}

// Adds to each row's key what it has in a column.
inline void add_to_keys(const Column& values, uint64_t column, uint64_t* keys) {
    std::vector<double> buffer(kBlock);
    const uint64_t salt = scrambled(column * 0x9e3779b97f4a7c15u + 1);
    for (size_t begin = 0; begin < values.size; begin += kBlock) {
        const size_t rows = std::min(kBlock, values.size - begin);
        const double* x = values.read(begin, rows, buffer.data());
        for (size_t i = 0; i < rows; ++i) keys[begin + i] ^= key_part(x[i], salt);
    }
}

}  // namespace boostbins
