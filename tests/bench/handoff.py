"""What clients notice of hints that are replayed; tests/bench/handoff runs it.

Calls are begun at a fixed rate, and their latency counts from when they were to begin: so a node that falls behind shows.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from cluster import Cluster, wait_until  # noqa: E402

KEYS = 100_000  # that clients read and write
LONG_SECONDS = 600.0
RATIO_MAX = 3.0  # of the p99 while hints are replayed over that before


def cli_json(cluster, *arguments, **how):
    result = cluster.cli("-o", "json", *arguments, **how)
    if result.code != 0:
        raise AssertionError(f"gyre {' '.join(arguments)}: {result}")
    return json.loads(result.stdout)


def bench(cluster, op, options, **more):
    flags = {"keys": KEYS, "seconds": options.seconds, "in-flight": 256, **more}
    arguments = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    run = cli_json(cluster, "bench", "--op", op, *arguments, seconds=options.seconds + 60)
    if run["errors"]:
        raise AssertionError(f"calls failed: {run['errors']}")
    return run


def hints(nodes):
    return sum(int(node.metric("gyre_hints_held")) for node in nodes)


def measure(cluster, options, what):
    held = hints(cluster.nodes)
    run = bench(cluster, "mixed", options, rate=options.rate)
    late = run["latency_us"]
    print(f"{what:14}  {held:7}  {hints(cluster.nodes):7}  {run['ops_per_second']:9.0f}  {late['p50']:8}  {late['p99']:8}"
          f"  {late['p999']:8}", flush=True)
    return late["p99"]


def make_hints(cluster, options):
    """One node misses so many writes, of which the two others hold a hint each."""
    away = cluster.nodes[2]
    away.stop()
    lines = "".join(f'{{"key":"missed-{key:09}","value":"{"v" * 100}"}}\n' for key in range(options.hints))
    done = cli_json(cluster, "import", "-", stdin=lines.encode(), seconds=LONG_SECONDS, nodes=cluster.nodes[:2])
    if done != {"imported": options.hints, "failed": 0}:
        raise AssertionError(f"import: {done}")
    wait_until("the hints are there", lambda: hints(cluster.nodes[:2]) >= options.hints, LONG_SECONDS)
    away.start()
    away.wait_ready()
    cluster.wait_connected()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hints", type=int, default=200_000)
    parser.add_argument("--rate", type=int, default=2000, help="calls a second, half reads and half writes")
    parser.add_argument("--seconds", type=int, default=5, help="of each measurement")
    options = parser.parse_args()
    with Cluster(3, {"limits": {"hint_bytes": 1 << 30}}) as cluster:
        bench(cluster, "put", options)
        print(f"3 nodes, N=3, R=W=2, {options.rate} calls a second; {options.hints} hints for one of them")
        print("while           hints at  and end  calls/s    p50 us    p99 us    p99.9 us", flush=True)
        before = max(measure(cluster, options, "all is calm") for _ in range(3))
        make_hints(cluster, options)
        during = []
        while hints(cluster.nodes) > 0:
            during.append(measure(cluster, options, "replay"))
        after = measure(cluster, options, "all is calm")
    if not during:
        raise AssertionError("the hints were gone before anything could be measured: raise --hints")
    ratio = max(during) / before
    print(f"p99: {before} us before, at most {max(during)} us during the replay ({ratio:.2f} times), {after} us after")
    if ratio > RATIO_MAX:
        sys.exit(f"the p99 during the replay is over {RATIO_MAX:g} times that before")


if __name__ == "__main__":
    main()
