// The optimum of one-dimensional k-means, by Lagrangian relaxation.
//
// Paying lambda per cluster instead of fixing their number turns the dynamic program into one pass over the
// points (a monotone queue, since the cost is concave Monge); the lambda at which exactly k clusters are best
// is searched for. A pass that returns k clusters proves them optimal. Where the count jumps over k, the
// solutions on both sides cost the same at that lambda, and a splice of the two has k clusters and that cost.
// (Aggarwal, Schieber & Tokuyama 1994; Gronlund et al. 2017, "Fast Exact k-Means, k-Medians and Bregman
// Divergence Clustering in 1D".)
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "frame.hpp"

namespace boostbins {

class OptimalPartition {
  public:
    // n distinct, ascending values; more than k of them.
    OptimalPartition(const double* values, const double* weights, size_t n, size_t k)
        : n_(n), k_(k), x_(n), w_(n) {
        const Frame frame(values, weights, n);
        median_ = frame.median;
        int exponent;
        std::frexp(*std::max_element(weights, weights + n), &exponent);
        for (size_t i = 0; i < n; ++i) {
            x_[i] = frame.relative(values[i]);
            w_[i] = std::ldexp(weights[i], -exponent);
        }
        log2_unit_ = exponent + 2 * (frame.exponent + 1);
        clip_gaps();
        sum_outward();
    }

    // The first point of each cluster, and n.
    std::vector<size_t> solve() {
        if (k_ == 1) return {0, n_};
        Solution fine{0, n_, 0, {}}, coarse{0, 1, cost(0, n_), {0, n_}};
        fine.borders.resize(n_ + 1);
        std::iota(fine.borders.begin(), fine.borders.end(), size_t{0});
        lambda_ = first_guess();
        Guess guess(k_);
        for (int pass = 1;; ++pass) {
            const bool guessed =
                pass <= kGuesses && lambda_ > fine.lambda && (coarse.lambda == 0 || lambda_ < coarse.lambda);
            // Where both solutions cost the same. Once no other is cheaper there, both are optimal there.
            if (!guessed)
                lambda_ = (coarse.cost - fine.cost) / static_cast<double>(fine.count - coarse.count);
            const Solution found = relax(lambda_);
            if (found.count == k_) return found.borders;
            if (!guessed && (found.count >= fine.count || found.count <= coarse.count))
                return splice(coarse, fine);
            (found.count > k_ ? fine : coarse) = found;
            lambda_ = guess.after(lambda_, found.count);
        }
    }

  private:
    static constexpr int kGuesses = 12;
    static constexpr size_t kPointsPerCluster = 16;

    struct Solution {
        double lambda;  // 0: not from a pass
        size_t count;
        double cost;  // without the lambdas
        std::vector<size_t> borders;
    };

    // The cost of points i..j-1 in one cluster: their weighted sum of squares around their mean.
    double cost(size_t i, size_t j) const {
        const Prefix &a = prefix_[i], &b = prefix_[j];
        const double sum = b.sum - a.sum;
        return (b.square - a.square) - sum * sum / (b.weight - a.weight);
    }

    // The same from the points themselves: slower, and without cancellation.
    double stable_cost(size_t i, size_t j) const {
        double weight = 0, sum = 0;
        const double origin = x_[i + (j - i) / 2];
        for (size_t p = i; p < j; ++p) {
            weight += w_[p];
            sum += w_[p] * (x_[p] - origin);
        }
        const double mean = origin + sum / weight;
        double square = 0;
        for (size_t p = i; p < j; ++p) square += w_[p] * (x_[p] - mean) * (x_[p] - mean);
        return square;
    }

    // Companding: the best density of clusters is proportional to the cube root of that of the points
    // (Panter & Dite 1951). Each point's share of it.
    std::vector<double> companding() const {
        std::vector<double> share(n_);
        for (size_t i = 0; i < n_; ++i) {
            const double left = i ? (x_[i - 1] + x_[i]) / 2 : x_[0];
            const double right = i + 1 < n_ ? (x_[i] + x_[i + 1]) / 2 : x_[n_ - 1];
            share[i] = std::cbrt(w_[i] * (right - left) * (right - left));
        }
        return share;
    }

