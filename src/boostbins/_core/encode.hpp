// Values to codes: the number of cuts below the value, found in a table over the leading bits of the double.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "column.hpp"

namespace boostbins {

class Encoder {
  public:
    // Ascending, finite cuts, none of them -0.0. NaN becomes the missing code.
    Encoder(const double* cuts, size_t n, std::uint16_t missing_code)
        : n_cuts_(n), cuts_(cuts, cuts + n), windows_(2 * kExponents) {
        size_t first = 0;
        for (size_t which = 2 * kExponents; which-- > kExponents;) first = add_window(which, first);
        for (size_t which = 0; which < kExponents; ++which) first = add_window(which, first);
        // Infinity has mantissa 0, every NaN has another.
        windows_[kExponents - 1] = {kInfinity, 1, table_.size(), 0};
        table_.insert(table_.end(), {static_cast<std::uint16_t>(n), missing_code});
        windows_[2 * kExponents - 1] = {kInfinity, 1, table_.size(), 0};
        table_.insert(table_.end(), {0, missing_code});
        // So that a comparison with the cut after the last, or with the missing code's, is always false.
        cuts_.resize(std::max<size_t>(n, missing_code) + kMaxSteps + 1,
                     std::numeric_limits<double>::infinity());
    }

    template <class Code>
    void encode(const Column& column, Code* out, std::ptrdiff_t out_stride) const {
        each_block(column, [&](const double* x, size_t begin, size_t n) {
            Code* to = out + out_stride * static_cast<std::ptrdiff_t>(begin);
            if (crowd_ <= 1)
                encode_block<1>(x, n, to, out_stride);
            else if (crowd_ <= kMaxSteps)
                encode_block<kMaxSteps>(x, n, to, out_stride);
            else
                encode_block<0>(x, n, to, out_stride);
        });
    }

  private:
    static constexpr size_t kMaxSteps = 3;

    // The cells of one sign and exponent: their first magnitude, number, and place in the table.
    struct Window {
        uint64_t first = 0;
        uint64_t last = 0;  // cell; larger magnitudes belong to it too, smaller ones to cell 0
        size_t start = 0;
        unsigned dropped = 0;
    };

    // Lays out the window of a sign and exponent, whose cuts are the next ones from `first` on.
    // A cell's entry is the number of cuts below its smallest value; returns the first cut beyond the window.
    size_t add_window(size_t which, size_t first) {
        const bool negative = which >= kExponents;
        size_t end = first;
        while (end < n_cuts_ && bits_of(cuts_[end]) >> kMantissaBits == which) ++end;
        Window& window = windows_[which];
        window.start = table_.size();
        if (first == end) {
            table_.push_back(static_cast<std::uint16_t>(first));
            return end;
        }
        const uint64_t a = bits_of(cuts_[first]) & kMagnitude, b = bits_of(cuts_[end - 1]) & kMagnitude;
        const uint64_t low = std::min(a, b), high = std::max(a, b);
        window.dropped = dropped_bits(first, end, high - low);
        // One cell before the first cut takes the smaller magnitudes, one after the last the larger ones.
        window.first = ((low >> window.dropped) - 1) << window.dropped;
        window.last = ((high - window.first) >> window.dropped) + 1;
        std::vector<size_t> crowds(window.last + 1);
        for (size_t i = first; i < end; ++i) ++crowds[cell_of(window, bits_of(cuts_[i]))];
        crowd_ = std::max(crowd_, *std::max_element(crowds.begin(), crowds.end()));
        // Values ascend with the cells, for negative ones descend.
        size_t below = first;
        table_.resize(window.start + window.last + 1);
        for (uint64_t i = 0; i <= window.last; ++i) {
            const uint64_t cell = negative ? window.last - i : i;
            table_[window.start + cell] = static_cast<std::uint16_t>(below);
            below += crowds[cell];
        }
        return end;
    }

    // Wide cells make a small table, narrow ones hold fewer cuts each: the widest with one cut per cell,
    // as long as the table stays within a few entries per cut.
    unsigned dropped_bits(size_t first, size_t end, uint64_t range) const {
        uint64_t gap = uint64_t{1} << (kMantissaBits - 1);
        for (size_t i = first + 1; i < end; ++i) {
            const uint64_t a = bits_of(cuts_[i - 1]), b = bits_of(cuts_[i]);
            gap = std::min(gap, a > b ? a - b : b - a);
        }
        unsigned dropped = 0;
        while ((uint64_t{2} << dropped) <= gap) ++dropped;
        while (range >> dropped > 32 * (end - first) + 32) ++dropped;
        return dropped;
    }

    static uint64_t cell_of(const Window& window, uint64_t bits) {
        const auto offset = static_cast<std::int64_t>((bits & kMagnitude) - window.first);
        return std::min(static_cast<uint64_t>(std::max<std::int64_t>(offset, 0)) >> window.dropped,
                        window.last);
    }

    template <size_t steps, class Code>
    void encode_block(const double* x, size_t n, Code* out, std::ptrdiff_t stride) const {
        for (size_t i = 0; i < n; ++i) {
            const uint64_t bits = bits_of(x[i]);
            const Window& window = windows_[bits >> kMantissaBits];
            size_t code = table_[window.start + cell_of(window, bits)];
            if (steps > 0)
                for (size_t step = 0; step < steps; ++step) code += cuts_[code] < x[i];
            else if (cuts_[code] < x[i])
                code = static_cast<size_t>(
                    std::lower_bound(cuts_.begin() + static_cast<std::ptrdiff_t>(code),
                                     cuts_.begin() + static_cast<std::ptrdiff_t>(last_code(code)), x[i]) -
                    cuts_.begin());
            out[static_cast<std::ptrdiff_t>(i) * stride] = static_cast<Code>(code);
        }
    }

    // No cell holds more than crowd_ cuts.
    size_t last_code(size_t code) const { return std::min(code + crowd_, n_cuts_); }

    size_t n_cuts_;
    size_t crowd_ = 0;  // the most cuts in one cell
    std::vector<double> cuts_;
    std::vector<Window> windows_;
    std::vector<std::uint16_t> table_;
};

// The same by bisection, without a table: for a few values, which would not pay for one.
class Searcher {
  public:
    Searcher(const double* cuts, size_t n, std::uint16_t missing_code)
        : cuts_(cuts, cuts + n), missing_code_(missing_code) {}

    template <class Code>
    void encode(const Column& column, Code* out, std::ptrdiff_t out_stride) const {
        each_block(column, [&](const double* x, size_t begin, size_t n) {
            for (size_t i = 0; i < n; ++i) {
                const auto below = std::lower_bound(cuts_.begin(), cuts_.end(), x[i]) - cuts_.begin();
                out[out_stride * static_cast<std::ptrdiff_t>(begin + i)] =
                    static_cast<Code>(x[i] == x[i] ? below : missing_code_);
            }
        });
    }

  private:
    std::vector<double> cuts_;
    std::uint16_t missing_code_;
};

}  // namespace boostbins
