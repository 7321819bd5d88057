// A small boosted model on some rows, grown to see which columns its splits are in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "floats.hpp"

namespace boostbins {

struct PilotShape {
    size_t n_trees, n_leaves;
    double rate;          // the share of a leaf's mean that is taken off its rows
    double least_weight;  // of a leaf
};

struct Split {
    uint64_t column;
    double gain;  // by how much the sum of squares falls
};

// Trees of squared error, grown best leaf first, each split between any two neighbouring values: the columns'
// orders are sorted once, and parted at every split (as in SLIQ, Mehta et al. 1996). Missing values stand
// above all others. Rows without a weight are carried along, and show what the model makes of rows it has not
// seen.
class Pilot {
  public:
    // values: a run of n_rows for each column; targets: n_targets for each row.
    Pilot(const double* values, size_t n_columns, const double* targets, size_t n_targets,
          const double* weights, size_t n_rows)
        : n_columns_(n_columns),
          n_rows_(n_rows),
          n_targets_(n_targets),
          weights_(weights, weights + n_rows),
          residuals_(targets, targets + n_rows * n_targets),
          weighted_(n_rows * n_targets),
          sorted_(n_columns * n_rows),
          is_right_(n_rows),
          set_apart_(n_rows),
          sums_(n_targets),
          left_(n_targets) {
        std::vector<uint64_t> keys(n_rows);
        for (size_t c = 0; c < n_columns; ++c) {
            for (size_t row = 0; row < n_rows; ++row) {
                const double x = values[c * n_rows + row];
                keys[row] = x == x ? key_of(x) : ~uint64_t{0};
            }
            sort(keys, sorted_.data() + c * n_rows);
        }
        if (n_columns > 0) take_off(sorted_.data(), n_rows, 1.0);
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
    struct Place {
        uint32_t rank, row;  // of the row's value in the column
    };

    struct Leaf {
        size_t begin, end;          // of its rows, in every column's order
        size_t column = 0, at = 0;  // the best split: where its right part begins in that column's order
        double gain = 0;
    };

    void sort(const std::vector<uint64_t>& keys, Place* order) const {
        for (uint32_t row = 0; row < n_rows_; ++row) order[row].row = row;
        std::sort(order, order + n_rows_, [&](Place a, Place b) {
            return keys[a.row] != keys[b.row] ? keys[a.row] < keys[b.row] : a.row < b.row;
        });
        uint32_t rank = 0;
        for (size_t i = 0; i < n_rows_; ++i) {
            rank += i > 0 && keys[order[i].row] != keys[order[i - 1].row];
            order[i].rank = rank;
        }
    }

    // The weight of some rows; sums_ becomes that of their weighted residuals.
    double add_up(const Place* rows, size_t n) {
        std::fill(sums_.begin(), sums_.end(), 0.0);
        double weight = 0;
        for (size_t i = 0; i < n; ++i) {
            weight += weights_[rows[i].row];
            for (size_t k = 0; k < n_targets_; ++k)
                sums_[k] += weights_[rows[i].row] * residuals_[rows[i].row * n_targets_ + k];
        }
        return weight;
    }

    // Takes a share of their mean off the residuals of some rows.
    void take_off(const Place* rows, size_t n, double share) {
        const double weight = add_up(rows, n);
        if (weight == 0) return;
        for (size_t i = 0; i < n; ++i)
            for (size_t k = 0; k < n_targets_; ++k)
                residuals_[rows[i].row * n_targets_ + k] -= share * (sums_[k] / weight);
    }

    bool grow_tree(const PilotShape& shape) {
        orders_ = sorted_;
        for (size_t i = 0; i < weighted_.size(); ++i) weighted_[i] = weights_[i / n_targets_] * residuals_[i];
        std::vector<Leaf> leaves{leaf_of(0, n_rows_, shape.least_weight)};
        while (leaves.size() < shape.n_leaves) {
            const auto best = std::max_element(leaves.begin(), leaves.end(),
                                               [](const Leaf& a, const Leaf& b) { return a.gain < b.gain; });
            if (best->gain <= 0) break;
            const Leaf parent = *best;
            splits_.push_back({parent.column, parent.gain});
            part(parent);
            *best = leaf_of(parent.begin, parent.at, shape.least_weight);
            leaves.push_back(leaf_of(parent.at, parent.end, shape.least_weight));
        }
        for (const Leaf& leaf : leaves)
            take_off(orders_.data() + leaf.begin, leaf.end - leaf.begin, shape.rate);
        return leaves.size() > 1;
    }

    // Puts the rows of the left part before those of the right one, in every column's order.
    void part(const Leaf& leaf) {
        const Place* split = orders_.data() + leaf.column * n_rows_;
        for (size_t i = leaf.begin; i < leaf.end; ++i) is_right_[split[i].row] = i >= leaf.at;
        for (size_t c = 0; c < n_columns_; ++c) {
            if (c == leaf.column) continue;
            Place* order = orders_.data() + c * n_rows_;
            size_t to = leaf.begin, n_right = 0;
            for (size_t i = leaf.begin; i < leaf.end; ++i) {
                const Place place = order[i];
                const bool is_right = is_right_[place.row];
                order[to] = place;
                set_apart_[n_right] = place;
                to += !is_right;
                n_right += is_right;
            }
            std::copy_n(set_apart_.begin(), n_right, order + to);
        }
    }

    Leaf leaf_of(size_t begin, size_t end, double least_weight) {
        Leaf leaf{begin, end};
        const double weight = add_up(orders_.data() + begin, end - begin);
        if (weight < 2 * least_weight) return leaf;
        for (size_t c = 0; c < n_columns_; ++c) {
            const Place* order = orders_.data() + c * n_rows_;
            if (order[begin].rank == order[end - 1].rank) continue;
            if (n_targets_ == 1)
                find_split<true>(leaf, c, weight, least_weight);
            else
                find_split<false>(leaf, c, weight, least_weight);
        }
        return leaf;
    }

    // Looks for a better split than a leaf has: its gain is w_l w_r / w times the squared distance of the
    // means.
    template <bool one_target>
    void find_split(Leaf& leaf, size_t c, double weight, double least_weight) {
        const Place* order = orders_.data() + c * n_rows_;
        const size_t n_targets = one_target ? 1 : n_targets_;
        double only = 0;
        double* left = one_target ? &only : left_.data();
        std::fill_n(left, n_targets, 0.0);
        const double *weights = weights_.data(), *weighted = weighted_.data(), *sums = sums_.data();
        double before = 0, most = leaf.gain;
        for (size_t i = leaf.begin; i + 1 < leaf.end; ++i) {
            const uint32_t row = order[i].row;
            before += weights[row];
            for (size_t k = 0; k < n_targets; ++k) left[k] += weighted[row * n_targets + k];
            if (order[i].rank == order[i + 1].rank) continue;
            const double after = weight - before;
            if (before < least_weight || after < least_weight) continue;
            double square = 0;
            for (size_t k = 0; k < n_targets; ++k) {
                const double beyond_mean = left[k] - sums[k] * (before / weight);
                square += beyond_mean * beyond_mean;
            }
            const double gain = square * weight / (before * after);
            if (gain > most && before * after > 0) {  // else a part has no weight, or next to none
                most = gain;
                leaf.column = c;
                leaf.at = i + 1;
            }
        }
        leaf.gain = most;
    }

    size_t n_columns_, n_rows_, n_targets_;
    std::vector<double> weights_, residuals_, weighted_;
    std::vector<Place> sorted_, orders_;  // of the rows, for each column
    std::vector<uint8_t> is_right_;
    std::vector<Place> set_apart_;
    std::vector<double> sums_, left_;
    std::vector<Split> splits_;
};

}  // namespace boostbins
