#!/bin/bash
# run.sh: builds the module for Debian's nginx, and lets wrk loose on four workers that share a
# folder: exactly as many requests are granted as the rule has. A wrong policy is refused.
set -euo pipefail
cd "$(dirname "$0")"
need() { command -v "$1" >/dev/null || ../../tests/need.sh "${@:2}"; }
need nginx nginx
need wrk wrk
need curl curl
[ -d /usr/share/nginx/src ] || ../../tests/need.sh nginx-dev
pkg-config --exists tidegate || { echo "pkg-config finds no tidegate: see docs/c.md"; exit 1; }
scratch=$(mktemp -d)
stop() { [ ! -f "$scratch/pid" ] || kill -QUIT "$(cat "$scratch/pid")" && sleep 0.2; rm -rf "$scratch"; }
trap stop EXIT

# nginx's own sources, as Debian built them; what is made goes into the scratch folder.
(
  cp -r /usr/share/nginx/src "$scratch/src" && cd "$scratch/src"
  bash -c ". ./conf_flags; ./configure \"\${NGX_CONF_FLAGS[@]}\" --builddir=$scratch/build \
    --add-dynamic-module=$OLDPWD"
  make -f "$scratch/build/Makefile" modules
) >"$scratch/build.log" 2>&1 || { tail -20 "$scratch/build.log"; exit 1; }

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
printf 'version: 1\nstore: file:limits\nrules: { messages: { limits: 3000/365d, capacity: 1000 } }\n' \
  >"$scratch/limits.yaml"
cat >"$scratch/nginx.conf" <<CONF
load_module $scratch/build/ngx_http_tidegate_module.so;
$([ "$(id -u)" != 0 ] || echo "user $(id -un) $(id -gn);")
worker_processes 4;
pid $scratch/pid;
error_log $scratch/error.log;
events { worker_connections 256; }
http {
  log_format short '\$pid \$status';
  access_log $scratch/access.log short;
  client_body_temp_path $scratch/body;
  proxy_temp_path $scratch/proxy;
  fastcgi_temp_path $scratch/fastcgi;
  uwsgi_temp_path $scratch/uwsgi;
  scgi_temp_path $scratch/scgi;
  tidegate_policy $scratch/limits.yaml;
  server {
    listen 127.0.0.1:$port reuseport;
    root $scratch/www;
    tidegate messages \$http_x_client;
    location / { }
  }
}
CONF
mkdir "$scratch/www" && echo yes >"$scratch/www/index.html"
nginx -c "$scratch/nginx.conf"

one=$(curl -s -i -H 'X-Client: bob' "http://127.0.0.1:$port/")
grep -q '200 OK' <<<"$one" && grep -q 'RateLimit: "3000/365d";r=2999' <<<"$one"
wrk -t2 -c64 -d3s -H 'X-Client: alice' "http://127.0.0.1:$port/" >"$scratch/wrk"
denied=$(curl -s -i -H 'X-Client: alice' "http://127.0.0.1:$port/")
grep -q '429 Too Many Requests' <<<"$denied" && grep -q '^Retry-After: ' <<<"$denied"

# What is wrong is refused before any worker has it, and the site goes on at a reload.
refused() { # configuration, what nginx says of it
  ! nginx -t -c "$1" 2>"$scratch/said" && grep -q "$2" "$scratch/said" ||
    { echo "nginx: not refused: $2"; cat "$scratch/said"; exit 1; }
}
sed '/tidegate_policy/d' "$scratch/nginx.conf" >"$scratch/no-policy.conf"
sed 's/tidegate messages/tidegate nobody/' "$scratch/nginx.conf" >"$scratch/no-rule.conf"
refused "$scratch/no-policy.conf" 'state a "tidegate_policy"'
refused "$scratch/no-rule.conf" 'tidegate: .*nobody'
sed -i s/3000/3o00/ "$scratch/limits.yaml"
refused "$scratch/nginx.conf" 'tidegate: .*3o00'
kill -HUP "$(cat "$scratch/pid")"
for _ in {1..50}; do grep -q 'tidegate: .*3o00' "$scratch/error.log" && break; sleep 0.1; done
grep -q 'tidegate: .*3o00' "$scratch/error.log"
sed -i s/3o00/3000/ "$scratch/limits.yaml"
[ "$(grep -c '\[emerg\]' "$scratch/error.log")" = "$(wc -l <"$scratch/error.log")" ]
: >"$scratch/error.log"
grep -q '200 OK' <<<"$(curl -s -i -H 'X-Client: carol' "http://127.0.0.1:$port/")"
kill -QUIT "$(cat "$scratch/pid")"
while [ -f "$scratch/pid" ]; do sleep 0.1; done

# Two of the grants were Bob's and Carol's; the log has each request, with the worker that answered it.
granted=$(grep -c ' 200$' "$scratch/access.log")
asked=$(wc -l <"$scratch/access.log")
workers=$(awk '$2 == 200 { print $1 }' "$scratch/access.log" | sort -u | wc -l)
[ ! -s "$scratch/error.log" ] || { cat "$scratch/error.log"; exit 1; }
[ "$granted" = 3002 ] && [ "$workers" = 4 ] || { echo "$granted by $workers"; cat "$scratch/wrk"; exit 1; }
echo "nginx: of $((asked - 3)) requests exactly $((granted - 2)) were granted, by $workers workers on one folder"
