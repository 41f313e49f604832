# SPDX-License-Identifier: Apache-2.0
"""The truth of samples, for every test that asks it: a stack tells which work it was taken in, a link tells which span; do they agree?

A workload does each span's work in functions that only this work has (truth_work.h has 64 of them in C), and says in the span which work
that is. Two spans that are open at the same time, or one after the other on a thread, never do the same work: whoever links a sample to a
neighbour is found out.

    run = truth.run([program, ...], hz=5000)              # in a directory of its own, exporter "file"
    verdicts = truth.judge(run.samples(), run.labels())   # or labels of your own: {(trace_id, span_id): work}
    truth.finish("thread pool", run, verdicts)            # prints, exits

Verdicts, in samples (ticks; a tick may stand for more periods):
  right    the link is to the span of this work; or there is no span for this work, and no link
  missing  no link although there is a span: none or unknown. How many of all samples were unknown, the profile says itself
  wrong    any other link. One is too many
  other    the stack names no work: between spans, in a tracer, in a library's start"""
import argparse, collections, json, os, re, subprocess, sys, tempfile

NOTHING = "nothing"  # the work that no span stands for
LABELS = ", labels"  # ends the names of rows for the label scheme
Sample = collections.namedtuple("Sample", "names thread link count value")
Span = collections.namedtuple("Span", "name attributes parent start_ns end_ns")


def _values(attributes):
    return {a["key"]: next(iter(a["value"].values()), None) for a in attributes}


class Dictionary:
    """The tables of one request, by what refers to them."""

    def __init__(self, tables):
        self.strings = tables["stringTable"]
        functions = [self.strings[f.get("nameStrindex", 0)] for f in tables["functionTable"]]
        self._locations = [[functions[l.get("functionIndex", 0)] for l in loc.get("lines", [])] for loc in tables["locationTable"]]
        self._stacks = [s.get("locationIndices", []) for s in tables["stackTable"]]
        self._links = [(l.get("traceId", ""), l.get("spanId", "")) for l in tables["linkTable"]]
        self._attributes = [(self.strings[a.get("keyStrindex", 0)], next(iter(a.get("value", {}).values()), ""))
                            for a in tables["attributeTable"]]

    def names(self, sample):
        """Of the functions, leaf first."""
        return [name for i in self._stacks[sample.get("stackIndex", 0)] for name in self._locations[i]]

    def link(self, sample):
        """(trace id, span id) in hexadecimal digits, or None."""
        link = self._links[sample.get("linkIndex", 0)]
        return link if link[0] else None

    def attributes(self, of):
        """Those of a sample or a profile, by key."""
        return dict(self._attributes[i] for i in of.get("attributeIndices", []))


def profiles(path):
    """(Dictionary, profile) of every profile in PATH, one OTLP request a line."""
    for line in open(path):
        request = json.loads(line)
        dictionary = Dictionary(request["dictionary"])
        for rp in request["resourceProfiles"]:
            for sp in rp["scopeProfiles"]:
                for profile in sp["profiles"]:
                    yield dictionary, profile


def samples(path):
    """Every sample of the CPU profiles in PATH: names leaf first, thread's name, (trace id, span id) or None, ticks, value."""
    for dictionary, profile in profiles(path):
        for s in profile["samples"]:
            count = int(s["values"][0])
            yield Sample(dictionary.names(s), dictionary.attributes(s).get("thread.name", ""), dictionary.link(s), count,
                         count * int(profile["period"]))


def counts(path):
    """What the profiles in PATH say of themselves, added up: linked, none, unknown."""
    total = collections.Counter()
    for dictionary, profile in profiles(path):
        for key, value in dictionary.attributes(profile).items():
            if key.startswith("spanprof.samples."):
                total[key.rsplit(".", 1)[1]] += int(value)
    return total


def engines(path):
    """The engines that took the samples in PATH."""
    return {dictionary.attributes(profile).get("spanprof.engine") for dictionary, profile in profiles(path)} - {None}


def spans(path):
    """{(trace id, span id): Span} of the spans in PATH, one OTLP request a line."""
    found = {}
    for line in open(path):
        for rs in json.loads(line)["resourceSpans"]:
            for ss in rs["scopeSpans"]:
                for s in ss["spans"]:
                    found[s["traceId"], s["spanId"]] = Span(s["name"], _values(s.get("attributes", [])), s.get("parentSpanId", ""),
                                                            int(s["startTimeUnixNano"]), int(s["endTimeUnixNano"]))
    return found


def work_of_stack(names):
    """The K of the leaf-most truth_work_K, NOTHING in truth_nothing, else None: names no work."""
    for name in names:
        match = re.match(r"truth_work_(\d+)\b", name)
        if match:
            return match.group(1)
        if re.match(r"truth_nothing\b", name):
            return NOTHING
    return None


class Run:
    """What a workload left behind."""

    def __init__(self, directory, prefixes, output):
        self.directory, self.prefixes, self.output = directory, prefixes, output

    def samples(self):
        for prefix in self.prefixes:
            yield from samples(prefix + ".profiles.jsonl")

    def counts(self):
        return sum((counts(prefix + ".profiles.jsonl") for prefix in self.prefixes), collections.Counter())

    def spans(self):
        found = {}
        for prefix in self.prefixes:
            if os.path.exists(prefix + ".traces.jsonl"):
                found.update(spans(prefix + ".traces.jsonl"))
        return found

    def labels(self):
        """{(trace id, span id): work} by the attribute truth.work of spanprof's own spans."""
        return {ids: str(span.attributes["truth.work"]) for ids, span in self.spans().items() if "truth.work" in span.attributes}


