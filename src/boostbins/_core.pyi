from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Keys: TypeAlias = NDArray[np.uint64]
Apart: TypeAlias = tuple[float, float, float]
State: TypeAlias = tuple[Keys, Floats, int, Keys, tuple[int, int, int], Apart, tuple[float, float]]
Points: TypeAlias = tuple[Floats, Floats, Floats, Floats]

def summarize(
    column: NDArray[np.generic],
    weights: Floats | None,
    targets: Floats | None,
    guide: Floats | None,
    max_cells: int,
) -> State: ...
def extend(
    state: State, column: NDArray[np.generic], weights: Floats | None, targets: Floats | None, max_cells: int
) -> State: ...
def merge(a: State, b: State, max_cells: int) -> State: ...
def points(state: State) -> Points: ...
def cell_ends(state: State) -> tuple[Floats, Floats]: ...
def lloyd(points: Points, seeds: Floats, column_mean: float, max_iter: int, tol: float) -> tuple[Floats, int]: ...
def optimal(values: Floats, weights: Floats, k: int) -> Keys: ...

class Encoder:
    def __init__(self, cuts: Floats, missing_code: int) -> None: ...
    def encode(self, column: NDArray[np.generic], out: NDArray[np.uint8] | NDArray[np.uint16]) -> None: ...
