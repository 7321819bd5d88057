"""No cut moves unless it is meant to: `digests.py` says how the fixture is written."""

from __future__ import annotations

import pytest

from tests import digests

PAPERS = [name for name in digests.recorded() if name not in digests.MADE]


@pytest.mark.parametrize("table", digests.MADE)
def test_the_cuts_of_made_tables_are_as_they_were(table):
    assert digests.digests(table) == digests.recorded()[table]


@pytest.mark.skipif(digests.FOLDER is None, reason="BOOSTBINS_DATA names no folder of the paper's datasets")
@pytest.mark.parametrize("table", PAPERS)
def test_the_cuts_of_the_papers_tables_are_as_they_were(table):
    now = digests.digests(table, quick=True)
    assert now == {case: digests.recorded()[table][case] for case in now}


@pytest.mark.skipif(digests.FOLDER is None, reason="BOOSTBINS_DATA names no folder of the paper's datasets")
def test_every_table_is_recorded():
    assert list(digests.recorded()) == digests.tables()
