"""What changes of the members cost; tests/bench/moves runs it."""

import argparse
import collections
import concurrent.futures
import json
import os
import random
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from cluster import Cluster, wait_until  # noqa: E402
from moving import Load, add_node, change, holders, id_of, plan, wait_converged  # noqa: E402

LONG_SECONDS = 900.0
RATIO_MAX = 3.0  # of the p99 of clients while data moves over that before
SHARE_OFF_MAX = 0.05  # of the bytes that moved from those that were planned


def received(node):
    return (int(node.metric("gyre_move_keys_received_total")), int(node.metric("gyre_move_received_bytes_total")))


def import_keys(cluster, keys):
    lines = "".join(f'{{"key":"key-{key:09}","value":"{key:0>100}"}}\n' for key in range(keys))
    result = cluster.cli("-o", "json", "import", "-", stdin=lines.encode(), seconds=LONG_SECONDS)
    if result.code != 0 or json.loads(result.stdout) != {"imported": keys, "failed": 0}:
        raise AssertionError(f"import: {result}")


def wait_in_place(nodes, keys):
    """Until each of the keys is on exactly three nodes; what is not given to a node any more leaves it later. Seconds."""
    begun = time.monotonic()
    left = list(keys)

    def in_place():
        left[:] = [key for key in left if holders(nodes, key) != 3]
        return not left
    wait_until("each key is on exactly three nodes", in_place, LONG_SECONDS)
    return time.monotonic() - begun


def status(cluster):
    return json.loads(cluster.cli("-o", "json", "cluster", "status").stdout)


# --- rounds

class Client:
    """Calls at a fixed rate from a process of its own, whose latency counts from when they were to begin."""

    def __init__(self, cluster, options):
        self.cluster = cluster
        self.options = options
        self.run("put", seconds=5)

    def run(self, op, seconds, *flags):
        result = self.cluster.cli("-o", "json", "bench", "--op", op, "--keys", "20000", "--in-flight", "256", "--seconds",
                                  str(seconds), "--histogram", *flags, seconds=seconds + 60)
        if result.code != 0 or json.loads(result.stdout)["errors"]:
            raise AssertionError(f"bench: {result}")
        return {bucket["at_most_us"]: bucket["count"] for bucket in json.loads(result.stdout)["histogram"]}

    def latencies(self, seconds):
        """How many calls took at most so many microseconds."""
        return collections.Counter(self.run("mixed", seconds, "--rate", str(self.options.rate)))


def p99(latencies):
    """In milliseconds."""
    above = sum(latencies.values()) // 100
    for most, count in sorted(latencies.items(), reverse=True):
        above -= count
        if above < 0:
            return most / 1000
    raise AssertionError("no call was made")


def wait_dropped(nodes):
    """Until no node holds what it is given no more: else the next plan counts it."""
    wait_until("old copies are gone", lambda: not any(node.metric("gyre_move_dropping") for node in nodes), LONG_SECONDS)


def step(cluster, load, client, takers, *arguments):
    """One change under load: a row of the table, and the latencies of all calls while it lasts."""
    before = [received(node)[1] for node in takers]
    acked = len(load.acked)
    during = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        begun = time.monotonic()
        changing = beside.submit(change, cluster, *arguments)
        while not changing.done():
            during += client.latencies(1)
        made = changing.result()
        ended = time.monotonic()
    planned = sum(move["bytes"] for move in made["moves"])
    moved = sum(received(node)[1] for node in takers) - sum(before)
    return ended - begun, planned, moved, len(load.acked) - acked, during


def rounds(options):
    ratios, shares = [], []
    with Cluster(3) as cluster:
        import_keys(cluster, options.keys)
        members = list(cluster.nodes)
        client = Client(cluster, options)
        wait_converged(cluster, seconds=LONG_SECONDS)
        print(f"{options.keys} keys; p99 of {options.rate} calls a second, in ms")
        print("round  change  seconds  planned bytes  moved bytes  moved/planned  written  p99 before  during  ratio")
        with Load(members, pause=options.pause) as load:
            for round_ in range(1, options.rounds + 1):
                spares = [add_node(cluster), add_node(cluster)]
                steps = [("add", spare) for spare in spares] + [("remove", spare) for spare in spares]
                for what, spare in steps:
                    wait_dropped(cluster.nodes)
                    before = p99(client.latencies(options.quiet))
                    if what == "remove":
                        load.nodes.remove(spare)
                    takers = [spare] if what == "add" else [node for node in cluster.nodes if node is not spare]
                    seconds, planned, moved, written, calls = step(cluster, load, client, takers, f"--{what}", id_of(spare))
                    if what == "add":
                        load.nodes.append(spare)
                    during = p99(calls)
                    ratios.append(during / before)
                    shares.append(moved / planned)
                    print(f"{round_:5}  {what:6}  {seconds:7.2f}  {planned:13}  {moved:11}  {shares[-1]:13.3f}  {written:7}"
                          f"  {before:10.2f}  {during:6.2f}  {ratios[-1]:5.2f}", flush=True)
                for spare in spares:
                    spare.stop()
                    cluster.nodes.remove(spare)
        print(f"p99 while data moves over p99 before: median {statistics.median(ratios):.2f}, at most {max(ratios):.2f}")
        print(f"writes acknowledged {len(load.acked)}, refused {load.refused}, unknown {load.unknown};"
              f" reads {load.reads}, wrong or failed {len(load.wrong)}")
        wait_converged(cluster, seconds=LONG_SECONDS)
        for key in load.acked:
            load.check(members[0], key)
        sample = load.acked[::options.sample]
        seconds = wait_in_place(members, sample)
        print(f"at the end: {len(load.wrong)} keys wrong or not readable; {len(sample)} looked at on the disks are on"
              f" exactly 3 nodes, after {seconds:.1f} s")
        for line in load.wrong[:10]:
            print(line)
    short = [what for what, holds in (
        (f"a p99 of over {RATIO_MAX:g} times that before", max(ratios) <= RATIO_MAX),
        (f"bytes of over {SHARE_OFF_MAX:.0%} off the plan", all(abs(share - 1) <= SHARE_OFF_MAX for share in shares)),
        ("writes refused", load.refused == 0),
        ("reads wrong or failed", not load.wrong)) if not holds]
    if short:
        sys.exit("falls short: " + ", ".join(short))


