from __future__ import annotations

import os

# Before a library loads OpenMP: where there are more threads than cores, those that wait would take the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

settings.register_profile(
    "boostbins", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("sanitize", settings.get_profile("boostbins"), max_examples=10)
settings.load_profile("boostbins")

# Whatever bits a float may hold.
EDGES = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.0, np.nextafter(1.0, 2), 1e308, -1e308, 1.7976931348623157e308]
finite = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(EDGES))
any_float = st.one_of(finite, st.sampled_from([np.nan, np.inf, -np.inf]), st.integers(-5, 5).map(float))
columns = st.lists(any_float, max_size=60).map(np.array)


def skewed(n=200_000, seed=0):
    return np.random.default_rng(seed).lognormal(0, 2, n)


def distributions(n, seed=0):
    """Columns of many shapes, by name."""
    r = np.random.default_rng(seed)
    pick = r.random(n)
    return {
        "normal": r.standard_normal(n),
        "lognormal": r.lognormal(0, 2, n),
        "uniform": r.random(n),
        "cauchy": r.standard_cauchy(n),
        "far modes": np.where(pick < 0.5, 1e6, -1e6) + 1e-3 * r.standard_normal(n),
        "timestamps": 1.7e9 + 1e5 * r.standard_normal(n),
        "integers": r.poisson(50, n).astype(float),
        "cents, half zero": np.where(pick < 0.5, 0, np.round(r.lognormal(3, 1, n), 2)),
        "subnormal": r.standard_normal(n) * 1e-310,
        "huge": r.standard_normal(n) * 1e300,
        "all scales": r.standard_normal(n) * 10.0 ** r.uniform(-8, 8, n),
        "timestamps and noise at 1e15": np.where(
            pick < 0.1, 1e15 * r.standard_normal(n), 1.7e9 + 1e5 * r.standard_normal(n)
        ),
        "a spike in noise": np.where(pick < 0.5, 1e9 + r.standard_normal(n), 1e9 * r.standard_normal(n)),
        "a heavy value": np.where(pick < 0.3, 50_000.0, r.lognormal(10, 1, n)),
    }
