"""Bad input gets a clear error that is ours, and changes nothing."""

import pickle

import pytest
import tidegate
from tidegate import Limiter, ManualClock, TidegateError

BASES = {
    tidegate.PolicyError: ValueError,
    tidegate.InvalidKeyError: ValueError,
    tidegate.UnknownRuleError: KeyError,
    tidegate.OperationError: ValueError,
    tidegate.RangeError: ValueError,
    tidegate.AddressError: ValueError,
    tidegate.StoreError: OSError,
    tidegate.PolicyFileError: OSError,
    tidegate.MemoryLimitError: ValueError,
    tidegate.ClosedError: ValueError,
    tidegate.InternalError: RuntimeError,
}


def test_every_error_is_ours_and_one_of_pythons():
    codes = set()
    for error, base in BASES.items():
        assert issubclass(error, TidegateError) and issubclass(error, base)
        codes.add(error.code)
    assert len(codes) == len(BASES)


def closed():
    limiter = Limiter("1/s")
    limiter.close()
    return limiter


@pytest.mark.parametrize(
    "error, call",
    [
        (tidegate.PolicyError, lambda: Limiter("20/mni")),
        (tidegate.PolicyError, lambda: Limiter("1/s", on_full="burn")),
        (tidegate.PolicyError, lambda: Limiter.from_policy({"version": 1})),
        (tidegate.PolicyError, lambda: Limiter("1/s", cooldown=-1)),
        (tidegate.PolicyError, lambda: Limiter("1/s", cooldown=float("nan"))),
        (tidegate.InvalidKeyError, lambda: Limiter("1/s").hit(["a", "b"])),
        (tidegate.InvalidKeyError, lambda: Limiter("1/s").hit([])),
        (tidegate.InvalidKeyError, lambda: Limiter("1/s").hit(["a"] * 100)),
        (tidegate.UnknownRuleError, lambda: Limiter("1/s")["nope"]),
        (tidegate.OperationError, lambda: Limiter("1/s").permit("a")),
        (tidegate.OperationError, lambda: Limiter("1/s").reload()),
        (tidegate.RangeError, lambda: Limiter("1/s window").hit("a", max=5)),
        (tidegate.AddressError, lambda: tidegate.ip_key("nonsense")),
        (tidegate.StoreError, lambda: Limiter("1/s", store="file:/proc/nowhere/at/all")),
        (tidegate.PolicyFileError, lambda: Limiter.from_file("/nonexistent/policy.yaml")),
        (tidegate.MemoryLimitError, lambda: Limiter("4096/h window", capacity=1_000_000)),
        (tidegate.ClosedError, lambda: closed().allow("a")),
    ],
)
def test_each_code_has_its_class(error, call):
    with pytest.raises(error) as raised:
        call()
    assert raised.value.code == error.code and str(raised.value)
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is error and str(again) == str(raised.value)
    assert getattr(again, "problems", None) == getattr(raised.value, "problems", None)


NO_KEYS = [None, True, False, 1.5, object(), {"a": 1}, {"a"}, bytearray(b"a"), [["a"]], [None],
           (True,)]


@pytest.mark.parametrize("key", NO_KEYS)
def test_what_is_no_key(key):
    limiter = Limiter("5/min")
    for call in (limiter.allow, limiter.hit, limiter.peek, limiter.record, limiter.reset,
                 limiter.wait, limiter.acquire):
        with pytest.raises(TypeError, match="key"):
            call(key)
    with pytest.raises(TypeError, match="key"):
        limiter.allow_many(["a", key])
    with pytest.raises(TypeError, match="key"):
        limiter.hit_many(["a", key])
    assert len(limiter) == 0


@pytest.mark.parametrize("text", ["\ud800", "ok\udfff", "\udc80" * 100])
def test_surrogates_are_no_text(text):
    limiter = Limiter("5/min")
    calls = [
        lambda: limiter.allow(text),
        lambda: limiter.hit(text),
        lambda: limiter.hit([text]),
        lambda: limiter.hit("a", role=text),
        lambda: limiter.allow_many(["a", text]),
        lambda: limiter[text],
        lambda: tidegate.ip_key(text),
        lambda: Limiter(text),
        lambda: Limiter("1/s", attach={text: 1}),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="surrogates") as raised:
            call()
        assert isinstance(raised.value, TidegateError)
    assert len(limiter) == 0
    assert limiter.allow(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("cost", [-1, 2**64, -(2**70)])
def test_numbers_out_of_range(cost):
    limiter = Limiter("5/min")
    for call in (limiter.hit, limiter.check, limiter.peek, limiter.record, limiter.refund,
                 limiter.reserve, limiter.wait):
        with pytest.raises(tidegate.RangeError):
            call("a", cost)
    with pytest.raises(tidegate.RangeError):
        limiter.hit("a", max=cost)
    assert len(limiter) == 0
    assert limiter.hit("a", 2**64 - 1).reason == "cost"


@pytest.mark.parametrize("cost", ["1", 1.0, None, b"1", [1]])
def test_what_is_no_cost(cost):
    limiter = Limiter("5/min")
    for call in (limiter.hit, limiter.record, limiter.reserve):
        with pytest.raises(TypeError):
            call("a", cost)


def test_wrong_arguments():
    limiter = Limiter("5/min")
    wrong = [
        lambda: limiter.allow(),
        lambda: limiter.allow("a", "b"),
        lambda: limiter.hit("a", 1, 2),
        lambda: limiter.hit("a", role=1.5),
        lambda: limiter.hit("a", role=True),
        lambda: limiter.allow_many("abc"),
        lambda: limiter.allow_many(b"abc"),
        lambda: limiter.allow_many(5),
        lambda: limiter.wait("a", timeout="1s"),
        lambda: limiter.peek("a").headers(5),
        lambda: Limiter(),
        lambda: Limiter("1/s", clock="now"),
        lambda: Limiter("1/s", store=5),
        lambda: Limiter("1/s", attach=object()),
        lambda: Limiter("1/s", attach=b"bytes"),
        lambda: Limiter.from_file(5),
        lambda: ManualClock("now"),
        lambda: tidegate.Decision(),
        lambda: tidegate.Rule(),
        lambda: limiter[0],
    ]
    for call in wrong:
        with pytest.raises(TypeError):
            call()
    for timeout in (-1, float("nan")):
        with pytest.raises(tidegate.RangeError):
            limiter.wait("a", timeout=timeout)
    assert len(limiter) == 0


def test_a_policy_that_holds_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(tidegate.PolicyError, match="nested"):
        Limiter("1/s", attach=loop)


def test_an_argument_that_fails_is_told_as_it_failed():
    def keys():
        yield "a"
        raise LookupError("on purpose")

    limiter = Limiter("5/min")
    with pytest.raises(LookupError, match="on purpose"):
        limiter.allow_many(keys())
    assert len(limiter) == 0


def test_a_panic_is_an_exception_like_others():
    native = pytest.importorskip("tidegate._tidegate")
    if not hasattr(native, "panics"):
        pytest.skip("this is the wheel that users get")
    with pytest.raises(tidegate.InternalError, match="on purpose"):
        native.panics()
