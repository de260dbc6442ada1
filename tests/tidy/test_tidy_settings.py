"""The table of settings in docs/OPERATING.md is the one the program has."""

from lograft_wire import config
from support import tree


def test_operating_page_has_the_settings_as_they_are() -> None:
    page = (tree.ROOT / "docs" / "OPERATING.md").read_text(encoding="utf-8")
    assert config.markdown_table() in page, "run `make settings-table`"
