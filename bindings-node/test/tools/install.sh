#!/bin/bash
# Fetches what users bundle and test with, unless it is there already.
set -euo pipefail
cd "$(dirname "$0")"
cmp --silent package-lock.json node_modules/.of && exit
npm ci --ignore-scripts --no-audit --no-fund --silent
cp package-lock.json node_modules/.of
