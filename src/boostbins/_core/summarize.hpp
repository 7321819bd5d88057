// One pass over a column: its cells, its bottom sample, and the values counted apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "cells.hpp"
#include "column.hpp"
#include "sample.hpp"

namespace boostbins {

enum Apart : unsigned { kMissing, kNegativeInfinity, kPositiveInfinity, kAparts };

struct Summary {
    CellList list;
    std::vector<uint64_t> sample;  // keys; empty while the cells are single values and say it all
    uint64_t apart_count[kAparts] = {};
    double apart_weight[kAparts] = {};
    double min = std::numeric_limits<double>::infinity();
    double max = -std::numeric_limits<double>::infinity();
};

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

// Single values in a hash table that grows with them.
class ValueTable {
  public:
    // With room for so many values before it grows.
    ValueTable(const Rows& rows, size_t expected) : rows_(&rows), n_moments_(rows.n_moments()) {
        int bits = kFirstBits;
        while ((size_t{1} << bits) < 3 * expected) ++bits;
        clear(bits);
    }

    size_t size() const { return used_; }

    // Counts those of a block's values that are found at first sight.
    void add_known(const double* x, size_t n, Picked& picked) {
        Slot* const slots = slots_.data();
        const int shift = shift_;
        size_t n_outside = 0;
        for (size_t i = 0; i < n; ++i) {
            const uint64_t bits = canonical_bits(x[i]);
            Slot& slot = slots[hash_of(bits) >> shift];
            const bool known = slot.bits == bits;
            slot.count += known;
            picked.outside[n_outside] = static_cast<std::uint32_t>(i);
            n_outside += !known;
        }
        picked.n_outside = n_outside;
        picked.n_sampled = 0;
    }

    // Adds a finite value.
    void add(double x, size_t row) {
        const size_t at = slot_of(canonical_bits(x));
        ++slots_[at].count;
        if (n_moments_) rows_->add_moments(row, moments_.data() + at * n_moments_);
        if (2 * used_ > slots_.size()) grow();
    }

    CellList sorted() const {
        std::vector<std::pair<uint64_t, size_t>> order;
        order.reserve(used_);
        for (size_t at = 0; at < slots_.size(); ++at)
            if (slots_[at].bits != kEmpty) order.emplace_back(key_of(slots_[at].bits), at);
        std::sort(order.begin(), order.end());
        CellList list;
        list.n_moments = n_moments_;
        list.cells.reserve(used_);
        for (const auto& [key, at] : order)
            list.append({key, slots_[at].count}, moments_.data() + at * n_moments_);
        return list;
    }

  private:
    static constexpr uint64_t kEmpty = kSignBit;  // -0.0, which canonical bits never are
    static constexpr int kFirstBits = 8;

    struct Slot {
        uint64_t bits, count;
    };

    void clear(int bits) {
        shift_ = 64 - bits;
        slots_.assign(size_t{1} << bits, {kEmpty, 0});
        moments_.assign(slots_.size() * n_moments_, 0.0);
        used_ = 0;
    }

    void grow() {
        const std::vector<Slot> slots = std::move(slots_);
        const std::vector<double> moments = std::move(moments_);
        clear(64 - shift_ + 2);
        for (size_t from = 0; from < slots.size(); ++from) {
            if (slots[from].bits == kEmpty) continue;
            const size_t to = slot_of(slots[from].bits);
            slots_[to].count = slots[from].count;
            std::copy_n(moments.data() + from * n_moments_, n_moments_, moments_.data() + to * n_moments_);
        }
    }

    // The slot of a value, taken if it had none.
    size_t slot_of(uint64_t bits) {
        const size_t mask = slots_.size() - 1;
        size_t at = static_cast<size_t>(hash_of(bits) >> shift_);
        while (slots_[at].bits != bits) {
            if (slots_[at].bits == kEmpty) {
                slots_[at].bits = bits;
                ++used_;
                break;
            }
            at = (at + 1) & mask;
        }
        return at;
    }

