// One pass over a column: its cells, its bottom sample, and the values counted apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sample.hpp"
#include "table.hpp"
#include "windows.hpp"

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

// Rows of positive weight; NaN and infinities among the values are counted apart.
class Summarizer {
  public:
    Summarizer(const Rows& rows, size_t max_cells) : Summarizer(rows, max_cells, rows.n_moments()) {}
    Summarizer(const Rows& rows, size_t max_cells, unsigned n_moments)
        : rows_(rows),
          max_cells_(max_cells),
          n_moments_(n_moments),
          sample_(max_cells),
          table_(rows_, n_moments_, 0) {
        out_.list.n_moments = n_moments_;
    }
    Summarizer(const Summarizer&) = delete;  // its table points to its rows
    Summarizer& operator=(const Summarizer&) = delete;

    // From values in ascending order, as NumPy sorts them, NaN last, and the rows that they are of; null: the
    // weights and targets are in that order too.
    Summary from_sorted(const std::int64_t* order) {
        const auto row_at = [order](size_t i) { return order ? static_cast<size_t>(order[i]) : i; };
        CellList list;
        each_block(rows_.values, [&](const double* x, size_t begin, size_t n) {
            for (size_t i = 0; i < n; ++i) {
                if (std::isfinite(x[i]))
                    list.append({key_of(x[i]), 1}, nullptr);
                else
                    add_outside(x[i], row_at(begin + i));
            }
        });
        if (list.cells.empty()) return finished();
        out_.min = double_of_key(list.cells.front().key);
        out_.max = double_of_key(list.cells.back().key);
        make_sampled(list);
        const size_t first = out_.apart_count[kNegativeInfinity];
        add_moments(list, [&](size_t i) { return row_at(first + i); });
        out_.list = std::move(list);
        return finished();
    }

    // From rows in any order, at most 2^32 - 1 of them. The guide, some of the values in ascending order,
    // decides how fast, not what comes out.
    Summary from_guide(const double* sorted, size_t n) {
        const int level = look_at(sorted, n);
        // Of many cells it is first found which they are: few, in the end, have room for many moments.
        const bool moments_last = level > 0 && n_moments_ > 0;
        const unsigned n_moments = moments_last ? std::exchange(n_moments_, 0) : n_moments_;
        restart(level);
        count();
        flush();
        n_moments_ = n_moments;
        if (moments_last) count_moments();
        return finished();
    }

    // To begin with `more`, with a guide.
    void begin(const double* sorted, size_t n) { restart(look_at(sorted, n)); }

    // To go on from a summary that is not exact, whose cells are the guide, with `more`.
    void begin(Summary&& before) {
        sample_.go_on(before.sample);
        out_ = std::move(before);
        restart(out_.list.level);
    }

    // Adds rows in any order. Where cells have been counted so far they are counted on: nothing is added up
    // yet.
    void more(const Rows& rows) {
        if (counted_ > kMostCounted - rows.values.size) {
            flush();
            restart(out_.list.level);
        }
        counted_ += rows.values.size;
        rows_ = rows;
        count();
        // Their keys are all there is to know of rows without moments: many can wait to be sorted at once.
        if (n_moments_ || outside_.size() > max_cells_ / 4) {
            settle_outside();
            beyond_.shrink();
        }
        if (beyond_.cells.size() > max_cells_ / 4) {
            flush();
            restart(out_.list.level);
        }
    }

    Summary so_far() {
        flush();
        restart(out_.list.level);
        Summary summary = out_;
        if (summary.list.level > 0) summary.sample = sample_.keys();
        return summary;
    }

  private:
    using Outside = std::vector<std::pair<uint64_t, size_t>>;  // keys and rows

    static constexpr size_t kMostCounted = std::numeric_limits<std::uint32_t>::max();
    static constexpr size_t kAny = std::numeric_limits<size_t>::max();  // number of cells

    // Takes the guide's values; returns their level, which is never coarser than that of all the rows.
    int look_at(const double* sorted, size_t n) {
        guide_.reserve(n);
        for (size_t i = 0; i < n; ++i)
            if (std::isfinite(sorted[i]) && (guide_.empty() || key_of(sorted[i]) != guide_.back()))
                guide_.push_back(key_of(sorted[i]));
        const auto key_at = [&](size_t i) { return guide_[i]; };
        const int level = canonical_level(guide_.size(), key_at, 0, max_cells_);
        if (level > 0) sample_.offer_distinct(guide_.size(), key_at);
        return level;
    }

    // Adds the rows' moments to the cells that all of them have been counted in.
    void count_moments() {
        CellList& list = out_.list;
        list.n_moments = n_moments_;
        list.moments.assign(list.cells.size() * n_moments_, 0.0);
        const Level level(list.level);
        std::vector<uint64_t> keys(list.cells.size());
        for (size_t cell = 0; cell < keys.size(); ++cell) keys[cell] = list.cells[cell].key;
        CellWindows windows(keys, level, 0, false);
        const std::vector<std::uint32_t> cell_of = windows.places_of(keys);
        Picked picked;
        rows_.with_adder([&](auto add) {
            each_block(rows_.values, [&](const double* x, size_t begin, size_t n) {
                windows.add<true>(x, n, 0, picked);
                for (size_t i = 0; i < n; ++i) {
                    size_t cell =
                        picked.cells[i] == Picked::kOutside ? Picked::kOutside : cell_of[picked.cells[i]];
                    if (cell == Picked::kOutside) {
                        if (!std::isfinite(x[i])) continue;
                        const uint64_t key = coarse_key(key_of(x[i]), level);
                        cell = static_cast<size_t>(std::lower_bound(keys.begin(), keys.end(), key) -
                                                   keys.begin());
                        // Another thread writes to the array.
                        if (cell == keys.size() || keys[cell] != key)
                            throw std::runtime_error("a column was changed while it was read");
                    }
                    add(begin + i, list.moments.data() + cell * n_moments_);
                }
            });
        });
    }