    // At least the lambda at which k clusters are best: the cost of some half as many, spread over the rest.
    double lambda_bound() const {
        const size_t half = k_ / 2;
        std::vector<double> gaps(n_ - 1);
        for (size_t i = 0; i + 1 < n_; ++i) gaps[i] = x_[i + 1] - x_[i];
        std::vector<double> sorted = gaps;
        std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(half - 1), sorted.end(),
                         std::greater<>());
        const double widest = sorted[half - 1];
        double by_gaps = 0;
        size_t begin = 0;
        for (size_t i = 1; i <= n_; ++i)
            if (i == n_ || gaps[i - 1] > widest) {  // at most half - 1 of these
                by_gaps += stable_cost(begin, i);
                begin = i;
            }
        const std::vector<double> share = companding();
        const double total = std::accumulate(share.begin(), share.end(), 0.0);
        double by_share = 0, sum = 0;
        begin = 0;
        for (size_t i = 0, cluster = 1; i < n_; ++i) {
            sum += share[i];
            const bool full =
                cluster < half && sum * static_cast<double>(half) >= total * static_cast<double>(cluster);
            if (!full && i + 1 < n_) continue;
            by_share += stable_cost(begin, i + 1);
            begin = i + 1;
            ++cluster;
        }
        return std::min(by_gaps, by_share) / static_cast<double>(k_ - half) * 1.01;
    }

    // A gap so wide that every optimal solution cuts it may be narrowed until it is only just so wide: the
    // clusters and their costs stay as they are, and sums no longer drown narrow groups that lie far apart.
    void clip_gaps() {
        if (k_ < 2) return;
        for (int round = 0; round < 16; ++round) {
            const double bound = std::max(lambda_bound(), 1e-290), range = x_[n_ - 1] - x_[0];
            std::vector<double> clipped(n_);
            const auto clip = [&](size_t i) {  // the gap after point i
                const double limit = std::sqrt(bound / w_[i] + bound / w_[i + 1]) * 1.0001;
                return std::min(x_[i + 1] - x_[i], limit);
            };
            for (size_t i = median_; i + 1 < n_; ++i) clipped[i + 1] = clipped[i] + clip(i);
            for (size_t i = median_; i-- > 0;) clipped[i] = clipped[i + 1] - clip(i);
            const double new_range = clipped[n_ - 1] - clipped[0];
            int exponent;
            std::frexp(new_range, &exponent);
            for (size_t i = 0; i < n_; ++i) x_[i] = std::ldexp(clipped[i], -exponent);
            log2_unit_ += 2 * exponent;
            if (new_range > range / 4) break;
        }
    }

    void sum_outward() {
        prefix_.resize(n_ + 1);
        Double2 weight, sum, square;
        const auto add = [&](size_t i, double sign) {
            weight.add(sign * w_[i]);
            sum.add_product(sign * w_[i], x_[i]);
            square.add_product(sign * w_[i] * x_[i], x_[i]);
            return Prefix{weight.high + weight.low, sum.high + sum.low, square.high + square.low};
        };
        for (size_t i = median_; i < n_; ++i) prefix_[i + 1] = add(i, 1);
        weight = sum = square = {};
        for (size_t i = median_; i-- > 0;) prefix_[i] = add(i, -1);
    }

    // From the companding density; with many points, from the optimum of fewer, each the mean of some of
    // them.
    double first_guess() const {
        const std::vector<double> share = companding();
        const double total = std::accumulate(share.begin(), share.end(), 0.0);
        const size_t fewer = kPointsPerCluster * k_;
        if (n_ < 2 * fewer) {
            const double part = total / static_cast<double>(k_);
            return part * part * part / 6;
        }
        std::vector<double> values, weights;
        double sum = 0, weight = 0, moment = 0;
        size_t first = 0;
        for (size_t i = 0; i < n_; ++i) {
            sum += share[i];
            weight += w_[i];
            moment += w_[i] * (x_[i] - x_[first]);
            if (sum * static_cast<double>(fewer) < total * static_cast<double>(values.size() + 1) &&
                i + 1 < n_)
                continue;
            values.push_back(x_[first] + moment / weight);
            weights.push_back(weight);
            first = i + 1;
            weight = moment = 0;
        }
        if (values.size() <= k_) return total * total * total / 6 / std::pow(static_cast<double>(k_), 3);
        OptimalPartition rough(values.data(), weights.data(), values.size(), k_);
        rough.solve();
        return std::ldexp(rough.lambda_, rough.log2_unit_);
    }

