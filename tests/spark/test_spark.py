"""Spark: the cuts of one machine whatever the partitions, and models that are trained on them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import boostbins
from boostbins import Bins

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning:pyspark"),
]


@pytest.fixture(scope="module")
def session():
    if shutil.which("java") is None:
        if os.environ.get("CI"):
            pytest.fail("Spark needs Java, and there is none: apt-get install default-jre-headless")
        pytest.skip("needs Java")
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # small work, done soon
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        environment.setenv("OMP_THREAD_LIMIT", "1")  # on few cores, threads wait for each other for seconds
        session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@pytest.fixture(scope="module")
def spark(session):
    from boostbins import spark

    return spark


# ---- the bins


@pytest.fixture(scope="module")
def table():
    """More distinct values than a summary holds, columns of all kinds, nulls and NaN."""
    rng = np.random.default_rng(0)
    n = 40_000
    hole = rng.random(n) < 0.3
    price = rng.lognormal(0, 2, n)
    price[::17] = np.nan
    return pa.table(
        {
            "price.net": pa.array(price),
            "single": pa.array(rng.standard_normal(n).astype(np.float32)),
            "holes": pa.array(rng.standard_cauchy(n), mask=hole),
            "long": pa.array(rng.integers(-(2**60), 2**60, n)),
            "int": pa.array(rng.poisson(50, n).astype(np.int32), mask=hole),
            "short": pa.array(rng.integers(-3000, 3000, n).astype(np.int16)),
            "byte": pa.array(rng.integers(-100, 100, n).astype(np.int8)),
            "yes": pa.array(rng.random(n) < 0.5, mask=rng.random(n) < 0.1),
            "cents": pa.array([Decimal(int(x)) / 100 for x in rng.integers(0, 9999, n)], pa.decimal128(10, 2)),
            "empty": pa.nulls(n, pa.float64()),
            "weight": pa.array(rng.integers(0, 4, n).astype(np.float64)),
        }
    )


@pytest.fixture(scope="module")
def frame(session, table):
    return session.createDataFrame(table).cache()


PARTITIONED = {
    "as it comes": lambda df: df,
    "one": lambda df: df.coalesce(1),
    "seven": lambda df: df.repartition(7),
    "sorted, so that one is all null": lambda df: df.repartitionByRange(5, "holes"),
    "mostly empty": lambda df: df.repartition(9, "yes"),
}


@pytest.mark.parametrize("partitioned", PARTITIONED.values(), ids=PARTITIONED)
def test_cuts_are_those_of_one_machine_whatever_the_partitions(spark, frame, table, partitioned):
    names = table.column_names[:-1]
    found = spark.fit_bins(partitioned(frame), max_bins=63, columns=names)
    assert found == boostbins.fit_bins(table, max_bins=63, columns=names)
    assert found["empty"].size == 0


def test_weights_and_targets_are_columns(spark, frame, table):
    chosen = frame.repartitionByRange(4, "weight")  # one has only rows without weight
    names = ["price.net", "int", "weight"]
    found = spark.fit_bins(chosen, max_bins=31, sample_weight="weight", y="byte", columns=names)
    assert found == boostbins.fit_bins(table, max_bins=31, sample_weight="weight", columns=names[:2])
    assert found.names == ("price.net", "int")
    found = spark.fit_bins(chosen, total_bins=40, y="byte", columns=names)
    assert found == boostbins.fit_bins(table, total_bins=40, y="byte", columns=names)
    assert sum(found.n_bins) == 40


@pytest.mark.parametrize(
    ("partitioned", "asked"),
    [("seven", {"average_bins": 45}), ("sorted, so that one is all null", {"total_bins": "auto"})],
    ids=str,
)
def test_columns_share_a_total_whatever_the_partitions(spark, frame, table, partitioned, asked):
    names = ["price.net", "int", "yes", "empty", "byte", "weight"]
    chosen = PARTITIONED[partitioned](frame)
    found = spark.fit_bins(chosen, sample_weight="weight", y="byte", columns=names, **asked)
    expected = boostbins.fit_bins(table, sample_weight="weight", y="byte", columns=names[:4], **asked)
    assert found == expected
    assert found.shares == expected.shares != {}
    if "total_bins" in asked:
        summary = spark.summarize(chosen, "weight", y="byte", columns=names)
        assert summary == boostbins.summarize(table, "weight", y="byte", columns=names[:4])
        assert boostbins.fit_bins(summary, **asked) == expected
    with pytest.raises(ValueError, match="contradict each other"):
        spark.fit_bins(frame, y="byte", columns=names, total_bins=90, average_bins=45)
    with pytest.raises(ValueError, match="needs a target|average_bins must be"):
        spark.fit_bins(frame, columns=names[:3], **(asked if "total_bins" in asked else {"average_bins": "auto"}))


def test_summaries_are_those_of_one_machine_and_can_be_added(spark, frame, table):
    names = ["price.net", "int"]
    found = spark.summarize(frame.repartition(3), columns=names)
    assert found == boostbins.summarize(table, columns=names)
    assert (found + found).n_rows == 2 * len(table)


def test_exact_cuts_of_every_distinct_value(spark, frame, table):
    found = spark.fit_bins(frame, "quantile", 1000, columns=["price.net"], exact=True)
    assert found == boostbins.fit_bins(table, "quantile", 1000, columns=["price.net"], exact=True)


def test_text_and_dates_are_told_as_ever(spark, session):
    rows = [(1.0, "a", date(2024, 1, 1)), (2.0, "b", date(2024, 1, 2))]
    df = session.createDataFrame(rows, "x double, t string, d date")
    with pytest.raises(TypeError, match="'t' of type String cannot be cut.*non_numeric='skip'"):
        spark.fit_bins(df.drop("d"))
    with pytest.raises(TypeError, match="'d' of type Date cannot be cut.*dates_as_numbers=True"):
        spark.fit_bins(df, non_numeric="skip")
    found = spark.fit_bins(df, non_numeric="skip", dates_as_numbers=True)
    assert found.names == ("x", "d")
    assert found.units == {"d": "seconds since 1970"}
    assert found["x"].tolist() == [1.5]


def test_elements_of_vectors_and_arrays_are_columns(spark, session):
    from pyspark.ml.linalg import Vectors

    rows = [(Vectors.dense(1.0, 5.0), [1.0]), (Vectors.sparse(2, [1], [6.0]), [None]), (Vectors.dense(3.0, 7.0), None)]
    df = session.createDataFrame(rows, ["features", "more"])
    found = spark.fit_bins(df)
    assert found.names == ("features[0]", "features[1]", "more[0]")
    assert found["features[0]"].tolist() == [0.5, 2.0]
    represented = spark.represent(df, found).collect()
    assert [row["features"] for row in represented][1] == [0.0, pytest.approx(5.5)]
    assert np.isnan(represented[2]["more"][0])


def test_values_that_stand_for_bins(spark, frame, table):
    bins = spark.fit_bins(frame, max_bins=7, columns=["price.net", "int"])
    rows = spark.represent(frame, bins).toArrow()
    assert rows.column_names == table.column_names
    assert rows["long"].equals(table["long"])
    for name in bins.names:
        values = rows[name].to_numpy()
        codes = Bins([bins[name]]).encode([table[name].cast(pa.float32()).to_numpy(zero_copy_only=False)])[:, 0]
        assert np.array_equal(np.isnan(values), codes == 7)
        assert [len(np.unique(values[codes == code])) for code in range(7)] == [1] * 7
        assert (np.unique(values[codes < 7])[1:] > bins[name]).all()


# ---- errors


def test_what_is_no_frame_of_spark_is_refused(spark, table):
    with pytest.raises(TypeError, match="df must be a pyspark.sql.DataFrame, got pyarrow.*use boostbins.fit_bins"):
        spark.fit_bins(table)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"columns": ["nope"]}, ValueError, "columns: there is no column 'nope'; there are 'price.net'"),
        ({"columns": "int"}, TypeError, "columns must be a list of names"),
        ({"sample_weight": "nope"}, ValueError, "sample_weight: there is no column 'nope'"),
        ({"sample_weight": [1.0]}, TypeError, "sample_weight must be the name of a column, got a list"),
        ({"y": "nope"}, ValueError, "y: there is no column 'nope'"),
        ({"method": "kmean"}, ValueError, "method must be"),
        ({"max_bins": 1}, ValueError, "max_bins must be"),
        ({"columns": ["weight"], "sample_weight": "weight"}, ValueError, "no columns to bin"),
    ],
)
def test_errors_before_any_work(spark, frame, options, error, message):
    with pytest.raises(error, match=message):
        spark.fit_bins(frame, **options)


def test_frames_without_rows_or_weight_are_refused(spark, frame):
    with pytest.raises(ValueError, match="X has no rows"):
        spark.fit_bins(frame.where("false"), columns=["int"])
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        spark.fit_bins(frame.where("weight = 0"), columns=["int"], sample_weight="weight")


def test_wrong_weights_are_told_by_the_task(spark, frame):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="sample_weight must be finite and not negative"):
        spark.fit_bins(frame, columns=["int"], sample_weight="short")


def test_bins_that_cannot_be_represented(spark, frame):
    with pytest.raises(ValueError, match="take those of fit_bins"):
        spark.represent(frame, Bins([[1.0]], ["int"]))
    with pytest.raises(TypeError, match="bins must be Bins"):
        spark.represent(frame, {"int": [1.0]})


# ---- the models


OPTIONS = {"max_bin": 32, "max_depth": 4, "n_estimators": 8}


@pytest.fixture(scope="module")
def houses():
    """A target that depends on a tail and on what is missing."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    n = 3000
    X = pd.DataFrame(
        {
            "rooms": rng.integers(1, 9, n),
            "area": rng.lognormal(0, 2, n),
            "sun": np.where(rng.random(n) < 0.3, np.nan, rng.pareto(1.2, n).astype(np.float32)),
        }
    )
    y = np.log(X["area"]) + 0.1 * X["rooms"] + np.where(X["sun"].isna(), 3.0, 0.0) + 0.1 * rng.standard_normal(n)
    return X, y


