"""What a backup and its restore cost, and that all keys are equal afterwards; tests/bench/backup runs it.

Each is killed in the middle first, and the same command run again. Then every key of both clusters is compared.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from cluster import DIE_WITH_PARENT, ENVIRONMENT, GYRE, Cluster, kv_pb2, wait_until  # noqa: E402

LONG_SECONDS = 3600.0


def cli_json(cluster, *arguments, **how):
    begun = time.monotonic()
    result = cluster.cli("-o", "json", *arguments, seconds=LONG_SECONDS, **how)
    if result.code != 0:
        raise AssertionError(f"gyre {' '.join(arguments)}: {result}")
    return json.loads(result.stdout), time.monotonic() - begun


def kill_when(cluster, begun, *arguments):
    """Runs a command until `begun()`, and kills it then; how long it ran."""
    since = time.monotonic()
    process = subprocess.Popen([*DIE_WITH_PARENT, GYRE, "--endpoints", cluster.endpoints(), *arguments],
                               stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    wait_until(f"{arguments} is in the middle", lambda: begun() or process.poll() is not None, LONG_SECONDS)
    if process.poll() is not None:
        raise AssertionError(f"{arguments} ended with {process.returncode} before it could be killed")
    process.kill()
    process.wait(10)
    return time.monotonic() - since


def chunks(directory):
    return sum(len(names) for _, _, names in os.walk(os.path.join(directory, "chunks")))


def written(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.loads(file.readline())["written"]
    except FileNotFoundError:
        return 0


def pages(node):
    """The rows of the default keyspace, in order, a page at a time."""
    cursor = b""
    while True:
        page = node.kv.Scan(kv_pb2.ScanRequest(cursor=cursor, limit=1000), timeout=60)
        yield from ((row.key, sorted(value.value for value in row.values)) for row in page.rows)
        if not page.next_cursor:
            return
        cursor = page.next_cursor


def compare(source, target):
    keys = 0
    others = pages(target.nodes[0])
    for row in pages(source.nodes[0]):
        other = next(others, None)
        if row != other:
            raise AssertionError(f"{row} became {other}")
        keys += 1
    if next(others, None) is not None:
        raise AssertionError("there are more keys than before")
    return keys


def line(what, seconds, keys, more=""):
    print(f"{what:40}  {seconds:8.1f}  {keys / seconds if keys else 0:10.0f}  {more}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, default=1_000_000)
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="gyre-backup-bench-")
    where = os.path.join(directory, "backup")
    try:
        with Cluster(3) as source:
            lines = "".join(f'{{"key":"key-{i:09}","value":"{i:0>100}"}}\n' for i in range(options.keys))
            done, _ = cli_json(source, "import", "-", stdin=lines.encode())
            if done != {"imported": options.keys, "failed": 0}:
                raise AssertionError(f"import: {done}")
            wait_until("the cluster is converged", lambda: cli_json(source, "cluster", "status")[0]["converged"],
                       LONG_SECONDS)
            print(f"{options.keys} keys of 100 bytes on each of 3 replicas, restored into 5 nodes")
            print(f"{'':40}  {'seconds':>8}  {'keys/s':>10}", flush=True)
            line("backup, killed in the middle", kill_when(source, lambda: chunks(where) > 2000, "cluster", "backup",
                                                           where), 0, f"{chunks(where)} files there")
            taken, seconds = cli_json(source, "cluster", "backup", where)
            line("backup, gone on with", seconds, options.keys, taken)
            if taken["keys"] != options.keys or taken["reused"] < 2000:
                raise AssertionError(taken)
            again, seconds = cli_json(source, "cluster", "backup", where)
            line("backup, again", seconds, options.keys, again)
            whole, seconds = cli_json(source, "cluster", "backup", where + "-whole")
            line("backup, in one go", seconds, options.keys, whole)
            with Cluster(5) as target:
                place = os.path.join(where, "restore-%016x.json" % target.nodes[0].topology().cluster_id)
                seconds = kill_when(target, lambda: written(place) > options.keys / 3, "cluster", "restore", where)
                line("restore, killed in the middle", seconds, written(place), f"{written(place)} keys there")
                restored, seconds = cli_json(target, "cluster", "restore", where)
                line("restore, gone on with", seconds, 0, restored)
                if restored["written"] != options.keys or not restored["resumed"]:
                    raise AssertionError(restored)
                print(f"{compare(source, target)} keys compared: all equal", flush=True)
            with Cluster(5) as target:
                restored, seconds = cli_json(target, "cluster", "restore", where)
                line("restore, in one go", seconds, options.keys, restored)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
