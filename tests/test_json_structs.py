"""Structs from JSON in threads that need a class for the first time at once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import bpe_beam

pytestmark = pytest.mark.quick

PACKAGE = Path(bpe_beam.__file__).parent

THREADS = """
import sys, threading, types
from bpe_beam import json_structs

CLASSES = '''
from __future__ import annotations
from typing import Annotated
from msgspec import Meta, Struct
Amount = Annotated[int, Meta(ge=0)]
class Inner(Struct):
    amount: Amount
    name: str | None = None
class Outer(Struct):
    rows: list[Inner]
    table: dict[str, Inner] | None = None
'''

sys.setswitchinterval(1e-6)
for number in range(100):
    module = types.ModuleType(f"classes_{number}")
    sys.modules[module.__name__] = module
    exec(CLASSES, module.__dict__)
    barrier = threading.Barrier(4)

    def convert(of):
        barrier.wait()
        row = {"amount": 1, "name": "a"}
        made = json_structs.convert({"rows": [row], "table": {"a": row}}, of)
        assert made.rows[0].amount == 1
        assert json_structs.decode(b'{"rows": []}', of).rows == []

    threads = [threading.Thread(target=convert, args=[module.Outer]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("done")
"""


def test_threads_may_need_a_class_at_once() -> None:
    ran = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


def test_no_other_module_asks_msgspec() -> None:
    asks = re.compile(r"msgspec\.(convert|json\.(decode|Decoder))\(|from msgspec import .*convert")
    found = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if "msgspec" in path.read_text("utf-8") and asks.search(path.read_text("utf-8"))
    ]
    assert found == ["json_structs.py"]