@pytest.fixture(scope="module")
def training(session, houses):
    X, y = houses
    extra = {"label": y, "high": (y > y.mean()).astype(float), "weight": 1.0 + X["rooms"] % 2}
    return session.createDataFrame(X.assign(**extra, test=np.arange(len(X)) % 5 == 0)).coalesce(2).cache()


def splits_of(booster):
    nodes = booster.trees_to_dataframe()
    return nodes[nodes["Feature"] != "Leaf"]


def check_thresholds(booster, bins, names):
    """Every threshold is a cut, or parts missing values from all others."""
    splits = splits_of(booster).dropna(subset="Split")  # those by category have none
    for name, threshold in splits[["Feature", "Split"]].itertuples(index=False):
        cuts = bins.cuts[names.index(name)]
        ours = np.nextafter(cuts.astype(np.float32), np.float32(np.inf))
        assert np.float32(threshold) in ours or threshold > ours.max() or threshold < ours.min()


@pytest.fixture(scope="module")
def fitted(spark, training):
    pytest.importorskip("xgboost")
    estimator = spark.SparkXGBRegressor(
        features_col=["rooms", "area", "sun"], num_workers=2, bin_method="kmeans", **OPTIONS
    )
    return estimator.fit(training)


def test_the_model_is_that_of_one_machine(fitted, training, houses):
    from xgboost.spark import SparkXGBRegressorModel

    from boostbins.xgboost.estimators import XGBRegressor

    X, y = houses
    one = XGBRegressor(bin_method="kmeans", n_jobs=1, **OPTIONS).fit(X, y)
    assert type(fitted) is SparkXGBRegressorModel
    assert fitted.bins_ == one.bins_
    check_thresholds(fitted.get_booster(), fitted.bins_, list(X))
    found = np.array([row["prediction"] for row in fitted.transform(training).collect()])
    assert np.abs(found - one.predict(X)).max() < 1e-4
    assert np.corrcoef(found, y)[0, 1] > 0.9


