"""Finance, Services and Shopping: money and errands."""

from __future__ import annotations

from ..model import Domain, Facet
from ..wordbank.goods import PRODUCTS, SECTORS, finance_news, product_picks, provider

FINANCE = Domain(
    name="Finance",
    thing=("my investments", "the market news", "the money side"),
    kind="track",
    facets=(
        Facet(
            "sector", r"sector|industr",
            ("I <follow|keep an eye on> {v}", "what matters most to me is {v}", "my money is mainly in {v}"),
            ("Which sectors do you follow?", "Which part of the market interests you?"),
            ("I kept to {v}, which you follow most.", "You keep an eye on {v}, so I started there."),
            r"sectors?|part of the market",
            lexicon=(*SECTORS, "consumer goods", "telecommunications", "industrial", "green energy",
                     "renewable energy"),
        ),
        Facet(
            "source", r"news|source|media",
            ("I <trust|read> {v}", "I get my news from {v}"),
            ("Where do you like to get your news?", "Which sources do you trust?"),
            ("I used {v}, the sources you trust.", "It's put together from {v}, as you like it."),
            r"sources?|news from|get your news",
            lexicon=("financial websites", "company reports", "professional analyses",
                     "financial news channels",
                     "investment newsletters", "podcasts", "newsletters", "blogs", "industry publications",
                     "government reports",
                     "financial apps", "email alerts", "social media", "news aggregators"),
        ),
        Facet(
            "company", r"compan|stock|holding",
            ("I'm interested in {p}", "I <hold|have> some money in {p}", "I'm most interested in {p}"),
            ("Which companies are you thinking of?", "Are there companies you follow?"),
            ("I put {v1} first in the list, since you follow that.", "You follow {v}, so I put them on top."),
            r"compan",
            cue=r"compan(?:y|ies)(?: like| such as)?|firms? (?:like|such as)|stocks? (?:like|of|such as)|"
                r"giants? (?:like|such as)|brands? (?:like|such as)", proper=True,
            lexicon=("local tech startups", "biotech firms", "blue-chip companies", "established tech giants",
                     "renewable energy companies",
                     "established Canadian banks", "consumer brands"),
        ),
        Facet(
            "bank", r"bank|payment|app",
            ("my money is with {v}", "I use {v}",),
            ("Which bank or app is it with?",),
            ("I went through {v}, where you keep your money.", "It covers {v1}, of course.",),
            r"which bank|which app",
            noun="the account",
            proper=True,
        ),
        Facet(
            "goal", r"goal|saving",
            ("I'm saving for {p}", "the money is for {p}"),
            ("What are you saving for?",),
            ("It's all for {p}, I haven't forgotten.", "You're saving for {p}, so I had that in mind."),
            r"saving for",
            noun="the goal",
            shape="thing",
        ),
        Facet(
            "alert", r"alert|spending",
            ("about the alerts: {v}, please", "this is when I want an alert: {v}"),
            ("When should I warn you?",),
            ("The alerts are as you like them: {v}.", "I set the alert your usual way: {v}."),
            r"warn you|alert you",
            noun="the alerts",
            heads=r"each evening at [\w-]+|every \w+ (?:evening|morning)|above [\w,.]+ \w+|over [\d,.]+ \w+|monthly "
                  r"summary|weekly summary",
            shape="any",
        ),
    ),
    offers={
        "save": ("I did the sums: with ${sum} a month put aside you'll have {goal_or} paid for by {month}[, "
                 "straight from {bank1}].",
                 "For {goal_or} I'd put aside ${sum} a month[ at {bank1}]; that gets you there by {month}, with a "
                 "little left over."),
        "alert": ("I've set up an alert[ on {bank1}], {alert_or}, so nothing slips past again.",
                  "From now on you'll be told[ by {bank1}]: {alert_or}. Anything unusual comes at once."),
        "": ("<Here's the short version|In short>: {sector_or} <is|are> {move1} this week, and {company_or} "
             "{news1}. I've set <an "
             "alert|alerts> for bigger moves.",
             "This week {sector_or}: {move1}; {company_or} {news1}. A short summary <will come|comes> every "
             "{day}.",
             "For {sector_or} the picture is mixed: {move1}, while {company_or} {news1}."),
        "compare": ("Side by side: {company_or} {news1}, and margins look {margin}; the average for {sector_or} "
                    "is {move1}. Analysts are "
                    "split on the rest of the year.",
                    "I compared {company_or} with the average for {sector_or}: {news1}, debt is {margin}, and "
                    "the sector is {move1}."),
        "track": ("I've set up tracking for {company_or} and {sector_or}, with a short report every {day}[, "
                  "based on {source}]. "
                  "Today: {move1}.",
                  "Tracking is on: {company_or}, plus {sector_or}, with an alert above three percent. Right "
                  "now {sector_or} is {move1}."),
        "recommend": ("Two sectors to look at next to {sector_or}: {other}, steady and slow, and {other2}, "
                      "riskier with more upside.",),
    },
    done={
        "save": ("The plan is set: ${sum} a month for {goal_or}[, from {bank1}], done by {month}.",),
        "alert": ("The alert is set[ on {bank1}]: {alert_or}.",),
        "": ("I've set the alerts for {company_or} and {sector_or}; the next summary comes on {day}[, from "
             "{source}].",
             "Your watchlist is set: {company_or}, {sector_or}, a summary every {day}."),
    },
    opening=("I'd like to keep up with my investments", "I want to know how the market is doing"),
    bland=("The stock market goes up and down. It's important to do your own research.",
           "You can follow prices on finance websites. Diversifying is often recommended.",
           "Investing involves risk, so consider talking to an advisor."),
    items=finance_news,
)  # fmt: skip