    const Rows* rows_;
    unsigned n_moments_;
    int shift_ = 0;
    size_t used_ = 0;
    std::vector<Slot> slots_;
    std::vector<double> moments_;
};

// Counts in plain arrays, one window of consecutive cells per sign and exponent, where a guide (the sorted
// values of some of the rows) says that most values lie. A row costs a shift, a comparison and an addition.
class CellWindows {
  public:
    CellWindows() : level_(0) {}
    CellWindows(const std::vector<uint64_t>& guide, const Level& level, unsigned n_moments)
        : level_(level), n_moments_(n_moments), windows_(2 * kExponents) {
        size_t total = 0;
        for (size_t i = 0, j; i < guide.size(); i = j) {
            const uint64_t bits = bits_of_key(guide[i]);
            const size_t which = bits >> kMantissaBits;
            for (j = i + 1; j < guide.size() && bits_of_key(guide[j]) >> kMantissaBits == which;) ++j;
            if (which == kExponents) continue;  // holds -0.0, which is not a value of its own
            const int dropped = level.dropped(which & (kExponents - 1));
            const uint64_t ends[] = {bits >> dropped, bits_of_key(guide[j - 1]) >> dropped};
            uint64_t first = std::min(ends[0], ends[1]), last = std::max(ends[0], ends[1]);
            if (last - first >= 64 * static_cast<uint64_t>(j - i)) continue;  // too thin
            const uint64_t margin = (last - first) / 8 + 8;
            const uint64_t lowest = (static_cast<uint64_t>(which) << kMantissaBits) >> dropped;
            const uint64_t highest = lowest + ((uint64_t{1} << (kMantissaBits - dropped)) - 1);
            first -= std::min(margin, first - lowest);
            last += std::min(margin, highest - last);
            windows_[which] = {first << dropped, static_cast<std::uint32_t>(total),
                               static_cast<std::uint32_t>(last - first + 1), static_cast<unsigned>(dropped)};
            total += last - first + 1;
        }
        counts_.assign(total, 0);
        moments_.assign(total * n_moments, 0.0);
    }

    void add(const double* x, size_t n, uint64_t sample_limit, Picked& picked) {
        const Window* const windows = windows_.data();
        std::uint32_t* const counts = counts_.data();
        size_t n_outside = 0, n_sampled = 0;
        for (size_t i = 0; i < n; ++i) {
            const uint64_t bits = bits_of(x[i]);
            const Window& window = windows[bits >> kMantissaBits];
            const uint64_t cell = (bits - window.first) >> window.dropped;
            if (cell < window.size)
                ++counts[window.start + cell];
            else
                picked.outside[n_outside++] = static_cast<std::uint32_t>(i);
            picked.sampled[n_sampled] = static_cast<std::uint32_t>(i);
            n_sampled += hash_of(bits) <= sample_limit;
        }
        picked.n_outside = n_outside;
        picked.n_sampled = n_sampled;
    }

    void add_moments(const double* x, size_t n, const Rows& rows, size_t begin) {
        for (size_t i = 0; i < n; ++i) {
            const uint64_t bits = bits_of(x[i]);
            const Window& window = windows_[bits >> kMantissaBits];
            const uint64_t cell = (bits - window.first) >> window.dropped;
            if (cell < window.size)
                rows.add_moments(begin + i, moments_.data() + (window.start + cell) * n_moments_);
        }
    }

    CellList sorted() const {
        CellList list;
        list.level = level_.index();
        list.n_moments = n_moments_;
        list.cells.reserve(std::min<size_t>(counts_.size(), 1 << 16));
        if (windows_.empty()) return list;
        for (size_t which = 2 * kExponents; which-- > kExponents;)
            for (uint64_t cell = windows_[which].size; cell-- > 0;) append_to(list, windows_[which], cell);
        for (size_t which = 0; which < kExponents; ++which)
            for (uint64_t cell = 0; cell < windows_[which].size; ++cell)
                append_to(list, windows_[which], cell);
        return list;
    }

  private:
    struct Window {
        uint64_t first = 0;       // the bits of its first value
        std::uint32_t start = 0;  // of its cells in counts_
        std::uint32_t size = 0;
        unsigned dropped = 0;
    };

