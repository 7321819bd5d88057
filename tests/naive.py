"""Slow, plain references for the kernels. Exact rational arithmetic where rounding could hide a bug."""

from __future__ import annotations

import math
import struct
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np


def cells(values, max_cells):
    """The cells of a summary, by definition: the finest level of the chain with at most max_cells of them."""
    finite = [float(v) + 0.0 for v in values if math.isfinite(v)]
    for level in range(2107):
        held = Counter(_cell(v, level) for v in finite)
        if len(held) <= max_cells:
            return sorted(held.items())
    return sorted(held.items())


def _cell(value, level):
    """The lowest magnitude in the cell of a value, ordered as the values are."""
    shift = -1074 + min(level, 2097)
    leading = 9 - max(0, level - 2097)
    (bits,) = struct.unpack("<Q", struct.pack("<d", abs(value)))
    exponent = max(bits >> 52, 1) - 1023
    kept = min(52, max(leading, exponent - shift))
    base = bits >> (52 - kept) << (52 - kept)
    (magnitude,) = struct.unpack("<d", struct.pack("<Q", base))
    return (-1, -magnitude) if value < 0 else (1, magnitude)


def encode(x, cuts, missing_code):
    """x is in bin i if and only if cuts[i-1] < x <= cuts[i]."""
    if math.isnan(x):
        return missing_code
    return sum(cut < x for cut in cuts)


def sse(values, weights, borders):
    """The weighted sum of squares around the means of the clusters that begin at the borders."""
    total = Fraction(0)
    for begin, end in zip(borders, [*borders[1:], len(values)], strict=True):
        x = [Fraction(v) for v in values[begin:end]]
        w = [Fraction(v) for v in weights[begin:end]]
        mean = sum(a * b for a, b in zip(x, w, strict=True)) / sum(w)
        total += sum(b * (a - mean) ** 2 for a, b in zip(x, w, strict=True))
    return total


def least_sse(values, weights, k):
    """The least SSE of all partitions of ascending values into k runs."""
    inner = combinations(range(1, len(values)), k - 1)
    return min(sse(values, weights, [0, *borders]) for borders in inner)


def lloyd(values, counts, seeds, max_iter=300, tol=1e-4):
    """Lloyd on distinct values with counts, as scikit-learn defines it, in plain NumPy; no ties expected."""
    x, w = np.asarray(values, float), np.asarray(counts, float)
    centers = np.array(seeds, float)
    mean = np.average(x, weights=w)
    limit = tol * np.average((x - mean) ** 2, weights=w)
    old = None
    for _ in range(max_iter):
        labels = np.abs(x[:, None] - centers[None, :]).argmin(axis=1)
        weight = np.bincount(labels, w, len(centers))
        total = np.bincount(labels, w * x, len(centers))
        empty = np.flatnonzero(weight == 0)
        distance = np.abs(x - centers[labels])
        if len(empty) and distance.max() > 0:
            rows = [i for i in np.argsort(-distance, kind="stable") for _ in range(int(min(w[i], len(empty))))]
            for j, i in zip(empty, rows, strict=False):
                total[labels[i]] -= x[i]
                weight[labels[i]] -= 1
                total[j], weight[j] = x[i], 1
        new = np.where(weight > 0, total / np.where(weight > 0, weight, 1), 0)
        new[weight <= 0] = new[weight.argmax()]
        moved = ((new - centers) ** 2).sum()
        centers = new
        if (old is not None and (labels == old).all()) or moved <= limit:
            break
        old = labels
    return np.sort(centers)


def placed(masses, n_cuts):
    """The gaps that get a cut each: masses are raised until they hold n_cuts in all, none more than one."""
    masses = [Fraction(m) for m in masses]
    full = set()
    while True:
        rest = sum(m for i, m in enumerate(masses) if i not in full)
        scale = (n_cuts - len(full)) / rest if rest else Fraction(0)
        over = {i for i, m in enumerate(masses) if i not in full and m * scale > 1}
        if not over:
            break
        full |= over
    held, gaps, wanted = Fraction(0), [], Fraction(1, 2)
    for i, m in enumerate(masses):
        held += 1 if i in full else m * scale
        while len(gaps) < n_cuts and wanted <= held:
            gaps.append(i)
            wanted += 1
    return gaps


def projection(codes, weights):
    """The matrix that replaces numbers per row by the means of their bins, in coordinates where weights are 1."""
    n = len(codes)
    matrix = np.zeros((n, n))
    for code in set(codes):
        root = np.where(np.array(codes) == code, np.sqrt(weights), 0.0)
        matrix += np.outer(root, root) / (root @ root)
    return matrix