def environment(prefix, hz, engine=None, **more):
    """The environment for a program that writes PREFIX.*; MORE is set as it is."""
    result = dict(os.environ, SPANPROF_EXPORTER="file", SPANPROF_FILE=prefix, SPANPROF_CPU_HZ=str(hz),
                  SPANPROF_MAX_SAMPLES="1000000", OTEL_BSP_MAX_QUEUE_SIZE="65536", **more)
    if engine:
        result["SPANPROF_ENGINE"] = engine
    return result


def skip_without(engine, prefixes):
    """Exit with 77 where ENGINE is given, and what PREFIXES begin was taken by another one."""
    taken = set().union(*(engines(prefix + ".profiles.jsonl") for prefix in prefixes))
    if engine and taken - {engine}:
        print(f"SKIPPED: the engine {engine} is not to be had here: {', '.join(taken)} was taken")
        sys.exit(77)


def run(command, hz=5000, engine=None, timeout=300, **more):
    """Run COMMAND to its end. The files live as long as the result. Its standard output is in `output`. Skips (77) where ENGINE is given and
    another one was taken."""
    directory = tempfile.TemporaryDirectory()
    prefix = os.path.join(directory.name, "truth")
    done = subprocess.run(command, env=environment(prefix, hz, engine, **more), stdout=subprocess.PIPE, text=True, timeout=timeout)
    if done.returncode == 77:
        print(done.stdout)
        sys.exit(77)
    if done.returncode != 0:
        sys.exit(f"FAILED: {command[0]} exited with {done.returncode}\n{done.stdout}")
    found = sorted(name[: -len(".profiles.jsonl")] for name in os.listdir(directory.name) if name.endswith(".profiles.jsonl"))
    prefixes = [os.path.join(directory.name, name) for name in found]
    skip_without(engine, prefixes)
    return Run(directory, prefixes, done.stdout)


def judge(found, labels, work=work_of_stack):
    """Counter of verdicts over the samples FOUND; LABELS says each span's work, WORK each stack's. Examples of wrong ones in .examples."""
    verdicts = collections.Counter()
    verdicts.examples = []
    known = set(labels.values())
    for sample in found:
        expected = work(sample.names)
        if expected is None:
            verdict = "other"
        elif sample.link is None:
            verdict = "right" if expected == NOTHING else "missing"
        else:
            verdict = "right" if labels.get(sample.link) == expected else "wrong"
            if verdict == "wrong" and len(verdicts.examples) < 5:
                verdicts.examples.append((expected, labels.get(sample.link, "a span that nobody knows"), sample))
        verdicts[verdict] += sample.count
    if not known:
        sys.exit("FAILED: no span says which work it is")
    return verdicts


def row(name, run, verdicts):
    """A line of the table in docs/truth.md: samples judged; right, none, unknown, wrong in percent of them."""
    judged = verdicts["right"] + verdicts["missing"] + verdicts["wrong"]
    unknown = min(run.counts()["unknown"], verdicts["missing"])
    shares = [verdicts["right"], verdicts["missing"] - unknown, unknown, verdicts["wrong"]]
    return f"| {name} | {judged:,} | " + " | ".join(f"{100 * s / max(judged, 1):.3f}".rstrip("0").rstrip(".") for s in shares) + " |"


def finish(name, run, verdicts, minimum=20000, missing=0.0005, other=0.25, labels=None):
    """Print what was found, and exit: 0 when no sample is wrong, at most MISSING of the judged ones have no link, at most OTHER of all name
    no work, and MINIMUM were judged. LABELS is for a program that works by the label scheme, and says what has to be found out: that samples
    are `wrong`, that a tenth or more are `missing`, or that the scheme is `right` there."""
    name += LABELS if labels else ""
    judged = verdicts["right"] + verdicts["missing"] + verdicts["wrong"]
    print(f"{judged} samples judged: " + ", ".join(f"{k} {v}" for k, v in sorted(verdicts.items())) + f"; the profiles say {dict(run.counts())}")
    print(row(name, run, verdicts))
    failures = []
    if judged < minimum:
        failures.append(f"only {judged} samples could be judged, {minimum} are needed")
    if labels == "wrong":
        if not verdicts["wrong"]:
            failures.append("a scheme that is known to be wrong was not found out")
    elif labels == "missing":
        if verdicts["missing"] < 0.1 * judged:
            failures.append("a scheme that is known to lose links was not found out")
    else:
        if verdicts["wrong"]:
            failures.append(f"{verdicts['wrong']} samples are linked to another span, e.g. {verdicts.examples}")
        if verdicts["missing"] > max(missing * judged, 3):
            failures.append(f"{verdicts['missing']} samples of spans have no link, {missing:.2%} may")
    if verdicts["other"] > other * (judged + verdicts["other"]):
        failures.append(f"more than {other:.0%} of the stacks name no work")
    for failure in failures:
        print("FAILED:", failure)
    sys.exit(1 if failures else 0)


def arguments(description):
    """The options that all these tests share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--hz", type=int, default=5000)
    parser.add_argument("--engine", help="skip (77) where the SDK does not take it")
    parser.add_argument("--minimum-samples", type=int, default=20000)
    parser.add_argument("--labels", choices=["right", "wrong", "missing"], help="the program works by the label scheme, whose samples are these")
    return parser
