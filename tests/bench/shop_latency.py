#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What something does to the latency of the example shop: prints the paragraphs of docs/benchmarks/wall.md and docs/benchmarks/export.md.

  shop_latency.py BUILD wall|receiver [--pairs N] [--seconds S] [--wall-hz HZ] [--connections C]

Two shops run, both sample CPU time. wall: one of them samples wall time as well. receiver: both send spans and profiles by OTLP, one to a receiver
that takes them, one to a receiver that accepts connections and reads nothing. They are put under the same load (wrk, closed loop) in turn, S seconds each,
the order of a pair changing from pair to pair (ABBA), so that what drifts on the machine falls on both. The difference of a pair's 50th and
99th percentiles has a mean over the pairs, and by Student's t a confidence interval of 95 %."""
import argparse, contextlib, math, os, re, statistics, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peer"))
import shop as peer

MIX = """
local pages = {}
for i = 1, 24 do pages[#pages + 1] = "/product?id=" end
for i = 1, 12 do pages[#pages + 1] = "/cart?user=" end
for i = 1, 8 do pages[#pages + 1] = "/checkout?user=" end
request = function()
  return wrk.format("GET", pages[math.random(#pages)] .. math.random(500))
end
"""
UNITS_US = {"us": 1, "ms": 1000, "s": 1000000}
# Student's t, two-sided 95 %, by degrees of freedom; beyond the table the next smaller entry, which is wider.
T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 15: 2.13, 20: 2.09, 30: 2.04, 60: 2.00}


def measure(address, script, seconds, connections):
    """{50: us, 99: us, "rate": requests a second}"""
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", script, f"http://{address}/"],
                          stdout=subprocess.PIPE, text=True, check=True, timeout=seconds + 60)
    found = {int(share): float(value) * UNITS_US[unit]
             for share, value, unit in re.findall(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s)$", done.stdout, re.MULTILINE)}
    found["rate"] = float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout).group(1))
    return found


def tell(what, unit, names, first, second):
    differences = [b - a for a, b in zip(first, second)]
    mean, count = statistics.mean(differences), len(differences)
    t = T95[max(df for df in T95 if df <= count - 1)]
    half = t * statistics.stdev(differences) / math.sqrt(count)
    base = statistics.mean(first)
    print(f"{what}: {base:.0f} {unit} {names[0]}, {names[1]} {mean:+.1f} {unit} [{mean - half:+.1f}, {mean + half:+.1f}] at 95 %, "
          f"{100 * mean / base:+.2f} % [{100 * (mean - half) / base:+.2f}, {100 * (mean + half) / base:+.2f}]")


def start(arguments, directory, name, environment):
    return peer.Program([os.path.join(arguments.build, "examples", "shop"), "--port", "0"], f"{directory}/{name}.log",
                        {"SPANPROF_LOG": "error", **environment})


def wall_shops(arguments, directory, kept):
    """The two shops by name."""
    for name, profiles in ("without wall", "cpu"), ("with wall", "cpu,wall"):
        yield name, kept.enter_context(start(arguments, directory, name.replace(" ", "_"), {
            "SPANPROF_EXPORTER": "file", "SPANPROF_FILE": f"{directory}/{name.replace(' ', '_')}", "SPANPROF_PROFILES": profiles,
            "SPANPROF_WALL_HZ": arguments.wall_hz, "OTEL_TRACES_EXPORTER": "none"}))


def receiver_shops(arguments, directory, kept):
    for name, words in ("good receiver", []), ("hanging receiver", ["stuck"]):
        program = [os.path.join(arguments.build, "tests", "bench", "tracers", "receiver"), *words]
        receiver = kept.enter_context(subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        kept.callback(receiver.stdin.close)
        yield name, kept.enter_context(start(arguments, directory, words[0] if words else "good", {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.stdout.readline().strip()}", "SPANPROF_WINDOW_MS": "1000"}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("what", choices=["wall", "receiver"])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--wall-hz", default="20")
    parser.add_argument("--connections", type=int, default=4)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        script = os.path.join(directory, "mix.lua")
        with open(script, "w") as file:
            file.write(MIX)
        with contextlib.ExitStack() as kept:
            shops = dict({"wall": wall_shops, "receiver": receiver_shops}[arguments.what](arguments, directory, kept))
            programs = [(shop, []) for shop in shops.values()]
            addresses = [p.wait_for(r"listening on http://(\S+)").group(1) for p, _ in programs]
            for address in addresses:
                measure(address, script, 1, arguments.connections)
            for pair in range(arguments.pairs):
                for which in (0, 1) if pair % 2 == 0 else (1, 0):
                    programs[which][1].append(measure(addresses[which], script, arguments.seconds, arguments.connections))
            for program, _ in programs:
                program.stop()
    print(f"{arguments.pairs} pairs of {arguments.seconds} s, {arguments.connections} connections"
          + (f", wall at {arguments.wall_hz} Hz" if arguments.what == "wall" else ""))
    for key, what, unit in ((50, "p50", "us"), (99, "p99", "us"), ("rate", "requests a second", "/s")):
        tell(what, unit, list(shops), [m[key] for m in programs[0][1]], [m[key] for m in programs[1][1]])


if __name__ == "__main__":
    main()
