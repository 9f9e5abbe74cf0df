#!/bin/bash
# npm.sh quick|full|platform NAME|pack NAME FOLDER: the npm packages, packed and tried.
#
# quick     packs what `make node` has built, and tries it: lists, an empty folder, bundlers.
# full      builds and packs all that this machine can into target/packages, and tries each package.
# platform  the same for one platform other than Linux, on a machine of that kind.
# pack      the main package and that of a platform, with the native part of `make node`.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
out=${CARGO_TARGET_DIR:-$root/target}
. bindings-node/test/node.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
stage() { node deploy/npm-stage.mjs "$@"; }
fail() { echo "npm: $*" >&2 && exit 1; }
# How many bytes a file has, with the `wc` of every system.
bytes() { wc -c <"$1" | tr -d ' '; }

# usage: pack STAGED FOLDER
pack() {
  mkdir -p "$2"
  (cd "$2" && npm pack --silent --ignore-scripts "$1" >/dev/null)
}
pack_main() { # folder
  stage main "$scratch/main"
  pack "$scratch/main" "$1"
}
pack_platform() { # name, library, folder
  stage platform "$1" "$2" "$scratch/$1"
  pack "$scratch/$1" "$3"
}
this_platform() { node -p 'require("./bindings-node/lib/platform.js").platform()'; }

# Installs from a registry that has only the folder's packages, into an empty folder that cannot see
# the repository, and runs a program there in both kinds of modules.
# usage: install DIST FOLDER
install() {
  mkdir -p "$2"
  cp "$root/deploy/npm-try.mjs" "$2/try.mjs"
  python3 deploy/registry.py "$1" -- deploy/away.sh "$2" npm install --silent tidegate
  deploy/away.sh "$2" node try.mjs
}

# What holds for the packages in the folder TIDEGATE_DIST.
test_packages() {
  node --test --test-reporter="${TEST_REPORTER:-dot}" bindings-node/test/packed/*.test.js
  echo
}

quick() {
  local dist=$scratch/dist
  [ -e bindings-node/tidegate.node ] || node bindings-node/build.mjs
  pack_main "$dist"
  pack_platform "$(this_platform)" bindings-node/tidegate.node "$dist"
  install "$dist" "$scratch/app"
  bindings-node/test/tools/install.sh
  TIDEGATE_DIST=$dist test_packages
  echo "npm: $(this_platform) is installed from its packages and runs, alone and bundled; \
without its native part it says what to do; each package holds what is listed, with licences"
}

case ${1:-} in
  quick) quick ;;
  full) . deploy/npm-full.sh ;;
  platform) . deploy/npm-platform.sh "${2:?the name of the platform}" ;;
  pack)
    [ -e bindings-node/tidegate.node ] || node bindings-node/build.mjs
    pack_main "$3"
    pack_platform "$2" bindings-node/tidegate.node "$3"
    ;;
  *) sed -n '2,7s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