SERVICES = Domain(
    name="Services",
    thing=("the appointment", "a service appointment"),
    kind="book",
    facets=(
        Facet(
            "service", r"services? booked|whom",
            ("I need the {v1}", "it's the {v1} I need",),
            ("Which service do you need?",),
            ("I remember that you've called {p} before.",),
            r"which service|what kind of appointment",
            noun="the job",
            heads=r"(?:boiler |wheelchair |piano |motorcycle |optics |watch |shoe |lawnmower |phone |wedding |"
                  r"tatami )?(?:technician|photographer|physiotherapist|mechanic|notary|teacher|artist|bookkeeper|"
                  r"seamstress|optician|mason|chiropodist|tuner|dentist|repairer|hairdresser|plumber|babysitter|"
                  r"roofer|tailor|electrician|cleaner|barber|braider|adviser|sweep|gardener)",
            shape="any",
        ),
        Facet(
            "quality", r"qualit",
            ("this matters to me in a provider: {v}", "what I look for in a provider: {v}"),
            ("What matters to you in a provider?",),
            ("They're known for this: {v}.", "You look for this, and they offer it: {v}.",),
            r"matters to you in",
            noun="the provider",
            heads=r"no prepayment|works evenings|itemised bill|written quote|on time|no small talk|step-free "
                  r"entrance|student discount|gives receipts|speaks \w+|licensed and insured|texts updates|punctual",
            shape="any",
        ),
        Facet(
            "kind", r"type|kind|style",
            ("I prefer {p}", "{p} would suit me", "I like going to {p}"),
            ("What kind of provider do you like, a small one or a chain?",),
            ("It's {p}, as you prefer.", "I looked for {p}, your usual choice."),
            r"kind of provider|small one|a chain",
            frame="a {v} place",
            say={"local": "a local provider", "chain": "a chain", "high-end": "a high-end provider",
                 "budget": "a budget provider",
                 "24/7 service": "a provider with 24/7 service", "independent": "an independent provider"},
            lexicon=("local", "high-end", "chain", "independent", "family-run"),
        ),
        Facet(
            "hours", r"time|when|slot",
            ("I'd need something {p}", "{p} would suit me best", "I can usually come {p}"),
            ("What time of day suits you?", "When could you go?"),
            ("It's {p}, when you usually go.",),
            r"time of day|when could|what time",
            lexicon=("morning", "afternoon", "evening", "late afternoon", "early morning"),
            heads=r"(?:first hour after opening|five in the afternoon|after four|early evening|mid-morning|"
                  r"(?:Wednesday|Friday|Monday) mornings?|early in the week|after work|ten in the morning)",
            noun="the time",
            shape="time",
        ),
        Facet(
            "place", r"location|where|area|distance",
            ("it should be {v}", "I'd like it {v}"),
            ("Where should it be, near home or near work?",),
            ("It's {v}, as you like.", "I looked {v}, since that's easiest for you."),
            r"where should|near (?:home|work)|location",
            lexicon=("near home", "near work", "near campus", "walking distance", "within walking distance",
                     "within 5 km radius",
                     "5 km radius", "near my office", "near public transport", "close to home",
                     "within a 5 km radius"),
        ),
        Facet(
            "gender", r"gender",
            ("I'd rather see {p}", "I prefer {p}"),
            ("Would you rather see a man or a woman?",),
            ("It's with {p}, as you prefer.",),
            r"man or a woman|gender",
            frame="a {v} professional", say={"female": "a female professional",
                                             "male": "a male professional"},
            lexicon=("female", "male"),
        ),
        Facet(
            "pace", r"frequen|often",
            ("I go {p}", "{p} is how I usually do it"),
            ("How often do you go?", "Once, or regularly?"),
            ("I've made it repeat {p}, as before.",),
            r"how often|regularly|once, or",
            say={"one-off": "as a one-off"},
            lexicon=("monthly", "quarterly", "weekly", "yearly", "one-off", "every month"),
        ),
    ),
    offers={
        "": ("{provider} has a free slot for {service} on {day} at {hour}: {good}, {near}.",
             "For {service} I'd suggest {provider}, {near}. They have {day} at {hour}, and they're {good}.",
             "I found {provider}, {near}, {good}. For {service} they have {day} at {hour} or {day2} at "
             "{hour2}."),
    },
    done={
        "": ("I've booked {service} at {provider}, {day} at {hour}.",
             "Your appointment for {service} is booked: {provider}, {day}, {hour}."),
    },
    opening=("I need to book an appointment", "I need an appointment"),
    bland=("Many providers offer appointments online. You can search for one near you.",
           "It's good to look at reviews before you book a service.",
           "There are lots of service providers available. Prices vary."),
    needs=("service",),
    items=provider,
)  # fmt: skip

