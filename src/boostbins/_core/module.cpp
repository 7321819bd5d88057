// The binding: arrays in, arrays out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <variant>

#include "encode.hpp"
#include "held.hpp"
#include "keys.hpp"
#include "lloyd.hpp"
#include "optimal.hpp"
#include "pilot.hpp"
#include "place.hpp"
#include "points.hpp"
#include "records.hpp"
#include "running.hpp"
#include "sound.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace boostbins {

using Array = nb::ndarray<nb::ro, nb::ndim<1>, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Order = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Codes = nb::ndarray<const Code, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Targets = std::variant<Matrix, Flags>;
using CellMatrix = nb::ndarray<const uint64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

static_assert(sizeof(Cell) == 2 * sizeof(uint64_t), "a cell is a row of two integers");

Column column_of(const Array& array) {
    const nb::dlpack::dtype type = array.dtype();
    const auto is = [&](nb::dlpack::dtype_code code, int bits) {
        return type.code == static_cast<std::uint8_t>(code) && type.bits == bits;
    };
    using Code = nb::dlpack::dtype_code;
    const std::pair<bool, Type> known[] = {
        {is(Code::Float, 64), Type::f64}, {is(Code::Float, 32), Type::f32}, {is(Code::Int, 64), Type::i64},
        {is(Code::Int, 32), Type::i32},   {is(Code::Int, 16), Type::i16},   {is(Code::Int, 8), Type::i8},
        {is(Code::UInt, 64), Type::u64},  {is(Code::UInt, 32), Type::u32},  {is(Code::UInt, 16), Type::u16},
        {is(Code::UInt, 8), Type::u8},    {is(Code::Bool, 8), Type::u8}};
    for (const auto& [matches, which] : known)
        if (matches) return {array.data(), which, array.stride(0), array.shape(0)};
    throw nb::type_error("a column must hold integers, booleans, float32 or float64");
}

// Hands a vector's memory over to NumPy.
template <class T, class Owner>
nb::ndarray<nb::numpy, T> array_of(std::vector<Owner>&& values, std::initializer_list<size_t> shape) {
    values.shrink_to_fit();  // what was reserved would be held for as long as the array
    auto owner = std::make_unique<std::vector<Owner>>(std::move(values));
    void* data = owner->data();
    nb::capsule capsule(owner.get(), [](void* p) noexcept { delete static_cast<std::vector<Owner>*>(p); });
    owner.release();
    return nb::ndarray<nb::numpy, T>(data, shape, capsule);
}

nb::ndarray<nb::numpy, double> array_of(std::vector<double>&& values) {
    const size_t n = values.size();
    return array_of<double>(std::move(values), {n});
}

// (cells, moments, level, sample, apart counts, apart weights, (min, max)): a summary's state, all of it.
nb::tuple state_of(Summary&& s) {
    const size_t n = s.list.cells.size(), n_sample = s.sample.size();
    const unsigned n_moments = s.list.n_moments;
    return nb::make_tuple(array_of<uint64_t>(std::move(s.list.cells), {n, 2}),
                          array_of<double>(std::move(s.list.moments), {n, n_moments}), s.list.level,
                          array_of<uint64_t>(std::move(s.sample), {n_sample}),
                          nb::make_tuple(s.apart_count[0], s.apart_count[1], s.apart_count[2]),
                          nb::make_tuple(s.apart_weight[0], s.apart_weight[1], s.apart_weight[2]),
                          nb::make_tuple(s.min, s.max));
}

