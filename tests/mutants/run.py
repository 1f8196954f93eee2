"""Plants bugs and looks which test finds them; tests/mutants/run runs it."""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORLD = os.path.join(ROOT, "build-mutants")  # a copy of the tree, and a build of it
SOURCE = os.path.join(WORLD, "source")
BUILD = os.path.join(WORLD, "build")

# What links neither gRPC nor RocksDB, the quickest first; at last the simulator.
UNIT_FOLDERS = ["storage/causal", "storage/format", "ring", "server/core"]
MORE_TESTS = ["merkle_test", "memory_engine_test", "store_test", "sums_codec_test"]
NOT_THESE = ["membership_sim_test"]  # plays seeds, too
SEEDS = "1:200"
TEST_SECONDS = 300  # a test that hangs has found the bug, too
SIM_SECONDS = 900


def patches(names):
    found = sorted(name[:-len(".patch")] for name in os.listdir(HERE) if name.endswith(".patch"))
    for name in names:
        if name not in found:
            sys.exit(f"tests/mutants has no {name}.patch")
    return names or found


def patch(directory, name, *flags):
    with open(os.path.join(HERE, name + ".patch"), encoding="utf-8") as text:
        return subprocess.run(["patch", "-p1", "--batch", "--fuzz=0", *flags], cwd=directory, stdin=text, text=True,
                              capture_output=True, check=False)


def check(names):
    unfit = []
    for name in names:
        result = patch(ROOT, name, "--dry-run")
        if result.returncode != 0:
            unfit.append(name)
            print(f"{name}.patch does not fit the tree any more: {result.stdout.strip()}")
    if unfit:
        sys.exit(1)
    print(f"{len(names)} patches fit")


def copy_tree():
    files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT, check=True,
                           capture_output=True).stdout.decode().split("\0")
    for file in filter(None, files):
        of, to = os.path.join(ROOT, file), os.path.join(SOURCE, file)
        if not os.path.exists(of):
            continue
        with open(of, "rb") as content:
            wanted = content.read()
        if os.path.exists(to):
            with open(to, "rb") as content:
                if content.read() == wanted:
                    continue  # its time stays, and what was built of it
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(of, to)


def build(targets):
    return subprocess.run(["ninja", "-C", BUILD, *targets], capture_output=True, text=True, check=False)


def tests_of(folder):
    names = sorted(name[:-len(".cc")] for name in os.listdir(os.path.join(SOURCE, "tests", folder)) if name.endswith("_test.cc"))
    return [name for name in names if name not in NOT_THESE]


def program_of(name):
    for folder in ("tests", "tests/cases", "tests/sim"):
        path = os.path.join(BUILD, folder, name)
        if os.path.exists(path):
            return path
    raise FileNotFoundError(name)


def fails(command, seconds):
    """What failed, or None: the first test of it by name, if it says so."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, errors="replace")
    except subprocess.TimeoutExpired:
        return "hangs"
    if result.returncode == 0:
        return None
    failed = re.search(r"^\[  FAILED  \] ([\w./]+)", result.stdout, re.MULTILINE)
    if failed:
        return failed.group(1)
    running = re.findall(r"^\[ RUN      \] ([\w./]+)", result.stdout, re.MULTILINE)
    if running:
        return running[-1]  # an assert ended it
    return "seed " + seed.group(1) if (seed := re.search(r"seed (\d+)", result.stdout + result.stderr)) else "fails"


def stages():
    units = [name for folder in UNIT_FOLDERS for name in tests_of(folder)] + MORE_TESTS
    cases = [name for name in tests_of("cases") if name != "case_table_test"]
    return [("unit", units, [([], name, TEST_SECONDS) for name in units]),
            ("case", cases, [([], name, TEST_SECONDS) for name in cases]),
            ("simulator", ["gyre_sim"], [(["--seeds", SEEDS], "gyre_sim", SIM_SECONDS)])]


def hunt():
    """Which stage and test find what is planted now."""
    for stage, targets, runs in stages():
        built = build(targets)
        if built.returncode != 0:
            return None, "does not build: " + "\n".join(built.stdout.splitlines()[-15:])
        for flags, name, seconds in runs:
            failed = fails([program_of(name), *flags], seconds)
            if failed:
                return stage, f"{name}: {failed}"
    return None, "not found"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    names = patches(options.names)
    if options.check:
        return check(names)
    copy_tree()
    subprocess.run(["cmake", "-S", SOURCE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"], check=True,
                   stdout=subprocess.DEVNULL)
    stage, by = hunt()
    if stage or by != "not found":
        sys.exit(f"the tree without any of the bugs fails: {by}")
    seconds, missed = [], []
    print(f"{'bug':32}  {'seconds':>7}  {'found by':9}  test", flush=True)
    for name in names:
        applied = patch(SOURCE, name)
        if applied.returncode != 0:
            sys.exit(f"{name}.patch does not fit: {applied.stdout}")
        begun = time.monotonic()
        try:
            stage, by = hunt()
        finally:
            patch(SOURCE, name, "--reverse")
        took = time.monotonic() - begun
        if stage:
            seconds.append(took)
        else:
            missed.append(name)
        print(f"{name:32}  {took:7.1f}  {stage or '-':9}  {by}", flush=True)
    if seconds:
        print(f"{len(seconds)} of {len(names)} found, in the median after {statistics.median(seconds):.1f} s with building")
    if missed:
        sys.exit("not found: " + ", ".join(missed))


if __name__ == "__main__":
    main()
