"""Restaurants, Events and Sports: leaving the house, or inviting people in."""

from __future__ import annotations

from ..model import Domain, Facet
from ..wordbank.outings import (
    CUISINES,
    EVENT_KINDS,
    SPORTS_KINDS,
    event_picks,
    restaurant_picks,
    sport_picks,
)

RESTAURANTS = Domain(
    name="Restaurants",
    thing=("dinner", "the food", "somewhere to eat"),
    kind="recommend",
    facets=(
        Facet(
            "cuisine", r"cuisine|food",
            ("I'm <in the mood for|thinking of> {p}", "I <love|usually go for> {p}",
             "{p} <would be great|sounds right to me>", "{p} is always a good idea"),
            ("What do you feel like eating?", "Which cuisine <are you in the mood for|do you like>?"),
            ("I <stayed with|looked for> {p}, since you <enjoy|love> that.",
             "You often go for {p}, so I looked there first."),
            r"cuisine|feel like eating|kind of food|in the mood",
            frame="{v} food",
            lexicon=(*CUISINES, "fusion", "Mediterranean", "Nordic", "Scandinavian", "seafood", "barbecue",
                     "Portuguese", "Ethiopian"),
            heads=r"(?:\w+ )?(?:kitchens|home food|seafood|yum cha|thali|stands|cafés|grill|soba|street food)",
            noun="the food",
            shape="food",
        ),
        Facet(
            "diet", r"diet|allerg|restrict|need",
            ("I need a kitchen that can handle {p}", "please keep {p} in mind", "there's {p} to think of"),
            ("Any allergies or dietary needs I should know about?", "Is there anything you don't eat?"),
            ("The kitchen <can handle|is used to> {p}, I checked.", "I made sure they can handle {p}."),
            r"allerg|dietary|don't eat",
            frame="a {v} diet",
            say={"nut allergy": "a nut allergy", "shellfish allergy": "a shellfish allergy",
                 "eggs allergy": "an egg allergy",
                 "lactose intolerance": "a lactose intolerance", "no pork": "no pork", "halal": "halal food",
                 "kosher": "kosher food", "gluten-free": "a gluten-free diet",
                 "dairy-free": "a dairy-free diet"},
            lexicon=("vegan", "vegetarian", "gluten-free", "nut allergy", "nut allergies",
                     "shellfish allergy", "eggs allergy",
                     "dairy-free", "halal", "kosher", "keto", "lactose intolerance", "pescatarian",
                     "low-carb"),
            heads=r"no (?!more|less|other|one|longer|matter)(?:raw |horse )?\w+(?: in sauces| at night)?|low salt|"
                  r"lactose intolerance|shellfish allergy|halal|small portions|soft bread|little fried food|"
                  r"diabetes-friendly|gluten-free",
            noun="the diet",
            shape="any",
        ),
        Facet(
            "ambiance", r"ambi|atmosphere|setting|vibe|style",
            ("I'd like {p}", "{p} would be nice", "I'm happiest in a place with {p}"),
            ("What <sort of atmosphere|kind of place> do you like?",),
            ("It has {p}, as you like it.", "You <tend to like|prefer> {p}, and it has that."),
            r"atmosphere|kind of place|ambi|sort of place",
            frame="a {v} atmosphere",
            say={"outdoor seating": "outdoor seating", "fine dining": "a fine dining feel",
                 "live music": "live music",
                 "terrace": "a terrace", "sea view": "a sea view", "terrace seating": "terrace seating"},
            lexicon=("casual", "fine dining", "outdoor seating", "quiet", "cozy", "cosy", "romantic",
                     "lively", "family-friendly",
                     "intimate", "live music", "relaxed"),
            heads=r"open past midnight|marble tables|candlelight|quiet garden|tables outside|high chairs|well lit "
                  r"and unhurried|quiet with daylight|loud and friendly",
            noun="the room",
            shape="room",
        ),
        Facet(
            "price", r"price|budget|cost|spend",
            ("my budget is {v}", "<price-wise|as for the price>, {v} is fine", "I'm thinking {v} price-wise"),
            ("What budget do you have in mind?", "How much would you like to spend?"),
            ("The prices are {v}, within your usual range.", "I kept the prices {v}, as you prefer."),
            r"budget|spend|price",
            lexicon=("budget-friendly", "moderate", "upscale", "luxury", "mid-range",
                     "affordable", "inexpensive"),
            heads=r"(?:up to |under )?\d[\d,.]* (?:tenge|euros?|dollars?|pounds?|rupees|kronor|yen|reais|naira|"
                  r"zloty|pesos)",
            noun="the price",
            shape="any",
        ),
    ),
    offers={
        "": ("How about {place}[ in {city}], {cuisine_kind} place {area}? It has {room}[, and prices are "
             "{price}].",
             "I'd <try|suggest> {place}, {cuisine_kind} spot {area}[ in {city}], known for its {dish}[. "
             "Prices are {price}].",
             "{place}[ in {city}] <looks right|would fit>: {cuisine_kind} kitchen {area}, {room}, and very "
             "good {dish}."),
        "book": ("{place}[ in {city}] has a table[ for {party}] at {hour}: {cuisine_kind} place {area} with "
                 "{room}.",
                 "There's a free table[ for {party}] at {place}, {hour}. It's {cuisine_kind} restaurant "
                 "{area}[ in {city}], "
                 "known for its {dish}."),
        "deliver": ("{place} <delivers|can bring it> by {hour}: {cuisine_kind} kitchen, and the {dish} "
                    "travels well[. I'd "
                    "order for {party}].",
                    "For the food I'd order from {place}, {cuisine_kind} kitchen {area}; they can be there "
                    "by {hour} with {dish}."),
    },
    done={
        "": ("I've reserved a table[ for {party}] at {place}, {hour}.",
             "{place} is booked[ for {party}] at {hour}[, with a note about {diet}]."),
        "deliver": ("I've ordered from {place}[ for {party}]; the {dish} arrives by {hour}[, with a note "
                    "about {diet}].",),
    },
    opening=("I'm looking for a place to eat", "I need a restaurant"),
    bland=("There are many restaurants in the area. You can check reviews online to choose one.",
           "A popular choice is the Grand Grill. It serves a variety of dishes.",
           "Dining out is a nice idea. Most restaurants take bookings by phone."),
    items=restaurant_picks,
)  # fmt: skip

