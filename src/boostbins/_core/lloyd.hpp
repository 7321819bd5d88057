// Lloyd's k-means in one dimension, on sorted points, from given seeds.
//
// The centers are scikit-learn's (KMeans with n_init=1): the same stopping rule, and an empty cluster takes
// the row that is farthest from its center. An iteration costs O(k log n): midpoints, positions, differences
// of prefix sums. The prefix sums run outward from the median in doubled precision, so that a narrow group of
// values far away from the rest keeps every digit: each term of a sum is then at most as large as the last
// one.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "frame.hpp"

namespace boostbins {

class Lloyd {
  public:
    // Points spread over [low, high]; those of one value have low == high.
    Lloyd(const double* low, const double* high, const double* weight, const double* count, size_t n,
          double column_mean)
        : raw_(low), count_(count), n_(n), column_mean_(column_mean), frame_(low, weight, n), points_(n + 1) {
        int exponent;
        std::frexp(*std::max_element(weight, weight + n), &exponent);
        for (size_t i = 0; i < n; ++i) {
            Point& point = points_[i];
            const double begin = frame_.relative(low[i]);
            point.end = frame_.relative(high[i]);
            point.half = (point.end - begin) / 2;
            point.x = begin + point.half;
            point.weight = std::ldexp(weight[i], -exponent);
        }
        Double2 sum;
        for (size_t i = frame_.median; i < n; ++i) {
            sum.add_product(points_[i].weight, points_[i].x);
            points_[i + 1].sum_before = sum;
        }
        sum = {};
        for (size_t i = frame_.median; i-- > 0;) {
            sum.add_product(-points_[i].weight, points_[i].x);
            points_[i].sum_before = sum;
        }
        Double2 total;
        for (Point& point : points_) {
            point.weight_before = total;
            total.add(point.weight);
        }
    }

    // Moves the centers; returns the number of iterations. tol is relative to the variance of the column.
    size_t run(double* centers, size_t k, size_t max_iter, double tol) {
        centers_.resize(k);
        for (size_t j = 0; j < k; ++j) centers_[j] = frame_.relative(centers[j]);
        order_.resize(k);
        std::iota(order_.begin(), order_.end(), size_t{0});
        sort_centers();
        const double limit = tol * variance();
        size_t iteration = 0;
        while (iteration < max_iter) {
            ++iteration;
            const bool same = assign();
            const double shift = update();
            if (same || shift <= limit) break;
        }
        for (size_t j = 0; j < k; ++j) centers[j] = frame_.absolute(centers_[j]);
        std::sort(centers, centers + k);
        return iteration;
    }

  private:
    // In the frame, weights at most 1. All that a border needs of a point, in one cache line.
    struct Point {
        double x, half, end, weight = 0;
        Double2 weight_before, sum_before;
    };

    // Where a cluster ends: before point `point`, of which it takes a fraction.
    struct Border {
        size_t point;
        double fraction;
        size_t owner;  // the cluster that ends here
        bool operator==(const Border& other) const {
            return point == other.point && fraction == other.fraction && owner == other.owner;
        }
    };
    struct Mass {
        Double2 weight, sum;
    };

    double variance() const {
        double total = 0, mean = 0;
        for (size_t i = 0; i < n_; ++i) {
            total += points_[i].weight;
            mean += points_[i].weight * points_[i].x;
        }
        mean /= total;
        double square = 0;
        for (size_t i = 0; i < n_; ++i) {
            const double d = points_[i].x - mean;
            square += points_[i].weight * (d * d + points_[i].half * points_[i].half / 3);
        }
        return square / total;
    }

