"""What the Merkle sums cost puts; tests/bench/tree runs it."""

import argparse
import collections
import contextlib
import json
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import cluster as clusters  # noqa: E402


def start(stack, program):
    clusters.GYRED = program
    return stack.enter_context(clusters.Cluster(3))


def processor_seconds(cluster):
    """What the nodes have used of the machine's processors so far."""
    ticks = 0
    for node in cluster.nodes:
        with open(f"/proc/{node.process.pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def puts(cluster, in_flight, seconds):
    """(puts a second, microseconds of a processor that all nodes together took for one)"""
    before = processor_seconds(cluster)
    result = cluster.cli("-o", "json", "bench", "--op", "put", "--in-flight", str(in_flight), "--seconds", str(seconds),
                         seconds=seconds + 60)
    if result.code != 0:
        raise AssertionError(f"gyre bench: {result}")
    run = json.loads(result.stdout)
    return run["ops_per_second"], 1e6 * (processor_seconds(cluster) - before) / run["operations"]


def report(what, with_tree, without):
    """With and without are (rate, processor time) of rounds; each round's two were measured one after the other."""
    def median(of, place):
        return statistics.median(run[place] for run in of)

    ratios = [a[0] / b[0] for a, b in zip(with_tree, without)]
    print(f"{what:20} {median(with_tree, 0):9.0f} {median(without, 0):9.0f}   {statistics.median(ratios):5.3f}"
          f" ({min(ratios):.2f}-{max(ratios):.2f})   {median(with_tree, 1):8.2f} {median(without, 1):8.2f}", flush=True)


def clusters_in_turn(options):
    with contextlib.ExitStack() as stack:
        both = [start(stack, os.environ[name]) for name in ("GYRED", "GYRED_WITHOUT_TREE")]
        for cluster in both:
            puts(cluster, 256, options.seconds)  # the keys are there, from here on they are replaced
        for in_flight in options.in_flight.split():
            runs = ([], [])
            for number in range(options.rounds):
                for which in (0, 1) if number % 2 == 0 else (1, 0):
                    runs[which].append(puts(both[which], in_flight, options.seconds))
            report(f"puts, {in_flight} in flight", *runs)


def stores_in_turn(options):
    with tempfile.TemporaryDirectory(prefix="gyre-bench-") as directory:
        result = clusters.run([os.environ["STORE_LOAD"], directory, str(4 * options.rounds), "200"], seconds=600)
    if result.code != 0:
        raise AssertionError(f"store_load: {result}")
    runs = collections.defaultdict(lambda: ([], []))
    for line in result.stdout.splitlines():
        run = json.loads(line)
        for which, name in enumerate(("with", "without")):
            runs[run["batch"]][which].append((1e6 / run[name + "_us"], run[name + "_cpu_us"]))
    for batch, both in runs.items():
        report(f"rows, {batch} a batch", *both)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--in-flight", default="64 256")
    options = parser.parse_args()
    print("a second                  with   without   ratio (spread)    cpu us: with  without")
    stores_in_turn(options)
    clusters_in_turn(options)
    print("all synced; values of 100 bytes; puts replace 100,000 keys on 3 nodes with N=3, W=2")


if __name__ == "__main__":
    main()
