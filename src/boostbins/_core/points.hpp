// What the methods see of a summary: a sorted list of weighted points, each spread over an interval.
#pragma once

#include <algorithm>
#include <vector>

#include "summarize.hpp"

namespace boostbins {

// A cell with more than this share of the weight is looked into. At 255 bins: a bin.
constexpr double kCrowdedShare = 1.0 / 256;
// With fewer sampled values than this in it, such a cell owes its weight to one value, not to many (which
// would leave about 16 of them there).
constexpr size_t kCrowd = 4;

struct Points {
    std::vector<double> low, high, weight, count;  // of equal length, ascending

    void reserve(size_t n) {
        for (std::vector<double>* values : {&low, &high, &weight, &count}) values->reserve(n);
    }

    void push(double l, double h, double w, double c) {
        low.push_back(l);
        high.push_back(h);
        weight.push_back(w);
        count.push_back(c);
    }
};

// A crowded cell, divided halfway between the sampled values in it: they take equal shares.
inline void push_pieces(Points& points, const uint64_t* keys, size_t n, double low, double high,
                        double weight, double count) {
    const double share = 1.0 / static_cast<double>(n);
    double begin = low;
    for (size_t i = 0; i < n; ++i) {
        const double value = double_of_key(keys[i]);
        const double end = i + 1 < n ? value + (double_of_key(keys[i + 1]) - value) / 2 : high;
        points.push(begin, end, weight * share, count * share);
        begin = end;
    }
}

// The keys of the lowest and the highest value that a cell can hold.
inline std::pair<uint64_t, uint64_t> range_of(const Cell& cell, const Level& level) {
    const uint64_t inner = magnitude_of(cell.key);
    const uint64_t outer = key_with_magnitude(cell.key, inner | level.low_mask(inner));
    return std::minmax({cell.key, outer});
}

inline Points points_of(const Summary& summary) {
    const CellList& list = summary.list;
    const Level level(list.level);
    Points points;
    points.reserve(list.cells.size());
    double total = 0;
    for (size_t i = 0; i < list.cells.size(); ++i) total += list.weight_of(i);
    const std::vector<uint64_t>& sample = summary.sample;
    size_t begin = 0, end = 0;  // the sampled values in the cell
    for (size_t i = 0; i < list.cells.size(); ++i) {
        const Cell& cell = list.cells[i];
        const auto [first, last] = range_of(cell, level);
        const double low = std::max(double_of_key(first), summary.min);
        const double high = std::min(double_of_key(last), summary.max);
        const double weight = list.weight_of(i), count = static_cast<double>(cell.count);
        if (weight <= total * kCrowdedShare || first == last) {
            points.push(low, high, weight, count);
            continue;
        }
        begin = static_cast<size_t>(
            std::lower_bound(sample.begin() + static_cast<std::ptrdiff_t>(end), sample.end(), first) -
            sample.begin());
        end = static_cast<size_t>(
            std::upper_bound(sample.begin() + static_cast<std::ptrdiff_t>(begin), sample.end(), last) -
            sample.begin());
        if (end - begin < kCrowd)
            points.push(high, high, weight,
                        count);  // at its upper end: a cut there has the whole cell on its left
        else
            push_pieces(points, sample.data() + begin, end - begin, low, high, weight, count);
    }
    return points;
}

}  // namespace boostbins
