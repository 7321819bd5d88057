// Rows: a column with what else there is per row.
#pragma once

#include "cells.hpp"
#include "column.hpp"

namespace boostbins {

// A column with, optionally, a weight and a target per row.
struct Rows {
    Column values;
    const double* weights;  // null: all 1
    const double* targets;  // null: none

    unsigned n_moments() const { return targets ? 3 : weights ? 1 : 0; }
    double weight(size_t row) const { return weights ? weights[row] : 1.0; }
    void add_moments(size_t row, double* sums) const {
        const double w = weight(row);
        sums[kWeight] += w;
        if (!targets) return;
        sums[kWeightedTarget] += w * targets[row];
        sums[kWeightedTargetSquare] += w * targets[row] * targets[row];
    }
};

// Rows of a block, by position in it, that are left to others.
struct Picked {
    std::uint32_t outside[kBlock];  // no cell was at hand for these
    std::uint32_t sampled[kBlock];  // have a hash below the sample's limit
    size_t n_outside, n_sampled;
};

}  // namespace boostbins
