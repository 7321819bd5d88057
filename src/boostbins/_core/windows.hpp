// Where the values of a column with many distinct ones are counted.
#pragma once

#include <algorithm>
#include <vector>

#include "rows.hpp"

namespace boostbins {

// Counts in plain arrays, one window of consecutive cells per sign and exponent, where a guide (the sorted
// values of some of the rows) says that most values lie. A row costs a shift, a comparison and an addition.
class CellWindows {
  public:
    CellWindows() : level_(0) {}
    CellWindows(const std::vector<uint64_t>& guide, const Level& level, unsigned n_moments,
                bool counts_missing)
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
            if (last - first >= 32 * static_cast<uint64_t>(j - i)) continue;  // too thin
            const uint64_t margin = (last - first) / 8 + 8;
            const uint64_t lowest = (static_cast<uint64_t>(which) << kMantissaBits) >> dropped;
            const uint64_t highest = lowest + ((uint64_t{1} << (kMantissaBits - dropped)) - 1);
            first -= std::min(margin, first - lowest);
            last += std::min(margin, highest - last);
            windows_[which] = {first << dropped, static_cast<std::uint32_t>(total),
                               static_cast<std::uint32_t>(last - first + 1), static_cast<unsigned>(dropped)};
            total += last - first + 1;
        }
        if (counts_missing)  // else their weights are added up one by one
            for (const size_t which : {kExponents - 1, 2 * kExponents - 1})
                windows_[which] = {kQuietNaN | static_cast<uint64_t>(which) << kMantissaBits,
                                   static_cast<std::uint32_t>(total++), 1, kMantissaBits - 1};
        counts_.assign(total, 0);
        moments_.assign(total * n_moments, 0.0);
    }

    // How many missing values were counted.
    uint64_t missing() const {
        uint64_t n = 0;
        if (!windows_.empty())
            for (const size_t which : {kExponents - 1, 2 * kExponents - 1})
                if (windows_[which].size) n += counts_[windows_[which].start];
        return n;
    }

    // Whether zeros are counted here.
    bool holds_zero() const { return !windows_.empty() && windows_[0].size > 0 && windows_[0].first == 0; }

    // Notes the rows' cells, if they are to be used again. Zero, whose hash is 0, is not noted for the
    // sample: in many columns most rows are zero.
    template <bool kNoted>
    void add(const double* x, size_t n, uint64_t sample_limit, Picked& picked) {
        const Window* const windows = windows_.data();
        std::uint32_t* const counts = counts_.data();
        size_t n_outside = 0, n_sampled = 0;
        for (size_t i = 0; i < n; ++i) {
            const uint64_t bits = bits_of(x[i]);
            const Window& window = windows[bits >> kMantissaBits];
            const uint64_t cell = (bits - window.first) >> window.dropped;
            if (kNoted)
                picked.cells[i] =
                    cell < window.size ? window.start + static_cast<std::uint32_t>(cell) : Picked::kOutside;
            if (cell < window.size)
                ++counts[window.start + cell];
            else
                picked.outside[n_outside++] = static_cast<std::uint32_t>(i);
            if (hash_of(bits) - 1 < sample_limit) picked.sampled[n_sampled++] = static_cast<std::uint32_t>(i);
        }
        picked.n_outside = n_outside;
        picked.n_sampled = n_sampled;
    }

    void add_moments(const Rows& rows, size_t begin, size_t n, const Picked& picked) {
        double* const moments = moments_.data();
        const size_t n_moments = rows.n_moments();
        rows.with_adder([&](auto add) {
            for (size_t i = 0; i < n; ++i)
                if (picked.cells[i] != Picked::kOutside)
                    add(begin + i, moments + picked.cells[i] * n_moments);
        });
    }

    // For each place of a window the number of the key whose cell it is; kOutside, if it is none's.
    std::vector<std::uint32_t> places_of(const std::vector<uint64_t>& keys) const {
        std::vector<std::uint32_t> numbers(counts_.size(), Picked::kOutside);
        for (size_t i = 0; i < keys.size(); ++i) {
            const uint64_t bits = bits_of_key(keys[i]);
            const Window& window = windows_[bits >> kMantissaBits];
            const uint64_t cell = (bits - window.first) >> window.dropped;
            if (cell < window.size) numbers[window.start + cell] = static_cast<std::uint32_t>(i);
        }
        return numbers;
    }

    CellList sorted() const {
        CellList list;
        list.level = level_.index();
        list.n_moments = n_moments_;
        if (windows_.empty()) return list;
        const size_t empty = static_cast<size_t>(std::count(counts_.begin(), counts_.end(), 0u));
        list.cells.resize(counts_.size() - empty + 1);  // one more, to write to before it is known to count
        list.moments.resize(list.cells.size() * n_moments_);
        size_t n = 0;
        for (size_t which = 2 * kExponents - 1; which-- > kExponents;)
            for (uint64_t cell = windows_[which].size; cell-- > 0;) n += put(list, n, windows_[which], cell);
        for (size_t which = 0; which < kExponents - 1; ++which)
            for (uint64_t cell = 0; cell < windows_[which].size; ++cell)
                n += put(list, n, windows_[which], cell);
        list.cells.resize(n);
        list.moments.resize(n * n_moments_);
        return list;
    }

  private:
    static constexpr uint64_t kQuietNaN = uint64_t{1} << (kMantissaBits - 1);

    struct Window {
        uint64_t first = 0;       // the bits of its first value
        std::uint32_t start = 0;  // of its cells in counts_
        std::uint32_t size = 0;
        unsigned dropped = 0;
    };

    // Writes a cell to the n-th place, and returns whether it is one: every other is empty, which nothing
    // foresees.
    bool put(CellList& list, size_t n, const Window& window, uint64_t cell) const {
        const size_t at = window.start + cell;
        list.cells[n] = {key_of(window.first + (cell << window.dropped)), counts_[at]};
        std::copy_n(moments_.data() + at * n_moments_, n_moments_, list.moments.data() + n * n_moments_);
        return counts_[at] > 0;
    }

    Level level_;
    unsigned n_moments_ = 0;
    std::vector<Window> windows_;
    std::vector<std::uint32_t> counts_;
    std::vector<double> moments_;
};

}  // namespace boostbins
