"""What anti-entropy moves for a replica that missed writes; tests/bench/repair runs it.

The nodes hold no hints, so that comparing replicas is all that can bring a node what was written while it was stopped.
All is counted from its start on: a node compares by itself when it comes up, and does not wait for the command.
"""

import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from cluster import Cluster, wait_until  # noqa: E402

COUNTED = ("records_compared", "records_sent", "sent_bytes", "hash_sent_bytes")
LONG_SECONDS = 600.0


def cli_json(cluster, *arguments, **how):
    result = cluster.cli("-o", "json", *arguments, **how)
    if result.code != 0:
        raise AssertionError(f"gyre {' '.join(arguments)}: {result}")
    return json.loads(result.stdout)


def write(cluster, keys, value, nodes=None):
    """Puts a value of 100 bytes that ends in `value` under each key."""
    lines = "".join(f'{{"key":"key-{key:09}","value":"{value:0>100}"}}\n' for key in keys)
    done = cli_json(cluster, "import", "-", stdin=lines.encode(), seconds=LONG_SECONDS, nodes=nodes)
    if done != {"imported": len(keys), "failed": 0}:
        raise AssertionError(f"import: {done}")


def wait_converged(cluster):
    wait_until("the cluster is converged", lambda: cli_json(cluster, "cluster", "status")["converged"], LONG_SECONDS)


def counters(nodes):
    return {name: sum(int(node.metric(f"gyre_repair_{name}_total")) for node in nodes) for name in COUNTED}


def measure(cluster, behind, keys, value):
    """One row of the table: `behind` misses the writes of these keys and gets them."""
    others = [node for node in cluster.nodes if node is not behind]
    behind.stop()
    write(cluster, keys, value, nodes=others)
    before = counters(others)
    behind.start()
    behind.wait_ready()
    cluster.wait_connected()
    begun = time.monotonic()
    cli_json(cluster, "--timeout", "60s", "cluster", "repair", "--wait", seconds=LONG_SECONDS)
    seconds = time.monotonic() - begun
    wait_converged(cluster)
    after = counters(cluster.nodes)
    again = cli_json(cluster, "cluster", "repair", "--wait", seconds=LONG_SECONDS)
    if again["records_sent"] != 0:
        raise AssertionError(f"what was made equal was sent again: {again}")
    return {name: after[name] - before[name] for name in COUNTED}, seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--differences", default="0 1 100 10000")
    options = parser.parse_args()
    with Cluster(3, {"limits": {"hint_bytes": 0}}) as cluster:
        write(cluster, range(options.keys), "first")
        wait_converged(cluster)
        cluster.nodes.sort(key=lambda node: node.topology().answered_by)
        print(f"{options.keys} keys of 100 bytes on each of 3 replicas; one of them missed writes")
        print("missed  replica  records compared  records sent  bytes sent  hash bytes  seconds", flush=True)
        for number in map(int, options.differences.split()):
            keys = range(0, options.keys, options.keys // number)[:number] if number else []
            # Each pair is compared by its lower id: a replica asks, is asked, or both.
            for place, behind in enumerate(cluster.nodes, start=1):
                moved, seconds = measure(cluster, behind, keys, f"{number}-{place}")
                print(f"{number:6}  {place:7}  {moved['records_compared']:16}  {moved['records_sent']:12}"
                      f"  {moved['sent_bytes']:10}  {moved['hash_sent_bytes']:10}  {seconds:7.2f}", flush=True)


if __name__ == "__main__":
    main()
