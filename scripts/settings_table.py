"""Write the table of settings in docs/OPERATING.md anew, from the options themselves."""

from pathlib import Path

from lograft_wire import config

PAGE = Path(__file__).parent.parent / "docs" / "OPERATING.md"
BEGIN = "<!-- settings: begin (written by `make settings-table`) -->\n"
END = "\n<!-- settings: end -->"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(before + BEGIN + config.markdown_table() + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
