"""Alarm, Calendar and Messaging: the small things done at once."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..draws import Draws
from ..model import Domain, Facet, Slots


def _earlier(clock: str, minutes: int) -> str:
    """Give a clock time some minutes earlier; an empty text when the time cannot be read."""
    found = re.match(r"(\d{1,2}):(\d\d)\s*([AaPp])?", clock)
    if not found:
        return ""
    hour, minute, half = (
        int(found.group(1)),
        int(found.group(2)),
        (found.group(3) or "").lower(),
    )
    total = (hour % 12 + (12 if half == "p" else 0) if half else hour) * 60 + minute - minutes
    hour, minute = divmod(total % 1440, 60)
    return f"{(hour - 1) % 12 + 1}:{minute:02d} {'AM' if hour < 12 else 'PM'}"


def _sounds(values: Mapping[str, list[str]], slots: Slots, draws: Draws) -> Slots:
    bank = [
        "soft piano",
        "birdsong at dawn",
        "a slow chime",
        "light rain",
        "a soft marimba",
        "ocean waves",
    ]
    known = values.get("sound") or []
    others = [sound for sound in draws.shuffled(bank) if sound not in known]
    earlier = _earlier(slots.get("time", ""), int(slots["shift"])) if slots.get("shift", "").isdigit() else ""
    return {"other_sound": others[0], "third_sound": others[1], "earlier": earlier}


ALARM = Domain(
    name="Alarm",
    thing=("the alarm", "my alarm", "a wake-up alarm"),
    kind="setup",
    facets=(
        Facet(
            "time", r"time|hour|wake",
            ("I <usually get up|like to be up|normally wake up> at {v}",
             "{v} is <my usual time|when I like to get up>",
             "<please make it|set it for> {v}"),
            ("What time <should it go off|would you like to wake up|do you want it to ring>?",),
            ("You usually get up at {v}, so that's <what I used|the time I went for>.",
             "I <went with|used> {v}, your usual time."),
            r"\bwhat time|\bwhen (?:should|do|would)|which time",
            lexicon=(),
        ),
        Facet(
            "sound", r"sound|tone|\bring|melod|music",
            ("I'd like to wake up to {p}", "for the sound, {p} <works best for me|please|would be lovely>",
             "nothing gets me up as kindly as {p}", "I <wake up best|do best> with {p}"),
            ("<Which|What kind of> sound would you like to wake up to?",
             "Should it be something gentle or something loud?"),
            ("You've <liked|picked> {p} before, so I kept that.", "It starts with {p}, the way you like it."),
            r"sound|tone|wake up to|gentle or",
            say={"gentle nature": "gentle nature sounds", "gradual increase": "a gradual increase in volume"},
            lexicon=("gentle nature", "nature sounds", "birdsong", "bird song", "ocean waves", "loud beeping",
                     "upbeat music", "gradual increase", "soft piano", "church bells", "rain sounds", "radio",
                     "classical music", "gentle chime", "soft chimes"),
            heads=r"(?:\w+ )?(?:strings|drum|drums|birdsong|bells?|chimes?|hymns?|vibration|rooster|lamp|harp|"
                  r"accordion|blackbird|fiddle|guitar)",
            noun="the sound",
            shape="thing",
        ),
        Facet(
            "repeat", r"recur|repeat|frequen|days|pattern|schedule",
            ("it should repeat {p}", "I need it {p}", "<please repeat it|make it repeat> {p}"),
            ("Should it <repeat|go off> on certain days, or just once?",
             "Is this for one day only, or should it repeat?"),
            ("It <repeats|will repeat> {p}, as you usually have it.",
             "I set it to repeat {p}, like your earlier ones."),
            r"repeat|certain days|every day|just once|recurr",
            frame="on {v}",
            say={"everyday": "every day", "every day": "every day", "daily": "every day",
                 "weekdays": "on weekdays",
                 "weekends": "at weekends", "weekdays only": "on weekdays only",
                 "monday to friday": "Monday to Friday",
                 "once": "just once", "one-time": "just once"},
            lexicon=("weekdays", "weekday mornings", "weekends", "every day", "everyday", "Monday to Friday"),
            heads=r"(?:\w+ )?days only|every day of the year|every day|weekdays except \w+|\w+day to \w+day|Sundays "
                  r"only|(?:rotating )?shift roster|changing shifts",
            noun="the days",
        ),
        Facet(
            "snooze", r"snooze",
            ("about the snooze: {v}", "my rule for the snooze: {v}"),
            ("Should there be a snooze?",),
            ("The snooze is as always: {v}.", "I kept your snooze rule, {v}.",),
            r"snooze",
            noun="the snooze",
            heads=r"snoozes? of \w+ minutes|then no snooze",
            shape="any",
        ),
    ),
    offers={
        "": ("I've set <your alarm|the alarm|an alarm> for {time}[, with {sound}][, repeating {repeat}].",
             "Your alarm is set for {time}[ and will wake you with {sound}][. It repeats {repeat}].",
             "Done: an alarm at {time}[ with {sound}][, {repeat}]."),
        "earlier": ("I've set an extra alarm for {earlier}, for that day only[, with {sound}]; your regular {time} "
                    "alarm stays as it is.",
                    "On that one day you'll be woken at {earlier}[ with {sound}]. The usual {time} comes back the "
                    "day after."),
        "cancel": ("I've switched off your regular alarm and set a single one for {time} on the "
                   "<day|morning> after "
                   "your return[, with {sound}].",
                   "Your regular alarm is paused, and a one-time alarm at {time} is waiting for <when "
                   "you're back|"
                   "your return>[, with {sound} as usual]."),
        "change": ("I've updated your alarm: it now rings at {time}[ with {sound}][ and repeats {repeat}].",
                   "Your alarm is changed to {time}[, the sound is {sound}][, and it goes off {repeat}]."),
        "review": ("You have one alarm: {time}[, {repeat}][, with {sound}]. I've kept it as it is for now.",
                   "I've checked your alarms: the one at {time} is active[, it goes off {repeat}]"
                   "[ and the sound is {sound}]."),
        "recommend": ("I've picked three sounds to preview: {sound}, {other_sound} and {third_sound}. "
                      "I've set {sound} <for now|as your alarm sound>, and we can swap it at any time.",),
    },
    done={
        "earlier": ("All set: {earlier} for that day alone[, {sound}], and {time} as usual otherwise.",),
        "": ("<All done|That's set>: the alarm rings at {time}[ with {sound}][, {repeat}].",
             "Your alarm is set: {time}[, {sound}][, {repeat}]."),
        "cancel": ("<All done|Sorted>: the regular alarm is off, and a one-time alarm is set for {time} "
                   "when you're "
                   "back[, with {sound}].",),
        "recommend": ("<All set|Done>: your alarm sound is now {sound}[, starting with the {time} alarm].",),
    },
    opening=("<can you set|I need> an alarm for tomorrow morning", "I want to sort out my alarm"),
    bland=("I've set an alarm for 7:00 AM tomorrow with the default sound.",
           "Alarms can be set in the clock section. Just choose a time and a sound there.",
           "There are many alarm options available. You can pick a time, a sound and the days."),
    needs=(),
    items=_sounds,
)  # fmt: skip


def _slot_in_day(values: Mapping[str, list[str]], _slots: Slots, draws: Draws) -> Slots:
    day = draws.pick(["Tuesday", "Wednesday", "Thursday", "Saturday"])
    hour = draws.pick(["9:30 AM", "11:00 AM", "2:00 PM", "4:15 PM", "5:30 PM"])
    other = draws.pick(["10:00 AM", "1:30 PM", "3:00 PM", "6:00 PM"])
    kinds = values.get("kind") or []
    kind = re.sub(r"s$", "", kinds[0]) if kinds else ""
    return {"day": day, "hour": hour, "other_hour": other, "kind_one": kind}


CALENDAR = Domain(
    name="Calendar",
    thing=("my calendar", "getting it all into my calendar", "the calendar entry"),
    kind="setup",
    facets=(
        Facet(
            "kind", r"event|type|kind|activit|entries|standing",
            ("<most of what I plan is|my calendar is mostly> {v}", "it's mainly about {v}",
             "I plan my days around {v}"),
            ("What sort of event is it?", "<Which|What kind of> events matter most in your calendar?"),
            ("I kept it clear of your {v}.", "Your {v} stay where they are, I worked around them.",
             "I know that {v} matter to you, so I left room for those."),
            r"(?:sort|kind|type) of event|which events",
            lexicon=("family gatherings", "family events", "family dinners", "religious events",
                     "outdoor activities",
                     "social gatherings", "educational classes", "study groups", "professional meetings",
                     "personal appointments", "work meetings", "meetings", "birthdays", "doctor appointments",
                     "sports events", "church services", "networking events", "community events", "deadlines",
                     "school events", "cultural events", "training sessions", "team meetings",
                     "client meetings"),
            heads=r"(?:\w+ )?(?:class|meeting|rehearsals?|practice|choir|shifts|training|lessons|tasks|wall|club)",
            noun="the entries",
            shape="any",
        ),
        Facet(
            "notice", r"notif|remind|alert",
            ("please remind me {v}", "the reminder should come {v}",
             "I like to get my reminders {v}"),
            ("When should I remind you?", "How long before should the reminder come?"),
            ("The reminder comes {v}, as you like it.", "I've set the usual reminder, {v}."),
            r"remind|notif|how long before",
            frame="a reminder {v}",
            lexicon=("15 minutes before", "30 minutes before", "1 day before", "a day in advance",
                     "one day in advance",
                     "one day before", "1 hour before", "one hour before", "two days before", "a week before",
                     "10 minutes before", "the day before", "the evening before", "a day before"),
            heads=r"(?:one|two|three|four|five|six|seven|eight|nine|ten|ninety|forty-five|thirty|fifteen|twenty|"
                  r"\d+) (?:minutes|hours?|days?) (?:before|ahead)|the evening before|the morning itself|a week and "
                  r"then a day",
            noun="the reminder",
            shape="any",
        ),
        Facet(
            "zone", r"zone|utc",
            ("my calendar runs on {v}", "keep everything in {v}, please"),
            ("Which time zone should I use?",),
            ("All times are in {v}.",),
            r"time ?zone",
            lexicon=tuple(f"UTC{sign}{hour}" for sign in "+-" for hour in range(13)),
        ),
        Facet(
            "app", r"app|programme|medium",
            ("my calendar is {p}", "everything goes into {p}"),
            ("Which calendar do you use?",),
            ("It's in {p}, as always.", "I entered it in {p}, where you keep such things."),
            r"which calendar",
            noun="the calendar",
            lexicon=("Google Calendar", "Outlook", "Fantastical", "iCloud Calendar", "paper diary", "Apple Calendar",
                     "wall calendar",),
            shape="thing",
        ),
    ),
    offers={
        "": ("I've put {event} into your calendar for {date}, {hour}[, with a reminder {notice1}].",
             "{date_cap} at {hour} is free, so I've entered {event} there[ and set the reminder {notice1}].",
             "I've scheduled {event} for {date} at {hour}[, reminder {notice1}]. {other_hour} would be free "
             "as well."),
        "change": ("I've moved {event} to {day} at {hour}[, and you'll be reminded {notice1}].",
                   "{event_cap} clashed, so I've rescheduled it to {day}, {hour}[, with the reminder "
                   "{notice1}]."),
        "block": ("I've blocked out {date} for your trip[, all in {zone}], and nothing else is booked over "
                  "it.",
                  "Your trip is in the calendar for {date}[ ({zone})]; two smaller entries moved to {day}."),
        "review": ("I've gone through the week: three entries, the busiest day is {day}, and {event} is at "
                   "{hour}"
                   "[. Reminders are set {notice1}].",
                   "Your next days look manageable: {event} on {day} at {hour}, then a free evening"
                   "[. I've set reminders {notice1}]."),
    },
    done={
        "": ("{event_cap} is in your calendar for {date}, {hour}[, with a reminder {notice1}].",
             "<All set|Done>: {event}, {date} at {hour}[, reminder {notice1}]."),
        "change": ("<All set|Done>: {event} is now on {day} at {hour}[, reminder {notice1}].",),
        "block": ("<All set|Done>: {date} is blocked in your calendar[, in {zone}].",),
        "review": ("<All set|Done>: your schedule is reviewed and the reminders[ come {notice1}| are on].",),
    },
    opening=("I need to put something into my calendar", "<could you|can you> help me organise my calendar"),
    bland=("I can help with your calendar. You can add events by choosing a date and a time.",
           "I've added an event to your calendar for tomorrow at noon.",
           "Keeping a calendar is a great way to stay organised."),
    needs=("event",),
    items=_slot_in_day,
)  # fmt: skip

MESSAGING = Domain(
    name="Messaging",
    thing=("the message", "letting people know", "messaging everyone"),
    kind="send",
    facets=(
        Facet(
            "app", r"\bapps?\b|platform|channel",
            ("we <usually|mostly> write on {v}", "{v} is <best|where they'll see it>", "please use {v}"),
            ("Which app should I use?", "<How|Where> should I send it?"),
            ("I used {v1}, where you usually write.", "It goes through {v1}, your usual app."),
            r"which app|where should|how should i send|which platform",
            lexicon=("WhatsApp", "iMessage", "Telegram", "Facebook Messenger", "Messenger", "SMS", "WeChat",
                     "Slack",
                     "Microsoft Teams", "Discord", "Google Chat", "Line", "Kik", "Snapchat", "Skype",
                     "Signal",
                     "Viber", "Instagram", "email"),
            proper=True,
        ),
        Facet(
            "tone", r"preferred communication|tone|manner|formal",
            ("keep it {v}", "I like my messages {v}", "the tone should be {v}"),
            ("What tone should it have?", "Should it sound relaxed or more formal?"),
            ("I kept the tone {v}, the way you write.", "It sounds {v}, as your messages usually do."),
            r"tone|sound relaxed|formal",
            frame="a {v} tone",
            lexicon=("casual", "formal", "friendly", "professional", "concise", "detailed", "humorous",
                     "empathetic",
                     "polite", "informal", "laid-back", "playful", "warm", "affectionate", "businesslike",
                     "light-hearted", "straightforward"),
            noun="the tone",
            shape="any",
        ),
        Facet(
            "medium", r"communication style|medium|form\b|mode",
            ("{p} <works best|is best for me>", "I'd rather send {p}"),
            ("Text, or would you rather record something?",),
            ("You <usually send|prefer> {p}, so I did it that way.",),
            r"text, or|voice|record|call or",
            say={"text": "a plain text message", "text messages": "plain text messages",
                 "voice messages": "a voice message",
                 "voice calls": "a voice call", "video calls": "a video call"},
            lexicon=("text-based messages", "text messages", "voice messages", "voice notes", "video calls",
                     "voice calls", "phone calls", "text-based communication"),
        ),
        Facet(
            "people", r"contact|people|recipient",
            ("it's <mostly|usually> {v} I write to", "the people I write to most are my {v}"),
            ("Who should get it?", "Who is it for?"),
            ("I've put your {v} at the top of the list.", "Your {v} will see it first."),
            r"who (?:should|is)",
            lexicon=("family members", "close friends", "colleagues", "coworkers", "classmates", "family",
                     "friends",
                     "study group", "teammates", "clients", "neighbours", "children", "grandchildren"),
            heads=r"(?:my |her |his )?(?:sister|brother|niece|aunt|daughter|choir group|book club|supervisor|"
                  r"landlord|study group) ?[A-Z]?\w*",
            noun="the people",
        ),
    ),
    offers={
        "": ("I've sent <it to|this to> {recipient}[ on {app1}]: \"{gist}\"",
             "Message sent to {recipient}[ via {app1}][, as {medium}]: \"{gist}\"",
             "I've written to {recipient}[ on {app1}]: \"{gist}\""),
        "share": ("I've shared your location with {recipient}[ through {app1}], visible for one hour only"
                  "[, with {medium}, nothing else].",
                  "{recipient_cap} can see where you are for the next hour[, on {app1}]; nobody else got a "
                  "notice."),
        "cancel": ("I've muted the group chat[ on {app1}] for a week; nobody gets a notice[, and {people} "
                   "can still "
                   "reach you directly].",
                   "The group[ on {app1}] is muted for eight hours and I've left a note there: "
                   "\"A bit busy today, I'll catch up tonight.\""),
    },
    done={
        "": ("<All sent|Done>: your message to {recipient} is out[ on {app1}].",
             "Your message to {recipient} is sent[ on {app1}]."),
        "share": ("<All set|Done>: {recipient} can see your location for an hour[ on {app1}].",),
        "cancel": ("<All set|Done>: the group chat is muted[ on {app1}], quietly.",),
    },
    opening=("I need to send a message", "can you help me write to someone"),
    bland=("I can help you send messages. Simply choose a contact and type your text.",
           "Your message has been sent.",
           "Staying in touch is important. There are many messaging apps to choose from."),
    needs=("recipient",),
)  # fmt: skip

DOMAINS = (ALARM, CALENDAR, MESSAGING)
