"""Sluice's embedded stack: a real Kafka, Redis and Kubernetes control plane, without containers."""

from sluice_local.oldest_python import OLDEST_PYTHON as OLDEST_PYTHON  # isort: skip (before all that needs it)
from sluice_local.errors import StackError
from sluice_local.stack import Endpoints, Stack, Status, forget_given_endpoints

__all__ = ["Endpoints", "Stack", "StackError", "Status", "forget_given_endpoints"]
