#!/usr/bin/env bash
# Runs the tests of the kernels with AddressSanitizer and UndefinedBehaviorSanitizer; whatever these report is a failure.
#   tests/sanitize.sh [python] [what else pytest is told, in place of the tests of the kernels]
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "$(command -v "${1:-python3}")")
tests=("${@:2}")
[ ${#tests[@]} -gt 0 ] || tests=(tests/summary tests/methods tests/sources/test_stream.py tests/test_{bins,fit,threads}.py
  -k "not memory and not agreement")

export CXX="${CXX:-g++}"
preloaded=()
for library in libasan.so libubsan.so libstdc++.so; do
  preloaded+=("$("$CXX" -print-file-name=$library 2>/dev/null || true)")
  if [ ! -f "${preloaded[-1]}" ]; then # its bare name, if there is none; clang's have other names
    echo "sanitize: skipped, as $CXX has no $library: GCC on Linux has (not on musl)"
    exit 0
  fi
done

venv=$PWD/.venv-sanitize
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
pip=("$venv/bin/python" -m pip install --quiet)
"${pip[@]}" --upgrade "pip>=25.1"
"${pip[@]}" --group core --group build
# Without isolation the build stays as it is between runs, and only what changed is compiled.
"${pip[@]}" --no-build-isolation -C build-dir="$venv/build" -C cmake.define.BOOSTBINS_SANITIZE=ON \
  -C cmake.build-type=RelWithDebInfo -C install.strip=false . # so that reports name functions and lines

# AddressSanitizer reports to files, so that no test can look over it, and UBSan, which knows no files, to a screen
# that pytest does not keep for itself; faulthandler would take the signals that are to be reported.
report=$venv/report
rm -f "$report".*
status=0
LD_PRELOAD="${preloaded[*]}" \
  ASAN_OPTIONS=detect_leaks=0:handle_abort=1:log_path="$report" UBSAN_OPTIONS=print_stacktrace=1 OMP_NUM_THREADS=1 \
  "$venv/bin/python" -m pytest -q -n auto -s -p no:faulthandler -p no:cacheprovider --hypothesis-profile=sanitize \
  "${tests[@]}" || status=$?
if compgen -G "$report.*" >/dev/null; then
  cat "$report".*
  exit 1
fi
exit $status
