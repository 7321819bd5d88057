"""A plugin for pytest: runs a library's tests with our classes, and writes what becomes of each as a line of JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.peers.substitution import PEERS, substitute


def pytest_addoption(parser):
    group = parser.getgroup("boostbins")
    group.addoption("--peer", choices=sorted(PEERS), help="the library to replace the classes of")
    group.addoption("--peer-results", type=Path, help="the file to write what becomes of each test to")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    """Replace the classes before any file of the tests is imported."""
    if name := early_config.known_args_namespace.peer:
        substitute(PEERS[name])


def pytest_configure(config):
    results = config.getoption("--peer-results")
    if results and not hasattr(config, "workerinput"):  # a worker of xdist only reports
        config.pluginmanager.register(_Results(results))


class _Results:
    def __init__(self, file):
        self.file = file

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(report)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or not report.passed:
            self.write(report)

    def write(self, report):
        crash = getattr(report.longrepr, "reprcrash", None)
        said = str(crash.message if crash else report.longrepr) if report.failed else ""
        with self.file.open("a") as file:  # at once, in case that a later test brings everything down
            file.write(json.dumps({"test": report.nodeid, "outcome": report.outcome, "said": said}) + "\n")