    // Equal centers keep the order of their indices: the first of them takes all.
    void sort_centers() {
        std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
            return centers_[a] < centers_[b] || (centers_[a] == centers_[b] && a < b);
        });
    }

    // On integer columns midpoints are values of the column. Which side these go to is decided in
    // scikit-learn by rounding: of |c|^2 - 2xc, on mean-centred values, with centers that were summed up row
    // by row. Columns of whole numbers are common, and the promise is scikit-learn's centers for every
    // column: so that arithmetic is repeated here, for points so close to a midpoint and nowhere else.
    bool goes_left(size_t point, size_t left, size_t right) const {
        const double x = centred(raw_[point]), a = rounded_center(left), b = rounded_center(right);
        const double to_left = a * a - 2 * (x * a), to_right = b * b - 2 * (x * b);
        return to_left < to_right || (to_left == to_right && left < right);
    }

    double row_weight(size_t point) const { return points_[point].weight / std::max(1.0, count_[point]); }

    double centred(double x) const { return frame_.relative(x, column_mean_); }

    double rounded_center(size_t j) const {
        const double center = centred(frame_.absolute(centers_[j]));
        if (members_.empty()) return center;
        double sum = 0, weight = 0, rows = 0;
        for (size_t p = members_[j].begin; p < members_[j].end; ++p) {
            if ((rows += count_[p]) > kReplayedRows || points_[p].half != 0) return center;
            for (double row = 0; row < count_[p]; ++row) sum += row_weight(p) * centred(raw_[p]);
            weight += points_[p].weight;
        }
        for (const Relocation& moved : relocations_) {
            if (moved.to == j) return centred(raw_[moved.point]);
            if (moved.from != j) continue;
            sum -= row_weight(moved.point) * centred(raw_[moved.point]);
            weight -= row_weight(moved.point);
        }
        return weight > 0 ? sum * (1 / weight) : center;
    }

    // The first point, from `first` on, that ends after x; sought around the hint in steps that double.
    size_t first_after(double x, size_t first, size_t hint) const {
        size_t low = std::max(first, std::min(hint, n_)), high = low;
        for (size_t step = 1; high < n_ && points_[high].end <= x; step *= 2) {
            low = high + 1;
            high = std::min(n_, high + step);
        }
        for (size_t step = 1; low > first && points_[low - 1].end > x; step *= 2) {
            high = low - 1;
            low = low - first > step ? low - step : first;
        }
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (points_[middle].end <= x)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    Border border_between(size_t left, size_t right, size_t first, size_t hint) const {
        const double a = centers_[left], b = centers_[right], middle = a + (b - a) / 2;
        size_t point = first_after(middle, first, hint);
        const double tie = 8 * 2.2204460492503131e-16 * (std::fabs(a) + std::fabs(b));
        const auto ties = [&](size_t p) {
            return points_[p].half == 0 && std::fabs(points_[p].x - middle) <= tie;
        };
        if (point > first && ties(point - 1)) {
            if (!goes_left(point - 1, left, right)) --point;
        } else if (point < n_ && ties(point)) {
            if (goes_left(point, left, right)) ++point;
        } else if (point < n_ && points_[point].x - points_[point].half < middle) {
            return {point, (middle - (points_[point].x - points_[point].half)) / (2 * points_[point].half),
                    left};
        }
        return {point, 0, left};
    }

    Mass mass_before(const Border& border) const {
        Mass mass{points_[border.point].weight_before, points_[border.point].sum_before};
        if (border.fraction > 0) {
            const size_t p = border.point;
            const double part = border.fraction * points_[p].weight;
            mass.weight.add(part);
            mass.sum.add(part * (points_[p].x - points_[p].half + border.fraction * points_[p].half));
        }
        return mass;
    }

    // Gives every point to its nearest center. Returns whether nothing has changed.
    bool assign() {
        borders_.swap(old_borders_);
        borders_.clear();
        size_t left = order_[0], first = 0;
        for (size_t j = 1; j < order_.size(); ++j) {
            const size_t right = order_[j];
            if (centers_[left] == centers_[right]) continue;
            const size_t at = borders_.size();
            const size_t hint = at < old_borders_.size() ? old_borders_[at].point : first;
            borders_.push_back(border_between(left, right, first, hint));
            first = borders_.back().point;
            left = right;
        }
        borders_.push_back({n_, 0, left});
        return borders_ == old_borders_;
    }

    // Moves every center to the mean of its points; returns the sum of the squared moves.
    double update() {
        const size_t k = centers_.size();
        masses_.assign(k, {0, 0});
        members_.assign(k, {0, 0});
        Mass before{{}, points_[0].sum_before};
        size_t begin = 0;
        for (const Border& border : borders_) {
            const Mass after = mass_before(border);
            masses_[border.owner] = {difference(after.weight, before.weight),
                                     difference(after.sum, before.sum)};
            members_[border.owner] = {begin, border.point + (border.fraction > 0)};
            before = after;
            begin = border.point;
        }
        const bool relocated = relocate_empty();
        const auto heaviest =
            std::max_element(masses_.begin(), masses_.end(),
                             [](const Share& a, const Share& b) { return a.weight < b.weight; });
        const double fallback = heaviest->sum / heaviest->weight;
        double shift = 0;
        for (size_t j = 0; j < k; ++j) {
            const double center = masses_[j].weight > 0 ? center_of(j) : fallback;
            shift += (center - centers_[j]) * (center - centers_[j]);
            centers_[j] = center;
        }
        if (relocated || !std::is_sorted(order_.begin(), order_.end(),
                                         [&](size_t a, size_t b) { return centers_[a] < centers_[b]; }))
            sort_centers();
        return shift;
    }

    // Within the points that it is the mean of, whatever is left of a cluster that lost its rows by
    // relocation.
    double center_of(size_t j) const {
        const double center = masses_[j].sum / masses_[j].weight;
        const auto [begin, end] = members_[j];
        if (begin == end) return center;
        return std::min(std::max(center, points_[begin].x - points_[begin].half), points_[end - 1].end);
    }

    // Each empty cluster takes one of the rows that are farthest from their centers.
    bool relocate_empty() {
        relocations_.clear();
        std::vector<size_t> empty;
        for (size_t j = 0; j < masses_.size(); ++j)
            if (masses_[j].weight <= 0) empty.push_back(j);
        if (empty.empty()) return false;
        struct Far {
            double distance;
            size_t point, owner;
        };
        std::vector<Far> far;
        size_t begin = 0;
        for (const Border& border : borders_) {
            for (size_t i = begin; i < border.point; ++i)
                far.push_back({std::fabs(points_[i].x - centers_[border.owner]), i, border.owner});
            begin = border.point;
        }
        const auto farther = [](const Far& a, const Far& b) {
            return a.distance > b.distance || (a.distance == b.distance && a.point > b.point);
        };
        const size_t wanted = std::min(empty.size(), far.size());
        std::partial_sort(far.begin(), far.begin() + static_cast<std::ptrdiff_t>(wanted), far.end(), farther);
        size_t next = 0;
        for (size_t i = 0; i < wanted && next < empty.size() && far[i].distance > 0; ++i) {
            const size_t p = far[i].point;
            const double weight = row_weight(p);
            for (double rows = count_[p]; rows > 0 && next < empty.size(); --rows, ++next) {
                Share& owner = masses_[far[i].owner];
                owner.weight -= weight;
                owner.sum -= weight * points_[p].x;
                masses_[empty[next]] = {weight, weight * points_[p].x};
                relocations_.push_back({p, far[i].owner, empty[next]});
            }
        }
        return true;
    }

    static constexpr double kReplayedRows = 4096;

    struct Share {
        double weight, sum;
    };
    struct Range {
        size_t begin, end;
    };
    struct Relocation {
        size_t point, from, to;
    };

    const double *raw_, *count_;
    size_t n_;
    double column_mean_;
    Frame frame_;
    std::vector<Point> points_;  // and one more, for the sums before it
    std::vector<double> centers_;
    std::vector<size_t> order_;  // of the centers, ascending
    std::vector<Border> borders_, old_borders_;
    std::vector<Share> masses_;
    std::vector<Range> members_;  // the points that a center is the mean of, but for the relocated rows
    std::vector<Relocation> relocations_;
};

}  // namespace boostbins
