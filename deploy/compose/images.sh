#!/bin/bash
# Builds every image of docker-compose.yml with the compose command given as arguments. What `sluice-local build` has
# made on this machine (programs that take minutes to compile, and jars) is not made again: it goes into a seed image
# that the builds start from.
set -euo pipefail
cd "$(dirname "$0")/../.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/sluice/local
built=$(cd "$cache" 2>/dev/null && ls -d {etcd,kubernetes,kwok,kafka}-*/* 2>/dev/null | grep -v '\.jsa$' || true)
if [ -n "$built" ]; then
  label=$(md5sum <<<"$built" | cut -c1-32)
  if [ "$(docker image inspect -f '{{.Config.Labels.built}}' sluice-seed 2>/dev/null)" != "$label" ]; then
    echo "taking along what is built already: ${built//$'\n'/ }"
    tar -C "$cache" -c $built | docker import - sluice-built >/dev/null
    docker build --quiet --tag sluice-seed - >/dev/null 2>&1 <<DOCKERFILE
FROM sluice-built AS built
FROM python:3.11-slim
COPY --from=built / /var/cache/sluice/local/
LABEL built=$label
DOCKERFILE
  fi
  export SLUICE_SEED=sluice-seed
fi
exec "$@" --profile console build