EVENTS = Domain(
    name="Events",
    thing=("something to do", "the event", "tickets for an event"),
    kind="recommend",
    facets=(
        Facet(
            "kind", r"type|kind",
            ("I <enjoy|like> {v}", "my kind of thing is {v}", "I <usually|mostly> go to {v}"),
            ("What sort of events do you enjoy?", "Music, theatre, something else?"),
            ("You <enjoy|often go to> {v}, so I looked there first.",
             "I <looked among|went for> {v}, which you like."),
            r"sort of event|kind of event|type of event|music, theatre",
            lexicon=(*EVENT_KINDS, "theatre", "theater", "live music", "author talks", "networking events",
                     "food festivals",
                     "music festivals", "outdoor concerts", "dance performances", "stand-up comedy"),
            heads=r"(?:\w+ )?(?:\w+ nights|ethno-jazz|demos|tournaments|spoken word|fairs|rallies|concerts|readings|"
                  r"festivals|exhibitions|markets|eisteddfod|parades|premieres|matches)",
            noun="the kind of event",
            shape="any",
        ),
        Facet(
            "price", r"price|budget|cost|limit",
            ("I'd like to spend {p}", "my budget is {v}", "tickets should be {v}"),
            ("What would you like to spend?", "How much may it cost?"),
            ("Tickets are {v1}, within what you usually spend.", "It's {v1}, so it fits your usual budget."),
            r"spend|cost|budget",
            frame="{v}",
            lexicon=("under $50", "$50-$100", "$100+", "free", "affordable"),
            heads=r"(?:up to |under )?\d[\d,.]* (?:tenge|euros?|dollars?|pounds?|rupees|kronor|yen|reais|naira|"
                  r"zloty|pesos)|free only",
            noun="the ticket price",
            shape="any",
        ),
        Facet(
            "group", r"group|party|company|with|companion",
            ("I go {p}", "I'd be going {p}"),
            ("Are you going alone or with others?", "How many of you are going?"),
            ("It works well {p}, the way you like to go.",),
            r"alone|how many|with others|with someone",
            say={"solo": "solo", "pair": "as a pair", "small group": "with a small group",
                 "large group": "with a large group", "couple": "as a couple", "family": "with the family"},
            lexicon=("small group", "small groups", "solo", "as a pair", "large group", "with a friend",
                     "pair"),
            noun="the company",
            shape="with",
        ),
        Facet(
            "seat", r"seat|ticket",
            ("{v} is <fine|what I prefer>", "I prefer {v}"),
            ("Any wishes for the seats?",),
            ("I looked at {v} tickets, your usual choice.",),
            r"seats?|standing",
            lexicon=("general admission", "VIP seating", "VIP", "standing", "front row"),
        ),
        Facet(
            "days", r"day|week|when",
            ("{v} <suit me best|are best for me>", "I'm mostly free {p}"),
            ("Which days suit you?",),
            ("It's {p}, when you usually go out.",),
            r"which days?|what day|when (?:are|would)",
            frame="on {v}", say={"weekends": "on weekends", "weekdays": "on weekdays"},
            lexicon=("weekends", "weekends only", "Fridays", "Saturdays", "Sundays", "weekdays"),
        ),
        Facet(
            "venue", r"venue|place",
            ("I like going to {v}", "{v} is always a good place",),
            ("Is there a venue you like?",),
            ("I looked at {v} first, where you like to go.", "I started with {v1}, one of your places.",),
            r"venue",
            noun="the venue",
            proper=True,
        ),
    ),
    offers={
        "": ("{event1}[ in {city}] <sounds right|would fit>: {about1}, {when}. {event2} is on as well, "
             "{about2}.",
             "How about {event1}[ in {city}], {when}? It's {about1}. Or {event2}, {about2}.",
             "<Two ideas|Two that caught my eye>[ in {city}]: {event1}, {about1}, and {event2}, {about2}[; "
             "tickets are {price1}]."),
        "book": ("There are still tickets[ ({seat})] for {event1}[ in {city}], {when}: {about1}[, tickets "
                 "{price1}].",
                 "{event1}[ in {city}], {when}, has tickets left[, {seat}]. It's {about1}."),
    },
    done={
        "": ("I've saved {event1} for you, {when}, and {event2} as a second choice.",
             "{event1} is on your list, {when}[, {price1}]."),
        "book": ("I've booked your tickets for {event1}, {when}[, {seat}].",
                 "Your tickets for {event1} are confirmed: {when}[, {seat}]."),
    },
    opening=("I'm looking for something to do", "I'd like to go out to an event"),
    bland=("There are often events in most cities. A local events site will list them.",
           "You could try a street market. Those are popular with many people.",
           "Events are a fun way to spend your time."),
    items=event_picks,
)  # fmt: skip