def rank_codes(values, most):
    """The numbers of values among the distinct ones, missing last; or of `most` groups of about as many rows."""
    found = []
    for column in values.tolist():
        rank = [(math.isnan(x), 0.0 if math.isnan(x) else x) for x in column]
        ascending, distinct = sorted(rank), sorted(set(rank))
        if len(distinct) <= most:
            found.append([distinct.index(r) for r in rank])
        else:
            found.append([most if r[0] else ascending.index(r) * most // len(rank) for r in rank])
    return found


def pilot(codes, targets, weights, n_trees, n_leaves, rate, least_weight):
    """The columns of the splits of boosted trees, their gains with ever fewer cuts, what is left of the targets.

    Each tree splits the leaf that gains most, and each leaf where it gains most, the first of equals: by columns, and
    in each by turns from both ends. Sums are in the same order: of rows as the splits so far have parted them.
    """
    n_columns, n_rows = codes.shape
    n_targets = targets.shape[1]
    left_over = [[float(t) for t in row] for row in targets]
    weights = [float(w) for w in weights]

    def term(i):
        return [weights[i], *(weights[i] * r for r in left_over[i])]

    def sums(terms):
        total = [0.0] * (n_targets + 1)
        for each in terms:
            total = [a + b for a, b in zip(total, each, strict=True)]
        return total

    def cuts(leaf, column):
        """Yield after which code a cut is, and what it gains, as a numerator and a denominator."""
        n_cuts = int(codes[column].max())
        total = sums(map(term, leaf))
        cells = [sums(term(i) for i in leaf if codes[column, i] == code) for code in range(n_cuts + 1)]
        means = [quotient(t, total[0]) for t in total[1:]]
        left, right = [0.0] * (n_targets + 1), [0.0] * (n_targets + 1)
        for turn in range(n_cuts):
            if turn % 2 == 0:
                code = turn // 2
                part = left = sums([left, cells[code]])
            else:
                code = n_cuts - 1 - turn // 2
                part = right = sums([right, cells[code + 1]])
            rest = total[0] - part[0]
            if min(part[0], rest) >= least_weight and part[0] * rest > 0:
                beyond = [p - m * part[0] for p, m in zip(part[1:], means, strict=True)]
                yield code, sum(b * b for b in beyond) * total[0], part[0] * rest

    def best_split(leaf):
        best = (0.0, None, None)
        if sums(map(term, leaf))[0] < 2 * least_weight:
            return best
        for column in range(n_columns):
            for code, fall, parts in cuts(leaf, column):
                if fall > best[0] * parts:
                    best = (fall / parts, column, code)
        return best

    def with_fewer_cuts(leaf, column):
        gains = [0.0] * 11
        for code, fall, parts in cuts(leaf, column):
            for step in range(11):
                if (code + 1) % 2**step == 0:
                    gains[step] = max(gains[step], fall / parts)
        return gains

    def take_off(leaf, share):
        total = sums(map(term, leaf))
        for i in leaf if total[0] else ():
            left_over[i] = [r - share * (s / total[0]) for r, s in zip(left_over[i], total[1:], strict=True)]

    splits, rows = [], list(range(n_rows))
    if n_columns:
        take_off(rows, 1.0)
    for _ in range(n_trees if n_columns else 0):
        leaves, places = [rows], [0]
        found = [best_split(leaves[0])]
        while len(leaves) < n_leaves:
            at = max(range(len(leaves)), key=lambda i: found[i][0])
            gain, column, code = found[at]
            if gain <= 0:
                break
            splits.append((column, with_fewer_cuts(leaves[at], column)))
            parts = [[i for i in leaves[at] if (codes[column, i] > code) == is_right] for is_right in (False, True)]
            leaves[at], found[at] = parts[0], best_split(parts[0])
            places.insert(places.index(at) + 1, len(leaves))
            leaves.append(parts[1])
            found.append(best_split(parts[1]))
        for leaf in leaves:
            take_off(leaf, rate)
        if len(leaves) == 1:
            break
        rows = [row for place in places for row in leaves[place]]
    return [column for column, _ in splits], [gains for _, gains in splits], left_over


def quotient(a, b):
    return a / b if b else math.nan


def row_key(row):
    """The key of a row: 40 bits by the hashes of its values as float32, 24 by those of the values themselves."""
    key, fine = 0, 2**24 - 1
    for i, x in enumerate(row):
        salt = _mixed(i * 0x9E3779B97F4A7C15 + 1)
        with np.errstate(over="ignore"):
            near = float(np.float32(x))
        key ^= (_mixed(salt ^ _bits(near)) & ~fine) | (_mixed(salt ^ _bits(x)) & fine)
    return key


def _bits(x):
    (bits,) = struct.unpack("<Q", struct.pack("<d", float(x) + 0.0))
    return 0x7FF8000000000000 if math.isnan(x) else bits


def _mixed(x):
    x %= 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)
