# To be sourced by npm.sh on macOS or Windows: builds and packs the package of this platform,
# installs it beside the main one, and runs it. The main package of a release is made on Linux.
name=$1
[ "$name" = "$(this_platform)" ] || fail "this machine is $(this_platform), not $name"
target=$(stage target "$name")
deploy/dist.sh cargo build --locked --profile dist -p tidegate-node --target "$target"
for file in libtidegate_node.so libtidegate_node.dylib tidegate_node.dll; do
  library=$out/$target/dist/$file
  [ ! -e "$library" ] || break
done
pack_platform "$name" "$library" "$scratch/dist"
pack_main "$scratch/dist"
mkdir -p "$scratch/app" "$out/packages"
cp deploy/npm-try.mjs "$scratch/app/try.mjs"
(
  cd "$scratch/app"
  # The other platforms' packages are nowhere to be found, which npm passes over.
  npm install --silent --offline "$scratch"/dist/*.tgz
  node try.mjs
)
cp "$scratch/dist/tidegate-$name-"*.tgz "$out/packages/"
echo "npm: $name is built, installed from its packages and runs"
