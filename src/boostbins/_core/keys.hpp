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

// Adds to each row's key what it has in a column.
inline void add_to_keys(const Column& values, uint64_t column, uint64_t* keys) {
    std::vector<double> buffer(kBlock);
    const uint64_t salt = scrambled(column * 0x9e3779b97f4a7c15u + 1);
    for (size_t begin = 0; begin < values.size; begin += kBlock) {
        const size_t rows = std::min(kBlock, values.size - begin);
        const double* x = values.read(begin, rows, buffer.data());
        for (size_t i = 0; i < rows; ++i)
            keys[begin + i] += scrambled(salt ^ (x[i] == x[i] ? canonical_bits(x[i]) : kMissingBits));
    }
}

}  // namespace boostbins