def test_auto_looks_at_the_label(spark, training, houses):
    from boostbins.xgboost.estimators import XGBRegressor

    X, y = houses
    estimator = spark.SparkXGBRegressor(features_col=list(X), num_workers=2, bin_method="auto", **OPTIONS)
    model = estimator.fit(training)
    one = XGBRegressor(bin_method="auto", n_jobs=1, **OPTIONS).fit(X, y)
    chosen = {name: choice.chosen for name, choice in model.bins_.choices.items()}
    assert chosen == {name: choice.chosen for name, choice in one.bins_.choices.items()}
    assert set(chosen) == {"area", "sun"}
    model = estimator.copy({estimator.total_bins: 20}).fit(training)
    assert (
        model.bins_.n_bins == XGBRegressor(bin_method="auto", total_bins=20, n_jobs=1, **OPTIONS).fit(X, y).bins_.n_bins
    )


def test_estimators_share_a_total(spark, training, houses):
    from boostbins.xgboost.estimators import XGBRegressor

    asked = {"total_bins": "auto"}
    X, y = houses
    options = {"max_depth": 3, "n_estimators": 2}
    model = spark.SparkXGBRegressor(features_col=list(X), bin_method="kmeans", **asked, **options).fit(training)
    one = XGBRegressor(bin_method="kmeans", n_jobs=1, **asked, **options).fit(X, y)
    assert model.bins_.n_bins == one.bins_.n_bins
    assert set(model.bins_.shares) == set(X)
    with pytest.raises(ValueError, match="is for cuts by a bin_method, got bin_method=None"):
        spark.SparkXGBRegressor(features_col=list(X), bin_method=None, **asked, **options).fit(training)


