# SPDX-License-Identifier: Apache-2.0
"""unittest's tests side by side, for those that mostly wait for timeouts and servers. They may share nothing that one of them changes."""
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


def run_one(test):
    result = unittest.TestResult()
    test.run(result)
    return test, result


def run():
    """Run the main module's tests, print what failed, and return how many did."""
    tests = list(tests_of(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for test, result in pool.map(run_one, tests):
            failed += not result.wasSuccessful()
            print(f"{test}: {'ok' if result.wasSuccessful() else 'FAILED'}", flush=True)
            for what, trace in result.failures + result.errors:
                print(f"{what}\n{trace}", flush=True)
    print(f"{len(tests)} tests, {failed} failed")
    return failed + (not tests)
