"""Labovich, "A Case for Library-Level k-Means Binning in Histogram Gradient-Boosted Trees" (TMLR 2025), reproduced.

Data flow: `datasets` → `jobs` (what to run) → `run` (each job once, into a `store`) → `stats` → `tables`, `figures`,
`claims`, `auto`, `budget` → `report`. `cuts` knows which results are of today's methods. It uses boostbins' public
names only, and is not in the wheel.
"""
