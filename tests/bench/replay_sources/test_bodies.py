import random

import pytest

from tests.bench.replay_sources.bodies import spans

_CHANCE = random.Random(1)  # noqa: S311 - a draw, no secret
_GO = """package shop

// Shelf holds goods. {padding}
func (s *Shelf) Total(goods []Good) int {{
\ttotal := 0
\tfor _, good := range goods {{
\t\ttotal += good.Price * good.Count
\t\tif total > s.limit {{
\t\t\treturn s.limit
\t\t}}
\t}}
\treturn total
}}
"""
_TSX = """// {padding}
export function Shelf({{ goods }}: Props) {{
  const names = goods.map((good) => good.name);
  return (
    <List title="goods">
      {{names.map((name) => <Item key={{name}} />)}}
    </List>
  );
}}
"""
_JAVA = """class Shelf {{ // {padding}
    int weight(Kind kind) {{
        switch (kind) {{
            case HEAVY:
                log("a heavy one, which takes two people");
                people = 2;
                return scale.weigh(kind) + 1;
            default:
                return 0;
        }}
    }}
}}
"""


@pytest.mark.parametrize(("path", "source"), [("a.go", _GO), ("a.tsx", _TSX), ("A.java", _JAVA)])
def test_a_target_begins_a_statement_and_ends_its_block(path, source):
    text = source.format(padding="." * 200)

    found = [text[span.start : span.end] for span in spans(path, text, _CHANCE)]

    assert found
    for target in found:
        assert target in text
        before, _, after = text.partition(target)
        assert before.endswith(("\n\t", "\t\t", "  "))
        assert after.lstrip().startswith(("}", "default"))


def test_a_file_that_the_grammar_cannot_read_has_no_targets():
    broken = _GO.format(padding="." * 200).replace("total := 0", "total := (0")

    assert not list(spans("a.go", broken, _CHANCE))
