// What bins hold of a column's points.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "floats.hpp"

namespace boostbins {

struct Held {
    std::vector<double> weight, mean, variance;  // per bin; the mean is NaN where there is nothing
    std::vector<uint64_t> distinct;
};

// Points are in the bin of their middle, and spread evenly from low to high.
inline Held held_by_bins(const double* low, const double* high, const double* weight, size_t n,
                         const double* cuts, size_t n_cuts) {
    const size_t n_bins = n_cuts + 1;
    Held held{std::vector<double>(n_bins),
              std::vector<double>(n_bins, std::numeric_limits<double>::quiet_NaN()),
              std::vector<double>(n_bins), std::vector<uint64_t>(n_bins)};
    const auto middle = [&](size_t i) { return low[i] + (high[i] - low[i]) / 2; };
    const double most = std::numeric_limits<double>::max();
    size_t begin = 0;
    for (size_t bin = 0; bin < n_bins; ++bin) {
        size_t end = begin;
        while (end < n && (bin == n_cuts || middle(end) <= cuts[bin])) ++end;
        if (end == begin) continue;
        double total = 0;
        for (size_t i = begin; i < end; ++i) total += weight[i];
        // Relative to the first, so that large offsets cost no digits; halved, so that nothing overflows.
        const double first = middle(begin);
        double beyond = 0;
        for (size_t i = begin; i < end; ++i) beyond += weight[i] / total * (middle(i) / 2 - first / 2);
        const double mean = std::clamp(2 * (first / 2 + beyond), first, middle(end - 1));
        double variance = 0;
        for (size_t i = begin; i < end; ++i) {
            const double away = middle(i) - mean, width = high[i] - low[i];
            variance += weight[i] / total * std::min(away * away + width * width / 12, most);
        }
        held.weight[bin] = total;
        held.mean[bin] = mean;
        held.variance[bin] = std::min(variance, most);
        held.distinct[bin] = end - begin;
        begin = end;
    }
    return held;
}

}  // namespace boostbins
