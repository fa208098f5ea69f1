"""Spark from its distribution for Python, with this machine's Java: for drivers and executors in pods."""

import tarfile
from pathlib import Path

from sluice_local import tools
from sluice_local.images import archive, python
from sluice_local.images.linked import add_linked, add_programs
from sluice_local.images.wheels import RECIPES, Wheels

SPARK = Wheels("pyspark", RECIPES / "spark.lock", takes="1–2 minutes")
_ENTRYPOINT = RECIPES / "spark-entrypoint"
# Where the image has it: the package, beside the other one that it needs.
_PACKAGES = "opt/spark-python"
_HOME = f"/{_PACKAGES}/pyspark"
_JAVA = "opt/java"
_USER_ID = 185  # as in Spark's own image
# What Spark's scripts and Spark itself run.
_PROGRAMS = ("bash", "env", "rm")
# Of a Java for developers.
_LEFT_OUT = {"jmods", "include", "man", "demo", "legal", "docs"}


def _fill(layer: tarfile.TarFile) -> None:
    python.add_python(layer, "spark", _USER_ID)
    for package in ("pyspark", "py4j"):
        layer.add(SPARK.packages / package, f"{_PACKAGES}/{package}", filter=archive.owned_by_root)
    add_programs(layer, _PROGRAMS)
    archive.add_link(layer, "opt/spark", Path(_HOME))
    archive.add_file(layer, "opt/entrypoint", _ENTRYPOINT)
    home = tools.JAVA.find().resolve().parent.parent
    files = [file for file in sorted(home.rglob("*")) if file.is_file() and not _LEFT_OUT & set(file.parts)]
    for file in files:
        archive.add_file(layer, f"{_JAVA}/{file.relative_to(home)}", file)
    add_linked(layer, [home / "bin" / "java", *(file for file in files if file.suffix == ".so")])


SPARK_IMAGE = archive.Image(
    "spark",
    _fill,
    {
        "Env": [
            *python.ENVIRONMENT,
            f"SPARK_HOME={_HOME}",
            f"JAVA_HOME=/{_JAVA}",
            f"PYTHONPATH=/{_PACKAGES}",
        ],
        "Entrypoint": ["/opt/entrypoint"],
        "WorkingDir": "/tmp",
        "User": str(_USER_ID),
    },
    sources=lambda: [SPARK.lock, _ENTRYPOINT, tools.JAVA.find()],
    needs=[SPARK],
)
