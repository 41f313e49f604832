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
  other    the stack names no work: between spans, in a tracer, in a library's start

Faults to plant (verdict.py): wrong-link gives one sample of each work the link of another, lost-sample leaves one sample of
each profile out."""
import argparse, collections, json, os, re, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import verdict

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


def _plant_wrong_links(dictionary, samples):
    """Gives a sample of each work, waiting and not, the link of a sample of another work."""
    linked = {}  # (work, what is waited for): link
    for sample in samples:
        work = next((name for name in dictionary.names(sample) if re.search(r"_work_\d+$", name)), None)
        kind = work, dictionary.attributes(sample).get("spanprof.wait")
        if not work or not dictionary.link(sample) or kind in linked:
            continue
        linked[kind] = sample["linkIndex"]
        others = [link for (other, _), link in linked.items() if other != work]
        if others:
            sample["linkIndex"] = others[0]


def _plant(dictionary, samples):
    """Puts the fault that was asked for into the SAMPLES of a profile."""
    if verdict.is_planted("wrong-link"):
        _plant_wrong_links(dictionary, samples)
    if verdict.is_planted("lost-sample") and samples:
        samples.pop()


def profiles(path):
    """(Dictionary, profile) of every profile in PATH, one OTLP request a line."""
    for line in open(path):
        request = json.loads(line)
        dictionary = Dictionary(request["dictionary"])
        for rp in request["resourceProfiles"]:
            for sp in rp["scopeProfiles"]:
                for profile in sp["profiles"]:
                    _plant(dictionary, profile.get("samples", []))
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
    """Skip where ENGINE is given, and what PREFIXES begin was taken by another one."""
    taken = set().union(*(engines(prefix + ".profiles.jsonl") for prefix in prefixes))
    if engine and taken - {engine}:
        verdict.skip(f"the engine {engine} is not allowed here: {', '.join(taken)} was taken")


def run(command, hz=5000, engine=None, timeout=300, **more):
    """Run COMMAND to its end. The files live as long as the result. Its standard output is in `output`. Skips (77) where ENGINE is given and
    another one was taken."""
    directory = tempfile.TemporaryDirectory()
    prefix = os.path.join(directory.name, "truth")
    done = subprocess.run(command, env=environment(prefix, hz, engine, **more), stdout=subprocess.PIPE, text=True, timeout=timeout)
    if done.returncode == verdict.SKIPPED:
        print(done.stdout)
        sys.exit(verdict.SKIPPED)
    if done.returncode != 0:
        verdict.fail(f"{command[0]} exited with {done.returncode}\n{done.stdout}")
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
            kind = "other"
        elif sample.link is None:
            kind = "right" if expected == NOTHING else "missing"
        else:
            kind = "right" if labels.get(sample.link) == expected else "wrong"
            if kind == "wrong" and len(verdicts.examples) < 5:
                verdicts.examples.append((expected, labels.get(sample.link, "a span that nobody knows"), sample))
        verdicts[kind] += sample.count
    if not known:
        verdict.fail("no span says which work it is")
    return verdicts


def row(name, run, verdicts):
    """A line of the table in docs/truth.md: samples judged; right, none, unknown, wrong in percent of them."""
    judged = verdicts["right"] + verdicts["missing"] + verdicts["wrong"]
    unknown = min(run.counts()["unknown"], verdicts["missing"])
    shares = [verdicts["right"], verdicts["missing"] - unknown, unknown, verdicts["wrong"]]
    return f"| {name} | {judged:,} | " + " | ".join(f"{100 * s / max(judged, 1):.3f}".rstrip("0").rstrip(".") for s in shares) + " |"


# More than this share of the samples without a link, or of stacks that name no work, is no noise.
LOST, BLIND = 0.05, 0.95


def judge_labels(found, labels, judged, verdicts):
    """Of a program that works by the label scheme: was the scheme found out, where there were enough samples to do so?"""
    found.broken_if(labels == "wrong" and not verdicts["wrong"], "a scheme that is known to be wrong was not found out")
    found.broken_if(labels == "missing" and verdicts["missing"] < 0.1 * judged, "a scheme that is known to lose links was not found out")


def judge_lost(found, lost, judged, may, what):
    """LOST of JUDGED samples have no link although there is a span; MAY is the share that may."""
    text = f"{lost} of {judged} {what} have no link, {may:.2%} may"
    found.unsure_if(lost > max(may * judged, 3), text)
    found.broken_if(lost > max(max(may, LOST) * judged, 30), text)


def judge_nameless(found, nameless, everything, may):
    """NAMELESS of EVERYTHING name no work; MAY is the share that may. It depends on the processor, so a second run would say the same."""
    text = f"{nameless} of {everything} samples are on stacks that name no work, {may:.0%} may"
    found.unsure_here_if(nameless > may * everything, text)
    found.broken_if(everything > 100 and nameless > BLIND * everything, text)


def finish(name, run, verdicts, minimum=20000, missing=0.0005, other=0.25, labels=None, found=None):
    """Print what was found, and exit with the verdict. No sample may be wrong, at most MISSING of the judged ones have no link, at most OTHER
    of all name no work, and MINIMUM are to be judged. LABELS is for a program that works by the label scheme, and says what has to be found
    out: that samples are `wrong`, that a tenth or more are `missing`, or that the scheme is `right` there. FOUND has what was found before."""
    name += LABELS if labels else ""
    judged = verdicts["right"] + verdicts["missing"] + verdicts["wrong"]
    print(f"{judged} samples judged: " + ", ".join(f"{k} {v}" for k, v in sorted(verdicts.items())) + f"; the profiles say {dict(run.counts())}")
    print(row(name, run, verdicts))
    found = found or verdict.Verdict()
    found.enough(judged, minimum, "samples could be judged")
    if labels in ("wrong", "missing"):
        if judged >= minimum:
            judge_labels(found, labels, judged, verdicts)
    else:
        found.broken_if(verdicts["wrong"], f"{verdicts['wrong']} samples are linked to another span, e.g. {verdicts.examples}")
        judge_lost(found, verdicts["missing"], judged, missing, "samples of spans")
    judge_nameless(found, verdicts["other"], judged + verdicts["other"], other)
    found.finish()


def arguments(description):
    """The options that all these tests share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--hz", type=int, default=5000)
    parser.add_argument("--engine", help="skip (77) where the SDK does not take it")
    parser.add_argument("--minimum-samples", type=verdict.count, default="20000")
    parser.add_argument("--labels", choices=["right", "wrong", "missing"], help="the program works by the label scheme, whose samples are these")
    return parser