    void append_to(CellList& list, const Window& window, uint64_t cell) const {
        const size_t at = window.start + cell;
        if (counts_[at])
            list.append({key_of(window.first + (cell << window.dropped)), counts_[at]},
                        moments_.data() + at * n_moments_);
    }

    Level level_;
    unsigned n_moments_ = 0;
    std::vector<Window> windows_;
    std::vector<std::uint32_t> counts_;
    std::vector<double> moments_;
};

// Rows of positive weight; NaN and infinities among the values are counted apart.
class Summarizer {
  public:
    Summarizer(const Rows& rows, size_t max_cells)
        : rows_(rows),
          max_cells_(max_cells),
          n_moments_(rows.n_moments()),
          sample_(max_cells),
          table_(rows_, 0) {
        out_.list.n_moments = n_moments_;
    }

    // From rows in ascending order, as NumPy sorts them: NaN last.
    Summary from_sorted() {
        CellList list;
        list.n_moments = n_moments_;
        each_block([&](const double* x, size_t begin, size_t n) {
            for (size_t i = 0; i < n; ++i) {
                if (!std::isfinite(x[i])) {
                    add_outside(x[i], begin + i);
                    continue;
                }
                append_row(list, key_of(x[i]), begin + i);
            }
        });
        if (!list.cells.empty()) {
            out_.min = double_of_key(list.cells.front().key);
            out_.max = double_of_key(list.cells.back().key);
        }
        take(std::move(list));
        return finished();
    }

    // From rows in any order, at most 2^32 - 1 of them. The guide, some of the values in ascending order,
    // decides how fast, not what comes out.
    Summary from_guide(const double* sorted, size_t n) {
        guide_.reserve(n);
        for (size_t i = 0; i < n; ++i)
            if (std::isfinite(sorted[i]) && (guide_.empty() || key_of(sorted[i]) != guide_.back()))
                guide_.push_back(key_of(sorted[i]));
        const auto key_at = [&](size_t i) { return guide_[i]; };
        // Never coarser than the level of all the rows, which have more values.
        const int level = canonical_level(guide_.size(), key_at, 0, max_cells_);
        if (level > 0) sample_.offer_distinct(guide_.size(), key_at);
        restart(level);
        Picked picked;
        each_block([&](const double* x, size_t begin, size_t n) {
            extend_range(x, n);
            pick(x, begin, n, picked);
            for (size_t i = 0; i < picked.n_sampled; ++i)
                if (std::isfinite(x[picked.sampled[i]])) sample_.offer(canonical_bits(x[picked.sampled[i]]));
            for (size_t i = 0; i < picked.n_outside; ++i)
                add_outside(x[picked.outside[i]], begin + picked.outside[i]);
            if (table_.size() + outside_.size() > max_cells_) {
                flush();
                restart(out_.list.level);
            }
        });
        flush();
        return finished();
    }

  private:
    template <class Visit>
    void each_block(Visit visit) const {
        double buffer[kBlock];
        for (size_t begin = 0; begin < rows_.values.size; begin += kBlock) {
            const size_t n = std::min(kBlock, rows_.values.size - begin);
            visit(rows_.values.read(begin, n, buffer), begin, n);
        }
    }

    void pick(const double* x, size_t begin, size_t n, Picked& picked) {
        if (level_ > 0) {
            windows_.add(x, n, sample_.limit(), picked);
            if (n_moments_) windows_.add_moments(x, n, rows_, begin);
        } else if (!n_moments_) {
            table_.add_known(x, n, picked);
        } else {
            std::iota(picked.outside, picked.outside + n, 0);
            picked.n_outside = n;
            picked.n_sampled = 0;
        }
    }

    void add_outside(double x, size_t row) {
        if (!std::isfinite(x)) {
            const Apart which = std::isnan(x) ? kMissing : x < 0 ? kNegativeInfinity : kPositiveInfinity;
            ++out_.apart_count[which];
            out_.apart_weight[which] += rows_.weight(row);
            return;
        }
        if (level_ == 0) return table_.add(x, row);
        sample_.offer(canonical_bits(x));
        outside_.emplace_back(key_of(x), row);
    }

