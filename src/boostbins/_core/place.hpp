// Where cuts go, by a density over the gaps between neighbouring points.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <vector>

namespace boostbins {

// The sum of all masses that are not above a limit, in lanes, so that the additions do not wait for each
// other.
inline double sum_up_to(const double* mass, size_t n, double limit) {
    constexpr size_t kLanes = 8;
    double sums[kLanes] = {};
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (size_t lane = 0; lane < kLanes; ++lane)
            sums[lane] += mass[i + lane] > limit ? 0.0 : mass[i + lane];
    for (; i < n; ++i) sums[0] += mass[i] > limit ? 0.0 : mass[i];
    return std::accumulate(sums, sums + kLanes, 0.0);
}

// How many cuts a unit of density stands for, if no gap takes more than one, and what these cannot take goes
// to the others in proportion: each round finds gaps that the last one's scale has filled, until there are
// none. Few gaps can be filled before the scale has grown fourfold, and only these are looked at again.
inline double cuts_per_unit(const double* density, size_t n, size_t n_cuts) {
    std::vector<double> large;
    const double total = sum_up_to(density, n, std::numeric_limits<double>::infinity());
    if (total == 0) return 1.0;
    double per_unit = static_cast<double>(n_cuts) / total, small = 0, reach = 0;
    for (size_t full = 0;;) {
        if (per_unit > reach) {
            reach = 4 * per_unit;
            small = sum_up_to(density, n, 1 / reach);
            large.clear();
            std::copy_if(density, density + n, std::back_inserter(large),
                         [&](double mass) { return mass > 1 / reach; });
        }
        size_t found = 0;
        double shared = small;
        for (const double mass : large) {
            const bool is_full = mass * per_unit > 1.0;
            found += is_full;
            shared += is_full ? 0.0 : mass;
        }
        const double left = static_cast<double>(n_cuts - std::min(found, n_cuts));
        // Fewer than before (rounding fills a gap in one round and not in the next) is the end too.
        if (found <= full || left == 0 || shared == 0) return per_unit;
        full = found;
        per_unit = left / shared;
    }
}

// The gaps to be cut, ascending, n_cuts of them, fewer than there are gaps. The cuts lie in the middle of
// equal shares: the end bins get half of what the others do.
inline std::vector<uint64_t> placed(const double* density, size_t n, size_t n_cuts) {
    const double per_unit = cuts_per_unit(density, n, n_cuts);
    std::vector<uint64_t> gaps(n_cuts);
    double before = 0, wanted = 0.5;
    for (size_t gap = 0, found = 0; found < n_cuts; ++gap) {
        before += std::min(density[gap] * per_unit, 1.0);
        // One cut per gap, whatever rounding says, and a gap for each of those that follow.
        if (before >= wanted || n - gap == n_cuts - found) {
            gaps[found++] = gap;
            wanted += 1.0;
        }
    }
    return gaps;
}

}  // namespace boostbins
