"""What characters are made of: traits along axes, each a sentence. The notation is that of `lives`."""

from __future__ import annotations

from collections.abc import Mapping

AXES: Mapping[str, str] = {
    "company": """
{S} [blossom] in a crowd and [wilt] alone. | +outgoing -reserved
{S} [need] hours of solitude after any gathering. | +reserved -outgoing
{S} [strike] up conversations with strangers in queues. | +outgoing -reserved
{S} [prefer] two close confidants to twenty acquaintances. | +reserved -outgoing
{S} [hover] at the edge of a room before joining in. | +reserved -outgoing
{S} [gather] people around {o} without trying. | +outgoing -reserved
""",
    "speech": """
{S} [talk] fast and [swallow] the ends of words. | +talkative -terse
{S} [choose] each phrase as if it cost a fee. | +terse -talkative
{S} [ramble] and [find] the point by accident. | +talkative -terse
{S} [answer] with a nod where others hold a speech. | +terse -talkative
{S} [speak] in images that need a moment to land.
{S} [swear] cheerfully and without malice.
{S} [phrase] objections as questions.
""",
    "humour": """
{S} [make] puns at the worst possible moment.
{P} humour is deadpan and easily missed.
{S} [laugh] till tears come at slapstick.
{S} [mock] {o}self before anyone else can.
{S} [be] solemn and [get] jokes a day later.
{S} [tease] people as a sign of fondness.
Absurdity delights {o} more than wit.
""",
    "temper": """
{S} [flare] up in a second and [cool] down in two. | +hot -placid
Nothing short of a flood ruffles {o}. | +placid -hot
{S} [simmer] for weeks before saying what is wrong. | -hot
{S} [slam] doors and [regret] it at once. | +hot -placid
{S} [breathe] out slowly and [let] the storm pass. | +placid -hot
{S} [get] icy polite when angry. | -hot
""",
    "courage": """
{S} [leap] first and [measure] the gap afterwards. | +daring -timid
{S} [shrink] from risk and [read] every warning label. | +timid -daring
{S} [be] bold in thought, hesitant in deed. | -daring
{S} [volunteer] for whatever frightens the rest. | +daring -timid
{S} [dread] heights, dogs and official envelopes. | +timid -daring
Dares are irresistible to {o}. | +daring -timid
""",
    "order": """
{S} [line] up pencils by length. | +orderly -chaotic
{S} [thrive] amid heaps that only {s} [understand]. | +chaotic -orderly
{S} [make] lists of lists. | +orderly -chaotic
{S} [mislay] keys, glasses and deadlines. | +chaotic -orderly
{S} [tidy] up whenever upset. | +orderly -chaotic
Schedules chafe {o} like a tight collar. | +chaotic -orderly
""",
    "decisions": """
{S} [decide] on instinct and [defend] it with logic later.
{S} [weigh] alternatives until the bus has left. | -daring
{S} [ask] seven people and [follow] none.
{S} [toss] coins over trifles to save strength.
{S} never [revisit] a choice once made.
{S} [consult] the worst case before all else.
""",
    "trust": """
{S} [trust] everybody until proven foolish. | +trusting -wary
{S} [grant] confidence in tiny portions. | +wary -trusting
{S} [suspect] hidden motives behind gifts. | +wary -trusting
{S} [believe] compliments and excuses alike. | +trusting -wary
{S} [test] newcomers with small untruths. | +wary -trusting
{S} [hand] over secrets as tokens of friendship. | +trusting -wary
""",
    "kindness": """
{S} [notice] who is cold and [fetch] a blanket.
{S} [help] practically and [find] comforting words hard.
{S} [give] more than can be afforded.
{S} [be] kind in private, gruff in public.
{S} [rescue] lost causes out of habit.
Cruelty to the helpless enrages {o}.
""",
    "honesty": """
{S} [tell] the truth even when it bruises. | +frank -tactful
{S} [soften] facts until nobody recognises them. | +tactful -frank
{S} [embroider] anecdotes shamelessly.
{S} [confess] blunders before being asked. | +frank
{S} [withhold] opinions unless pressed. | +tactful -frank
A fib makes {p} ears glow. | +frank
""",
    "hope": """
{S} [assume] that tomorrow will be brighter. | +sunny -gloomy
{S} [expect] rain and [carry] the umbrella with satisfaction. | +gloomy -sunny
{S} [find] silver linings that irritate the sorrowful. | +sunny -gloomy
{S} [brood] over headlines. | +gloomy -sunny
{S} [hope] stubbornly and in secret. | -sunny
{S} [treat] disasters as rehearsals. | -gloomy
""",
    "diligence": """
{S} [polish] a task long past the point of use. | +diligent -idle
{S} [postpone] chores with inventive excuses. | +idle -diligent
{S} [work] in bursts with long lulls between. | -diligent
{S} [cannot] leave a puzzle half solved. | +diligent -idle
{S} [savour] idleness without remorse. | +idle -diligent
{S} [take] shortcuts and [boast] of them. | -diligent
""",
    "pride": """
{S} [bask] in applause. | +proud -modest
{S} [deflect] credit onto colleagues. | +modest -proud
{S} [hate] to be corrected in front of others. | +proud -modest
{S} [underrate] {p} gifts and [overrate] everyone else's. | +modest -proud
{S} [keep] score of slights. | -forgiving
{S} [find] boasting comical, above all {p} own. | +modest -proud
""",
    "grudges": """
{S} [forgive] before the apology is finished. | +forgiving
{S} [remember] an insult by its date. | -forgiving
{S} [bury] quarrels and [dig] them up at anniversaries. | -forgiving
{S} [patch] up rifts between third parties. | +forgiving
{S} [withdraw] without a word from those who disappoint. | -forgiving
Reconciliation matters to {o} more than being right. | +forgiving
""",
    "curiosity": """
{S} [take] apart whatever has screws.
{S} [ask] why until the answer is a shrug.
Novelty tires {o}, and the familiar consoles. | +homely -restless
{S} [plunge] into topics and [surface] an expert.
{S} [eavesdrop] out of pure interest.
{S} [collect] trivial knowledge and [dispense] it freely.
""",
    "change": """
{S} [rearrange] {p} convictions when evidence arrives. | +flexible -stubborn
{S} [cling] to rituals like a sailor to the rail. | +homely -restless
{S} [itch] to be elsewhere. | +restless -homely
Persuading {o} is like moving a wardrobe. | +stubborn -flexible
{S} [adapt] to new surroundings overnight. | +flexible -homely
{S} [resist] every innovation, then [adopt] it with zeal. | -flexible
""",
    "feelings": """
{S} [weep] at farewells, films and brass music. | +tender -cool
{S} [hide] emotion behind brisk efficiency. | +cool -tender
{S} [absorb] other moods like a sponge. | +tender -cool
{S} [reason] about grief instead of feeling it. | +cool -tender
{S} [show] joy with the whole body. | -cool
Longing is {p} default state. | +tender
""",
    "ambition": """
{S} [race] even when nobody else is running. | +driven -unambitious
{S} [be] content to stay where {s} [be]. | +unambitious -driven
{S} [set] goals and [dismiss] them once reached. | +driven -unambitious
Titles and ranks leave {o} indifferent. | +unambitious
{S} [crave] recognition from {p} equals alone. | -unambitious
{S} [compare] {p} progress with that of rivals. | +driven -unambitious
""",
    "rules": """
{S} [obey] signs that no one else reads. | +dutiful -rebel
{S} [bend] regulations with a clear conscience. | +rebel -dutiful
{S} [challenge] anyone who claims authority. | +rebel -dutiful
Fairness outranks friendship in {p} eyes.
{S} [return] borrowed things early. | +dutiful
{S} [regard] duty as a form of love. | +dutiful -rebel
""",
    "independence": """
{S} [refuse] assistance until it is nearly too late.
{S} [lean] on others and [thank] them profusely.
{S} [resent] being told what {s} already [know].
{S} [need] approval before taking a step. | -daring -rebel
{S} [go] against fashion on principle.
{S} [follow] the lead of louder voices. | -rebel -driven
""",
    "patience": """
{S} [wait] without fidgeting, however long it takes. | +patient -hasty
{S} [finish] other people's sentences. | +hasty -patient
{S} [explain] the same matter five times with equal calm. | +patient -hasty
{S} [drum] on tables when progress stalls. | +hasty -patient
{S} [abandon] instructions after the second line. | +hasty -patient
{S} [nurse] long projects like seedlings. | +patient -idle
""",
    "money": """
{S} [count] pennies and [ignore] banknotes.
{S} [splurge] on impulse and [starve] for a fortnight.
{S} [treat] the entire table.
{S} [haggle] for the pleasure of it.
{S} [feel] guilty about comfort.
Bargains exert a fatal pull on {o}.
""",
    "attention": """
{S} [drift] off mid-conversation into reveries.
{S} [spot] the one misprint on a page.
{S} [remember] voices better than names.
{S} [concentrate] so hard that meals are forgotten.
{S} [jump] between subjects like a sparrow.
{S} [read] faces with uncanny accuracy.
""",
    "imagination": """
{S} [invent] biographies for passers-by.
{S} [prefer] blueprints to castles in the air.
{S} [believe] in omens and [deny] it.
{S} [rehearse] catastrophes in vivid detail.
{S} [think] in numbers and proportions.
Beauty stops {o} in mid-stride.
""",
    "conflict": """
{S} [relish] a heated debate. | +combative -meek
{S} [yield] for the sake of peace. | +meek -combative
{S} [argue] both sides to exhaustion. | -meek
{S} [sidestep] confrontation with flattery. | +meek -combative
{S} [defend] the absent. | -meek
{S} [mediate] by making both parties laugh. | -combative
""",
    "habits of mind": """
{S} [doubt] {o}self most when praised.
{S} [hum] while thinking.
{S} [regret] omissions rather than errors.
{S} [worry] about things that are already settled.
{S} [see] the funny side first and the serious one next.
Nostalgia overcomes {o} at odd moments.
{S} [exaggerate] small aches and [belittle] large ones.
""",
}
"""Traits by axis; a character has at most one of each."""