// With all moments, or the weights only, which is all that points need.
Summary summary_of(const nb::tuple& state, bool weights_only = false) {
    Summary s;
    const auto cells = nb::cast<CellMatrix>(state[0]);
    const auto moments = nb::cast<Matrix>(state[1]);
    const auto sample = nb::cast<Integers>(state[3]);
    if (moments.shape(0) != cells.shape(0) || moments.shape(1) > kMostMoments)
        throw nb::value_error("moments do not fit the cells");
    s.list.level = nb::cast<int>(state[2]);
    if (s.list.level < 0 || s.list.level >= kLevels) throw nb::value_error("no such level");
    const size_t width = moments.shape(1);
    s.list.n_moments = static_cast<unsigned>(weights_only ? std::min<size_t>(width, 1) : width);
    const Cell* first = reinterpret_cast<const Cell*>(cells.data());
    s.list.cells.assign(first, first + cells.shape(0));
    if (s.list.n_moments == width) {
        s.list.moments.assign(moments.data(), moments.data() + moments.size());
    } else {
        s.list.moments.resize(moments.shape(0));
        for (size_t i = 0; i < moments.shape(0); ++i) s.list.moments[i] = moments.data()[i * width + kWeight];
    }
    s.sample.assign(sample.data(), sample.data() + sample.size());
    const auto counts = nb::cast<nb::tuple>(state[4]), weights = nb::cast<nb::tuple>(state[5]);
    for (unsigned i = 0; i < kAparts; ++i) {
        s.apart_count[i] = nb::cast<uint64_t>(counts[i]);
        s.apart_weight[i] = nb::cast<double>(weights[i]);
    }
    const auto range = nb::cast<nb::tuple>(state[6]);
    s.min = nb::cast<double>(range[0]);
    s.max = nb::cast<double>(range[1]);
    return s;
}

Rows rows_of(const Array& column, const std::optional<Doubles>& weights,
             const std::optional<Targets>& targets, bool sorted) {
    Rows rows{column_of(column), weights ? weights->data() : nullptr, nullptr, nullptr, 0};
    size_t n_targets = 0, n_rows = rows.values.size;
    if (targets)
        std::visit(
            [&](const auto& matrix) {
                n_rows = matrix.shape(0);
                n_targets = matrix.shape(1);
                if constexpr (std::is_same_v<decltype(matrix.data()), const bool*>)
                    rows.flags = matrix.data();
                else
                    rows.numbers = matrix.data();
            },
            *targets);
    if ((weights && weights->size() != rows.values.size) || n_rows != rows.values.size)
        throw nb::value_error("weights and targets must have one entry per row");
    if (targets && (n_targets == 0 || n_targets > kMostTargets))
        throw nb::value_error(
            ("there must be 1 to " + std::to_string(kMostTargets) + " targets per row").c_str());
    if (!sorted && rows.values.size > std::numeric_limits<std::uint32_t>::max())
        throw nb::value_error("too many rows at once");
    rows.n_targets = static_cast<unsigned>(n_targets);
    return rows;
}

// Values in any order with a guide; without one in ascending order, and `order` says which rows they are of.
nb::tuple summarize(const Array& column, std::optional<Doubles> weights, std::optional<Targets> targets,
                    std::optional<Doubles> guide, std::optional<Order> order, size_t max_cells) {
    const Rows rows = rows_of(column, weights, targets, !guide);
    if (order && order->size() != rows.values.size)
        throw nb::value_error("order must have one entry per row");
    Summary summary;
    {
        nb::gil_scoped_release release;
        Summarizer summarizer(rows, max_cells);
        summary = guide ? summarizer.from_guide(guide->data(), guide->size())
                        : summarizer.from_sorted(order ? order->data() : nullptr);
    }
    return state_of(std::move(summary));
}

// A summary to which rows are added in any order. Not for two threads at once.
class Growing {
  public:
    // From one that is not exact.
    Growing(const nb::tuple& state, size_t max_cells) : Growing(summary_of(state), max_cells) {}

    // From nothing, with a guide as for `summarize`, and so many moments.
    Growing(const Doubles& guide, unsigned n_moments, size_t max_cells)
        : n_moments_(n_moments), summarizer_(std::make_unique<Summarizer>(Rows{}, max_cells, n_moments)) {
        nb::gil_scoped_release release;
        summarizer_->begin(guide.data(), guide.size());
    }

    void add(const Array& column, std::optional<Doubles> weights, std::optional<Targets> targets) {
        const Rows rows = rows_of(column, weights, targets, false);
        if (rows.n_moments() != n_moments_) throw nb::value_error("all must carry the same moments");
        nb::gil_scoped_release release;
        summarizer_->more(rows);
    }

    nb::tuple state() {
        Summary summary;
        {
            nb::gil_scoped_release release;
            summary = summarizer_->so_far();
        }
        return state_of(std::move(summary));
    }

