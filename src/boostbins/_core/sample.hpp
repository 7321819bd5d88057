// A bottom-k sample of distinct values (Cohen 1997; Bar-Yossef et al. 2002): those with the smallest hashes.
//
// Which values these are depends on the set of values alone, so samples merge without regard to order or
// partitioning, as cells do. They tell the shape of what lies inside a cell that holds too many rows.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "floats.hpp"

namespace boostbins {

class BottomSample {
  public:
    static constexpr size_t kCellsPerValue = 8;

    // For the cells of a list of at most max_cells.
    explicit BottomSample(size_t max_cells) : size_(std::max<size_t>(1, max_cells / kCellsPerValue)) {}

    // Values that hash above this can no longer enter.
    uint64_t limit() const { return limit_; }

    // To begin with many values at once: the sample lies below a limit that somewhat more than its size can
    // be expected to meet, if at least its size does.
    template <class KeyAt>
    void offer_distinct(size_t n, KeyAt key_at) {
        const uint64_t most = std::numeric_limits<uint64_t>::max();
        const uint64_t limit = n > 2 * size_ ? most / n * (size_ + size_ / 4) : most;
        size_t below = 0;
        for (size_t i = 0; i < n; ++i) below += hash_of(bits_of_key(key_at(i))) <= limit;
        if (below >= size_) limit_ = std::min(limit_, limit);
        for (size_t i = 0; i < n; ++i) offer(bits_of_key(key_at(i)));
    }

    // To go on from a sample: what hashes above all of it cannot enter, if it is full.
    void go_on(const std::vector<uint64_t>& keys) {
        uint64_t greatest = 0;
        for (uint64_t key : keys) {
            offer(bits_of_key(key));
            greatest = std::max(greatest, hash_of(bits_of_key(key)));
        }
        if (keys.size() >= size_) limit_ = std::min(limit_, greatest);
    }

    void offer(uint64_t bits) {
        const uint64_t hash = hash_of(bits);
        if (hash > limit_ || slots_[place_of(bits, hash)] == bits) return;
        add(bits, hash);
    }

    // The sample's keys, ascending.
    std::vector<uint64_t> keys() {
        if (used_ > size_) prune();
        std::vector<uint64_t> out;
        out.reserve(used_);
        for (uint64_t bits : slots_)
            if (bits != kEmpty) out.push_back(key_of(bits));
        std::sort(out.begin(), out.end());
        return out;
    }

  private:
    static constexpr size_t kFirstSlots = 16;
    static constexpr uint64_t kEmpty = kSignBit;  // -0.0, which canonical bits never are

    // Where the value is, or would be.
    size_t place_of(uint64_t bits, uint64_t hash) const {
        const size_t mask = slots_.size() - 1;
        size_t at = static_cast<size_t>(hash >> 20) & mask;
        while (slots_[at] != bits && slots_[at] != kEmpty) at = (at + 1) & mask;
        return at;
    }

    // Adds a new value. Room is made as values come: how many there may be is not how many there are.
    void add(uint64_t bits, uint64_t hash) {
        slots_[place_of(bits, hash)] = bits;
        if (++used_ > 2 * size_)
            prune();
        else if (2 * used_ > slots_.size())
            grow();
    }

    void grow() {
        std::vector<uint64_t> before(4 * slots_.size(), kEmpty);
        before.swap(slots_);
        for (uint64_t bits : before)
            if (bits != kEmpty) slots_[place_of(bits, hash_of(bits))] = bits;
    }

    void prune() {
        std::vector<uint64_t> kept, hashes;
        for (uint64_t& bits : slots_) {
            if (bits == kEmpty) continue;
            kept.push_back(bits);
            hashes.push_back(hash_of(bits));
            bits = kEmpty;
        }
        std::nth_element(hashes.begin(), hashes.begin() + static_cast<std::ptrdiff_t>(size_ - 1),
                         hashes.end());
        limit_ = hashes[size_ - 1];
        used_ = 0;
        for (uint64_t bits : kept) offer(bits);
    }

    size_t size_, used_ = 0;
    uint64_t limit_ = std::numeric_limits<uint64_t>::max();
    std::vector<uint64_t> slots_ = std::vector<uint64_t>(kFirstSlots, kEmpty);
};

}  // namespace boostbins
