# SPDX-License-Identifier: Apache-2.0
"""Pure Python and what CPython is written in C for, for ever, on three threads."""
import collections
import dataclasses
import hashlib
import itertools
import json
import random
import re
import threading
import zlib


@dataclasses.dataclass(order=True)
class Point:
    x: float
    y: float
    name: str = ""


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def walk(tree, depth=0):
    """A generator within a generator for each level."""
    yield depth, tree[0]
    for child in tree[1:]:
        yield from walk(child, depth + 1)


def grow(depth):
    return [depth] + [grow(depth - 1) for _ in range(2)] if depth else [0]


def fail(depth):
    if depth == 0:
        raise ValueError("deep")
    try:
        fail(depth - 1)
    finally:
        str(depth)


def one_round(dice):
    points = sorted(Point(dice.random(), dice.random(), f"p{i}") for i in range(100))
    points.sort(key=lambda point: (point.y, point.name))
    text = json.dumps([dataclasses.asdict(point) for point in points], indent=1)
    assert len(json.loads(text)) == 100
    words = re.findall(r"(?:\d+\.)(\d{3})\d*|\"(\w+)\"", text)
    collections.Counter(itertools.chain.from_iterable(words)).most_common(5)
    sum(depth for depth, _ in walk(grow(7)))
    fibonacci(14)
    try:
        fail(20)
    except ValueError:
        pass
    hashlib.sha256(zlib.compress(text.encode())).hexdigest()
    str(3 ** 2000)
    eval("[x * y for x in range(20) for y in range(x)]")
    list(map(lambda number: pow(number, 65537, 2 ** 127 - 1), range(50)))


def work(seed):
    dice = random.Random(seed)
    while True:
        one_round(dice)


for number in range(2):
    threading.Thread(target=work, args=(number,), daemon=True).start()
work(2)