  private:
    Growing(Summary&& summary, size_t max_cells)
        : n_moments_(summary.list.n_moments),
          summarizer_(std::make_unique<Summarizer>(Rows{}, max_cells, n_moments_)) {
        if (summary.list.level == 0) throw nb::value_error("an exact summary has no cells to go on with");
        summarizer_->begin(std::move(summary));
    }

    unsigned n_moments_;
    std::unique_ptr<Summarizer> summarizer_;  // which points into itself
};

nb::tuple merge(const nb::tuple& a, const nb::tuple& b, size_t max_cells) {
    const Summary left = summary_of(a), right = summary_of(b);
    if (left.list.n_moments != right.list.n_moments)
        throw nb::value_error("both must carry the same moments");
    Summary summary;
    {
        nb::gil_scoped_release release;
        summary = merged(left, right, max_cells);
    }
    return state_of(std::move(summary));
}

// Refuses what cannot be the state of a summary.
void check(const nb::tuple& state, size_t max_cells) {
    const Summary summary = summary_of(state);
    const char* fault;
    {
        nb::gil_scoped_release release;
        fault = fault_of(summary, max_cells);
    }
    if (fault) throw nb::value_error(fault);
}

// Returns where the last whole record ends; -1 or where the value begins whose quote is not closed; and
// whether something follows a closing quote.
nb::tuple records(const nb::bytes& text, char separator) {
    Records found;
    {
        nb::gil_scoped_release release;
        found = records_in(text.c_str(), text.size(), separator);
    }
    const bool is_faulty = found.fault != Fault::none;
    return nb::make_tuple(found.end, is_faulty ? static_cast<int64_t>(found.quote) : -1,
                          found.fault == Fault::badly_closed);
}

nb::tuple points(const nb::tuple& state) {
    const Summary summary = summary_of(state, true);
    Points p;
    {
        nb::gil_scoped_release release;
        p = points_of(summary);
    }
    return nb::make_tuple(array_of(std::move(p.low)), array_of(std::move(p.high)),
                          array_of(std::move(p.weight)), array_of(std::move(p.count)));
}

// The lowest and the highest value that each cell can hold.
nb::tuple cell_ends(const nb::tuple& state) {
    const Summary summary = summary_of(state, true);
    const Level level(summary.list.level);
    std::vector<double> low, high;
    for (const Cell& cell : summary.list.cells) {
        const auto [first, last] = range_of(cell, level);
        low.push_back(std::max(double_of_key(first), summary.min));
        high.push_back(std::min(double_of_key(last), summary.max));
    }
    return nb::make_tuple(array_of(std::move(low)), array_of(std::move(high)));
}

// points: (low, high, weight, count); returns the sorted centers and the number of iterations.
nb::tuple lloyd(const std::tuple<Doubles, Doubles, Doubles, Doubles>& points, const Doubles& seeds,
                double column_mean, size_t max_iter, double tol) {
    const auto& [low, high, weight, count] = points;
    const size_t n = low.size();
    if (n == 0 || seeds.size() == 0 || high.size() != n || weight.size() != n || count.size() != n)
        throw nb::value_error("points and seeds must not be empty, and each point must be whole");
    std::vector<double> centers(seeds.data(), seeds.data() + seeds.size());
    size_t iterations;
    {
        nb::gil_scoped_release release;
        Lloyd kernel(low.data(), high.data(), weight.data(), count.data(), n, column_mean);
        iterations = kernel.run(centers.data(), centers.size(), max_iter, tol);
    }
    return nb::make_tuple(array_of(std::move(centers)), iterations);
}

nb::ndarray<nb::numpy, uint64_t> optimal(const Doubles& values, const Doubles& weights, size_t k) {
    if (values.size() != weights.size() || k < 1 || k >= values.size())
        throw nb::value_error("needs more values than clusters");
    std::vector<size_t> borders;
    {
        nb::gil_scoped_release release;
        borders = OptimalPartition(values.data(), weights.data(), values.size(), k).solve();
    }
    std::vector<uint64_t> out(borders.begin(), borders.end());
    const size_t n = out.size();
    return array_of<uint64_t>(std::move(out), {n});
}

