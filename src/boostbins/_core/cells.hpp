// A column as sorted cells, and the chain of ever coarser levels that keeps them few.
//
// A cell holds the values that agree in sign, exponent and the leading mantissa bits. How many bits lead is
// decided by the level alone: at exponent e a level (shift, mantissa) keeps max(mantissa, e - shift) of them,
// which makes cells of width 2^shift away from zero and of constant relative width near it. The levels are
// nested: a cell of one is a union of cells of the finer ones. A list is always at the finest level with at
// most `max_cells` occupied cells, which depends on the set of values and on nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "floats.hpp"

namespace boostbins {

constexpr int kFinestShift = -1074;  // every mantissa bit of every double is kept
constexpr int kCoarsestShift = 1023;
constexpr int kLeadingBits = 9;  // kept at every exponent, until the shift alone no longer helps
constexpr int kShiftLevels = kCoarsestShift - kFinestShift;
constexpr int kLevels = kShiftLevels + kLeadingBits + 1;

// The number of trailing mantissa bits that a level drops, by exponent field.
class Level {
  public:
    explicit Level(int index) : index_(index) {
        const int shift = kFinestShift + std::min(index, kShiftLevels);
        const int leading = kLeadingBits - std::max(0, index - kShiftLevels);
        for (int field = 0; field < kExponents; ++field) {
            const int exponent = std::max(field, 1) - 1023;
            const int kept = std::min(kMantissaBits, std::max(leading, exponent - shift));
            dropped_[field] = static_cast<std::uint8_t>(kMantissaBits - kept);
        }
    }

    int index() const { return index_; }
    int dropped(int field) const { return dropped_[field]; }
    uint64_t low_mask(uint64_t magnitude) const {
        return (uint64_t{1} << dropped_[exponent_field(magnitude)]) - 1;
    }

  private:
    int index_;
    std::array<std::uint8_t, kExponents> dropped_;
};

// The finest level at which two neighbouring keys share a cell; kLevels if none does.
inline int joining_level(uint64_t left, uint64_t right) {
    const uint64_t a = magnitude_of(left), b = magnitude_of(right);
    if (is_negative_key(left) != is_negative_key(right) || exponent_field(a) != exponent_field(b))
        return kLevels;
    const int bit = highest_bit(a ^ b);
    const int kept = kMantissaBits - 1 - bit;
    if (kept < kLeadingBits) return kShiftLevels + kLeadingBits - kept;
    return std::max(exponent_field(a), 1) - 1023 - kept - kFinestShift;
}

struct Cell {
    uint64_t key;    // of the cell's end nearer to zero
    uint64_t count;  // rows
};

// What a cell holds besides, when rows have weights or targets: float sums, equal up to rounding. First the
// weight; then, if there are targets, the weighted sum of each, and that of all their squares.
constexpr unsigned kWeight = 0, kFirstTarget = 1, kMostTargets = 16, kMostMoments = kMostTargets + 2;

struct CellList {
    int level = 0;
    unsigned n_moments = 0;       // 0, 1 (weights), or 2 more than there are targets
    std::vector<Cell> cells;      // ascending keys
    std::vector<double> moments;  // n_moments per cell

    // Appends a cell, or adds it to the last one if that has the same key.
    void append(const Cell& cell, const double* cell_moments) {
        if (!cells.empty() && cells.back().key == cell.key) {
            cells.back().count += cell.count;
            double* sums = moments.data() + moments.size() - n_moments;
            for (unsigned i = 0; i < n_moments; ++i) sums[i] += cell_moments[i];
        } else {
            cells.push_back(cell);
            for (unsigned i = 0; i < n_moments; ++i) moments.push_back(cell_moments[i]);
        }
    }

    // Gives back the memory of what it once was.
    void shrink() {
        cells.shrink_to_fit();
        moments.shrink_to_fit();
    }

