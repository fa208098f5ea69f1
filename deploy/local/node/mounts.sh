#!/bin/sh
# The machine as a real node sees it: run in a mount namespace of its own, which lasts as long as this process.
# What containerd and kubelet write to places that nobody can change is kept in the stack's folder, the argument.
# Without -n, `mount` would make a folder in the machine's /run.
set -e
folder=$1
# Containers get mounts that kubelet makes later; the machine has none of them, for the namespace is private.
mount -n --make-rshared /
mount -n --bind "$folder/run" /run
mount -n --bind "$folder/var-log" /var/log
mount -n --bind "$folder/var-lib" /var/lib
# Kubelet wants these settings of the kernel, for the whole machine. It finds them so, and leaves the machine's alone.
while read -r setting value; do
  file=/proc/sys/$setting
  [ "$(cat "$file")" = "$value" ] && continue
  wanted=/run/$(echo "$setting" | tr / -)
  echo "$value" >"$wanted"
  mount -n --bind "$wanted" "$file"
done <<SETTINGS
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
SETTINGS
touch /run/mounted
exec sleep infinity
