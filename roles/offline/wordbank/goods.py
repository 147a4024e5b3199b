"""Products, invented providers, and invented market news without any figure to trade on."""

from __future__ import annotations

from collections.abc import Mapping

from ..draws import Draws
from ..prose import capitalised

_PRODUCTS: dict[str, tuple[tuple[str, str], ...]] = {
    "clothing": (
        ("a linen shirt", "cut to last"),
        ("a wool jumper", "warm without the weight"),
        ("a rain jacket", "light enough for a bag"),
    ),
    "electronics": (
        ("a pair of wireless earbuds", "with long battery life"),
        ("a compact speaker", "with good sound for its size"),
        ("an e-reader", "easy on the eyes"),
    ),
    "beauty": (("a plain face cream", "unscented and well reviewed"), ("a solid shampoo", "without plastic packaging")),
    "home goods": (
        ("a woven throw", "made from recycled cotton"),
        ("a reading lamp", "with warm light"),
        ("a stoneware bowl", "hand-glazed"),
    ),
    "pets": (("a puzzle feeder", "to slow down a greedy eater"), ("a washable bed", "soft and sturdy")),
    "books": (("a clothbound classic", "nice to hold"), ("an illustrated atlas", "to browse for hours")),
    "sports": (("a foam roller", "firm and light"), ("a running belt", "snug and light")),
    "health & wellness": (("a sleep mask", "fully dark"), ("a yoga mat", "made from natural rubber")),
    "furniture": (("a folding side table", "solid oak"), ("a slim bookcase", "made to order")),
    "toys": (("a wooden train set", "without batteries"), ("a magnetic tile box", "for rainy days")),
    "automotive": (("a dash camera", "easy to fit"), ("a tyre inflator", "small enough for the boot")),
    "outdoor & camping": (
        ("a two-person tent", "up in five minutes"),
        ("a gas stove", "tiny when packed"),
        ("a head torch", "rechargeable"),
    ),
    "kitchenware": (
        ("a carbon-steel pan", "for life"),
        ("a chef's knife", "well balanced"),
        ("a coffee grinder", "quiet and even"),
    ),
    "jewelry": (("a pair of silver studs", "handmade"), ("a thin chain", "recycled silver")),
    "fashion accessories": (("a leather card holder", "slim"), ("a printed scarf", "light enough for spring")),
    "musical instruments": (("a clip-on tuner", "quick and exact"), ("a travel ukulele", "nicely made")),
    "gardening supplies": (("a hand trowel", "stainless steel"), ("a raised-bed kit", "untreated larch")),
    "fitness equipment": (("a set of resistance bands", "five strengths"), ("a kettlebell", "rubber-coated")),
    "children": (("a rain suit", "proof against puddles"), ("a picture-book box", "six stories")),
    "office": (("a desk mat", "of felt"), ("a monitor stand", "with a drawer")),
    "grocery": (("a spice box", "with eight blends"), ("a box of fair-trade coffee", "freshly roasted")),
}
PRODUCTS = tuple(_PRODUCTS)