    // Regula falsi on log(count) over log(lambda), of which the slope is about -1/3, with Illinois' halving.
    class Guess {
      public:
        explicit Guess(size_t k) : log_k_(std::log(static_cast<double>(k))) {}

        double after(double lambda, size_t count) {
            const double excess = std::log(static_cast<double>(count)) - log_k_;
            Side& side = excess > 0 ? low_ : high_;
            Side& other = excess > 0 ? high_ : low_;
            if (last_ == &side) other.excess /= 2;
            last_ = &side;
            side = {std::log(lambda), excess, true};
            if (!other.known) return lambda * std::exp(3 * excess + (excess > 0 ? 0.02 : -0.02));
            return std::exp(low_.log_lambda + (high_.log_lambda - low_.log_lambda) * low_.excess /
                                                  (low_.excess - high_.excess));
        }

      private:
        struct Side {
            double log_lambda = 0, excess = 0;
            bool known = false;
        };
        double log_k_;
        Side low_, high_;
        Side* last_ = nullptr;
    };

    // The cheapest partition when every cluster costs lambda on top.
    Solution relax(double lambda) {
        best_.resize(n_ + 1);
        previous_.resize(n_ + 1);
        queue_.clear();
        queue_.push_back({0, 1});
        size_t head = 0;
        best_[0] = 0;
        const auto total = [&](size_t i, size_t j) { return best_[i] + cost(i, j); };
        for (size_t j = 1; j <= n_; ++j) {
            while (head + 1 < queue_.size() && queue_[head + 1].start <= j) ++head;
            previous_[j] = queue_[head].border;
            best_[j] = total(previous_[j], j) + lambda;
            if (j == n_) break;
            // The candidate j, a cluster that begins there, wins from some end on against each that came
            // before.
            while (queue_.size() > head + 1 &&
                   total(j, queue_.back().start) <= total(queue_.back().border, queue_.back().start))
                queue_.pop_back();
            const size_t rival = queue_.back().border;
            size_t low = std::max(j, queue_.back().start - 1) + 1, high = low, step = 1;
            while (high <= n_ && total(j, high) > total(rival, high)) {
                low = high + 1;
                high += step;
                step *= 2;
            }
            high = std::min(high, n_ + 1);
            while (low < high) {
                const size_t middle = low + (high - low) / 2;
                if (total(j, middle) <= total(rival, middle))
                    high = middle;
                else
                    low = middle + 1;
            }
            if (low <= n_) queue_.push_back({j, low});
        }
        Solution solution{lambda, 0, 0, {n_}};
        for (size_t j = n_; j > 0; j = previous_[j]) solution.borders.push_back(previous_[j]);
        std::reverse(solution.borders.begin(), solution.borders.end());
        solution.count = solution.borders.size() - 1;
        solution.cost = best_[n_] - lambda * static_cast<double>(solution.count);
        return solution;
    }

    // k clusters: the first of the coarse solution, then the last of the fine one.
    std::vector<size_t> splice(const Solution& coarse, const Solution& fine) const {
        const size_t skip = fine.count - k_;
        for (size_t i = 0; i < coarse.count && i + skip < fine.count; ++i)
            if (coarse.borders[i] <= fine.borders[i + skip] &&
                fine.borders[i + skip + 1] <= coarse.borders[i + 1]) {
                const auto at = static_cast<std::ptrdiff_t>(i);
                std::vector<size_t> borders(coarse.borders.begin(), coarse.borders.begin() + at + 1);
                borders.insert(borders.end(),
                               fine.borders.begin() + at + static_cast<std::ptrdiff_t>(skip) + 1,
                               fine.borders.end());
                return borders;
            }
        return fine.borders;  // not reached: such an i exists for any two partitions with these counts
    }

    struct Prefix {
        double weight = 0, sum = 0, square = 0;
    };
    struct Candidate {
        size_t border, start;  // wins for ends from `start` on, until the next candidate does
    };

    size_t n_, k_, median_ = 0;
    double lambda_ = 0;
    int log2_unit_ = 0;  // costs are in units of 2^this
    std::vector<double> x_, w_;
    std::vector<Prefix> prefix_;
    std::vector<double> best_;
    std::vector<size_t> previous_;
    std::vector<Candidate> queue_;
};

}  // namespace boostbins
