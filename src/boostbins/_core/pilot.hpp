// A small boosted model on some rows, grown to see which columns its splits are in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "floats.hpp"

namespace boostbins {

using Code = uint16_t;

struct PilotShape {
    size_t n_trees, n_leaves;
    double rate;          // the share of a leaf's mean that is taken off its rows
    double least_weight;  // of a leaf
};

// With every cut between a column's codes, with every second, every fourth, ...: so many steps.
constexpr size_t kCoarsenings = 11;

struct Split {
    uint64_t column;
    double gains[kCoarsenings] = {};  // by how much the sum of squares falls at best, with ever fewer cuts
};

// Numbers the distinct values in ascending order, missing ones above all others; values with more than `most`
// distinct ones are numbered in so many groups of about as many rows.
class Ranks {
  public:
    explicit Ranks(size_t n_rows) : keys_(n_rows), spare_(n_rows) {}

    void number(const double* values, size_t most, Code* codes) {
        const size_t n = keys_.size();
        for (uint32_t row = 0; row < n; ++row)
            keys_[row] = {values[row] == values[row] ? key_of(values[row]) : ~uint64_t{0}, row};
        sort();
        size_t n_distinct = n > 0;
        for (size_t i = 1; i < n; ++i) n_distinct += keys_[i].key != keys_[i - 1].key;
        size_t rank = 0, first = 0;
        for (size_t i = 0; i < n; ++i) {
            if (i > 0 && keys_[i].key != keys_[i - 1].key) {
                ++rank;
                first = i;
            }
            const bool is_missing = keys_[i].key == ~uint64_t{0};
            const size_t code = n_distinct <= most ? rank : is_missing ? most : first * most / n;
            codes[keys_[i].row] = static_cast<Code>(code);
        }
    }

  private:
    struct Key {
        uint64_t key;
        uint32_t row;
    };

    // By bytes, the last first; bytes that all keys share are passed over.
    void sort() {
        for (int shift = 0; shift < 64; shift += 8) {
            size_t starts[257] = {};
            for (const Key& k : keys_) ++starts[(k.key >> shift & 255) + 1];
            if (std::find(starts, starts + 257, keys_.size()) != starts + 257) continue;
            std::partial_sum(starts, starts + 257, starts);
            for (const Key& k : keys_) spare_[starts[k.key >> shift & 255]++] = k;
            keys_.swap(spare_);
        }
    }

    std::vector<Key> keys_, spare_;
};

// Trees of squared error on numbered values, grown best leaf first, on a histogram of one column at a time.
// Rows without a weight are carried along, and show what the model makes of rows it has not seen.
class Pilot {
  public:
    // codes: a run of n_rows for each column; targets: n_targets for each row.
    Pilot(const Code* codes, size_t n_columns, const double* targets, size_t n_targets, const double* weights,
          size_t n_rows)
        : codes_(codes),
          n_columns_(n_columns),
          n_rows_(n_rows),
          n_targets_(n_targets),
          n_codes_(n_columns),
          weights_(weights, weights + n_rows),
          residuals_(targets, targets + n_rows * n_targets),
          rows_(n_rows),
          set_apart_(n_rows),
          terms_(n_rows * (n_targets + 1)),
          means_(n_targets),
          left_(n_targets + 1),
          right_(n_targets + 1) {
        size_t most = 0;
        for (size_t c = 0; c < n_columns; ++c) {
            n_codes_[c] = *std::max_element(codes_of(c), codes_of(c) + n_rows) + size_t{1};
            most = std::max(most, n_codes_[c]);
        }
        histogram_.resize(most * (n_targets + 1));
        std::iota(rows_.begin(), rows_.end(), 0u);
        if (n_columns > 0) take_off({0, n_rows}, 1.0);
    }

    void grow(const PilotShape& shape) {
        if (n_columns_ == 0) return;
        for (size_t tree = 0; tree < shape.n_trees && grow_tree(shape); ++tree) {
        }
    }

    const std::vector<Split>& splits() const { return splits_; }

    // What is left of the targets.
    const std::vector<double>& residuals() const { return residuals_; }

  private:
    struct Leaf {
        size_t begin, end;  // of its rows
        size_t column = 0;
        Code last = 0;  // the best split: the greatest code of its left part
        double gain = 0;
    };

    const Code* codes_of(size_t column) const { return codes_ + column * n_rows_; }

    // Lays out what the rows of a leaf add to sums, one after another: the weight, and the weighted
    // residuals. Returns the sums.
    std::vector<double> gather(const Leaf& leaf) {
        std::vector<double> sums(n_targets_ + 1);
        double* to = terms_.data();
        for (size_t i = leaf.begin; i < leaf.end; ++i) {
            const size_t row = rows_[i];
            sums[0] += * to++ = weights_[row];
            for (size_t k = 0; k < n_targets_; ++k)
                sums[k + 1] += * to++ = weights_[row] * residuals_[row * n_targets_ + k];
        }
        return sums;
    }

    // Takes a share of their mean off the residuals of some rows.
    void take_off(const Leaf& leaf, double share) {
        const std::vector<double> sums = gather(leaf);
        if (sums[0] == 0) return;
        for (size_t i = leaf.begin; i < leaf.end; ++i)
            for (size_t k = 0; k < n_targets_; ++k)
                residuals_[rows_[i] * n_targets_ + k] -= share * (sums[k + 1] / sums[0]);
    }