def product_picks(values: Mapping[str, list[str]], slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Choose two products of the known categories and a price in the known range."""
    near = {
        "jewellery": "jewelry",
        "outdoor": "outdoor & camping",
        "beauty products": "beauty",
        "gardening": "gardening supplies",
    }
    wanted = [near.get(category.lower(), category.lower()) for category in values.get("category") or []]
    known = [category for category in wanted if category in _PRODUCTS]
    named = (values.get("category") or [""])[0]
    known = known or draws.fork("category").shuffled(["home goods", "electronics", "kitchenware", "books"])[:2]
    one = draws.fork("product", known[0]).pick(_PRODUCTS[known[0]])
    second = known[1 if len(known) > 1 else 0]
    two = next((item for item in draws.fork("product", second, 2).shuffled(_PRODUCTS[second]) if item != one), one)
    if named and named.lower() not in _PRODUCTS:
        one = (
            f"{named} of good quality",
            draws.fork("why").pick(["well reviewed", "made to last", "no worse than the last"]),
        )
    budget = " ".join(values.get("price", [])).lower()
    stream = draws.fork("price", budget)
    price = (
        stream.pick([14, 19, 22])
        if "budget" in budget
        else stream.pick([140, 185])
        if "lux" in budget
        else stream.pick([34, 48, 59, 72])
    )
    return {
        "item1": one[0],
        "why1": one[1],
        "item2": two[0],
        "why2": two[1],
        "item1_cap": capitalised(one[0]),
        "item2_cap": capitalised(two[0]),
        "price": str(price),
        "brand_or": slots.get("brand") or "the brands you follow",
    }


_PROVIDERS: dict[str, tuple[str, ...]] = {
    "haircut": ("Salon Amberley", "Scissors & Sage", "The Corner Barber"),
    "dent": ("Brightwell Dental", "the Linden Practice"),
    "massage": ("Stillwater Massage", "Hands & Stone"),
    "eye": ("Clearview Opticians", "Optik North"),
    "doctor": ("the Parkside Clinic", "Dr Halloran's practice"),
    "check": ("the Parkside Clinic", "Eastgate Medical"),
    "physio": ("Motion Physio", "the Joint Clinic"),
    "": ("Northside Care", "the Meadow Practice"),
}


def provider(values: Mapping[str, list[str]], slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Name an invented provider for the service asked for, with two free slots at a fitting time of day."""
    service = slots.get("service") or "the appointment"
    names = next(bank for word, bank in _PROVIDERS.items() if word in service.lower())
    stream = draws.fork("provider", service)
    hours = " ".join(values.get("hours", [])).lower()
    morning, later = (
        ["9:00 AM", "9:40 AM", "10:30 AM"],
        ["2:20 PM", "3:45 PM"] if "afternoon" in hours else ["5:30 PM", "6:15 PM"],
    )
    pool = morning if "morning" in hours else later if hours else ["11:15 AM", "1:00 PM", "4:30 PM"]
    days = stream.shuffled(["Tuesday", "Wednesday", "Thursday", "Friday"])
    near = slots.get("place") or stream.fork("place").pick(["in the centre", "by the station", "near the park"])
    return {
        "provider": stream.pick(names),
        "service": service,
        "day": days[0],
        "hour": stream.pick(pool),
        "day2": days[1],
        "hour2": stream.pick(later if pool is morning else morning),
        "near": near,
        "good": stream.pick(["well reviewed", "recommended by many regulars", "known for short waits"]),
    }


SECTORS = ("technology", "healthcare", "energy", "real estate", "utilities", "materials")


def finance_news(values: Mapping[str, list[str]], slots: dict[str, str], draws: Draws) -> dict[str, str]:
    """Invent a mood for the known sectors and a piece of news for the known companies; no real figures."""
    sectors = [sector.lower() for sector in values.get("sector") or []]
    stream = draws.fork("market", *sectors)
    others = [sector for sector in stream.shuffled(SECTORS) if sector not in sectors]
    return {
        "sector_or": sectors[0] if sectors else stream.fork("index").pick(["the broad market", "the main index"]),
        "company_or": slots.get("company") or stream.fork("company").pick(["the larger companies", "the big names"]),
        "move1": stream.pick(["slightly up", "a little down", "nearly flat", "up for the third week"]),
        "news1": stream.pick(
            ["reported steady sales", "raised the outlook", "beat expectations by a little", "warned about costs"]
        ),
        "goal_or": slots.get("goal") or "what you're saving for",
        "alert_or": slots.get("alert") or "for anything above $50",
        "sum": str(stream.fork("sum").pick([45, 60, 80, 120])),
        "month": stream.fork("month").pick(["next spring", "October", "the end of the year"]),
        "margin": stream.pick(["healthy", "steady", "a little thin"]),
        "other": others[0],
        "other2": others[1],
        "day": stream.pick(["Monday", "Friday", "Sunday"]),
    }
