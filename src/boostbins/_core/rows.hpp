// Rows: a column with what else there is per row.
#pragma once

#include <limits>

#include "cells.hpp"
#include "column.hpp"

namespace boostbins {

// A column with, optionally, a weight and some targets per row.
struct Rows {
    Column values;
    const double* weights;  // null: all 1
    const double* targets;  // n_targets per row
    unsigned n_targets;

    unsigned n_moments() const { return n_targets ? n_targets + 2 : weights ? 1 : 0; }
    double weight(size_t row) const { return weights ? weights[row] : 1.0; }
    void add_moments(size_t row, double* sums) const {
        const double w = weight(row);
        sums[kWeight] += w;
        if (!n_targets) return;
        double squares = 0;
        for (unsigned i = 0; i < n_targets; ++i) {
            const double y = targets[row * n_targets + i];
            sums[kFirstTarget + i] += w * y;
            squares += y * y;
        }
        sums[kFirstTarget + n_targets] += w * squares;
    }
};

// Rows of a block, by position in it, that are left to others.
struct Picked {
    std::uint32_t outside[kBlock];  // no cell was at hand for these
    std::uint32_t sampled[kBlock];  // have a hash below the sample's limit
    std::uint32_t cells[kBlock];    // of all rows of the block, kOutside for those outside
    static constexpr std::uint32_t kOutside = std::numeric_limits<std::uint32_t>::max();
    size_t n_outside, n_sampled;
};

}  // namespace boostbins