    void restart(int level) {
        level_ = level;
        table_ = ValueTable(rows_, level > 0 ? 0 : guide_.size());
        windows_ = level > 0 ? CellWindows(guide_, Level(level), n_moments_) : CellWindows();
        outside_.clear();
    }

    // Adds the cells at hand to the list.
    void flush() {
        if (level_ == 0) return take(table_.sorted());
        take(sorted_outside());
        take(windows_.sorted());
    }

    CellList sorted_outside() {
        std::sort(outside_.begin(), outside_.end());
        CellList list;
        list.n_moments = n_moments_;
        for (const auto& [key, row] : outside_) append_row(list, key, row);
        return coarsened(list, level_);
    }

    void append_row(CellList& list, uint64_t key, size_t row) const {
        double moments[kMoments] = {};
        if (n_moments_) rows_.add_moments(row, moments);
        list.append({key, 1}, moments);
    }

    void take(CellList&& list) {
        CellList all = out_.list.cells.empty() ? std::move(list)
                                               : merged(out_.list, list, std::numeric_limits<size_t>::max());
        if (all.level == 0 && all.cells.size() > max_cells_)
            sample_.offer_distinct(all.cells.size(), [&](size_t i) { return all.cells[i].key; });
        make_canonical(all, max_cells_);
        out_.list = std::move(all);
    }

    Summary finished() {
        if (out_.list.level > 0) out_.sample = sample_.keys();
        return std::move(out_);
    }

    // Four lanes, so that the comparisons do not wait for each other.
    void extend_range(const double* x, size_t n) {
        constexpr size_t kLanes = 4;
        const double infinity = std::numeric_limits<double>::infinity();
        double low[kLanes], high[kLanes];
        std::fill_n(low, kLanes, infinity);
        std::fill_n(high, kLanes, -infinity);
        const auto extend = [&](double value, size_t lane) {
            low[lane] = value < low[lane] ? value : low[lane];
            high[lane] = value > high[lane] ? value : high[lane];
        };
        size_t i = 0;
        for (; i + kLanes <= n; i += kLanes)
            for (size_t lane = 0; lane < kLanes; ++lane) extend(x[i + lane], lane);
        for (; i < n; ++i) extend(x[i], 0);
        double min = *std::min_element(low, low + kLanes), max = *std::max_element(high, high + kLanes);
        if (min == -infinity || max == infinity) {  // rare: infinities are not to be counted
            min = infinity, max = -infinity;
            for (i = 0; i < n; ++i) {
                if (!std::isfinite(x[i])) continue;
                min = std::min(min, x[i]);
                max = std::max(max, x[i]);
            }
        }
        out_.min = std::min(out_.min, min + 0.0);
        out_.max = std::max(out_.max, max + 0.0);
    }

    Rows rows_;
    size_t max_cells_;
    unsigned n_moments_;
    std::vector<uint64_t> guide_;
    BottomSample sample_;
    int level_ = 0;
    ValueTable table_;                                  // at level 0
    CellWindows windows_;                               // at other levels
    std::vector<std::pair<uint64_t, size_t>> outside_;  // keys and rows, at other levels
    Summary out_;
};

// The union of two bottom samples; an exact list is its own sample.
inline std::vector<uint64_t> merged_sample(const Summary& a, const Summary& b, size_t max_cells) {
    BottomSample sample(max_cells);
    for (const Summary* part : {&a, &b}) {
        for (uint64_t key : part->sample) sample.offer(bits_of_key(key));
        if (part->list.level == 0)
            for (const Cell& cell : part->list.cells) sample.offer(bits_of_key(cell.key));
    }
    return sample.keys();
}

inline Summary merged(const Summary& a, const Summary& b, size_t max_cells) {
    Summary out;
    out.list = merged(a.list, b.list, max_cells);
    if (out.list.level > 0) out.sample = merged_sample(a, b, max_cells);
    for (unsigned i = 0; i < kAparts; ++i) {
        out.apart_count[i] = a.apart_count[i] + b.apart_count[i];
        out.apart_weight[i] = a.apart_weight[i] + b.apart_weight[i];
    }
    out.min = std::min(a.min, b.min);
    out.max = std::max(a.max, b.max);
    return out;
}

}  // namespace boostbins
