#!/bin/bash
# A Docker engine, and the base images that our Dockerfiles start from, for a Debian 12 machine that has neither and
# reaches no registry of images. Where an engine answers, it is used as it is; where an image is there or can be
# pulled, it is not made.
#
#   docker-engine.sh up             start what is missing; needs root, and minutes the first time
#   docker-engine.sh down           end the engine that `up` started
#   docker-engine.sh run COMMAND …  up, the command, and down again if it was this that started the engine
set -euo pipefail

state=${XDG_STATE_HOME:-$HOME/.local/state}/sluice/docker
pidfile=$state/dockerd.pid

say() { echo "docker-engine: $*" >&2; }
answers() { docker version >/dev/null 2>&1; }

up() {
  if ! answers; then
    [ "$(id -u)" = 0 ] || { say "no engine answers, and only root can start one"; exit 1; }
    mkdir -p "$state"
    install_packages
    answers || start
  fi
  docker image inspect debian:bookworm-slim >/dev/null 2>&1 || pull debian:bookworm-slim || make_debian
  docker image inspect python:3.11-slim >/dev/null 2>&1 || pull python:3.11-slim || make_python
}

install_packages() {
  command -v dockerd >/dev/null && command -v docker-compose >/dev/null && command -v debootstrap >/dev/null && return
  say "installing Debian's engine and compose (log: $state/apt.log)"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -q && apt-get install -q -y --no-install-recommends \
    docker.io docker-compose containerd runc iptables kmod debootstrap ca-certificates; } >"$state/apt.log" 2>&1
}

start() {
  say "starting dockerd (log: $state/dockerd.log)"
  setsid dockerd --pidfile "$pidfile" >>"$state/dockerd.log" 2>&1 </dev/null &
  for _ in $(seq 240); do
    answers && return
    sleep .25
  done
  tail -5 "$state/dockerd.log" >&2
  exit 1
}

down() {
  local pid
  pid=$(cat "$pidfile" 2>/dev/null) && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ] || return 0
  kill "$pid"
  while [ -d "/proc/$pid" ]; do sleep .1; done
  say "dockerd has ended"
}

pull() { timeout 30 docker pull --quiet "$1" >/dev/null 2>&1; }

# As little of Debian as the official slim image has, from wherever this machine gets its packages.
make_debian() {
  say "making debian:bookworm-slim"
  local root sources=/etc/apt/sources.list.d/debian.sources mirror
  mirror=$(awk '/^URIs:/ {print $2; exit}' $sources)
  root=$(mktemp -d "$state/root.XXXX")
  debootstrap --variant=minbase --include=ca-certificates,netbase,tzdata bookworm "$root" "$mirror" \
    >"$state/debootstrap.log" 2>&1
  # This machine's way to its packages and the authorities it trusts, for what Dockerfiles install and download.
  cp $sources "$root/etc/apt/sources.list.d/" && : >"$root/etc/apt/sources.list"
  cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
  chroot "$root" update-ca-certificates >/dev/null 2>&1
  rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  # The folders stay: Java's package wants to write into one of them.
  find "$root"/usr/share/{doc,man,locale} ! -type d -delete
  echo 'APT::Install-Recommends "0"; Acquire::Languages "none";' >"$root/etc/apt/apt.conf.d/slim"
  tar -C "$root" --numeric-owner --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' -c . |
    docker import \
      -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
      -c 'ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt' \
      -c 'CMD ["bash"]' - debian:bookworm-slim >/dev/null
  rm -rf "$root"
}

# Debian's Python under the official image's names, which `pip` may install into.
make_python() {
  say "making python:3.11-slim"
  DOCKER_BUILDKIT=0 docker build --quiet --tag python:3.11-slim - >/dev/null 2>"$state/python.log" <<'DOCKERFILE'
FROM debian:bookworm-slim
ENV LANG=C.UTF-8 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN apt-get update -qq && apt-get install -y -qq python3 python3-pip python3-venv && rm -rf /var/lib/apt/lists/* && \
    rm /usr/lib/python3.11/EXTERNALLY-MANAGED && \
    ln -s /usr/bin/python3.11 /usr/local/bin/python && ln -s /usr/bin/python3.11 /usr/local/bin/python3
CMD ["python3"]
DOCKERFILE
}

run() {
  answers || trap down EXIT
  up
  "$@"
}

case ${1:-} in
  up | down) "$1" ;;
  run) shift && run "$@" ;;
  *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
