"""gyre shell, and the completion that bash, zsh and fish are taught."""

import os
import shutil
import subprocess
import tempfile
import unittest

from cases import ClusterTest
from cluster import ENVIRONMENT, GYRE, run
from terminal import Terminal


class Shell(ClusterTest):
    def shell(self, *lines):
        return self.cluster.cli("shell", stdin="".join(line + "\n" for line in lines).encode())

    def test_commands_one_a_line(self):
        result = self.shell("# a comment", "put 'a key' \"its value\"", "get 'a key'", "", "version")
        self.assert_exit(0, result)
        self.assertEqual(result.stdout, b"its valuegyre 0.1.0\n")
        self.assert_exit(3, self.shell("get nothing"))
        self.assert_exit(2, self.shell("put 'k", "nonsense"), "a quote is not closed")
        self.assert_exit(3, self.shell("get nothing", "exit", "version"))  # as of any shell: that of the last command

    def test_the_context_of_a_key_is_remembered(self):
        # What another writes between a read and a write here stays beside that, for it was not seen.
        self.cluster.cli("put", "cart", "milk")
        shell = Terminal([GYRE, "--endpoints", self.cluster.endpoints(), "shell"], {**ENVIRONMENT, "HOME": self.cluster.directory})
        self.addCleanup(shell.close)
        shell.until("gyre:default> ")
        shell.type("get cart\n")
        shell.until("milk")
        shell.until("gyre:default> ")
        self.assert_exit(0, self.cluster.cli("put", "cart", "bread"))
        shell.type("put cart eggs\n")
        shell.until("gyre:default> ")
        self.assertEqual(self.nodes[0].values(b"cart"), [b"bread", b"eggs"])
        # And what was seen is replaced: a read sees both, so one value is left of them.
        shell.type("get cart --siblings\n")
        shell.until("gyre:default> ")
        shell.type("put cart all\n")
        shell.until("gyre:default> ")
        self.assertEqual(self.nodes[0].values(b"cart"), [b"all"])

    def test_completion_and_history(self):
        with tempfile.TemporaryDirectory(prefix="gyre-test-") as home:
            environment = {**ENVIRONMENT, "HOME": home}
            arguments = [GYRE, "--endpoints", self.cluster.endpoints(), "shell"]
            shell = Terminal(arguments, environment)
            self.addCleanup(shell.close)
            shell.until("gyre:default> ")
            shell.type("put a-long-key v\n")
            shell.until("gyre:default> ")
            shell.type("get a-lo\t\n")  # a key that was seen
            shell.until("gyre:default> ")
            self.assertIn("put a-long-key v", self.history(home, shell))
            self.assertIn("get a-long-key", self.history(home, shell))
            self.assertEqual(os.stat(os.path.join(home, ".gyre_history")).st_mode & 0o777, 0o600)

    def history(self, home, shell):
        """What is kept of a shell after its end."""
        if shell.process.poll() is None:
            shell.type("exit\n")
            shell.process.wait(20)
        with open(os.path.join(home, ".gyre_history"), encoding="utf-8") as file:
            return file.read().replace("\\040", " ")

    def test_use_changes_the_keyspace(self):
        self.cluster.create_keyspace("carts", n=3)
        self.assert_exit(0, self.shell("use carts", "put k in-carts"))
        self.assertEqual(self.nodes[0].values(b"k", keyspace="carts"), [b"in-carts"])
        self.cluster.drop_keyspace("carts")


class Completion(ClusterTest):
    def setUp(self):
        super().setUp()
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix="gyre-test-"))
        os.symlink(GYRE, os.path.join(self.directory, "gyre"))
        self.environment = {**ENVIRONMENT, "PATH": self.directory + ":" + os.environ["PATH"], "HOME": self.directory,
                            "GYRE_ENDPOINTS": self.cluster.endpoints()}

    def need(self, shell):
        if shutil.which(shell) is None:
            self.skipTest(f"skipped: there is no {shell} here")

    def says(self, arguments):
        result = run(arguments, environment=self.environment)
        self.assert_exit(0, result)
        return result.stdout.decode().split()

    def test_bash(self):
        script = """source <(gyre completion bash)
            complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gyre; echo "${COMPREPLY[@]}"; }
            complete_line gyre cluster can
            complete_line gyre bench --workload ''
            complete_line gyre -k def"""
        self.assertEqual(self.says(["bash", "-c", script]), ["can-restart", "a", "b", "c", "d", "f", "default"])

    def test_zsh(self):
        self.need("zsh")
        shell = Terminal(["zsh", "-f", "-i"], self.environment)
        self.addCleanup(shell.close)
        # The words of the prompt stand in no line that is echoed.
        shell.type("PS1='rea''dy> '; autoload -U compinit && compinit -u -D; source <(gyre completion zsh)\n")
        shell.until("zsh)")
        shell.until("ready> ")
        shell.type("gyre cluster can\t")
        shell.until("can-restart")

    def test_fish(self):
        self.need("fish")
        said = self.says(["fish", "--no-config", "-c", "gyre completion fish | source; complete --do-complete 'gyre cluster can'"])
        self.assertEqual(said[0], "can-restart")
        said = self.says(["fish", "--no-config", "-c", "gyre completion fish | source; complete --do-complete 'gyre -k def'"])
        self.assertEqual(said, ["default"])


class Watch(ClusterTest):
    def test_status_is_shown_again(self):
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", GYRE, "--endpoints", self.cluster.endpoints(), "cluster", "status",
                                    "--watch", "-o", "json"], stdout=subprocess.PIPE, env=ENVIRONMENT)
        lines = [process.stdout.readline(), process.stdout.readline()]
        process.terminate()
        process.wait(10)
        process.stdout.close()
        for line in lines:
            self.assertTrue(line.startswith(b'{"cluster":'), line)


if __name__ == "__main__":
    unittest.main()