SHOPPING = Domain(
    name="Shopping",
    thing=("the shopping", "what to buy", "a few things to buy"),
    kind="recommend",
    facets=(
        Facet(
            "store", r"stores?|shop|market",
            ("I usually shop at {v}", "I'd rather get it from {v}",),
            ("Where do you like to shop?",),
            ("I looked at {v} first, where you usually shop.", "{v1} had it, your usual shop.",),
            r"where do you like|which shop",
            noun="the shop",
            proper=True,
        ),
        Facet(
            "category", r"categor|product|item|things|bought",
            ("I'm looking at {v}", "it's mostly {v} I look at", "I'm interested in {v}"),
            ("What sort of things are you looking for?", "Which kind of product is it?"),
            ("I looked among {v}, where you usually shop.", "You shop for {v} mostly, so I began there."),
            r"sort of things|kind of product|category|looking for",
            lexicon=(*PRODUCTS, "home goods", "fashion accessories", "jewelry", "jewellery",
                     "health & wellness", "automotive",
                     "fitness equipment", "gardening supplies", "kitchenware", "musical instruments"),
            heads=r"(?:\w+ )?(?:hardware|headphones|tea|parts|ink|saris|lamps|gloves|trousers|seeds|layers|coffee|"
                  r"stamps|wool|bird seed|tools|records|gear|plants|binoculars|scrubs|sauce|blocks|supplies|beans|"
                  r"timber|nappies|boots|shoes|paint)",
            noun="the thing",
            shape="any",
        ),
        Facet(
            "price", r"price|budget|cost",
            ("I'm thinking {p}", "{p} is about right for me", "my budget is {p}"),
            ("What price range do you have in mind?", "How much would you like to spend?"),
            ("The prices are {v}, as you like.", "It's {p}, your usual range."),
            r"price range|spend|budget",
            say={"budget": "low budget", "mid-range": "mid-range", "luxury": "luxury"},
            lexicon=("mid-range", "luxury", "affordable", "high-end"),
        ),
        Facet(
            "brand", r"brand|maker|label",
            ("I <like|trust> {p}", "I've never been let down by {p}", "I usually buy {p}"),
            ("Any brands you trust?", "Which brands do you like?"),
            ("You like {v}, so I checked there first.", "I looked at {v1} first, one you trust."),
            r"brands?",
            cue=r"brands?|labels?|compan(?:y|ies)|makers?", proper=True,
            lexicon=("local artisan brands", "sustainable fashion labels", "ethical beauty companies",
                     "local artisans"),
        ),
        Facet(
            "size", r"size",
            ("my size is {v}", "the size I need: {v}"),
            ("Which size do you need?",),
            ("The size is {v}, I checked.", "I took your size, {v}.",),
            r"which size|what size",
            noun="the size",
            heads=r"(?:jacket|shirts?|shoes|boots|gloves|trousers) (?:UK |US |EU )?[A-Z0-9][\w.]*(?:, (?:shoes|"
                  r"boots|trousers) (?:UK |US |EU )?[\w.½]+)?",
            shape="any",
        ),
        Facet(
            "delivery", r"deliver|shipping",
            ("about the delivery: {v}, please", "I like to get it this way: {v}"),
            ("How should it get to you?",),
            ("It comes the way you like: {v}.", "For the delivery I chose {v}, as usual.",),
            r"get to you|deliver",
            noun="the delivery",
            heads=r"home delivery[\w: ]{0,12}|pickup point|parcel locker|click and collect|pickup in person|(?:a "
                  r")?locker, any hour|in store|campus pickup station",
            shape="any",
        ),
    ),
    offers={
        "exchange": ("I've registered the exchange[ with {store1}]: the right size[, {size},] goes out as soon as "
                     "the parcel is back. The label is ready.",
                     "The return is booked[ with {store1}] and the new one[ in {size}] is reserved[; {delivery}]."),
        "replace": ("I found a good replacement[ at {store1}]: {item1}, {why1}, ${price}[. Delivery as always: "
                    "{delivery}].",
                    "{item1_cap}[ from {store1}] would do it, {why1}, for ${price}[; {delivery}]."),
        "": ("I found {item1} for ${price}, {why1}, and {item2}, {why2}[. Both are from {brand1} or in that "
             "spirit].",
             "How about {item1}[ from {brand1}], {why1}? It's ${price}. {item2_cap} would be the other "
             "option, {why2}.",
             "Two that <stand out|I'd pick>: {item1}, {why1}, and {item2}, {why2}. The first is ${price}."),
        "track": ("I've set alerts for {brand_or}: new releases, with {item1} out this month, {why1}.",),
    },
    done={
        "exchange": ("The exchange is under way[ with {store1}][, in {size}]. You have the confirmation.",),
        "replace": ("I've ordered {item1}[ from {store1}] for ${price}[, {delivery}].",),
        "": ("I've put {item1} (${price}) and {item2} on your list.",
             "{item1_cap} is in your basket for ${price}, and {item2} is saved."),
        "track": ("Alerts for {brand_or} are on, and {item1} is saved.",),
    },
    opening=("I'd like to buy something new", "I need help finding a product"),
    bland=("There are many products to choose from. Online reviews can help.",
           "You could check the bestsellers of a large online shop.",
           "A gift card is always a safe option."),
    items=product_picks,
)  # fmt: skip

DOMAINS = (FINANCE, SERVICES, SHOPPING)
