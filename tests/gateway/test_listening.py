import errno
import socket

import pytest
from serving import serving

from headway.core.errors import BadInputError
from headway.gateway.listening import cannot_listen


@pytest.mark.parametrize("host", ["a..b", "192.0.2.1"])
async def test_a_host_that_is_none_of_this_machine_is_told_as_that(host: str) -> None:
    with pytest.raises(BadInputError) as raised:
        async with serving(host=host):
            pass
    assert f"Cannot listen on {host}:0" in raised.value.what
    assert "--host" in raised.value.fix
    assert "--port" not in raised.value.fix


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (OSError(errno.EADDRINUSE, "Address already in use"), "Choose another --port"),
        (PermissionError(errno.EACCES, "Permission denied"), "--port from 1024 on"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "--host"),
    ],
)
def test_each_reason_has_its_way_out(error: OSError, fix: str) -> None:
    assert fix in cannot_listen("h", 1, error).fix
