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
        : n_(n), k_(k), median_(median_of(weights, n)), x_(n), w_(n) {
        // Halved only where differences overflow: a subnormal has no half.
        const double unit = std::isfinite(values[n - 1] - values[0]) ? 1 : 0.5;
        std::vector<double> gaps(n - 1);
        for (size_t i = 0; i + 1 < n; ++i) gaps[i] = values[i + 1] * unit - values[i] * unit;
        int exponent;
        std::frexp(values[n - 1] * unit - values[0] * unit, &exponent);
        scale(gaps, exponent);
        int weight_exponent;
        std::frexp(*std::max_element(weights, weights + n), &weight_exponent);
        for (size_t i = 0; i < n; ++i) w_[i] = std::ldexp(weights[i], -weight_exponent);
        log2_unit_ += weight_exponent + (unit < 1 ? 2 : 0);
        clip(gaps);
        for (size_t i = median_; i + 1 < n; ++i) x_[i + 1] = x_[i] + gaps[i];
        for (size_t i = median_; i-- > 0;) x_[i] = x_[i + 1] - gaps[i];
        prepare_sums();
    }

    // The first point of each cluster, and n.
    std::vector<size_t> solve() {
        if (k_ == 1) return {0, n_};
        std::vector<size_t> borders = search(first_guess());
        if (!precise_ && !is_sound(lambda_)) {
            use_precise_sums();
            borders = search(lambda_);
        }
        return borders;
    }

  private:
    // The optimal borders; lambda_ is then the price at which they were found.
    std::vector<size_t> search(double guess) {
        Solution fine{0, n_, 0, {}}, coarse{0, 1, cost(0, n_), {0, n_}};
        fine.borders.resize(n_ + 1);
        std::iota(fine.borders.begin(), fine.borders.end(), size_t{0});
        lambda_ = guess;
        Interpolation interpolation(k_);
        for (int pass = 1;; ++pass) {
            const bool guessed = pass <= kGuesses && fine.count - coarse.count > kClose &&
                                 lambda_ > fine.lambda && (coarse.lambda == 0 || lambda_ < coarse.lambda);
            // Where both solutions cost the same. Once no other is cheaper there, both are optimal there.
            if (!guessed)
                lambda_ = (coarse.cost - fine.cost) / static_cast<double>(fine.count - coarse.count);
            const Solution found = relax(lambda_);
            if (found.count == k_) return found.borders;
            if (!guessed && (found.count >= fine.count || found.count <= coarse.count))
                return splice(coarse, fine);
            (found.count > k_ ? fine : coarse) = found;
            lambda_ = interpolation.after(lambda_, found.count);
        }
    }

    static constexpr int kGuesses = 12;
    static constexpr size_t kClose = 4;  // clusters between the bounds: guessing no longer helps
    static constexpr size_t kPointsPerCluster = 16;
    static constexpr double kNoise = 1e-7;      // of a cluster's worth: more calls for doubled precision
    static constexpr double kLightest = 1e-12;  // share of the weight: less does too

    struct Solution {
        double lambda;  // 0: not from a pass
        size_t count;
        double cost;  // without the lambdas
        std::vector<size_t> borders;
    };

    // The cost of points i..j-1 in one cluster: their weighted sum of squares around their mean.
    double cost(size_t i, size_t j) const {
        const Prefix &a = prefix_[i], &b = prefix_[j];
        if (precise_) return precise_cost(i, j);
        const double sum = b.sum - a.sum;
        return (b.square - a.square) - sum * sum / (b.weight - a.weight);
    }

    // The same in doubled precision, for when the squares that cancel are too large for one.
    double precise_cost(size_t i, size_t j) const {
        const Prefix2 &a = prefix2_[i], &b = prefix2_[j];
        const Double2 weight = difference2(b.weight, a.weight), sum = difference2(b.sum, a.sum);
        const double total = weight.high + weight.low;
        const double mean = (sum.high + sum.low) / total;
        // Around a rounded mean, which adds no more than the square of its rounding.
        Double2 cost = difference2(b.square, a.square);
        cost.add_product(-2 * mean, sum.high);
        cost.add(-2 * mean * sum.low);
        Double2 square;
        square.add_product(mean, mean);
        cost.add_product(square.high, weight.high);
        cost.add(square.high * weight.low);
        cost.add(square.low * weight.high);
        return cost.high + cost.low;
    }

    // Companding: the best density of clusters is proportional to the cube root of that of the points
    // (Panter & Dite 1951). Each point's share of it.
    void compand(const std::vector<double>& gaps) {
        share_.resize(n_);
        total_share_ = 0;
        for (size_t i = 0; i < n_; ++i) {
            const double width = ((i ? gaps[i - 1] : 0) + (i + 1 < n_ ? gaps[i] : 0)) / 2;
            total_share_ += share_[i] = std::cbrt(w_[i] * width * width);
        }
    }

    // The cost of the clusters that end after the points that say so, from gaps: without cancellation.
    template <class EndsAfter>
    double cost_of(const std::vector<double>& gaps, EndsAfter ends_after) const {
        double total = 0, weight = 0, sum = 0, square = 0, x = 0;
        for (size_t i = 0; i < n_; ++i) {
            // Updated by what the point adds (Welford 1962), relative to the cluster's first point.
            const double had = weight;
            weight += w_[i];
            const double before = x - sum;
            sum += before * (w_[i] / weight);
            square += w_[i] * (had / weight) * before * before;
            if (i + 1 < n_ && !ends_after(i)) {
                x += gaps[i];
                continue;
            }
            total += square;
            weight = sum = square = x = 0;
        }
        return total;
    }

    // At least the lambda at which k clusters are best: what some j < k clusters cost, spread over the rest.
    double lambda_bound(const std::vector<double>& gaps) const {
        std::vector<double> ranked = gaps;
        double bound = std::numeric_limits<double>::infinity();
        for (size_t rest = k_ - k_ / 2; rest > 0; rest /= 2) {
            const size_t j = k_ - rest;
            const auto rank = ranked.begin() + static_cast<std::ptrdiff_t>(j - 1);
            std::nth_element(ranked.begin(), rank, ranked.end(), std::greater<>());
            const double widest = *rank;
            const double by_gaps =
                cost_of(gaps, [&](size_t i) { return gaps[i] > widest; });  // at most j - 1 are
            double sum = 0;
            size_t cluster = 1;
            const double by_share = cost_of(gaps, [&](size_t i) {
                sum += share_[i];
                const bool full = cluster < j &&
                                  sum * static_cast<double>(j) >= total_share_ * static_cast<double>(cluster);
                cluster += full;
                return full;
            });
            const double found = std::min(by_gaps, by_share) / static_cast<double>(rest);
            const bool better = found < bound / 2;
            bound = std::min(bound, found);
            if (!better) break;  // it pays only while a few gaps dwarf all else
        }
        return bound * 1.01;
    }

    // A gap so wide that every optimal solution cuts it may be narrowed until it is only just so wide: the
    // clusters and their costs stay as they are, and sums no longer drown narrow groups that lie far apart.
    void clip(std::vector<double>& gaps) {
        compand(gaps);
        if (k_ < 2) return;
        double range = std::accumulate(gaps.begin(), gaps.end(), 0.0);
        for (int round = 0; round < 64; ++round) {
            const double bound = std::max(lambda_bound(gaps), 1e-290), old_range = range;
            range = 0;
            for (size_t i = 0; i + 1 < n_; ++i)
                range += gaps[i] = std::min(gaps[i], std::sqrt(bound / w_[i] + bound / w_[i + 1]) * 1.0001);
            int exponent;
            std::frexp(range, &exponent);
            scale(gaps, exponent);
            if (range < old_range || exponent != 0) compand(gaps);
            const bool clipped_little = range > old_range / 4;
            range = std::ldexp(range, -exponent);
            if (clipped_little) break;
        }
    }

    void scale(std::vector<double>& gaps, int exponent) {
        for (double& gap : gaps) gap = std::ldexp(gap, -exponent);
        log2_unit_ += 2 * exponent;
    }

    // Prefix sums, outward from the median: visits each of them, with its place.
    template <class Visit>
    void sum_outward(Visit visit) const {
        Prefix2 sums;
        const auto add = [&](size_t i, double sign) {
            const double w = sign * w_[i];
            sums.weight.add(w);
            sums.sum.add_product(w, x_[i]);
            Double2 square;
            square.add_product(x_[i], x_[i]);
            sums.square.add_product(w, square.high);
            sums.square.add(w * square.low);
        };
        visit(median_, sums);
        for (size_t i = median_; i < n_; ++i) {
            add(i, 1);
            visit(i + 1, sums);
        }
        sums = {};
        for (size_t i = median_; i-- > 0;) {
            add(i, -1);
            visit(i, sums);
        }
    }

    void prepare_sums() {
        prefix_.resize(n_ + 1);
        sum_outward([&](size_t i, const Prefix2& p) {
            prefix_[i] = {p.weight.high + p.weight.low, p.sum.high + p.sum.low, p.square.high + p.square.low};
        });
        const double lightest =
            *std::min_element(w_.begin(), w_.end()) / (prefix_[n_].weight - prefix_[0].weight);
        if (!is_sound(companding_lambda()) || lightest < kLightest) use_precise_sums();
    }

    // Whether what rounding can do to a cost is little compared with the cost of a cluster.
    bool is_sound(double lambda) const {
        return 2.3e-16 * (std::fabs(prefix_[0].square) + std::fabs(prefix_[n_].square)) < kNoise * lambda;
    }

    void use_precise_sums() {
        precise_ = true;
        prefix2_.resize(n_ + 1);
        sum_outward([&](size_t i, const Prefix2& p) { prefix2_[i] = p; });
    }

    double companding_lambda() const {
        const double part = total_share_ / static_cast<double>(k_);
        return part * part * part / 6;
    }

    // From the companding density; with many points, from the optimum of fewer, each the mean of some of
    // them.
    double first_guess() const {
        const size_t fewer = kPointsPerCluster * k_;
        if (n_ < 2 * fewer) return companding_lambda();
        std::vector<double> values, weights;
        double sum = 0, weight = 0, moment = 0;
        size_t first = 0;
        for (size_t i = 0; i < n_; ++i) {
            sum += share_[i];
            weight += w_[i];
            moment += w_[i] * (x_[i] - x_[first]);
            if (sum * static_cast<double>(fewer) < total_share_ * static_cast<double>(values.size() + 1) &&
                i + 1 < n_)
                continue;
            values.push_back(x_[first] + moment / weight);
            weights.push_back(weight);
            first = i + 1;
            weight = moment = 0;
        }
        if (values.size() <= k_) return companding_lambda();
        OptimalPartition rough(values.data(), weights.data(), values.size(), k_);
        rough.solve();
        return std::ldexp(rough.lambda_, rough.log2_unit_);
    }

    // Regula falsi on log(count) over log(lambda), of which the slope is about -1/3, with Illinois' halving.
    class Interpolation {
      public:
        explicit Interpolation(size_t k)
            : log_k_(std::log(static_cast<double>(k))), beyond_(1 / static_cast<double>(k)) {}

        double after(double lambda, size_t count) {
            const double excess = std::log(static_cast<double>(count)) - log_k_;
            Side& side = excess > 0 ? low_ : high_;
            Side& other = excess > 0 ? high_ : low_;
            if (last_ == &side) other.excess /= 2;
            last_ = &side;
            side = {std::log(lambda), excess, true};
            if (!other.known) return lambda * std::exp(3 * excess + (excess > 0 ? beyond_ : -beyond_));
            return std::exp(low_.log_lambda + (high_.log_lambda - low_.log_lambda) * low_.excess /
                                                  (low_.excess - high_.excess));
        }

      private:
        struct Side {
            double log_lambda = 0, excess = 0;
            bool known = false;
        };
        double log_k_, beyond_;  // a third of the width, in log(lambda), over which a count stays the same
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
        // Summed anew: best_ holds the lambdas too, which may dwarf it.
        for (size_t j = 0; j < solution.count; ++j)
            solution.cost += cost(solution.borders[j], solution.borders[j + 1]);
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
    struct Prefix2 {
        Double2 weight, sum, square;
    };
    struct Candidate {
        size_t border, start;  // wins for ends from `start` on, until the next candidate does
    };

    size_t n_, k_, median_;
    double lambda_ = 0;
    int log2_unit_ = 0;  // costs are in units of 2^this
    std::vector<double> x_, w_;
    std::vector<double> share_;  // of the companding density
    double total_share_ = 0;
    std::vector<Prefix> prefix_;
    std::vector<Prefix2> prefix2_;
    bool precise_ = false;
    std::vector<double> best_;
    std::vector<size_t> previous_;
    std::vector<Candidate> queue_;
};

}  // namespace boostbins
