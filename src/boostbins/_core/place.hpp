// Where cuts go, by a density over the gaps between neighbouring points.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace boostbins {

// How many cuts a unit of density stands for, if no gap takes more than one, and what these cannot take goes
// to the others in proportion: each round finds gaps that the last one's scale has filled, until there are
// none.
inline double cuts_per_unit(const double* density, size_t n, size_t n_cuts) {
    constexpr size_t kLanes = 4;  // so that the additions do not wait for each other
    double per_unit = 0;
    for (size_t full = 0, found = 0;; full = found) {
        double rest[kLanes] = {};
        size_t filled[kLanes] = {};
        const auto look = [&](double mass, size_t lane) {
            const bool is_full = mass * per_unit > 1.0;
            filled[lane] += is_full;
            rest[lane] += is_full ? 0.0 : mass;
        };
        size_t i = 0;
        for (; i + kLanes <= n; i += kLanes)
            for (size_t lane = 0; lane < kLanes; ++lane) look(density[i + lane], lane);
        for (; i < n; ++i) look(density[i], 0);
        found = filled[0] + filled[1] + filled[2] + filled[3];
        const double left = static_cast<double>(n_cuts - std::min(found, n_cuts));
        const double shared = rest[0] + rest[1] + rest[2] + rest[3];
        // Fewer than before (rounding fills a gap in one round and not in the next) is the end too.
        if ((found <= full && per_unit > 0) || left == 0 || shared == 0) return per_unit > 0 ? per_unit : 1.0;
        per_unit = left / shared;
    }
}

// The gaps to be cut, ascending, n_cuts of them, fewer than there are gaps. The cuts lie in the middle of
// equal shares: the end bins get half of what the others do.
inline std::vector<uint64_t> placed(const double* density, size_t n, size_t n_cuts) {
    const double per_unit = cuts_per_unit(density, n, n_cuts);
    std::vector<uint64_t> gaps;
    gaps.reserve(n_cuts);
    double before = 0, wanted = 0.5;
    for (size_t gap = 0; gap < n && gaps.size() < n_cuts; ++gap) {
        before += std::min(density[gap] * per_unit, 1.0);
        // One cut per gap, whatever rounding says, and a gap for each of those that follow.
        if (before >= wanted || n - gap == n_cuts - gaps.size()) {
            gaps.push_back(gap);
            wanted += 1.0;
        }
    }
    return gaps;
}

}  // namespace boostbins
