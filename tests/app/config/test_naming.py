"""Names of models and tiers, from the file to the catalogue."""

import re
from pathlib import Path

import pytest

from headway.app.config.naming import catalog_of
from headway.app.config.reading import read_config
from headway.app.config.written import File
from headway.core.errors import BadInputError
from headway.policy.models.catalog import Alias, Catalog, Rule, Tier
from headway.policy.models.doubts import Doubts

PAGE = Path(__file__).parents[3] / "docs" / "model-names.md"


def test_the_pages_example_is_read_as_it_is_told() -> None:
    found = re.search(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    assert catalog_of(read_config(found[1], "headway.toml")) == Catalog(
        aliases={
            "fast": Alias(name="fast", models=("qwen3", "qwen3-small")),
            "auto": Alias(
                name="auto",
                tier="basic",
                rules=(Rule(tier="premium", with_tools=True), Rule(tier="premium", over_input_tokens=4000)),
            ),
        },
        tiers={
            "basic": Tier(name="basic", models=("qwen3-small", "qwen3"), context=8000, tools="none"),
            "premium": Tier(name="premium", models=("claude-large", "qwen3")),
        },
    )


def test_without_tables_there_is_none() -> None:
    assert catalog_of(File()) is None


def test_the_pages_ladder_is_read_as_it_is_told() -> None:
    found = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names = catalog_of(read_config(found[1], "headway.toml"))
    assert names is not None
    assert names.aliases["careful"] == Alias(
        name="careful",
        tier="basic",
        escalates=("basic", "premium"),
        doubts=Doubts(mean_logprob=-0.7, judge=0.6),
        judge="qwen3",
    )


def test_tools_may_be_named() -> None:
    written = read_config('[tiers.basic]\nmodels = ["m"]\ntools = ["search"]\n', "headway.toml")
    assert catalog_of(written) == Catalog(
        tiers={"basic": Tier(name="basic", models=("m",), tools=frozenset({"search"}))}
    )


_LADDER = (
    '[tiers.basic]\nmodels = ["m"]\n[tiers.large]\nmodels = ["l"]\n[models.auto]\ntier = "basic"\n'
    "[models.auto.escalate]\n{}\n"
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[models.fast]\n", "headway.toml:1: models.fast: nothing answers for it"),
        ('[models.fast]\ntier = "basic"\n', "headway.toml:2: models.fast.tier: there is no tier 'basic'"),
        (
            _LADDER.format('tiers = ["basic", "best"]'),
            r"headway.toml:8: .*escalate.tiers\[1\]: there is no tier 'best'",
        ),
        (_LADDER.format('tiers = ["large", "basic"]'), "headway.toml:8: .*nothing is ever repeated"),
        (_LADDER.format('tiers = ["basic", "large", "basic"]'), "headway.toml:8: .*a tier is in it twice"),
        (_LADDER.format('tiers = ["basic"]'), "headway.toml:8: "),
        (_LADDER.format('tiers = ["basic", "large"]\nmean_logprob = 0.5'), "headway.toml:9: "),
        (
            _LADDER.format('tiers = ["basic", "large"]\nrefusal = false\njson_schema = false'),
            "headway.toml:7: .*nothing counts against an answer",
        ),
        (
            _LADDER.format('tiers = ["basic", "large"]').replace('tier = "basic"', 'models = ["m"]'),
            "headway.toml:7: .*this name has none; give it a tier",
        ),
    ],
)
def test_what_does_not_fit_together_is_told(text: str, words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        read_config(text, "headway.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tiers.basic]\nmodels = []\n", "headway.toml:2: tiers.basic.models"),
        ('[tiers.basic]\nmodels = ["m"]\ncontext = 0\n', "headway.toml:3: tiers.basic.context"),
        ('[[models.a.rules]]\ntier = "t"\nlane = "fast"\n', r"headway.toml:3: models.a.rules\[0\].lane"),
    ],
)
def test_mistakes_have_their_lines(text: str, words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        read_config(text, "headway.toml")
