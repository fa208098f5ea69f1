"""What `sluice --help` says of the command that comes with this package (entry point `sluice.commands`)."""

LOCAL = "the embedded stack: a real Kafka, Redis and Kubernetes control plane on this machine"
