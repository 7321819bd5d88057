// Where the values of a column with few distinct ones are counted.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "rows.hpp"

namespace boostbins {

// Single values in a hash table that grows with them.
class ValueTable {
  public:
    // With room for `expected` values before it grows.
    ValueTable(const Rows& rows, unsigned n_moments, size_t expected) : rows_(&rows), n_moments_(n_moments) {
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
        if (n_moments_) rows_->with_adder([&](auto add) { add(row, moments_.data() + at * n_moments_); });
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

}  // namespace boostbins
