// Coordinates and sums that lose no digits, for the k-means kernels.
#pragma once

#include <algorithm>
#include <cmath>
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

// Points shifted to the median and scaled by a power of two, so that no square over- or underflows.
struct Frame {
    double origin;
    int exponent;

    Frame(const double* values, const double* weights, size_t n) {
        const double half = std::accumulate(weights, weights + n, 0.0) / 2;
        double sum = 0;
        for (median = 0; median + 1 < n && sum + weights[median] < half; ++median) sum += weights[median];
        origin = values[median];
        const double reach = std::max(values[n - 1] / 2 - origin / 2, origin / 2 - values[0] / 2);
        std::frexp(reach, &exponent);
    }

    size_t median;

    double relative(double x) const { return std::ldexp(x / 2 - origin / 2, -exponent); }
    double absolute(double x) const {
        const double half = std::ldexp(x, exponent) + origin / 2;
        return half * 2;
    }
};

}  // namespace boostbins
