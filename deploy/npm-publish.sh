#!/bin/bash
# npm-publish.sh TARBALL: publishes a packed npm package with its provenance, unless that version is
# there already, so that a release that stopped half way can be run again.
set -euo pipefail
# To npm a path as in dist/a.tgz is a repository of GitHub.
package=$(realpath "$1")
name=$(tar xzOf "$package" package/package.json | node -p 'const p = JSON.parse(fs.readFileSync(0)); `${p.name}@${p.version}`')
if [ -n "$(npm view "$name" version 2>/dev/null)" ]; then
  echo "npm: $name is there already"
else
  # A pre-release is not what `npm install tidegate` takes.
  case ${name##*@} in *-*) tag=next ;; *) tag=latest ;; esac
  npm publish "$package" --provenance --access public --tag "$tag"
fi
