from savings import LOOP, levers
from tasks import call


def test_a_lever_says_of_how_many_calls_it_could_not_tell() -> None:
    unknown = call("d", 12, 13, marks=(12, 12.5, 13))
    assert "Token counts are unknown for 1 more:" in levers([*LOOP, unknown])["full prefix-cache hits"].assumes
