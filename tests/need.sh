#!/bin/bash
# need.sh PACKAGE…: installs system packages that a build or a test lacks, and says so first.
set -euo pipefail
echo "This needs system packages that are missing; installing with apt-get: $*"
command -v apt-get >/dev/null || { echo "There is no apt-get here: install them yourself."; exit 1; }
root=$([ "$(id -u)" = 0 ] || echo sudo)
($root apt-get update && $root apt-get install -y "$@") >/dev/null
