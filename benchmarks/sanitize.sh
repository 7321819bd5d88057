#!/usr/bin/env bash
# Runs the tests of the kernels with AddressSanitizer and UndefinedBehaviorSanitizer (GCC, Linux).
#   benchmarks/sanitize.sh [python]
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "${1:-python3}")
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --upgrade "pip>=25.1"
"$venv/bin/python" -m pip install --quiet -C cmake.define.BOOSTBINS_SANITIZE=ON -C build-dir="$venv/build" .
"$venv/bin/python" -m pip install --quiet numpy hypothesis pytest pandas polars pyarrow scipy
export LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so) $(gcc -print-file-name=libstdc++.so)"
export ASAN_OPTIONS=detect_leaks=0 # Python keeps what it allocates
"$venv/bin/python" -m pytest -q -p no:cacheprovider -o addopts= tests/test_summary.py tests/test_methods.py tests/test_bins.py tests/test_fit.py \
    tests/test_mixing.py tests/test_stream.py --deselect tests/test_stream.py::test_a_file_is_binned_in_less_memory_than_it_has
