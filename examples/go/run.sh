#!/bin/bash
# run.sh: the Go example, its tests, and cgo's own checks of every pointer that is handed over.
set -euo pipefail
cd "$(dirname "$0")"
command -v go >/dev/null || ../../tests/need.sh golang-go
export CGO_ENABLED=1 GOFLAGS=-mod=mod GOTOOLCHAIN=local
expected=$'true  <nil>\ntrue  <nil>\ntrue  <nil>\nfalse 3/min <nil>'
[ "$(go run .)" = "$expected" ]
# Go 1.21 made a build option of what was a setting before, and stops at the setting.
case $(go env GOVERSION) in
go1.1? | go1.1?.* | go1.20 | go1.20.*) export GODEBUG=cgocheck=2 ;;
*) export GOEXPERIMENT=cgocheck2 ;;
esac
go test -count=1 . >/dev/null || go test -count=1 .
echo "go: 64 goroutines were granted 1000 hits, and each error had its own text"
