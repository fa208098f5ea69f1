"""Other projects' operators, built from their modules: nothing of them is imitated. `sluice-local up --with …`."""

from collections.abc import Mapping, Sequence

from sluice_local.operators.kuberay import KubeRay
from sluice_local.operators.operator import Operator
from sluice_local.operators.spark import SparkController, SparkWebhook
from sluice_local.operators.training import TrainingOperator

#: The processes of each, in the order in which they start.
OPERATORS: Mapping[str, Sequence[type[Operator]]] = {
    "kuberay": [KubeRay],
    "spark-operator": [SparkController, SparkWebhook],
    "training-operator": [TrainingOperator],
}