// Returns what each bin holds: the weight, the number of points, their mean and their variance.
nb::tuple held_by_bins(const std::tuple<Doubles, Doubles, Doubles, Doubles>& points, const Doubles& cuts) {
    const auto& [low, high, weight, rows] = points;
    if (high.size() != low.size() || weight.size() != low.size())
        throw nb::value_error("points must have ends and weights");
    Held held;
    {
        nb::gil_scoped_release release;
        held = held_by_bins(low.data(), high.data(), weight.data(), low.size(), cuts.data(), cuts.size());
    }
    const size_t n = held.distinct.size();
    return nb::make_tuple(array_of(std::move(held.weight)), array_of<uint64_t>(std::move(held.distinct), {n}),
                          array_of(std::move(held.mean)), array_of(std::move(held.variance)));
}

// shares: ascending, from 0 to 1.
nb::ndarray<nb::numpy, double> quantiles(const std::tuple<Doubles, Doubles, Doubles, Doubles>& points,
                                         double n_rows, const Doubles& shares) {
    const auto& [low, high, weight, rows] = points;
    if (low.size() == 0 || high.size() != low.size() || weight.size() != low.size())
        throw nb::value_error("points must have ends and weights");
    std::vector<double> found;
    {
        nb::gil_scoped_release release;
        found = quantiles_of(low.data(), high.data(), weight.data(), low.size(), n_rows, shares.data(),
                             shares.size());
    }
    return array_of(std::move(found));
}

// moments: of points with targets; returns a row of running sums for each, and one more.
nb::ndarray<nb::numpy, double> running_sums(const Matrix& moments, const Doubles& mean) {
    const size_t n = moments.shape(0), n_targets = mean.size();
    if (n_targets < 1 || n_targets > kMostTargets || moments.shape(1) != n_targets + 2)
        throw nb::value_error("needs a mean for each target");
    std::vector<double> sums;
    {
        nb::gil_scoped_release release;
        sums = running_sums(moments.data(), n, static_cast<unsigned>(n_targets), mean.data());
    }
    return array_of<double>(std::move(sums), {n + 1, n_targets + 1});
}

// density: of each gap; returns the gaps to be cut.
nb::ndarray<nb::numpy, uint64_t> placed(const Doubles& density, size_t n_cuts) {
    if (n_cuts < 1 || n_cuts >= density.size()) throw nb::value_error("needs more gaps than cuts");
    std::vector<uint64_t> gaps;
    {
        nb::gil_scoped_release release;
        gaps = placed(density.data(), density.size(), n_cuts);
    }
    const size_t n = gaps.size();
    return array_of<uint64_t>(std::move(gaps), {n});
}

// values: a row for each column; returns the number of each among those of its column, or that of its group.
nb::ndarray<nb::numpy, Code> rank_codes(const Matrix& values, size_t most) {
    const size_t n_columns = values.shape(0), n_rows = values.shape(1);
    if (most < 1 || most > std::numeric_limits<Code>::max() ||
        n_rows > std::numeric_limits<std::uint32_t>::max())
        throw nb::value_error("needs room for the numbers of groups and of rows");
    std::vector<Code> codes(n_columns * n_rows);
    {
        nb::gil_scoped_release release;
        Ranks ranks(n_rows);
        for (size_t c = 0; c < n_columns; ++c)
            ranks.number(values.data() + c * n_rows, most, codes.data() + c * n_rows);
    }
    return array_of<Code>(std::move(codes), {n_columns, n_rows});
}

// codes: a row for each column; returns the columns of a pilot's splits, their gains with all cuts of these
// columns and with ever fewer, and what is left of the targets.
nb::tuple pilot(const Codes& codes, const Matrix& targets, const Doubles& weights, size_t n_trees,
                size_t n_leaves, double rate, double least_weight) {
    const size_t n_rows = codes.shape(1), n_targets = targets.shape(1);
    if (n_rows == 0 || n_rows > std::numeric_limits<std::uint32_t>::max() || targets.shape(0) != n_rows ||
        weights.size() != n_rows)
        throw nb::value_error("needs rows, and for each its targets and its weight");
    std::vector<uint64_t> columns;
    std::vector<double> gains, left;
    {
        nb::gil_scoped_release release;
        Pilot pilot(codes.data(), codes.shape(0), targets.data(), n_targets, weights.data(), n_rows);
        pilot.grow({n_trees, n_leaves, rate, least_weight});
        for (const Split& split : pilot.splits()) {
            columns.push_back(split.column);
            gains.insert(gains.end(), std::begin(split.gains), std::end(split.gains));
        }
        left = pilot.residuals();
    }
    const size_t n_splits = columns.size();
    return nb::make_tuple(array_of<uint64_t>(std::move(columns), {n_splits}),
                          array_of<double>(std::move(gains), {n_splits, kCoarsenings}),
                          array_of<double>(std::move(left), {n_rows, n_targets}));
}

