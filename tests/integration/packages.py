"""Prints what apt knows of Debian's packages as JSON lines: {"key": "name version architecture", "value": its record}.

usage: packages.py [COUNT]    the first COUNT of them; without it, all
"""

import base64
import itertools
import json
import subprocess
import sys


def field(record, name):
    """The value of a field that has one line."""
    start = (b"\n" + record).find(b"\n" + name + b": ")
    if start < 0:
        return b""
    start += len(name) + 2
    return record[start:].split(b"\n", 1)[0]


def packages():
    """(key, value) of each package, both bytes; no key comes twice."""
    records = subprocess.run(["apt-cache", "dumpavail"], stdout=subprocess.PIPE, check=True).stdout.split(b"\n\n")
    seen = set()
    for record in records:
        key = b" ".join(field(record, name) for name in (b"Package", b"Version", b"Architecture"))
        if record.strip() and key not in seen:
            seen.add(key)
            yield key, record


def named(name, text):
    """A member of JSON: as text if it is UTF-8, else in base64."""
    try:
        return {name: text.decode()}
    except UnicodeDecodeError:
        return {name + "_base64": base64.b64encode(text).decode()}


def lines(pairs):
    return "".join(json.dumps({**named("key", key), **named("value", value)}) + "\n" for key, value in pairs)


if __name__ == "__main__":
    sys.stdout.write(lines(itertools.islice(packages(), int(sys.argv[1]) if len(sys.argv) > 1 else None)))
