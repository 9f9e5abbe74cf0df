"""Free data."""

from .dsl import *

ABOUT = "attach: free data handed back with a denial"

FEE = {
    "upgrade": "https://example.org/plans", "fee": {"amount": "0.10", "currency": "USDC"},
    "steps": [1, 2.5, None, True, "\u00e9"],
}


def cases():
    yield case(
        "a denial hands back what is attached, an allowed hit does not", policy("1/s", attach=FEE),
        hit(0, due=yes(0, attach=None)), hit(0, due=no("1/s", attach=FEE)),
        hit(1000, due=yes(0, attach=None)),
    )
    yield case(
        "nothing is attached unless said", policy("1/s"),
        hit(0, due=yes(0, attach=None)), hit(0, due=no("1/s", attach=None)),
    )
    yield case(
        "every kind of denial hands it back",
        policy("1/s", attach=FEE, cooldown="5s", budget={"daily": 1}),
        hit(0, due=yes(0)), hit(0, due=no("1/s", attach=FEE)),
        hit(1, due=no("cooldown", attach=FEE)),
        hit(1, cost=2, due=no("cost", None, attach=FEE)), spend(1, 1),
        hit(1, due=no("budget", attach=FEE)),
        check(1, due=no("budget", attach=FEE)), peek(1, due=no("budget", attach=FEE)), wall_ms=NOON,
    )
    yield case(
        "an empty map may be attached", policy("1/s", attach={}),
        hit(0, due=yes(0, attach=None)), hit(0, due=no("1/s", attach={})),
    )
    yield case(
        "exempt and off hand nothing back",
        rules(
            a={"limits": "1/s", "attach": FEE, "exempt": [{"key": "a"}]},
            b={"limits": "1/s", "attach": FEE, "mode": "off"},
        ),
        hit(0, rule="a", due={"reason": "exempt", "attach": None}),
        hit(0, rule="b", due={"reason": "off", "attach": None}),
    )
    yield case(
        "a denied permit hands it back", policy("1 concurrent", attach=FEE),
        permit(0, "p", due=yes(0, attach=None)), permit(0, "q", due=no("1", attach=FEE)),
    )