    const double* moments_of(size_t cell) const { return moments.data() + cell * n_moments; }
    double weight_of(size_t cell) const {
        return n_moments ? moments_of(cell)[kWeight] : static_cast<double>(cells[cell].count);
    }
};

// Of the cell, at a coarser level, that holds a cell.
inline uint64_t coarse_key(uint64_t key, const Level& level) {
    const uint64_t magnitude = magnitude_of(key);
    return key_with_magnitude(key, magnitude & ~level.low_mask(magnitude));
}

// In place: the system takes longer to give memory for another list than the work does.
inline void coarsen(CellList& list, int index) {
    const Level level(index);
    size_t n = 0;
    for (size_t i = 0; i < list.cells.size(); ++i) {
        const Cell cell = list.cells[i];
        const uint64_t key = coarse_key(cell.key, level);
        const double* from = list.moments_of(i);
        if (n > 0 && list.cells[n - 1].key == key) {
            list.cells[n - 1].count += cell.count;
            double* sums = list.moments.data() + (n - 1) * list.n_moments;
            for (unsigned j = 0; j < list.n_moments; ++j) sums[j] += from[j];
        } else {
            list.cells[n] = {key, cell.count};
            std::copy_n(from, list.n_moments, list.moments.data() + n * list.n_moments);
            ++n;
        }
    }
    list.level = index;
    list.cells.resize(n);
    list.moments.resize(n * list.n_moments);
}

// The finest level, not finer than `level`, with at most max_cells cells. Keys ascend; equal ones count once.
template <class KeyAt>
int canonical_level(size_t n, KeyAt key_at, int level, size_t max_cells) {
    std::array<size_t, kLevels + 1> joined{};
    size_t distinct = n > 0;
    for (size_t i = 1; i < n; ++i) {
        const uint64_t left = key_at(i - 1), right = key_at(i);
        if (left == right) continue;
        ++distinct;
        ++joined[std::max(level, joining_level(left, right))];
    }
    while (distinct > max_cells && level < kLevels - 1) distinct -= joined[++level];
    return level;
}

inline void make_canonical(CellList& list, size_t max_cells) {
    if (list.cells.size() <= max_cells) return;
    const auto key_at = [&](size_t i) { return list.cells[i].key; };
    const int level = canonical_level(list.cells.size(), key_at, list.level, max_cells);
    coarsen(list, level);
}

// Both lists' cells in one, at the canonical level.
inline CellList merged(CellList a, CellList b, size_t max_cells) {
    const int level = std::max(a.level, b.level);
    for (CellList* list : {&a, &b})
        if (list->level < level) coarsen(*list, level);
    if (a.cells.empty() || b.cells.empty()) {
        CellList& all = a.cells.empty() ? b : a;
        make_canonical(all, max_cells);
        return std::move(all);
    }
    const size_t n_left = a.cells.size(), n_right = b.cells.size();
    const unsigned n_moments = a.n_moments;
    CellList out;
    out.level = level;
    out.n_moments = n_moments;
    out.cells.resize(n_left + n_right);
    out.moments.resize(out.cells.size() * n_moments);
    size_t i = 0, j = 0, n = 0;
    // Which key is less cannot be foreseen, and so is no branch.
    for (; i < n_left && j < n_right; ++n) {
        const Cell x = a.cells[i], y = b.cells[j];
        const bool from_left = x.key <= y.key, from_right = y.key <= x.key;
        out.cells[n] = {from_left ? x.key : y.key, (from_left ? x.count : 0) + (from_right ? y.count : 0)};
        for (unsigned m = 0; m < n_moments; ++m)
            out.moments[n * n_moments + m] =
                (from_left ? a.moments_of(i)[m] : 0.0) + (from_right ? b.moments_of(j)[m] : 0.0);
        i += from_left;
        j += from_right;
    }
    for (const auto& [from, at] : {std::pair(&a, i), std::pair(&b, j)}) {
        std::copy(from->cells.begin() + static_cast<std::ptrdiff_t>(at), from->cells.end(),
                  out.cells.begin() + static_cast<std::ptrdiff_t>(n));
        std::copy(from->moments_of(at), from->moments_of(from->cells.size()),
                  out.moments.data() + n * n_moments);
        n += from->cells.size() - at;
    }
    out.cells.resize(n);
    out.moments.resize(n * n_moments);
    make_canonical(out, max_cells);
    return out;
}

}  // namespace boostbins