def test_values_beyond_the_last_bin_are_not_missing(fitted, houses):
    X, _ = houses
    splits = splits_of(fitted.get_booster())
    beyond = splits[(splits["Feature"] == "sun") & (splits["Split"] > fitted.bins_["sun"].max() * 1.01)]
    assert len(beyond), "no split of missing values from all others: the test says nothing"
    assert (beyond["Split"] > X["sun"].max()).all()


def test_the_model_is_saved_and_loaded_by_xgboost_alone(fitted, training, tmp_path):
    from xgboost.spark import SparkXGBRegressorModel

    fitted.write().overwrite().save(str(tmp_path / "model"))
    assert not any(b"boostbins" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    loaded = SparkXGBRegressorModel.load(str(tmp_path / "model"))
    assert loaded.get_booster().save_raw("json") == fitted.get_booster().save_raw("json")


def test_classes_from_vectors_with_weights_and_validation_rows(spark, training, houses):
    from pyspark.ml.feature import VectorAssembler

    from boostbins.xgboost.estimators import XGBClassifier

    X, y = houses
    zeros = X.assign(sun=X["sun"].fillna(0.0))
    assembler = VectorAssembler(inputCols=["rooms", "area", "sun"], outputCol="features")
    df = assembler.transform(training.fillna({"sun": 0.0}))
    estimator = spark.SparkXGBClassifier(
        label_col="high", weight_col="weight", validation_indicator_col="test", missing=0.0, num_workers=1, **OPTIONS
    )
    model = estimator.fit(df)
    test = np.arange(len(X)) % 5 == 0
    weight = 1.0 + X["rooms"] % 2
    one = XGBClassifier(missing=0.0, n_jobs=1, **OPTIONS)
    one.fit(zeros[~test], (y > y.mean())[~test], sample_weight=weight[~test])
    assert [cuts.tolist() for cuts in model.bins_.cuts] == [cuts.tolist() for cuts in one.bins_.cuts]
    assert model.bins_.names == ("features[0]", "features[1]", "features[2]")
    assert model.training_summary.validation_objective_history
    check_thresholds(model.get_booster(), model.bins_, ["f0", "f1", "f2"])
    found = np.array([row["probability"].toArray() for row in model.transform(df).collect()])
    assert np.abs(found - one.predict_proba(zeros)).max() < 1e-4
    assert model.getOrDefault("missing") == 0.0


def test_many_classes_are_classes_as_in_memory(spark, training, houses):
    from pyspark.sql import functions as F  # noqa: N812

    from boostbins.xgboost.estimators import XGBClassifier

    X, _ = houses
    labels = X["rooms"] % 3
    frame = training.withColumn("kind", F.col("rooms") % 3)
    asked = {"bin_method": "kmeans", "average_bins": 20}
    model = spark.SparkXGBClassifier(features_col=list(X), label_col="kind", num_workers=1, **asked, **OPTIONS).fit(
        frame
    )
    assert model.bins_ == XGBClassifier(n_jobs=1, **asked, **OPTIONS).fit(X, labels).bins_


def test_categories_are_left_to_xgboost_and_ready_bins_are_taken(spark, training):
    bins = Bins([[0.1, 1.0, 1e9], [1.0]], ["sun", "area"])  # in another order, and beyond all values
    estimator = spark.SparkXGBRegressor(
        features_col=["rooms", "area", "sun"], feature_types=["c", "q", "q"], bin_method=bins, n_estimators=3
    )
    model = estimator.fit(training)
    splits = splits_of(model.get_booster())
    assert set(splits["Feature"][splits["Category"].notna()]) == {"rooms"}
    assert model.bins_.names == ("area", "sun")
    check_thresholds(model.get_booster(), model.bins_, ["area", "sun"])


def test_ranking(spark, training):
    estimator = spark.SparkXGBRanker(
        features_col=["area", "sun"], label_col="high", qid_col="rooms", max_bin=16, n_estimators=2
    )
    model = estimator.fit(training)
    assert model.bins_.n_bins == (15, 15)
    check_thresholds(model.get_booster(), model.bins_, ["area", "sun"])


def test_without_the_flag_it_is_xgboosts_own(spark, training):
    from xgboost import spark as native

    options = {"features_col": ["rooms", "area"], "n_estimators": 2}
    ours = spark.SparkXGBRegressor(bin_method=None, **options).fit(training)
    theirs = native.SparkXGBRegressor(**options).fit(training)
    assert ours.get_booster().save_raw("json") == theirs.get_booster().save_raw("json")
    assert not hasattr(ours, "bins_")


def test_the_flag_is_a_parameter_like_any_other(spark, session, tmp_path):
    estimator = spark.SparkXGBRegressor(max_depth=3)
    assert estimator.getOrDefault("bin_method") == "kmeans"
    other = estimator.copy({estimator.bin_method: "quantile"})
    assert (other.getOrDefault("bin_method"), other.getOrDefault("max_depth")) == ("quantile", 3)
    other.write().overwrite().save(str(tmp_path / "estimator"))
    loaded = spark.SparkXGBRegressor.load(str(tmp_path / "estimator"))
    assert loaded.getOrDefault("bin_method") == "quantile"


def test_xgboost_goes_its_own_way_where_no_method_was_asked_for(spark, training, tmp_path):
    options = {"features_col": ["rooms"], "n_estimators": 2, "tree_method": "approx"}
    spark.SparkXGBRegressor(**options).write().overwrite().save(str(tmp_path / "estimator"))
    with pytest.warns(UserWarning, match="tree_method='approx' takes no ready cuts.*the library goes its own way"):
        ours = spark.SparkXGBRegressor.load(str(tmp_path / "estimator")).fit(training)
    assert '"tree_method":"approx"' in ours.get_booster().save_config()
    assert not hasattr(ours, "bins_")


ASKED = {"bin_method": "kmeans"}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"bin_method": "kmean"}, ValueError, "bin_method must be"),
        ({**ASKED, "tree_method": "approx"}, ValueError, "tree_method='approx' takes no ready cuts"),
        ({**ASKED, "max_bin": 2}, ValueError, "max_bin=2 is beyond what a method can do"),
        ({"bin_method": Bins([[1.0, 2.0]], ["rooms"]), "max_bin": 3}, ValueError, "bin_method holds 3 bins"),
        ({"bin_method": Bins([[1.0]], ["area"])}, ValueError, "bin_method holds bins for other columns"),
        ({"label_col": "rooms"}, ValueError, "label_col='rooms' is a feature too"),
        ({**ASKED, "missing": 0.0, "enable_sparse_data_optim": True}, ValueError, "missing=0.0 without it"),
    ],
)
def test_what_cannot_be_trained_is_refused(spark, training, options, error, message):
    pytest.importorskip("xgboost")
    with pytest.raises(error, match=message):
        spark.SparkXGBRegressor(**{"features_col": ["rooms"], **options}).fit(training)


def test_infinite_values_are_refused(spark, training):
    with pytest.raises(ValueError, match="column 'rooms' holds infinite values.*clip them"):
        spark.SparkXGBRegressor(features_col=["rooms"]).fit(training.selectExpr("label", "double('inf') AS rooms"))


# ---- what is said about it


@pytest.mark.parametrize(("module", "extra"), [("pyspark", "spark"), ("xgboost", "xgboost")])
def test_a_library_that_is_not_there_is_named_with_what_to_install(module, extra):
    code = f"import sys; sys.modules[{module!r}] = None; from boostbins.spark import SparkXGBRegressor"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"is not installed: pip install 'boostbins[{extra}]'" in done.stderr


def test_the_recipe_of_the_documentation_runs(session):
    page = Path(__file__).parents[2] / "docs" / "spark.md"
    if not page.exists():
        pytest.skip("the documentation is not in the sources of a release")
    (recipe,) = re.findall(r"```py\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    told = {}
    exec(recipe, told)  # in this session
    assert told["model"].bins_.names == told["bins"].names == ("area", "age")
