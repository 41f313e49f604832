# SPDX-License-Identifier: Apache-2.0
"""Runs unittest's tests in parallel, which saves time when tests mostly wait for timeouts and servers. Tests must not share anything that one of
them changes."""
import concurrent.futures
import sys
import unittest

AT_ONCE = 8


def tests_of(suite):
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from tests_of(entry)
        else:
            yield entry


def name_of(test):
    """The name of a test, or of a class of tests."""
    return test if isinstance(test, unittest.TestCase) else type(next(tests_of(test))).__name__


def run_one(test):
    result = unittest.TestResult()
    name = name_of(test)  # before the run, because a suite drops its tests while it runs
    test.run(result)
    return name, result


def run(classes=False, at_once=AT_ONCE):
    """Runs the tests of the main module, prints what failed, and returns how many failed. CLASSES: the tests of one class run one after the other,
    because the class prepares something for them."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    tests = [entry for entry in suite if entry.countTestCases()] if classes else list(tests_of(suite))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for test, result in pool.map(run_one, tests):
            failed += not result.wasSuccessful()
            counted = f", {result.testsRun} tests" if classes else ""
            print(f"{test}: {'ok' if result.wasSuccessful() else 'FAILED'}{counted}", flush=True)
            for what, trace in result.failures + result.errors:
                print(f"{what}\n{trace}", flush=True)
    print(f"{len(tests)} tests, {failed} failed")
    return failed + (not tests)
