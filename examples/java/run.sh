#!/bin/bash
# run.sh: the Java example. It needs Java 22 or later: where this machine has an older one, JDK 25 of
# Debian 13 is unpacked into target/java and run by its own loader.
set -euo pipefail
cd "$(dirname "$0")"
library=$(pkg-config --variable=libdir tidegate)/libtidegate.so
version=$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' || true)
java=(java)
if [ "${version:-0}" -lt 22 ]; then
  root=$(cd ../.. && realpath -m "${CARGO_TARGET_DIR:-target}")/java
  VARIANT=extract ../../deploy/root.sh trixie "$root" openjdk-25-jdk-headless
  # Both are named for the processor.
  home=$(echo "$root"/usr/lib/jvm/java-25-openjdk-*)
  system=$(echo "$root"/usr/lib/*-linux-gnu*)
  libraries=$system:$home/lib:$home/lib/server
  java=("$system"/ld-linux*.so.* --library-path "$libraries" "$home/bin/java")
fi
"${java[@]}" --enable-native-access=ALL-UNNAMED -Dtidegate.library="$library" Try.java
