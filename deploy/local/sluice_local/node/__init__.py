"""A real node beside the simulated ones: a kubelet of our own build, Debian's containerd and runc, root and Linux.

Its processes live in a mount namespace of their own, so its mounts are nobody else's and end with it. Outside of
that it has a bridge, four rules of iptables and a cgroup in each hierarchy, all of one name, which is the stack's.
"""