// Adds to the key of each row what it has in a column.
void add_to_keys(const Array& column, uint64_t index,
                 nb::ndarray<uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& keys) {
    const Column values = column_of(column);
    if (keys.size() != values.size) throw nb::value_error("keys must have one entry per row");
    nb::gil_scoped_release release;
    add_to_keys(values, index, keys.data());
}

template <class Way, class Code>
void encode(const Way& encoder, const Array& column, nb::ndarray<Code, nb::ndim<1>, nb::device::cpu>& out) {
    const Column values = column_of(column);
    if (out.size() != values.size) throw nb::value_error("out must have one entry per row");
    nb::gil_scoped_release release;
    encoder.encode(values, out.data(), out.stride(0));
}

template <class Way>
void add_encoder(nb::module_& m, const char* name) {
    nb::class_<Way>(m, name)
        .def(
            "__init__",
            [](Way* self, const Doubles& cuts, std::uint16_t missing_code) {
                new (self) Way(cuts.data(), cuts.size(), missing_code);
            },
            "cuts"_a, "missing_code"_a)
        .def("encode", &encode<Way, std::uint8_t>, "column"_a, "out"_a.noconvert())
        .def("encode", &encode<Way, std::uint16_t>, "column"_a, "out"_a.noconvert());
}

}  // namespace boostbins

NB_MODULE(_core, m) {
    using namespace boostbins;
    m.def("summarize", &summarize, "column"_a, "weights"_a.none(), "targets"_a.none(), "guide"_a.none(),
          "order"_a.none(), "max_cells"_a);
    nb::class_<Growing>(m, "Growing")
        .def(nb::init<const nb::tuple&, size_t>(), "state"_a, "max_cells"_a)
        .def(nb::init<const Doubles&, unsigned, size_t>(), "guide"_a, "n_moments"_a, "max_cells"_a)
        .def("add", &Growing::add, "column"_a, "weights"_a.none(), "targets"_a.none())
        .def("state", &Growing::state);
    m.def("merge", &merge, "a"_a, "b"_a, "max_cells"_a);
    m.def("check", &check, "state"_a, "max_cells"_a);
    m.def("records", &records, "text"_a, "separator"_a);
    m.def("points", &points, "state"_a);
    m.def("cell_ends", &cell_ends, "state"_a);
    m.def("lloyd", &lloyd, "points"_a, "seeds"_a, "column_mean"_a, "max_iter"_a, "tol"_a);
    m.def("optimal", &optimal, "values"_a, "weights"_a, "k"_a);
    m.def("held_by_bins",
          static_cast<nb::tuple (*)(const std::tuple<Doubles, Doubles, Doubles, Doubles>&, const Doubles&)>(
              &held_by_bins),
          "points"_a, "cuts"_a);
    m.def("quantiles", &quantiles, "points"_a, "n_rows"_a, "shares"_a);
    m.def("running_sums",
          static_cast<nb::ndarray<nb::numpy, double> (*)(const Matrix&, const Doubles&)>(&running_sums),
          "moments"_a, "mean"_a);
    m.def("placed", static_cast<nb::ndarray<nb::numpy, uint64_t> (*)(const Doubles&, size_t)>(&placed),
          "density"_a, "n_cuts"_a);
    m.def("rank_codes", &rank_codes, "values"_a, "most"_a);
    m.def("pilot", &pilot, "codes"_a, "targets"_a, "weights"_a, "n_trees"_a, "n_leaves"_a, "rate"_a,
          "least_weight"_a);
    m.def("add_to_keys",
          static_cast<void (*)(const Array&, uint64_t,
                               nb::ndarray<uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>&)>(
              &add_to_keys),
          "column"_a, "index"_a, "keys"_a.noconvert());
    add_encoder<Encoder>(m, "Encoder");
    add_encoder<Searcher>(m, "Searcher");
}
