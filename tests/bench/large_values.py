"""What small reads notice of large values; tests/bench/large_values runs it.

Reads are begun at a fixed rate, and their latency counts from when they were to begin: so whatever they wait behind shows.
Clients of large values make one call after the other, and do not wait for anybody.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from cluster import DIE_WITH_PARENT, ENVIRONMENT, GYRE, Cluster  # noqa: E402

SMALL_KEYS = 100_000
SMALL_BYTES = 64
LARGE_KEYS = 100
LARGE_BYTES = 1 << 20
RATIO_MAX = 5.0  # of the p99 beside large values over that alone
LEAD_SECONDS = 2  # so much earlier a stream of large values begins, and so much later it ends


def command(cluster, op, **flags):
    words = [word for name, value in flags.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return [GYRE, "--endpoints", cluster.endpoints(), "-o", "json", "bench", "--op", op, *words]


def finish(process, seconds):
    stdout, stderr = process.communicate(timeout=seconds)
    if process.returncode != 0:
        raise AssertionError(f"gyre bench: exit {process.returncode}, {stderr.decode()}")
    run = json.loads(stdout)
    if run["errors"]:
        raise AssertionError(f"calls failed: {run['errors']}")
    return run


def begin(arguments):
    return subprocess.Popen([*DIE_WITH_PARENT, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=ENVIRONMENT)


def run(arguments, seconds):
    return finish(begin(arguments), seconds + 120)


def small(cluster, options):
    """Latencies of small reads, from now on."""
    flags = {"keys": SMALL_KEYS, "value_bytes": SMALL_BYTES, "in_flight": 256, "seconds": options.seconds, "rate": options.rate}
    return run(command(cluster, "get", **flags), options.seconds)["latency_us"]


def show(what, late, beside=""):
    print(f"{what:12}  {late['p50']:8}  {late['p99']:8}  {late['p999']:8}  {late['max']:8}  {beside}", flush=True)
    return late["p99"]


def beside_large(cluster, options):
    flags = {"keys": LARGE_KEYS, "value_bytes": LARGE_BYTES, "in_flight": options.streams,
             "seconds": options.seconds + 2 * LEAD_SECONDS}
    if options.large_rate > 0:
        flags["rate"] = options.large_rate
    stream = begin(command(cluster, "mixed", **flags) + ["--keyspace", "large"])
    try:
        try:
            stream.wait(LEAD_SECONDS)
            raise AssertionError("the stream of large values ended at once")
        except subprocess.TimeoutExpired:
            pass
        late = small(cluster, options)
        large = finish(stream, options.seconds + 120)
    finally:
        stream.kill()
    return show("beside them", late, f"{large['ops_per_second']:.0f} calls a second, their p99 {large['latency_us']['p99']} us")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=int, default=1000, help="small reads a second")
    parser.add_argument("--streams", type=int, default=1, help="clients of large values, each with one call at a time")
    parser.add_argument("--large-rate", type=float, default=0, help="large calls a second; 0: as many as there can be")
    parser.add_argument("--seconds", type=int, default=10, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with Cluster(3) as cluster:
        cluster.create_keyspace("large", n=3)
        fill = {"seconds": 0.01, "in_flight": 64}
        run(command(cluster, "get", keys=SMALL_KEYS, value_bytes=SMALL_BYTES, **fill) + ["--load"], 60)
        fill["in_flight"] = 1
        run(command(cluster, "get", keys=LARGE_KEYS, value_bytes=LARGE_BYTES, **fill) + ["--load", "--keyspace", "large"], 60)
        print(f"3 nodes, N=3, R=W=2; {options.rate} reads of {SMALL_BYTES} bytes a second; {options.streams} streams of "
              f"{LARGE_BYTES}-byte puts and gets")
        print("small reads     p50 us    p99 us  p99.9 us    max us  large values", flush=True)
        alone, beside = [], []
        for _ in range(options.rounds):
            alone.append(show("alone", small(cluster, options)))
            beside.append(beside_large(cluster, options))
    ratio = statistics.median(beside) / statistics.median(alone)
    print(f"p99 of small reads: {statistics.median(alone)} us alone, {statistics.median(beside)} us beside large values: {ratio:.2f} times")
    if ratio > RATIO_MAX:
        sys.exit(f"the p99 beside large values is over {RATIO_MAX:g} times that alone")


if __name__ == "__main__":
    main()
