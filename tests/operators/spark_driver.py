"""What a test's Spark driver runs: it asks for as many executors as it is told to on its standard input.

Runs with the Python of the Spark distribution; arguments are settings, `key=value`.
"""

import sys
import threading

from pyspark import SparkConf, SparkContext


def ask(context: SparkContext, tasks: int) -> None:
    """As many tasks as there are to run, until they are withdrawn. No executor ever comes to run one."""
    context.setJobGroup("asked", "tasks that wait", interruptOnCancel=True)
    try:
        context.parallelize(range(tasks), tasks).map(lambda number: number).count()
    except Exception as error:
        print(f"withdrawn: {type(error).__name__}", flush=True)


def main() -> None:
    settings = [tuple(argument.split("=", 1)) for argument in sys.argv[1:]]
    context = SparkContext(conf=SparkConf().setAll(settings))
    print("it listens", flush=True)
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        if word == "end":
            break
        context.cancelAllJobs()
        if int(number):
            threading.Thread(target=ask, args=(context, int(number)), daemon=True).start()
    context.cancelAllJobs()
    context.stop()
    print("it has ended", flush=True)


if __name__ == "__main__":
    main()
