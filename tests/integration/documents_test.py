"""README.md and deploy/README.md: every command in them is run, as written, and does what is written below it."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from cluster import ENVIRONMENT, GYRED, run, skip, wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMAND_SECONDS = 180
# The beginnings of commands that are not run here, and why.
NOT_RUN = {"tests/run": "it runs this test"}
SAMPLE_ID = re.compile(r"[0-9a-f]{16}")
BLOCK = re.compile(r"^```(sh|console|cpp|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Where the node of the section on security listens.
HOST = "192.0.2.1"


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


def blocks(text, *languages):
    return [match.group(2) for match in BLOCK.finditer(text) if match.group(1) in languages]


def section(text, name):
    """The section of that name."""
    return re.search(rf"^## {name}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL).group()


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


def meant(text, ids):
    """`text` with the ids that its samples stand for."""
    return SAMPLE_ID.sub(lambda sample: ids.get(sample.group(), sample.group()), text)


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
                                        f"ip link set lo up && ip address add {HOST}/32 dev lo && echo ready && exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.holder.stdout.readline() != b"ready\n":
            skip("networks of their own cannot be made here")
        self.environment = {**ENVIRONMENT, "PATH": os.path.join(ROOT, "build") + ":" + os.environ["PATH"]}
        self.inside = ["nsenter", "--net", f"--target={self.holder.pid}", "env", f"--chdir={directory}"]
        self.started = []

    def run(self, command):
        return run([*self.inside, "bash", "-c", command], seconds=COMMAND_SECONDS, environment=self.environment)

    def start(self, *arguments):
        """A program that runs until the machine is closed."""
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.started.append(subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.inside, *arguments], stdout=log, stderr=log,
                                                 env=self.environment))

    def add(self, settings):
        """To the node's settings."""
        with open(os.path.join(self.directory, "gyred.toml"), "a", encoding="utf-8") as file:
            file.write(settings)

    def close(self):
        for made in glob.glob(os.path.join(self.directory, "*", "port"), include_hidden=True):
            self.run(f"deploy/local down --dir {os.path.dirname(made)}")
        for process in self.started:
            process.kill()
            process.wait(10)
        self.holder.stdin.close()
        self.holder.wait(10)
        self.holder.stdout.close()


class Documents(unittest.TestCase):
    def setUp(self):
        self.machine = Machine(self.enterContext(tempfile.TemporaryDirectory(prefix="gyre-test-")))
        self.addCleanup(self.machine.close)

    def run_all(self, found, ids):
        """`ids`: those that were met, by the sample that stands for each."""
        self.assertNotEqual(found, [])
        for command, written in found:
            if any(command.startswith(beginning) for beginning in NOT_RUN):
                continue
            command = meant(command, ids)
            result = self.machine.run(command)
            self.assertEqual(result.code, 0, f"{command}: {result}")
            shown = [line.strip() for line in result.stdout.decode().splitlines()]
            for line in written:
                if SAMPLE_ID.fullmatch(line.strip()) and len(shown) == 1:
                    ids[line.strip()] = shown[0]
                if line.strip() != "...":
                    self.assertTrue(any(re.fullmatch(pattern(line), one) for one in shown), f"{command}: {line!r} is not among {shown}")

    def test_readme(self):
        text = read("README.md")
        self.run_all(commands(text.replace(section(text, "Security"), "")), {})

    def test_security(self):
        """The one node that its certificates are made for is started with the settings that stand below them."""
        self.machine.add(f'[listen]\nclient = "{HOST}:7400"\npeer = "{HOST}:7401"\nhttp = "127.0.0.1:7402"\n'
                         "[cluster]\nbootstrap_expect = 1\n")
        ids = {}
        before, settings, after = re.split(r"^```toml\n(.*?)^```$", section(read("README.md"), "Security"), flags=re.MULTILINE | re.DOTALL)
        self.run_all(commands(before), ids)
        self.machine.add(meant(settings, ids))
        self.machine.start("gyred", "--config", "gyred.toml")
        wait_until("the node serves", lambda: self.machine.run(
            "exec 3<>/dev/tcp/127.0.0.1/7402 && printf 'GET /readyz HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q ' 200 ' <&3").code == 0)
        self.run_all(commands(after), ids)

    def test_runbooks(self):
        text = read("deploy", "README.md")
        for runbook in ("Replace a dead node", "Add a node, remove a node", "Upgrade, or restart all nodes", "Back up and restore",
                        "Rotate certificates"):
            self.assertIn("### " + runbook, text)
        self.run_all([("deploy/local up", []), *commands(text)], {})


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
