// Coordinates and sums that lose no digits, for the k-means kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "floats.hpp"

namespace boostbins {

// An unevaluated sum of two doubles (Dekker 1971).
struct Double2 {
    double high = 0, low = 0;

    void add(double x) {
        const double sum = high + x, part = sum - high;
        low += (high - (sum - part)) + (x - part);
        high = sum;
    }
    // a * b, the rounding error included.
    void add_product(double a, double b) {
        const double product = a * b;
        const auto split = [](double x) {
            const double big = 134217729.0 * x;  // 2^27 + 1
            return big - (big - x);
        };
        const double ah = split(a), bh = split(b), al = a - ah, bl = b - bh;
        add(product);
        low += ((ah * bh - product) + ah * bl + al * bh) + al * bl;
    }
};

inline double difference(const Double2& a, const Double2& b) { return (a.high - b.high) + (a.low - b.low); }

// The same with the rounding error of the difference kept.
inline Double2 difference2(const Double2& a, const Double2& b) {
    Double2 out = a;
    out.add(-b.high);
    out.low -= b.low;
    return out;
}

// The index of the weighted median.
inline size_t median_of(const double* weights, size_t n) {
    const double half = std::accumulate(weights, weights + n, 0.0) / 2;
    double sum = 0;
    size_t median = 0;
    for (; median + 1 < n && sum + weights[median] < half; ++median) sum += weights[median];
    return median;
}

// Points shifted to the median and scaled by a power of two, so that no square over- or underflows.
class Frame {
  public:
    Frame(const double* values, const double* weights, size_t n) : median(median_of(weights, n)) {
        origin_ = values[median];
        const double low = values[0], high = values[n - 1];
        // Halved only where differences overflow: a subnormal has no half.
        if (!std::isfinite(high - low)) unit_ = 0.5;
        int exponent;
        std::frexp(std::max(high * unit_ - origin_ * unit_, origin_ * unit_ - low * unit_), &exponent);
        const int half = exponent / 2;  // 2^exponent itself may not be a double
        shrink_ = std::ldexp(1.0, -half);
        shrink_again_ = std::ldexp(1.0, half - exponent);
        grow_ = std::ldexp(1.0, half);
        grow_again_ = std::ldexp(1.0, exponent - half);
    }

    const size_t median;

    double relative(double x) const { return relative(x, origin_); }
    double relative(double x, double origin) const {
        return (x * unit_ - origin * unit_) * shrink_ * shrink_again_;
    }
    double absolute(double x) const {
        // Of the least and the greatest double, which may become infinite by rounding.
        constexpr double most = std::numeric_limits<double>::max();
        return std::clamp((x * grow_ * grow_again_ + origin_ * unit_) / unit_, -most, most);
    }

  private:
    double origin_, unit_ = 1;
    double shrink_, shrink_again_, grow_, grow_again_;  // powers of two
};

}  // namespace boostbins