    // Counts the rows, where their cells are known.
    void count() {
        Picked picked;
        each_block(rows_.values, [&](const double* x, size_t begin, size_t n) {
            pick(x, begin, n, picked);
            extend_range(x, n);
            for (size_t i = 0; i < picked.n_sampled; ++i)
                if (std::isfinite(x[picked.sampled[i]])) sample_.offer(canonical_bits(x[picked.sampled[i]]));
            if (!has_zero_ && windows_.holds_zero() && std::find(x, x + n, 0.0) != x + n) {
                sample_.offer(0);
                has_zero_ = true;
            }
            for (size_t i = 0; i < picked.n_outside; ++i)
                add_outside(x[picked.outside[i]], begin + picked.outside[i]);
            if (table_.size() + outside_.size() > max_cells_) {
                flush();
                restart(out_.list.level);
            }
        });
    }

    void pick(const double* x, size_t begin, size_t n, Picked& picked) {
        if (level_ > 0) {
            if (!n_moments_) return windows_.add<false>(x, n, sample_.limit(), picked);
            windows_.add<true>(x, n, sample_.limit(), picked);
            windows_.add_moments(rows_, begin, n, picked);
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
        if (level > 0 && !out_.list.cells.empty()) {  // the best guide are all the rows so far
            out_.list.shrink();
            guide_.resize(out_.list.cells.size());
            for (size_t i = 0; i < guide_.size(); ++i) guide_[i] = out_.list.cells[i].key;
        }
        table_ = ValueTable(rows_, n_moments_, level > 0 ? 0 : guide_.size());
        const bool is_unweighted = n_moments_ == 0 && !rows_.weights;
        windows_ = level > 0 ? CellWindows(guide_, Level(level), n_moments_, is_unweighted) : CellWindows();
        guide_ = std::vector<uint64_t>();  // none of a thousand columns holds what it does not need
        outside_ = Outside();
        beyond_ = CellList();
        beyond_.level = level;
        beyond_.n_moments = n_moments_;
        counted_ = 0;
    }

    // Adds the cells at hand to the list.
    void flush() {
        if (level_ == 0) return take(table_.sorted());
        out_.apart_count[kMissing] += windows_.missing();
        out_.apart_weight[kMissing] += static_cast<double>(windows_.missing());
        settle_outside();
        CellList before = merged(std::move(out_.list), std::move(beyond_), kAny);
        out_.list = merged(std::move(before), windows_.sorted(), max_cells_);
    }

    void settle_outside() {
        beyond_ = merged(std::move(beyond_), sorted_outside(), kAny);
        outside_ = Outside();
    }

    CellList sorted_outside() {
        std::sort(outside_.begin(), outside_.end());
        CellList list;
        for (const auto& [key, row] : outside_) list.append({key, 1}, nullptr);
        coarsen(list, level_);
        add_moments(list, [&](size_t i) { return outside_[i].second; });
        return list;
    }

    // To cells of rows that are in order, one cell after the other.
    template <class RowAt>
    void add_moments(CellList& list, RowAt row_at) const {
        list.n_moments = n_moments_;
        list.moments.assign(list.cells.size() * n_moments_, 0.0);
        if (!n_moments_) return;
        rows_.with_adder([&](auto add) {
            size_t i = 0;
            double* sums = list.moments.data();
            for (const Cell& cell : list.cells) {
                for (const size_t end = i + cell.count; i < end; ++i) add(row_at(i), sums);
                sums += n_moments_;
            }
        });
    }

    void take(CellList&& list) {
        if (list.cells.empty()) return;
        out_.list = merged(std::move(out_.list), std::move(list), kAny);
        make_sampled(out_.list);
    }

    // Takes a sample of the single values before they are too many and become cells.
    void make_sampled(CellList& list) {
        if (list.level == 0 && list.cells.size() > max_cells_)
            sample_.offer_distinct(list.cells.size(), [&](size_t i) { return list.cells[i].key; });
        make_canonical(list, max_cells_);
    }

    Summary finished() {
        if (out_.list.level > 0) out_.sample = sample_.keys();
        return std::move(out_);
    }

    // Eight lanes, so that the comparisons do not wait for each other.
    void extend_range(const double* x, size_t n) {
        constexpr size_t kLanes = 8;
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
    ValueTable table_;       // at level 0
    CellWindows windows_;    // at other levels
    Outside outside_;        // at other levels
    CellList beyond_;        // what was outside of rows that are gone
    size_t counted_ = 0;     // rows, by the windows
    bool has_zero_ = false;  // whether the sample was offered zero
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
