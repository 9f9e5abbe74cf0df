#!/bin/bash
# Builds the wheel once and tests it as its users have it: the whole surface on the first python3, its types by mypy,
# pyright and stubtest, and the same wheel on every other Python from 3.10 on that is here.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${CARGO_TARGET_DIR:-$PWD/target}/python
tests=bindings-python/tests
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "python: 3.10 or later is needed"; exit 1; }
python3 -c 'import venv, ensurepip' 2>/dev/null || tests/need.sh python3-venv
mkdir -p "$out"
[ -x "$out/venv/bin/pip" ] || python3 -m venv "$out/venv"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
pip() { "$out/venv/bin/pip" "$@" --quiet; }
bin=$out/venv/bin

# pyright runs on node: the machine's, or one from PyPI.
extra=$(command -v npm >/dev/null || echo "pyright[nodejs]")
pip install -r $tests/requirements.txt $extra

# From the source distribution alone: what is tested below is what its users build.
build() { # where to, features
  rm -rf "${out:?}/$1"
  PATH=$bin:$PATH deploy/wheel.sh host "$out/$1" --release --interpreter "$bin/python" ${2:+--features "$2"} \
    >"$out/$1.log" 2>&1 || { cat "$out/$1.log"; exit 1; }
}
only() { ls "$out/$1"/*.whl; }
installed() { pip install --force-reinstall --no-deps "$(only "$1")"; }

echo "python: a panic inside is an exception"
build hooks test-hooks
installed hooks
"$bin/python" -m pytest -q -p no:cacheprovider $tests/test_errors.py -k panic

echo "python: the wheel, $("$bin/python" --version)"
build wheel
case $(only wheel) in *-cp310-abi3-*) ;; *) echo "$(only wheel) is not for every Python from 3.10 on"; exit 1 ;; esac
installed wheel
"$bin/python" -m pytest -q -p no:cacheprovider $tests

python3 docs/reference.py --check
python3 docs/check.py --yaml "$bin/python" --python "$bin/python"

echo "python: types"
"$bin/mypy" --strict --cache-dir "$out/mypy" $tests/typed_calls.py
"$bin/mypy" --strict --cache-dir "$out/mypy" bindings-python/python/tidegate/*.py
(cd "$out" && "$bin/stubtest" tidegate._tidegate)
"$bin/pyright" --pythonpath "$bin/python" $tests/typed_calls.py

# The same wheel elsewhere, with pytest alone.
rm -rf "$out/light"
pip install --target "$out/light" -r $tests/requirements-light.txt "$(only wheel)"
core=$(printf "$tests/test_%s.py " surface run_time errors vectors acquire threads processes package)
tried=" $("$bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') "
for python in $(compgen -c python3. | grep -E '^python3\.[0-9]+$' | sort -uV) "$HOME"/.pyenv/versions/3.*/bin/python3; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
  case "$tried" in *" $version "*) continue ;; esac
  [ "${version#3.}" -ge 10 ] || continue
  tried+="$version "
  echo "python: the same wheel, Python $version"
  PYTHONPATH=$out/light "$python" -m pytest -q -p no:cacheprovider $core -k "not million"
done
