"""README.md and deploy/README.md: every command in them is run, as written, and does what is written below it."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from cluster import ENVIRONMENT, GYRED, run, skip

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMAND_SECONDS = 180
# The beginnings of commands that are not run here, and why.
NOT_RUN = {"tests/run": "it runs this test", "gyre --ca": "it needs a cluster with these certificates: see the tests of TLS"}
SAMPLE_ID = re.compile(r"[0-9a-f]{16}")
BLOCK = re.compile(r"^```(sh|console|cpp)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


def blocks(text, *languages):
    return [match.group(2) for match in BLOCK.finditer(text) if match.group(1) in languages]


def commands(text):
    """(command, what it prints, if that is written) of all blocks, in order."""
    found = []
    for match in BLOCK.finditer(text):
        if match.group(1) == "sh":
            found += [(line, []) for line in match.group(2).splitlines() if line.strip()]
        elif match.group(1) == "console":
            for line in match.group(2).splitlines():
                if line.startswith("$ "):
                    found.append((line[2:], []))
                else:
                    found[-1][1].append(line)
    return found


def pattern(line):
    """What a line of written output stands for: ids and numbers are examples."""
    parts = re.split(r"([0-9a-f]{16}|[0-9]+|\s+)", line.strip())
    classes = {True: "[0-9a-f]{16}"}
    made = ""
    for part in parts:
        if re.fullmatch(r"[0-9a-f]{16}", part):
            made += classes[True]
        elif re.fullmatch(r"[0-9]+", part):
            made += "[0-9]+"
        elif part.isspace():
            made += r"\s+"
        else:
            made += re.escape(part)
    return made


class Machine:
    """A folder like the root of the tree, and a network of its own, in which the usual ports are free."""

    def __init__(self, directory):
        self.directory = directory
        os.symlink(os.path.join(ROOT, "build"), os.path.join(directory, "build"))
        os.mkdir(os.path.join(directory, "deploy"))
        # A node's settings, as a reader has them by then.
        with open(os.path.join(directory, "gyred.toml"), "w", encoding="utf-8") as file:
            file.write('[node]\ndata_dir = "a-node"\n')
        for name in ("local", "rolling-restart", "certs"):
            path = os.path.join(directory, "deploy", name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\nexec "{ROOT}/deploy/{name}" "$@"\n')
            os.chmod(path, 0o755)
        self.holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c",
                                        "ip link set lo up && echo ready && exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.holder.stdout.readline() != b"ready\n":
            skip("networks of their own cannot be made here")

    def run(self, command):
        return run(["nsenter", "--net", f"--target={self.holder.pid}", "env", f"--chdir={self.directory}", "bash", "-c", command],
                   seconds=COMMAND_SECONDS, environment={**ENVIRONMENT, "PATH": os.path.join(ROOT, "build") + ":" + os.environ["PATH"]})

    def close(self):
        self.run("deploy/local down")
        self.holder.stdin.close()
        self.holder.wait(10)
        self.holder.stdout.close()


class Documents(unittest.TestCase):
    def setUp(self):
        self.machine = Machine(self.enterContext(tempfile.TemporaryDirectory(prefix="gyre-test-")))
        self.addCleanup(self.machine.close)

    def run_all(self, found):
        self.assertGreater(len(found), 5)
        ids = {}  # by the sample that stands for each
        for command, written in found:
            if any(command.startswith(beginning) for beginning in NOT_RUN):
                continue
            command = SAMPLE_ID.sub(lambda sample: ids.get(sample.group(), sample.group()), command)
            result = self.machine.run(command)
            self.assertEqual(result.code, 0, f"{command}: {result}")
            shown = [line.strip() for line in result.stdout.decode().splitlines()]
            for line in written:
                if SAMPLE_ID.fullmatch(line.strip()) and len(shown) == 1:
                    ids[line.strip()] = shown[0]
                if line.strip() != "...":
                    self.assertTrue(any(re.fullmatch(pattern(line), one) for one in shown), f"{command}: {line!r} is not among {shown}")

    def test_readme(self):
        self.run_all(commands(read("README.md")))

    def test_runbooks(self):
        text = read("deploy", "README.md")
        for runbook in ("Replace a dead node", "Add a node, remove a node", "Upgrade, or restart all nodes"):
            self.assertIn("### " + runbook, text)
        self.run_all([("deploy/local up", []), *commands(text)])


class Code(unittest.TestCase):
    def test_the_example_is_the_one_that_is_tested(self):
        self.assertEqual(blocks(read("README.md"), "cpp"), [read("client", "examples", "first_steps.cc")])


if __name__ == "__main__":
    if os.path.realpath(GYRED) != os.path.realpath(os.path.join(ROOT, "build", "gyred")):
        skip("the documents name build/, and the tests here run " + GYRED)
    for tool in ("ip", "nsenter", "unshare"):
        if shutil.which(tool) is None:
            skip(f"there is no {tool} here")
    if os.geteuid() != 0:
        skip("only root may make a network")
    unittest.main()
