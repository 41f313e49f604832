#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the engines cost and how true they are, at 1 to 10,000 Hz: prints the table of docs/benchmarks/engines.md.

  engines.py BUILD [--engines timer,perf] [--hz 1,19,…] [--seconds S] [--rounds N]

BUILD is a build directory with the targets truth_workload, books_workload and bench_stolen. For each engine and rate:
  truth    truth_workload for S seconds: samples, links that name another span than the stack does
  books    books_workload, 4 threads that compute for S seconds: weights, and weights + unattributed, against the clocks
  cost     bench_stolen: share of a thread's time in gaps with a tick, time of one such gap; beside it a handler that does nothing"""
import argparse, collections, json, os, platform, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "signal"))
import truth_judge


def environment(engine, hz, prefix):
    return dict(os.environ, SPANPROF_ENGINE=engine, SPANPROF_CPU_HZ=str(hz), SPANPROF_EXPORTER="file", SPANPROF_FILE=prefix,
                SPANPROF_MAX_SAMPLES="1000000", OTEL_TRACES_EXPORTER="none", SPANPROF_LOG="error")


def run_json(command, env):
    done = subprocess.run([str(word) for word in command], env=env, stdout=subprocess.PIPE, text=True, timeout=900, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def truth(build, engine, hz, seconds):
    """(samples, wrong periods), or None where the engine is not to be had."""
    with tempfile.TemporaryDirectory() as directory:
        result = run_json([build + "/tests/signal/truth_workload", seconds, 8], environment(engine, hz, directory + "/truth"))
        if result["engine"] != engine:
            return None
        verdicts, path = collections.Counter(), directory + "/truth.profiles.jsonl"
        for sample in truth_judge.truth.samples(path) if os.path.exists(path) else ():
            link = truth_judge.decode(sample.link and sample.link[0])
            verdicts[truth_judge.judge(sample.names, sample.thread, link)] += sample.count
        return result["ticks"], verdicts["wrong"]


def books(build, engine, hz, seconds):
    """Percent that the weights, and weights + unattributed, are off."""
    with tempfile.TemporaryDirectory() as directory:
        result = run_json([build + "/tests/signal/books_workload", "steady", seconds, 4],
                          environment(engine, hz, directory + "/books"))
    weights_ns = result["weights"] * (1000000000 // result["cpu_hz"])
    return (100 * (weights_ns / result["cpu_ns"] - 1), 100 * ((weights_ns + result["unattributed_ns"]) / result["process_ns"] - 1))


def cost(build, engine, rates, rounds):
    """{(what, hz): (percent, ticks a second, ns a tick)}, and the program's words."""
    env = dict(os.environ, SPANPROF_ENGINE=engine, OTEL_TRACES_EXPORTER="none", SPANPROF_LOG="error")
    done = subprocess.run([build + "/tests/bench/bench_stolen", str(rounds), "1000", *map(str, rates)], env=env,
                          stdout=subprocess.PIPE, text=True, timeout=3600, check=True)
    found = {}
    for what, hz, percent, ticks, ns in re.findall(r"(sdk|empty handler)\s+(\d+) Hz\s+ticks ([\d.]+) %, (\d+) a second of (\d+) ns",
                                                   done.stdout):
        found[what, int(hz)] = (float(percent), int(ticks), int(ns))
    return found, done.stdout


def describe_machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    resolution_ns = round(1e9 * __import__("time").clock_getres(6))  # CLOCK_MONOTONIC_COARSE
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, {model}, Linux {platform.release().split('-')[0]}, HZ {round(1e9 / resolution_ns)}, "
          f"load at the start {load:.1f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--engines", default="timer,perf")
    parser.add_argument("--hz", default="1,19,99,1000,10000")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    rates = [int(hz) for hz in arguments.hz.split(",")]
    describe_machine()
    print("| engine | Hz | samples | wrong links | weights off | with unattributed | stolen | ticks/s | ns a tick | empty handler | ns |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    words = []
    for engine in arguments.engines.split(","):
        if truth(arguments.build, engine, 1, 0.2) is None:
            print(f"the engine {engine} is not to be had here")
            continue
        costs, text = cost(arguments.build, engine, rates, arguments.rounds)
        words.append(text)
        for hz in rates:
            samples, wrong = truth(arguments.build, engine, hz, arguments.seconds)
            off, balance = books(arguments.build, engine, hz, arguments.seconds)
            percent, ticks, ns = costs["sdk", hz]
            empty_percent, _, empty_ns = costs["empty handler", hz]
            print(f"| {engine} | {hz:,} | {samples:,} | {wrong} | {off:+.2f} % | {balance:+.3f} % | {percent:.4f} % | {ticks:,} | {ns:,} "
                  f"| {empty_percent:.4f} % | {empty_ns:,} |", flush=True)
    print("\n".join(words))


if __name__ == "__main__":
    main()