    bool grow_tree(const PilotShape& shape) {
        std::vector<Leaf> leaves{{0, n_rows_}};
        find_split(leaves[0], shape.least_weight);
        while (leaves.size() < shape.n_leaves) {
            const auto best = std::max_element(leaves.begin(), leaves.end(),
                                               [](const Leaf& a, const Leaf& b) { return a.gain < b.gain; });
            if (best->gain <= 0) break;
            splits_.push_back(coarsened(*best, shape.least_weight));
            Leaf right = part(*best);
            if (leaves.size() + 1 < shape.n_leaves) {
                find_split(*best, shape.least_weight);
                find_split(right, shape.least_weight);
            }
            leaves.push_back(right);
        }
        for (const Leaf& leaf : leaves) take_off(leaf, shape.rate);
        return leaves.size() > 1;
    }

    // Leaves a leaf its left part, and returns the right one.
    Leaf part(Leaf& leaf) {
        const Code* codes = codes_of(leaf.column);
        size_t middle = leaf.begin, n_right = 0;
        for (size_t i = leaf.begin; i < leaf.end; ++i) {
            const uint32_t row = rows_[i];
            const bool is_right = codes[row] > leaf.last;
            rows_[middle] = row;
            set_apart_[n_right] = row;
            middle += !is_right;
            n_right += is_right;
        }
        std::copy_n(set_apart_.begin(), n_right, rows_.begin() + static_cast<std::ptrdiff_t>(middle));
        const Leaf right{middle, leaf.end};
        leaf = {leaf.begin, middle};
        return right;
    }

    void find_split(Leaf& leaf, double least_weight) {
        const std::vector<double> sums = gather(leaf);
        if (sums[0] < 2 * least_weight) return;
        for (size_t c = 0; c < n_columns_; ++c)
            each_cut(leaf, c, sums, least_weight, [&](size_t code, double fall, double parts) {
                if (!(fall > leaf.gain * parts)) return;
                leaf.gain = fall / parts;
                leaf.column = c;
                leaf.last = static_cast<Code>(code);
            });
    }

    // A leaf's split, with what it would gain with ever fewer cuts of its column.
    Split coarsened(const Leaf& leaf, double least_weight) {
        const std::vector<double> sums = gather(leaf);
        Split split{leaf.column};
        each_cut(leaf, leaf.column, sums, least_weight, [&](size_t code, double fall, double parts) {
            for (size_t step = 0; step < kCoarsenings && (code + 1) % (size_t{1} << step) == 0; ++step)
                split.gains[step] = std::max(split.gains[step], fall / parts);
        });
        return split;
    }

    // Calls note(code, fall, parts) for each cut of a column that leaves both parts of a leaf their least
    // weight: after which code it is; and it gains fall / parts, which is w_l w_r / w times the squared
    // distance of the means.
    template <class Note>
    void each_cut(const Leaf& leaf, size_t c, const std::vector<double>& sums, double least_weight,
                  const Note& note) {
        if (n_targets_ == 1)
            each_cut<1>(leaf, c, sums, least_weight, note);
        else
            each_cut<0>(leaf, c, sums, least_weight, note);
    }

    template <size_t known_targets, class Note>  // 0: any number
    void each_cut(const Leaf& leaf, size_t c, const std::vector<double>& sums, double least_weight,
                  const Note& note) {
        const size_t width = known_targets ? known_targets + 1 : n_targets_ + 1, n_cuts = n_codes_[c] - 1;
        if (n_cuts == 0) return;
        double* const histogram = histogram_.data();
        std::fill_n(histogram, (n_cuts + 1) * width, 0.0);
        const Code* codes = codes_of(c);
        const double* term = terms_.data();
        const uint32_t* rows = rows_.data();
        for (size_t i = leaf.begin; i < leaf.end; ++i, term += width) {
            double* cell = histogram + codes[rows[i]] * width;
            if (known_targets == 1) {
                const double a = cell[0] + term[0], b = cell[1] + term[1];
                cell[0] = a, cell[1] = b;
            } else {
                for (size_t k = 0; k < width; ++k) cell[k] += term[k];
            }
        }

        double left[known_targets + 1] = {}, right[known_targets + 1] = {}, mean[known_targets + 1];
        double *lefts = left, *rights = right, *means = mean;
        if (!known_targets) {
            lefts = left_.data(), rights = right_.data(), means = means_.data();
            std::fill_n(lefts, width, 0.0);
            std::fill_n(rights, width, 0.0);
        }
        const double weight = sums[0];
        for (size_t k = 1; k < width; ++k) means[k - 1] = sums[k] / weight;
        // Notes a cut, from the sums of one of its parts.
        const auto add = [&](double* part, size_t cell, size_t code) {
            for (size_t k = 0; k < width; ++k) part[k] += histogram[cell * width + k];
            const double rest = weight - part[0], parts = part[0] * rest;
            if (part[0] < least_weight || rest < least_weight || !(parts > 0)) return;
            double square = 0;
            for (size_t k = 1; k < width; ++k) {
                const double beyond_mean = part[k] - means[k - 1] * part[0];
                square += beyond_mean * beyond_mean;
            }
            note(code, square * weight, parts);
        };
        // From both ends: sums wait for each other, and two of them wait at once.
        for (size_t i = 0; i < n_cuts / 2; ++i) {
            add(lefts, i, i);
            add(rights, n_cuts - i, n_cuts - i - 1);
        }
        if (n_cuts % 2) add(lefts, n_cuts / 2, n_cuts / 2);
    }

    const Code* codes_;
    size_t n_columns_, n_rows_, n_targets_;
    std::vector<size_t> n_codes_;  // of each column
    std::vector<double> weights_, residuals_;
    std::vector<uint32_t> rows_, set_apart_;
    std::vector<double> terms_, means_, left_, right_, histogram_;
    std::vector<Split> splits_;
};

}  // namespace boostbins