SPORTS = Domain(
    name="Sports",
    thing=("the match", "the sports side", "the game on TV"),
    kind="track",
    facets=(
        Facet(
            "sport", r"sport(?!.*exercise)",
            ("I follow {v}", "I'm <mostly|mainly> into {v}", "what I really care about is {v}"),
            ("Which sports do you follow?", "What sport are we talking about?"),
            ("I kept to {v}, since you follow that most.", "You follow {v}, so that's where I looked."),
            r"which sports?|what sport",
            lexicon=SPORTS_KINDS,
            heads=r"(?:\w+ )?(?:climbing|boxing|hockey|cricket|badminton|derby|curling|bowling|rugby union|rugby "
                  r"league|sheepdog trials|fell running|sumo|racing|baseball|futsal|capoeira|ski jumping|biathlon|"
                  r"netball|MotoGP|Formula 1|chess|handball|swimming)",
            noun="the sport",
            shape="any",
        ),
        Facet(
            "team", r"team|club|player|athlete",
            ("I support {p}", "my team is {p}", "I'm a fan of {p}"),
            ("Which team do you support?", "Do you have a team?"),
            ("I started with {p}, your team.", "Of course {p} came first on my list."),
            r"which team|have a team|support",
            cue=r"teams?|clubs?|squads?|support(?:s|er)? of|fan of|follow(?:s|ing)? the|follow(?:s|ing)?",
            proper=True,
        ),
        Facet(
            "viewing", r"view|watch|coverage",
            ("I <like|prefer> to watch {p}", "for me it's {p}"),
            ("Do you watch live or just the highlights?",),
            ("You like {p}, so that's what I lined up.",),
            r"live or|highlights|how do you watch",
            frame="{v}",
            say={"live": "it live", "highlights": "the highlights", "full games": "full games",
                 "replays": "replays"},
            lexicon=("live", "highlights", "full games", "replays", "in-depth analysis",
                     "post-game commentary", "live matches",
                     "live games"),
        ),
        Facet(
            "exercise", r"exercise|own",
            ("my own exercise is {v}", "I keep fit with {v}"),
            ("How do you like to move?",),
            ("It's built around {v}, your own thing.", "I kept {v} in the middle of it.",),
            r"like to move|exercise",
            noun="the exercise",
            heads=r"(?:morning )?badminton|ski touring[\w ]*|open-water swimming|running|allotment digging|"
                  r"cross-country skiing|radio gymnastics|capoeira[\w ]*|touch rugby[\w ]*|walking up [\w ]+|para "
                  r"hockey",
            shape="any",
        ),
    ),
    offers={
        "exercise": ("For the fortnight I'd plan {exercise_or} every third day, short at first, with a walk or a "
                     "rest day between.",
                     "Two careful weeks: {exercise_or} three times in the first, four in the second, never two days "
                     "running."),
        "": ("{team_cap}: {result}, and the next match is {fixture}. I've <set|switched on> alerts for both.",
             "Here's the latest on {team}: {result}. The next match is {fixture}, and you'll hear about "
             "every goal."),
        "plan": ("{team_cap} play {fixture} at the {ground}; gates open two hours before, and seats start "
                 "at ${price}. "
                 "{inn} is ten minutes' walk away.",
                 "For {team}, {fixture}, I found seats from ${price} at the {ground}, and {inn} nearby has "
                 "rooms."),
        "compare": ("I've pulled the numbers for {team}: {stat}, and {stat2}. The long-run trend is upwards.",
                    "For {team} the records show {stat}; on top of that, {stat2}."),
        "shop": ("For a fan of {team} I found a retro scarf (${price}), a framed programme from a past "
                 "final, and the new shirt.",
                 "I found three things around {team}: this season's shirt, a scarf for ${price}, and a "
                 "signed photo."),
    },
    done={
        "exercise": ("The two-week plan is set: {exercise_or}, with rest days between.",),
        "": ("I've set alerts for {team}: scores, line-ups and the match {fixture}.",
             "Alerts for {team} are on, and the match {fixture} is in your list."),
        "plan": ("I've saved the plan: {team}, {fixture}, seats from ${price} at the {ground}, a room at "
                 "{inn}.",),
        "compare": ("I've saved the figures for {team} to your notes: {stat}.",),
        "shop": ("I've put the scarf and the shirt on your list, ${price} and up.",),
    },
    opening=("I'd like to catch up on sports", "I want to follow the sports better"),
    bland=("Sports news can be found on most sports websites.",
           "There are many matches this week. Check a sports app for the schedule.",
           "Sports are exciting to follow. Scores are updated regularly online."),
    items=sport_picks,
)  # fmt: skip

DOMAINS = (RESTAURANTS, EVENTS, SPORTS)
