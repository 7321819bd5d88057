// What bins hold of a column's points, and where its quantiles lie.
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

// Interpolates as NumPy's quantiles do: from the nearer end, so that t = 1 gives b.
inline double between(double a, double b, double t) {
    const double half = b / 2 - a / 2;  // b - a may overflow
    return t < 0.5 ? a + half * (2 * t) : b + half * (2 * (t - 1));
}

// Quantiles with linear interpolation between rows; n_rows, the points' in all. Shares ascend.
inline std::vector<double> quantiles_of(const double* low, const double* high, const double* weight, size_t n,
                                        double n_rows, const double* shares, size_t n_shares) {
    double total = 0;
    for (size_t i = 0; i < n; ++i) total += weight[i];
    const double row = std::min(1.0, total / n_rows);  // the weight of one row
    std::vector<double> found(n_shares);
    size_t at = 0;
    double before = 0;  // the weight of the points before `at`
    for (size_t k = 0; k < n_shares; ++k) {
        const double position = shares[k] * (total - row);
        while (at + 1 < n && before + weight[at] <= position) before += weight[at++];
        // A point holds rows at `low` to `high`; between its last row and the next point's first lies a gap.
        const double inside = position - before, last = std::max(weight[at] - row, 0.0);
        if (inside <= last) {
            const double within = last > 0 ? std::clamp(inside / last, 0.0, 1.0) : 1.0;
            found[k] = between(low[at], high[at], within);
        } else {
            const double beyond = std::clamp((inside - last) / row, 0.0, 1.0);
            found[k] = between(high[at], low[std::min(at + 1, n - 1)], beyond);
        }
    }
    return found;
}

}  // namespace boostbins
