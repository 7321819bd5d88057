// Rows: a column with what else there is per row.
#pragma once

#include <limits>

#include "cells.hpp"
#include "column.hpp"

namespace boostbins {

// A column with, optionally, a weight and some targets per row.
struct Rows {
    Column values;
    const double* weights;  // null: all 1
    const double* numbers;  // targets, n_targets per row
    const bool* flags;      // likewise: a row has either
    unsigned n_targets;

    unsigned n_moments() const { return n_targets ? n_targets + 2 : weights ? 1 : 0; }
    double weight(size_t row) const { return weights ? weights[row] : 1.0; }

  private:
    // Above their use: the compiler must know what they return.

    // One target, as most have, is known to the compiler; 0 stands for any number. The sums are written last,
    // so that nothing has to be read again after each.
    template <unsigned kTargets>
    auto number_adder() const {
        return [weights = weights, targets = numbers, n_targets = n_targets](size_t row, double* sums) {
            const unsigned n = kTargets ? kTargets : n_targets;
            double moments[kMostMoments];
            const double w = weights ? weights[row] : 1.0;
            moments[kWeight] = w;
            double squares = 0;
            for (unsigned i = 0; i < n; ++i) {
                const double y = targets[row * n + i];
                moments[kFirstTarget + i] = w * y;
                squares += y * y;
            }
            for (unsigned i = 0; i < kFirstTarget + n; ++i) sums[i] += moments[i];
            if (n) sums[kFirstTarget + n] += w * squares;
        };
    }

    // Most flags are down: a row is of one class. Those that are up are their own squares.
    auto flag_adder() const {
        return [weights = weights, flags = flags, n = n_targets](size_t row, double* sums) {
            const double w = weights ? weights[row] : 1.0;
            std::uint32_t up = 0;
            for (unsigned i = 0; i < n; ++i) up |= static_cast<std::uint32_t>(flags[row * n + i]) << i;
            sums[kWeight] += w;
            while (up) {
                const int i = highest_bit(up);
                up ^= std::uint32_t{1} << i;
                sums[kFirstTarget + static_cast<unsigned>(i)] += w;
                sums[kFirstTarget + n] += w;
            }
        };
    }

  public:
    // Calls with a function that adds a row's moments to sums, made for the targets that there are.
    template <class Visit>
    void with_adder(Visit visit) const {
        if (flags) return visit(flag_adder());
        if (n_targets == 1) return visit(number_adder<1>());
        visit(number_adder<0>());
    }
};

// Rows of a block, by position in it, that are left to others.
struct Picked {
    std::uint32_t outside[kBlock];  // no cell was at hand for these
    std::uint32_t sampled[kBlock];  // have a hash below the sample's limit
    std::uint32_t cells[kBlock];    // of all rows of the block, kOutside for those outside
    static constexpr std::uint32_t kOutside = std::numeric_limits<std::uint32_t>::max();
    size_t n_outside, n_sampled;
};

}  // namespace boostbins
