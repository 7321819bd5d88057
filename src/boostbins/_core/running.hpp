// Running sums of what cells hold, so that what lies between any two is a difference.
#pragma once

#include <vector>

#include "cells.hpp"

namespace boostbins {

// For each cell, and for the end, what all before it hold: the weight, and the sum of each target less its
// mean.
inline std::vector<double> running_sums(const double* moments, size_t n, unsigned n_targets,
                                        const double* mean) {
    const unsigned width = n_targets + 1;
    std::vector<double> sums((n + 1) * width);
    double before[kMostMoments] = {};
    double* out = sums.data() + width;
    for (size_t cell = 0; cell < n; ++cell, moments += n_targets + 2, out += width) {
        const double weight = moments[kWeight];
        before[kWeight] += weight;
        for (unsigned i = 0; i < n_targets; ++i)
            before[kFirstTarget + i] += moments[kFirstTarget + i] - mean[i] * weight;
        std::copy_n(before, width, out);
    }
    return sums;
}

}  // namespace boostbins
