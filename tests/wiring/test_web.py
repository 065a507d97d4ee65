"""The proxies of the environment are used, whatever case their names are in."""

from agent_run.wiring.web import proxies_here


def test_proxies_are_those_of_the_environment() -> None:
    environ = {"HTTPS_PROXY": "proxy.test:3128", "no_proxy": "a.test", "http_proxy": "p:1"}

    proxies = proxies_here(environ)

    assert proxies.way_to("https", "b.test", 443) == proxies.https
    assert proxies.way_to("https", "a.test", 443) is None
    assert proxies.http is not None
    assert proxies.http.url == "http://p:1"


def test_one_proxy_may_stand_for_all() -> None:
    proxies = proxies_here({"ALL_PROXY": "http://p:1"})

    assert proxies.http == proxies.https
    assert proxies.http is not None


def test_without_variables_there_is_none() -> None:
    assert proxies_here({}).way_to("http", "a.test", 80) is None


def test_a_proxy_of_another_kind_is_told_and_not_passed_over() -> None:
    proxies = proxies_here({"ALL_PROXY": "socks5://me:secret@p:1"})

    assert "is not of HTTP" in proxies.fault
    assert "secret" not in proxies.fault
