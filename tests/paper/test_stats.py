"""The statistics of the reproduction: fed with the paper's own results they give the paper's tables."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from paper import claims, cli, stats
from paper.binning import UNBINNED
from paper.claims import FAIL, NOT_RUN, OURS, PAPER, PASS, verdicts
from paper.evidence import Evidence
from paper.jobs import plan
from paper.stats import Scores
from paper.store import COLUMNS, Store
from paper.tables import all_tables, beside_table, grid_table, score_table

pytestmark = pytest.mark.paper


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    return Evidence(Store(tmp_path_factory.mktemp("empty")).frame())


def benchmark(evidence, track, max_bins, learner="sklearn"):
    found = evidence.find(track, max_bins, learner, PAPER, "paper")
    return found, evidence.real[found]


@pytest.mark.parametrize(
    ("track", "max_bins", "kmeans", "quantile", "uniform"),
    [
        ("regression", 255, 0.65, 0.72, 0.43),
        ("regression", 63, 0.85, 0.59, 0.39),
        ("classification", 255, 0.70, 0.68, 0.41),
    ],
)
def test_mean_reciprocal_ranks_are_the_papers(published, track, max_bins, kmeans, quantile, uniform):
    _, scores = benchmark(published, track, max_bins)
    found = stats.mean_reciprocal_ranks(scores.without(UNBINNED)).round(2)
    assert found.to_dict() == {"kmeans": kmeans, "quantile": quantile, "uniform": uniform}


@pytest.mark.parametrize(
    ("track", "max_bins", "learner", "bold"),
    [
        (
            "regression",
            255,
            "sklearn",
            {"Brazilian_houses": "kmeans", "nyc-taxi-green-dec-2016": "kmeans", "medical_charges": "kmeans"},
        ),
        (
            "regression",
            63,
            "sklearn",
            {
                "cpu_act": "kmeans",
                "elevators": "kmeans",
                "houses": "kmeans",
                "diamonds": "quantile",
                "Brazilian_houses": "kmeans",
                "medical_charges": "kmeans",
                "superconduct": "quantile",
            },
        ),
        ("classification", 255, "sklearn", {"electricity": "quantile", "covertype": "quantile"}),
        ("regression", 255, "xgboost-exact", {"Brazilian_houses": "kmeans"}),
    ],
)
def test_bold_cells_are_the_papers(published, track, max_bins, learner, bold):
    numbers = score_table(published, *benchmark(published, track, max_bins, learner)).numbers
    clear = numbers[numbers["bold"]]
    assert dict(zip(clear["dataset"].str.split("/").str[1], clear["best"], strict=True)) == bold


def test_means_and_standard_errors_are_the_papers(published):
    shown = score_table(published, *benchmark(published, "regression", 255)).shown.set_index("dataset")
    row = shown.loc["Brazilian_houses (10^-3)"]
    assert row.to_dict() == {
        "quantile": "5.382 ± 1.087",
        "uniform": "20.272 ± 0.520",
        "kmeans": "**2.433 ± 0.625**",
        "exhaustive": "2.156 ± 0.576",
    }
    assert shown.loc["cpu_act (10^0)", "quantile"] == "5.043 ± 0.170"
    assert shown.loc["superconduct (10^2)", "kmeans"] == "1.015 ± 0.014"
    shown = score_table(published, *benchmark(published, "classification", 255)).shown.set_index("dataset")
    assert shown.loc["electricity", "quantile"].startswith("**0.950")


def test_with_the_correction_for_overlapping_splits_two_wins_remain(published):
    gains = stats.paired_gain(benchmark(published, "regression", 255)[1], "kmeans", "quantile")
    assert set(gains.index[gains["adjusted_p"] < 0.05]) == {
        "regression/nyc-taxi-green-dec-2016",
        "regression/medical_charges",
    }
    assert gains.loc["regression/Brazilian_houses", "p"] == pytest.approx(0.06, abs=0.005)
    assert gains.loc["regression/Brazilian_houses", "gain"] == pytest.approx(54.8, abs=0.05)
    assert stats.win_tie_loss(gains) == (2, 16, 0)
    assert stats.win_tie_loss(gains, "adjusted_naive_p") == (3, 15, 0)


def test_the_synthetic_cells_and_their_stars_are_the_papers(published):
    cells = stats.reductions(published.published_draws)
    assert len(cells) == 149
    assert cells.loc[(5, 0.0, 16.0), "mean"] == pytest.approx(42.7, abs=0.05)
    assert cells["mean"].max() == pytest.approx(89.8, abs=0.05)
    unclear = cells.loc[3][cells.loc[3]["adjusted_p"] >= 0.05]
    assert {row for row, _ in unclear.index} == {0.0}
    assert len(unclear) == 4


def test_the_papers_own_results_refute_two_of_its_claims(published):
    found = {(v.claim.text, v.run.source): v.word for v in verdicts(published) if v.run.protocol != "fixed"}
    failed = [text for (text, source), word in found.items() if source == PAPER and word == FAIL]
    assert len(failed) == 2
    assert all("lassification" in text for text in failed)
    assert sum(word == PASS for (_, source), word in found.items() if source == PAPER) == 13
    assert all(word == NOT_RUN for (_, source), word in found.items() if source == OURS)


def test_every_table_of_the_papers_own_results_can_be_written(published, tmp_path):
    for table in all_tables(published):
        table.write(tmp_path)
        assert table.latex().count(r"\toprule") == 1
    assert {path.suffix for path in tmp_path.iterdir()} == {".md", ".tex", ".csv"}


scores_of_two = st.integers(2, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.floats(0.1, 10), min_size=n, max_size=n) for _ in "ab"])
)


def frame_of(a, b, metric="mse", dataset="d"):
    rows = [
        (dataset, method, seed, metric, score)
        for method, scores in (("a", a), ("b", b))
        for seed, score in enumerate(scores)
    ]
    return pd.DataFrame(rows, columns=["dataset", "method", "seed", "metric", "score"])


@given(scores_of_two, st.floats(0.01, 100))
def test_a_gain_is_relative_and_its_interval_is_corrected(both, factor):
    a, b = map(np.array, both)
    gain = stats.paired_gain(Scores.of(frame_of(a, b)), "a", "b").iloc[0]
    if np.allclose(a, b, rtol=1e-12, atol=0):
        assert gain["gain"] == 0
        assert gain["p"] == 1
        return
    assert gain["gain"] == pytest.approx(100 * (1 - a.mean() / b.mean()), abs=1e-9)
    scaled = stats.paired_gain(Scores.of(frame_of(a * factor, b * factor)), "a", "b").iloc[0]
    columns = ["gain", "low", "high", "p"]
    assert scaled[columns].to_numpy(float) == pytest.approx(gain[columns].to_numpy(float), rel=1e-6, abs=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a difference that never varies
        naive = scipy_stats.ttest_rel(b, a)
    assert gain["naive_p"] == pytest.approx(naive.pvalue, rel=1e-9, abs=1e-12)
    assert gain["p"] >= gain["naive_p"] - 1e-12  # never less careful


def test_the_interval_of_a_gain_holds_the_truth_as_often_as_it_says():
    # Independent splits: without the correction for overlap, the interval of the ratio covers in 95 % of the cases.
    r = np.random.default_rng(0)
    n, tries = 20, 300
    b = r.gamma(4, 1, (tries, n))
    a = 0.6 * b + r.normal(0, 0.5, (tries, n))
    frame = pd.concat([frame_of(*both).assign(dataset=str(i)) for i, both in enumerate(zip(a, b, strict=True))])
    gains = stats.paired_gain(Scores.of(frame), "a", "b")
    reach = (gains["high"] - gains["gain"]) / np.sqrt(1 + 0.25 * n)
    assert 0.91 <= ((gains["gain"] - 40).abs() <= reach).mean() <= 0.98
    assert ((gains["low"] <= 40) & (gains["high"] >= 40)).mean() > 0.99


def test_what_is_proportional_has_no_interval():
    b = np.array([1.0, 2.0, 50.0])
    gain = stats.paired_gain(Scores.of(frame_of(0.25 * b, b)), "a", "b").iloc[0]
    assert (gain["gain"], gain["low"], gain["high"]) == pytest.approx((75, 75, 75))


def test_a_seed_that_one_method_lacks_is_left_out():
    scores = Scores.of(frame_of([1.0, 2.0, 3.0], [2.0, 3.0]))
    assert len(scores.among("a", "b").table) == 2
    assert scores.means().loc["d", "a"] == 2
    assert stats.paired_gain(scores, "a", "b").iloc[0]["n"] == 2


def test_a_method_that_failed_takes_no_dataset_from_the_others():
    frame = pd.concat([frame_of([1.0, 2.0], [2.0, 3.0]), frame_of([1.0, 2.0], [2.0, 3.0]).assign(dataset="e")])
    third = frame[(frame["method"] == "a") & (frame["dataset"] == "e")].assign(method=UNBINNED)
    scores = Scores.of(pd.concat([frame, third]))
    assert scores.without(UNBINNED).datasets == ["d", "e"]
    assert scores.among("a", UNBINNED).datasets == ["e"]


def p_of_difference(ours, paper, **options):
    return stats.gains_beside(Scores.of(ours), Scores.of(paper), "a", "b", **options)["p"].iloc[0]


@pytest.mark.parametrize("options", [{}, {"same_splits": ["d"]}])
def test_the_noise_between_two_gains(options):
    ours = frame_of([1.0, 1.1, 0.9], [2.0, 2.1, 2.0])
    near = frame_of([1.0, 1.2, 0.8], [2.0, 2.1, 2.0])
    far = frame_of([1.9, 2.0, 1.9], [2.0, 2.1, 2.0])
    assert p_of_difference(ours, near, **options) > 0.5
    assert p_of_difference(ours, far, **options) < 0.01
    assert p_of_difference(ours, ours, **options) == 1
    assert np.isnan(p_of_difference(ours, frame_of([1.0], [2.1]), **options))


def test_on_the_same_splits_two_gains_are_compared_split_by_split():
    # What is easy or hard moves both runs alike: seen apart it hides that one gains 10 points more.
    split = np.random.default_rng(0).normal(0, 0.3, 20)
    noise = np.random.default_rng(1).normal(0, 0.02, 20)
    base = np.full(20, 2.0)
    ours, paper = frame_of(1.0 + split, base), frame_of(1.2 + split + noise, base)
    assert p_of_difference(ours, paper) > 0.2
    assert p_of_difference(ours, paper, same_splits=["d"]) < 1e-6


def test_of_the_same_splits_only_those_that_both_have_are_shown():
    random = np.random.default_rng(0)
    ours, paper = (frame_of(*random.uniform(0.5, 0.9, (2, 20)), metric="roc_auc") for _ in range(2))
    few = {"ours": ours.query("seed < 5"), "paper": paper.query("seed < 5")}
    expected = stats.gains_beside(Scores.of(few["ours"]), Scores.of(few["paper"]), "a", "b", ["d"])
    assert expected["our_base"].item() == pytest.approx(few["ours"].query("method == 'b'")["score"].mean())
    assert expected["paper_base"].item() == pytest.approx(few["paper"].query("method == 'b'")["score"].mean())
    for who, scores in (("our", few["ours"]), ("paper", few["paper"])):
        alone = stats.paired_gain(Scores.of(scores), "a", "b")
        assert expected[f"{who}_gain"].item() == alone["gain"].item()
    for pair in ((few["ours"], paper), (ours, few["paper"])):
        pd.testing.assert_frame_equal(stats.gains_beside(*map(Scores.of, pair), "a", "b", ["d"]), expected)
    apart = stats.gains_beside(*map(Scores.of, (few["ours"], paper)), "a", "b").loc["d"]
    assert (apart["our_splits"], apart["paper_splits"]) == (5, 20)
    assert apart["paper_base"] == pytest.approx(paper.query("method == 'b'")["score"].mean())


def test_the_p_of_two_gains_on_the_same_splits_is_that_of_equal_gains_as_often_as_it_says():
    # Independent splits: with a test part of 0 the correction for their overlap is none.
    random = np.random.default_rng(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stats, "TEST_TO_TRAIN", 0)
        runs = [], []
        for dataset in range(400):
            split, *noises = random.normal(0, 0.1, (3, 20))
            for run, noise in zip(runs, noises, strict=True):
                run.append(frame_of(1.5 + split + noise, 2.0 + split, dataset=dataset))
        found = stats.gains_beside(*(Scores.of(pd.concat(run)) for run in runs), "a", "b", range(400))["p"]
    assert 0.02 < np.mean(found < 0.05) < 0.09


def test_for_auc_the_gain_is_that_of_what_is_missing_to_one():
    gain = stats.paired_gain(Scores.of(frame_of([0.9, 0.9], [0.8, 0.8], "roc_auc")), "a", "b").iloc[0]
    assert gain["gain"] == pytest.approx(50)


def draws(mean, n=20, seed=0):
    values = np.random.default_rng(seed).normal(mean, 5, n)
    return pd.DataFrame({"grid": 1, "row": 0.01, "col": 5.0, "draw": range(n), "reduction": values})


def test_cells_agree_when_they_are_drawn_alike_and_not_otherwise():
    assert stats.cells_beside(draws(50), draws(50, 50, seed=1))["agrees"].all()
    assert not stats.cells_beside(draws(50), draws(60, 50, seed=1))["agrees"].any()


def test_a_grid_of_two_draws_has_a_table(published):
    rows = [
        dict.fromkeys(COLUMNS)
        | {"key": f"{m}{s}", "kind": "synthetic", "data": "1/0.01/5", "learner": "sklearn", "method": m, "seed": s,
           "protocol": "paper", "score": 1.0 + s if m == "quantile" else 0.5 + 0.1 * s, "error": ""}
        for m in ("quantile", "kmeans")
        for s in (0, 1)
    ]  # fmt: skip
    table = grid_table(Evidence(pd.DataFrame(rows)), 1)
    assert "60.0" in table.markdown()


def test_the_readme_has_what_the_kept_results_give():
    readme = (cli.RESULTS.parent / "README.md").read_text(encoding="utf-8")
    kept = Evidence(Store(cli.RESULTS).frame())
    shown = claims.table(kept).shown.to_markdown(index=False, disable_numparse=True)
    assert shown in readme, "python -m paper claims --markdown prints the table anew"
    for path in cli.RESULTS.glob("*.csv"):
        assert f"`{path.name}`" in readme


def test_with_the_papers_search_the_kept_results_are_the_papers_on_the_same_splits():
    readme = (cli.RESULTS.parent / "README.md").read_text(encoding="utf-8")
    kept = Evidence(Store(cli.RESULTS).frame())
    found = {}
    for track in ("regression", "classification"):
        table = beside_table(kept, kept.find(track, 255, "sklearn", OURS, "paper"))
        assert set(table.shown["within noise"]) == {"yes"}
        assert {"the same 3"} == set(table.shown["splits"][~table.shown["dataset"].str.endswith("†")])
        for row in table.shown.drop(columns=["splits", "difference", "within noise"]).itertuples(index=False):
            assert f"| {' | '.join(row)} |" in readme
        found |= table.numbers.set_index("dataset")["difference"].to_dict()
    assert abs(found["regression/Brazilian_houses"]) < 1  # of 26 points
    assert len(found) == 11


def test_with_fixed_hyper_parameters_the_kept_gains_are_within_noise_of_the_papers():
    kept = Evidence(Store(cli.RESULTS).frame())
    for track, max_bins, learner, datasets in (
        ("regression", 255, "sklearn", 18),
        ("regression", 63, "sklearn", 18),
        ("classification", 255, "sklearn", 15),
        ("regression", 255, "xgboost-exact", 3),
    ):
        shown = beside_table(kept, kept.find(track, max_bins, learner, OURS, "fixed")).shown
        assert list(shown["within noise"]) == ["yes"] * datasets
    assert dict(zip(shown["dataset"], shown["splits"], strict=True))["Brazilian_houses"] == "the same 20"


def test_the_kept_synthetic_results_agree_with_the_papers():
    kept = Evidence(Store(cli.RESULTS).frame())
    cells = stats.cells_beside(kept.draws, kept.published_draws)
    assert len(cells) == 149
    assert kept.draws.groupby(["grid", "row", "col"]).size().min() >= 20
    assert cells["agrees"].mean() >= 0.9


def test_the_kept_results_are_whole_and_of_one_dataset_each():
    store = Store(cli.RESULTS)
    kept = Evidence(store.frame())
    assert store.broken == 0
    assert kept.failures.empty
    assert not kept.mixed
    assert {key.split("/")[1] for key in kept.partial} == {
        "nyc-taxi-green-dec-2016", "medical_charges", "yprop_4_1", "jannis", "MiniBooNE",
    }  # fmt: skip
    keys = {job.key for name in ("real-255", "real-63") for job in plan([name], "fixed", max_rows=10_000)}
    assert keys <= set(store.rows())  # and a run would do nothing
