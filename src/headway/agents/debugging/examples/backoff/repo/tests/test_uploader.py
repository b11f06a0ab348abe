from uploader import upload
from waits import wait_before


def test_waits_double_up_to_a_bound() -> None:
    assert [wait_before(n) for n in (1, 2, 3, 10)] == [1.0, 2.0, 4.0, 30.0]


def test_success_at_once() -> None:
    assert upload(lambda: 200, lambda seconds: None)
