// What holds of every summary that this library makes, for those that come from elsewhere.
#pragma once

#include <algorithm>
#include <cmath>

#include "summarize.hpp"

namespace boostbins {

// No more rows than this are counted, by any means.
constexpr uint64_t kMostRows = uint64_t{1} << 62;
// Cells at the coarsest level: one for each sign and exponent, which may be more than max_cells.
constexpr size_t kFewestCells = 4096;

inline bool is_finite_key(uint64_t key) { return magnitude_of(key) < kInfinity; }

inline bool are_finite_and_ascending(const std::vector<uint64_t>& keys) {
    return std::all_of(keys.begin(), keys.end(), is_finite_key) &&
           std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>()) == keys.end();
}

// What is wrong with the cells; null if nothing is.
inline const char* fault_of(const CellList& list, size_t max_cells) {
    if (list.level < 0 || list.level >= kLevels) return "there is no such level";
    if (list.cells.size() > std::max(max_cells, kFewestCells)) return "it has more cells than it may";
    const Level level(list.level);
    uint64_t rows = 0;
    for (size_t i = 0; i < list.cells.size(); ++i) {
        const Cell& cell = list.cells[i];
        if (!is_finite_key(cell.key) || coarse_key(cell.key, level) != cell.key)
            return "a cell is of another level";
        if (i > 0 && list.cells[i - 1].key >= cell.key) return "its cells do not ascend";
        if (cell.count == 0 || cell.count > kMostRows - rows) return "its cells' rows cannot be counted";
        rows += cell.count;
        const double* moments = list.moments_of(i);
        if (!std::all_of(moments, moments + list.n_moments, [](double x) { return std::isfinite(x); }) ||
            (list.n_moments && moments[kWeight] <= 0) ||
            (list.n_moments > 1 && moments[list.n_moments - 1] < 0))
            return "a cell's weight or target is not possible";
    }
    return nullptr;
}

// What is wrong with a summary; null if nothing is.
inline const char* fault_of(const Summary& s, size_t max_cells) {
    const CellList& list = s.list;
    if (const char* fault = fault_of(list, max_cells)) return fault;
    const bool may_be_sampled = list.level > 0;
    if (!are_finite_and_ascending(s.sample) || (!s.sample.empty() && !may_be_sampled) ||
        s.sample.size() > std::max<size_t>(1, max_cells / BottomSample::kCellsPerValue))
        return "its sample is not possible";
    for (unsigned i = 0; i < kAparts; ++i) {
        const double weight = s.apart_weight[i];
        if (s.apart_count[i] > kMostRows || !std::isfinite(weight) || weight < 0 ||
            (weight > 0) != (s.apart_count[i] > 0))
            return "its missing or infinite rows cannot be counted";
    }
    if (list.cells.empty())
        return std::isinf(s.min) && std::isinf(s.max) ? nullptr : "its range holds nothing";
    const Level level(list.level);
    const auto is_in = [&](double x, const Cell& cell) {
        return std::isfinite(x) && coarse_key(key_of(x), level) == cell.key;
    };
    if (!(s.min <= s.max) || !is_in(s.min, list.cells.front()) || !is_in(s.max, list.cells.back()))
        return "its range is not that of its cells";
    return nullptr;
}

}  // namespace boostbins