# --- crashes

def crashes(options):
    chance = random.Random(options.seed)
    with Cluster(3) as cluster:
        import_keys(cluster, options.keys)
        givers = list(cluster.nodes)
        spare = add_node(cluster)
        wait_converged(cluster, nodes=givers, seconds=LONG_SECONDS)
        made, path = plan(cluster, "--add", id_of(spare))
        planned = sum(move["bytes"] for move in made["moves"])
        planned_keys = sum(move["keys"] for move in made["moves"])
        rate = planned // options.spread
        if cluster.cli("cluster", "moves", "rate", str(rate)).code != 0:
            raise AssertionError("the rate cannot be set")
        print(f"planned: {planned_keys} keys, {planned} bytes, at {rate} bytes/s", flush=True)
        result = cluster.cli("-o", "json", "cluster", "apply", path)
        if result.code != 0:
            raise AssertionError(f"apply: {result}")
        begun = time.monotonic()
        keys = octets = 0
        for kill in range(options.kills):
            # Spread over what is left of the movement, whatever the starts cost.
            time.sleep(chance.uniform(0.2, 1.8) * options.spread / (options.kills + 1) / 1.2)
            victim = spare if kill % 2 == 0 else chance.choice(givers)
            lived = received(spare)
            if victim is spare:
                keys, octets = keys + lived[0], octets + lived[1]
            done = (keys + (0 if victim is spare else lived[0])) / planned_keys
            victim.kill()
            victim.start()
            victim.wait_ready()
            print(f"kill {kill + 1:2} of {'taker' if victim is spare else 'giver'} at {time.monotonic() - begun:6.1f} s,"
                  f" {done:6.1%} fetched", flush=True)
            if options.abort and kill + 1 == options.kills // 2:
                result = cluster.cli("-o", "json", "cluster", "moves", "abort")
                if result.code != 0:
                    raise AssertionError(f"abort: {result}")
                print("abandoned", flush=True)
        cluster.cli("cluster", "moves", "rate", "1000000000")
        wait_until("one layout is left", lambda: status(cluster)["active_layouts"] == 1, LONG_SECONDS)
        lived = received(spare)
        keys, octets = keys + lived[0], octets + lived[1]
        wait_converged(cluster, seconds=LONG_SECONDS)
        print(f"ended after {time.monotonic() - begun:.1f} s, converged; the new node fetched {keys} keys, {octets} bytes")
        nodes = {node["id"]: node for node in status(cluster)["nodes"]}
        sample = [b"key-%09d" % number for number in range(0, options.keys, max(1, options.keys // 500))]
        if options.abort:
            seconds = wait_in_place(cluster.nodes, sample)
            print(f"after {seconds:.1f} s {len(sample)} keys that were looked at are on exactly 3 nodes,"
                  f" {sum(holders([spare], key) for key in sample)} of them on the node that was to be added")
        else:
            rows = nodes[id_of(spare)]["keys"]
            print(f"it holds {rows} keys: {keys / rows - 1:.2%} were fetched again", flush=True)
            seconds = wait_in_place(cluster.nodes, sample)
            print(f"{len(sample)} keys that were looked at are on exactly 3 nodes, after {seconds:.1f} s more")


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    of_rounds = commands.add_parser("rounds")
    of_rounds.add_argument("--rounds", type=int, default=20)
    of_rounds.add_argument("--keys", type=int, default=150_000)
    of_rounds.add_argument("--pause", type=float, default=0.05, help="seconds between two calls of a thread of the load")
    of_rounds.add_argument("--rate", type=int, default=400, help="calls a second of the client whose latency is measured")
    of_rounds.add_argument("--quiet", type=int, default=4, help="seconds of them before each change, to compare with")
    of_rounds.add_argument("--sample", type=int, default=50, help="one of so many written keys is looked for on the disks")
    of_crashes = commands.add_parser("crashes")
    of_crashes.add_argument("--keys", type=int, default=1_000_000)
    of_crashes.add_argument("--kills", type=int, default=20)
    of_crashes.add_argument("--spread", type=int, default=60, help="seconds that the movement would take without kills")
    of_crashes.add_argument("--seed", type=int, default=1)
    of_crashes.add_argument("--abort", action="store_true", help="after half of the kills, go back")
    options = parser.parse_args()
    {"rounds": rounds, "crashes": crashes}[options.command](options)


if __name__ == "__main__":
    main()
