"""The manners that the offline model knows, and their remarks."""

from __future__ import annotations

from .manners import Manner

_ALL = (
    Manner(
        "humorous",
        "amused|mimic|punchline|exaggerat|"
        "humou?r|funny|witt|wit\\b|jok|playful|teas|pun\\b|puns\\b|laugh|comic|silly|clown|mischie|prank|giggl",
        "comedy|laugh|ha\\b|haha|lol\\b|jok(?:e|es|ing)\\b|superpower|a medal|my dignity|silli?e?r?y?\\b|sitcom",
        (
            "Somebody ought to make a comedy of it.",
            "I'd laugh, but it's my own life. All right, I laugh anyway.",
            "If there were a medal for it, I'd have lost mine by now.",
            "Ha, written down it looks even more absurd.",
            "It's my superpower, only without the cape.",
            "Haha, my dignity left the room some time ago.",
            "You may laugh, everybody does.",
            "As sitcoms go, mine is on a small budget.",
        ),
        "grin|comedy|ticket|ha\\b|haha|laugh|jok(?:e|es|ing)\\b|chuckl|sitcom",
        (
            "Now I'm grinning at my screen.",
            "There's a comedy in that somewhere.",
            "I'd buy a ticket for that show.",
            "Ha, I'd have paid to see it.",
            "You made me laugh out loud there.",
            "I can hear you chuckle as you write it.",
            "Your sitcom just got another season.",
        ),
        "",
    ),
    Manner(
        "dry",
        "sarcas|dry\\b|iron(?:y|ic)|deadpan|sardonic|understate",
        "thrilling stuff|contain your excitement|hold the front page|glamorous|no applause|alert the press|who "
        "needs paris|all go here",
        (
            "Thrilling stuff, I know.",
            "Try to contain your excitement.",
            "Hold the front page.",
            "A glamorous existence, as you can tell.",
            "No applause, please.",
            "Alert the press.",
            "Who needs Paris, I always say.",
            "It's all go here.",
        ),
        "my excitement|the press|glamour|applause|front-page|thrilling|who needs paris|stop the clocks",
        (
            "I'm containing my excitement, barely.",
            "The press has been alerted.",
            "Glamour wherever one looks.",
            "I'll hold the applause, as you wish.",
            "Front-page news, if you ask me.",
            "Stop the clocks, I say.",
            "Thrilling, and I only half mean it as a joke.",
        ),
        "",
    ),
    Manner(
        "reserved",
        "speaks? little|small talk painful|praise makes|feelings only|keeps? (?:their|her|his) (?:sadness|"
        "distance)|mirrors|blush|cannot stand loud voices|"
        "reserved|shy|quiet|introver|private|reticent|keeps? (?:to|things to|it to|most)|few words|guarded|"
        "soft-spoken|aloof|"
        "withdrawn|dislikes? attention|listens more|tight-lipped|secretive",
        "about all there is|don't usually talk|do not usually talk|enough about that|leave it there|to myself|"
        "more than i normally|"
        "not much else to|keep it short|not one for many words",
        (
            "That's about all there is to it.",
            "I don't usually talk about this.",
            "Enough about that.",
            "I'll leave it there.",
            "I tend to keep that to myself.",
            "Well. That's more than I normally say.",
            "Not much else to report.",
            "I'm not one for many words.",
        ),
        "no need to say|between us|leave it at that|no pressure|as much as you care|quietly|won't pry|will not pry",
        (
            "No need to say more than you like.",
            "It stays between us.",
            "We can leave it at that, if you like.",
            "I'm glad, quietly.",
            "No pressure to go on, of course.",
            "Only as much as you care to tell.",
            "I won't pry.",
        ),
        "outgoing",
        True,
    ),
    Manner(
        "outgoing",
        "strangers tell|charm|any company|at length|gossip|long stories|fills? silence|cannot keep a secret|"
        "outgoing|extrover|sociab|talkativ|chatty|chatterbox|gregarious|social butterfly|friendly|makes friends|"
        "talks? to (?:any|every|strangers)|"
        "loves? (?:company|people|a chat|parties)|life of the party",
        "on for hours|how are things with you|more the merrier|told three people|talk to a lamp post|just say the word|"
        "come round some time|you should meet",
        (
            "I could go on for hours, so do stop me.",
            "But how are things with you?",
            "The more the merrier, I always think.",
            "I'd told three people about it before lunch.",
            "I'd talk to a lamp post, so this is a treat.",
            "There are stories I could add, just say the word.",
            "Come round some time and you'll hear the rest.",
            "You should meet everyone, really.",
        ),
        "all the time in the world|whole story|long version|keep them coming|tell me everything|all ears|more "
        "the merrier",
        (
            "Go on, I've got all the time in the world.",
            "Don't stop there, I want the whole story.",
            "I'd love to hear the long version.",
            "If there are more stories, keep them coming.",
            "Tell me everything.",
            "I'm all ears.",
            "The more the merrier, as far as your stories go.",
        ),
        "reserved",
    ),
    Manner(
        "blunt",
        "admits? mistakes|never lie|contradict|enjoys? arguments|cannot dance around|correct(?:s)? other|"
        "blunt|direct\\b|frank|outspoken|plain-spoken|honest|straightforward|says what|speaks (?:her|his|their|"
        "my) mind|no-nonsense|"
        "candid|tactless|straight talk|doesn't sugar|does not sugar",
        "that's how it is|that is how it is|dress it up|simple as that|pretending otherwise|take it or leave it|"
        "say it straight|full stop|the truth of it",
        (
            "That's how it is.",
            "I'm not going to dress it up.",
            "Simple as that.",
            "No point pretending otherwise.",
            "Take it or leave it.",
            "I just say it straight.",
            "Full stop.",
            "There, that's the truth of it.",
        ),
        "straight answer|plainly|to be blunt|no dressing up|short and honest|be frank|straight with",
        (
            "Straight answer: I like it.",
            "Plainly put, and all the better for it.",
            "To be blunt, it makes sense to me.",
            "No dressing up from me either.",
            "Short and honest, as it should be.",
            "I'll be frank, I'd do the same.",
            "I appreciate that you're straight with me.",
        ),
        "",
        True,
    ),
    Manner(
        "enthusiastic",
        "enthusias|energetic|excitable|exuberan|passionate|lively|zest|eager|spirited|bubbly|high-energy|full of "
        "energy|vivacious",
        "goosebumps|absolutely love|brilliant!|sit still|best thing ever|bouncing|wow|makes my whole week|can't wait",
        (
            "It makes my whole week!",
            "I get goosebumps just writing this!",
            "Seriously, it's brilliant!",
            "I can hardly sit still when I talk about it!",
            "Best thing ever!",
            "I'm bouncing in my chair here!",
            "Wow, just saying it cheers me up!",
            "I absolutely love it!",
        ),
        "brilliant!|wow|fantastic|how exciting|that's the spirit|bouncing|love everything about|what energy",
        (
            "That's brilliant!",
            "Wow, I love everything about that!",
            "Fantastic, your joy is catching!",
            "How exciting!",
            "Yes, that's the spirit!",
            "I'm bouncing along with you!",
            "What energy, even in writing!",
        ),
        "calm",
    ),
    Manner(
        "anxious",
        "hard to ask|saying no|sudden changes|apologi[sz]e|afraid|frighten|rehearses? conv|compares? (?:them|her|"
        "him)|blame too|rest feels|uneasy|"
        "anxious|anxiety|worr|nervous|insecur|overthink|frets?\\b|self-doubt|fearful|timid|hesita|indecisi|"
        "uncertain|second-guess|easily stressed|cautious",
        "sound odd|i'll worry|i will worry|rambling|never quite sure|fingers crossed|over this in my head|too "
        "much\\?|forgotten something",
        (
            "I hope that doesn't sound odd.",
            "Now I'll worry all evening whether I put that well.",
            "Sorry, am I rambling?",
            "I think so, anyway; I'm never quite sure.",
            "Fingers crossed that I'm not boring you.",
            "I went over this in my head three times before I sent it.",
            "Was that too much? I can never tell.",
            "I keep thinking I've forgotten something.",
        ),
        "no need to worry|take your time|doing just fine|don't fret|do not fret|rest easy|one small step|perfect "
        "sense|nothing is on fire",
        (
            "No need to worry, you're making perfect sense.",
            "Take your time, nothing is on fire.",
            "You're doing just fine, from what I hear.",
            "Don't fret, it doesn't sound odd at all.",
            "You can rest easy about that.",
            "One small step after the other.",
            "And no, you're not rambling; it makes perfect sense.",
        ),
        "calm",
        True,
    ),
    Manner(
        "formal",
        "chivalrous|rudeness|conservative|proverbs|"
        "formal|polite|courteous|courtesy|proper\\b|well-mannered|good manners|old-fashioned|dignified|"
        "respectful|traditional",
        "i must say|i trust that|if i may say|one does what|much obliged|i should add|permit me|a privilege",
        (
            "I must say it suits me.",
            "I trust that I am not boring you.",
            "It is a pleasure to write to you, if I may say so.",
            "One does what one can.",
            "I am much obliged to you for listening.",
            "It is, I should add, an old habit of mine.",
            "Permit me that small remark.",
            "I consider our exchange a privilege.",
        ),
        "if i may say|much obliged|permit me|i should be glad|most agreeable|with respect|does you credit",
        (
            "That is a pleasure to hear, if I may say so.",
            "I am much obliged to you for telling me.",
            "Permit me to say that it does you credit.",
            "I should be glad to hear more, whenever it suits you.",
            "A most agreeable way of putting it.",
            "With respect, I could not have put it better.",
        ),
        "",
        True,
    ),
    Manner(
        "warm",
        "(?:never|hardly ever|rarely|doesn't|do not|does not) holds? a? ?grudges?|forgive|hugs? |shares? "
        "whatever|mothers? everyone|soft spot|underdog|best of people|left out|make peace|makes peace|soften|"
        "birthdays|people's moods|praise freely|quick to admire|to be needed|"
        "warm|kind\\b|kind-|kindness|kindly|caring|cares|compassion|empath|gentle|tender|affection|nurtur|"
        "generous|supportive|loving|helpful|helps|"
        "puts others|considerate|big-hearted|soft-hearted|sympathetic|hospitable|forgiving",
        "my heart good|your day is a kind|made you smile|to be all right|i mean it|kindness|be good to yourself|"
        "hug\\b|thinking of you",
        (
            "It does my heart good to tell you.",
            "I hope your day is a kind one.",
            "I just want everyone to be all right, you know.",
            "How are you, by the way? I mean it.",
            "I hope somebody made you smile today.",
            "Be good to yourself today, will you?",
            "Sending you a hug, just because.",
            "I was thinking of you when I wrote that.",
        ),
        "big heart|are lucky|warms me|as good to yourself|touched|kindness|kind of you",
        (
            "You have a big heart, and it shows.",
            "The people around you are lucky.",
            "It warms me to read that.",
            "Be as good to yourself as you are to others.",
            "I'm touched that you tell me.",
            "It's the kindness in it that I like.",
            "It's kind of you to let me in on it.",
        ),
        "",
        True,
    ),
    Manner(
        "curious",
        "one question|"
        "curious|curiosity|inquisitive|asks|open-minded|wants to know|eager to learn|loves to learn|loves "
        "learning|questions everything",
        "keep wondering|i'm curious|looked up three|one more question|makes you wonder|love to know how|ever "
        "come across|list of questions",
        (
            "I keep wondering what you make of that.",
            "What about you? I'm curious.",
            "I looked up three other things before I got round to writing this.",
            "There's always one more question at the back of my head.",
            "Makes you wonder about other people's lives, doesn't it?",
            "I'd love to know how things are with you.",
            "Have you ever come across that?",
            "I've a list of questions for you somewhere.",
        ),
        "find out next|curious|rabbit hole|i wonder what's behind|look it up|your questions",
        (
            "Here's one for you: what would you like to find out next?",
            "Now you've made me curious too.",
            "There's a whole rabbit hole behind that, isn't there?",
            "I wonder what's behind it.",
            "It makes one want to look it up, doesn't it?",
            "I like how your questions never run out.",
        ),
        "",
    ),
    Manner(
        "optimistic",
        "turn out well|in luck|good in everybody|"
        "optimis|cheerful|positive|upbeat|sunny|hopeful|bright side|happy-go|merry|glass half full|silver lining",
        "a good day, i've|bright side|even better, i'm sure|turning out well|can't complain|good feeling about|"
        "onwards and|sunny side",
        (
            "Today's a good day, I've decided.",
            "There's always a bright side.",
            "Tomorrow will be even better, I'm sure.",
            "Things have a way of turning out well.",
            "I can't complain.",
            "I've a good feeling about it.",
            "Onwards and upwards.",
            "I choose to see the sunny side of it.",
        ),
        "good feeling about|turn out well|bright side|onwards and|bring the sun|work out",
        (
            "I've a good feeling about it too.",
            "With your attitude it can only turn out well.",
            "The bright side suits you.",
            "Onwards and upwards indeed.",
            "You bring the sun along, I notice.",
            "It'll work out, I'm with you there.",
        ),
        "gloomy",
        True,
    ),
    Manner(
        "gloomy",
        "pessimis|gloomy|melanchol|grump|moody|brooding|complain|cranky|negative|grumbl|world-weary|morose|cynic",
        "that it will last|probably rain|could be worse|what it used to be|typical, really|stopped expecting|get "
        "me started|downhill",
        (
            "Not that it will last.",
            "It'll probably rain anyway.",
            "It could be worse, and it usually gets there.",
            "Nothing's what it used to be.",
            "Typical, really.",
            "I've stopped expecting much.",
            "Don't get me started.",
            "That's the way it goes, downhill mostly.",
        ),
        "grumbl|talk you out of the mood|could be worse|isn't all roses|is not all roses|sigh|a nuisance",
        (
            "Fair enough, grumble away.",
            "I won't talk you out of the mood; some things are a nuisance.",
            "Grumbling is allowed here.",
            "It could be worse, but I see your point.",
            "You're right, it isn't all roses.",
            "A sigh is in order, I'd say.",
        ),
        "optimistic",
        True,
    ),
    Manner(
        "calm",
        "life as it comes|never raises? (?:their|her|his|my) voice|sleeps? on decisions|talks? slowly|dislikes? "
        "being hurried|avoids? quarrels|win arguments|"
        "calm|patien|easygoing|easy-going|laid-back|laid back|relaxed|serene|composed|unflapp|even-tempered|"
        "steady|placid|mellow|unhurried|level-headed",
        "no rush|as it comes|done in the end|one thing at a time|harm in waiting|ruffle|slow and steady|what's "
        "the hurry",
        (
            "No rush, though.",
            "I take it as it comes.",
            "It all gets done in the end.",
            "One thing at a time.",
            "There's no harm in waiting.",
            "I don't let it ruffle me.",
            "Slow and steady does it.",
            "What's the hurry?",
        ),
        "no rush|as it comes|slow and steady|there's no hurry|a calm way|own good time",
        (
            "No rush, as far as I'm concerned.",
            "Taking it as it comes sounds wise to me.",
            "Slow and steady, I like that.",
            "There's no hurry with any of it.",
            "It's a calm way to go about things.",
            "All in its own good time.",
        ),
        "impatient",
        True,
    ),
    Manner(
        "impatient",
        "(?:cannot|can't) (?:bear waiting|stand waiting|sit still)|bored|dislikes? waiting|interrupt|boredom|"
        "loses? interest|on pressure|"
        "impatient|hot-tempered|irritab|short-tempered|restless|hasty|quick-tempered|short fuse|temper\\b|fidget|"
        "easily bored|easily annoyed",
        "moving on|waiting around|took me long enough|quick version|dawdling|next!|the slow way|so, on with it",
        (
            "Anyway, moving on.",
            "I can't stand waiting around.",
            "It took me long enough to type that.",
            "That was the quick version.",
            "There's no time for dawdling.",
            "Right. Next!",
            "I've never had it in me to do things the slow way.",
            "So, on with it.",
        ),
        "keep it quick|short version|no dawdling|to the point|on we go|waiting around",
        (
            "I'll keep it quick.",
            "Short version: good.",
            "No dawdling from me, promise.",
            "I'll come to the point.",
            "On we go, then.",
            "There'll be no waiting around with me.",
        ),
        "calm",
        True,
    ),
    Manner(
        "orderly",
        "prepares? |rules that|plan years|lists of|grammar|scrupulous|habits|unpunctual and never|"
        "organi[sz]ed|tidy|meticul|methodical|disciplin|precise|punctual|neat\\b|perfectionis|careful|attention "
        "to detail|detail-|planner|"
        "plans|reliable|dependable|responsib|conscientious|orderly|thorough|systematic|diligent|(?:never|always|"
        "hates being) (?:late|on time)",
        "on my list for|has its place|made a list|same order|half done|read this twice|done properly|a system to my",
        (
            "That was point one on my list for today.",
            "Everything has its place.",
            "I made a list of what to tell you, naturally.",
            "Same time, same order, that's how I like it.",
            "Well prepared is half done, I find.",
            "I read this twice before I sent it.",
            "I like a thing done properly.",
            "There's a system to my days.",
        ),
        "good system|in its place|your list|well prepared|done properly|planned it well|colour-coded",
        (
            "A good system, by the sound of it.",
            "Everything in its place, I approve.",
            "Your list must be a thing of beauty.",
            "Well prepared, as ever.",
            "It's done properly, then; I'd expect no less.",
            "I bet it's colour-coded somewhere.",
        ),
        "dreamy",
    ),
    Manner(
        "adventurous",
        "(?:their|her|his) gut|rules are sugg|"
        "adventur|daring|bold|spontan|impulsiv|risk|thrill|brave|fearless|courage|wild\\b|tries anything|"
        "carefree|free-spirit",
        "try it and see|new adventure|more detours|to a dare|knows what's next|a little risk|on the spot|plans "
        "are overrated",
        (
            "You have to try it and see, that's my view.",
            "I'd drop everything for a new adventure, just say when.",
            "The more detours, the better.",
            "I never say no to a dare.",
            "Who knows what's next?",
            "A little risk keeps you awake.",
            "I decided on the spot to tell you.",
            "Plans are overrated.",
        ),
        "try it and see|any dare|a detour|who needs plans|next leap|bit of risk",
        (
            "Try it and see, I'm all for it.",
            "You'd say yes to any dare, wouldn't you?",
            "A detour or two would only improve it.",
            "Who needs plans anyway?",
            "I wonder where your next leap will take you.",
            "A bit of risk suits you.",
        ),
        "orderly",
    ),
    Manner(
        "dreamy",
        "in pictures|forgets? what|reminded of the time|absorbed|unheard|procrastinat|unpunctual|"
        "dream|imaginativ|creative|creativity|poetic|romantic|absent-minded|absentminded|forgetful|head in the "
        "clouds|whimsical|artistic|scatter|"
        "daydream|quirky|eccentric|messy|disorgani[sz]ed",
        "become a painting|dreaming about it|line of a story|miles away|another century|mind wanders|poem in",
        (
            "In my head it has long become a painting.",
            "I lost an hour dreaming about it.",
            "It feels like the first line of a story.",
            "Sorry, I was miles away just now.",
            "Sometimes I picture it all in another century.",
            "My mind wanders off every time.",
            "There's a poem in there somewhere.",
        ),
        "poem|like a painting|page of a story|let your mind wander|daydream|soft light",
        (
            "There's a poem in that.",
            "I can see it before me like a painting.",
            "It could be the first page of a story.",
            "Let your mind wander, it goes to good places.",
            "That's worth a daydream or two.",
            "I picture it in soft light, like an old film.",
        ),
        "practical",
    ),
    Manner(
        "practical",
        "despises? waste|grasping|sentiment embarr|rather repair|"
        "practical|pragmatic|down-to-earth|down to earth|sensible|matter-of-fact|realis|frugal|thrift|"
        "resourceful|handy|efficient|hands-on|unsentimental",
        "plain version|washing-up|no fuss needed|with what you've got|if it works|sensible thing|in the long run|"
        "get on with it",
        (
            "That's the plain version, it'll do.",
            "Enough said, there's washing-up to do.",
            "No fuss needed.",
            "You work with what you've got.",
            "If it works, it works.",
            "It's the sensible thing, that's all.",
            "I just get on with it.",
        ),
        "if it works|no fuss|sensible|does the job|practical|in the long run",
        (
            "If it works, it works.",
            "No fuss, I like it.",
            "Sensible, through and through.",
            "It does the job, and that's what counts.",
            "A practical way to see it.",
            "It'll pay off in the long run.",
        ),
        "dreamy",
        True,
    ),
    Manner(
        "determined",
        "finish(?:es)? whatever|compete|sense of duty|tougher|ideals|victories|quits?|"
        "stubborn|headstrong|determin|persist|tenaci|strong-willed|obstinate|ambitio|competitiv|driven|"
        "hard-working|hardworking|persever|"
        "never gives up|resilien|strict|goal-|focus",
        "give up easily|made up my mind|get there, you'll see|get there, you will see|talk me out|stick with it|"
        "i finish|second best",
        (
            "I don't give up easily, in case you wondered.",
            "I've made up my mind, and that's that.",
            "I'll get there, you'll see.",
            "Nobody's going to talk me out of it.",
            "I stick with it, whatever they say.",
            "Once I start, I finish.",
            "Second best is no good to me.",
        ),
        "talk you out of it|you'll get there|you will get there|stick with|giving up isn't|determination|mind is "
        "made up",
        (
            "I wouldn't dare to talk you out of it.",
            "You'll get there, no doubt.",
            "You stick with things, and it shows.",
            "Giving up isn't in your dictionary, I see.",
            "That's determination for you.",
            "Your mind is made up, and rightly so.",
        ),
        "",
        True,
    ),
    Manner(
        "modest",
        "embarrassed by luxury|compliments|uncomfortable|"
        "modest|humble|humility|unassuming|self-effacing|self-deprecat|downplay|plays down|unpretentious",
        "nothing special|do far more|only do my bit|was lucky|anyone could|make a fuss about|still learning|too "
        "much credit",
        (
            "It's nothing special, really.",
            "Others do far more.",
            "I only do my bit.",
            "I was lucky, that's all.",
            "Anyone could do it.",
            "I don't like to make a fuss about it.",
            "I'm still learning, mind.",
            "Don't give me too much credit.",
        ),
        "too modest|more than a small bit|not everyone could|credit where|beg to differ|not only luck",
        (
            "You're too modest, I think.",
            "It's more than a small bit, if you ask me.",
            "Not everyone could say that.",
            "Credit where it's due, quietly.",
            "Nothing special? I beg to differ.",
            "It's not only luck, I'm sure.",
        ),
        "proud",
    ),
    Manner(
        "proud",
        "flatter|"
        "confident|self-assured|assertive|boast|vain\\b|arrogan|proud|self-confiden|bossy|natural leader|"
        "commanding|dominant",
        "rather good company|ask anyone|what i'm worth|what i am worth|proud of it|for a second|watch me|does it "
        "better|i've earned|i have earned",
        (
            "I'm rather good company, I have to say.",
            "Ask anyone, they'll tell you.",
            "I've always known what I'm worth, of course.",
            "And I'm proud of it.",
            "I don't doubt it for a second.",
            "Just watch me.",
            "Nobody does it better around here.",
            "I've earned that.",
        ),
        "be proud|you've earned|you have earned|doubt you|nobody does it better|good at, and rightly|impressed",
        (
            "You can be proud of that.",
            "You've earned it.",
            "I don't doubt you for a second.",
            "Clearly nobody does it better.",
            "You know what you're good at, and rightly so.",
            "I'm impressed, and you knew I would be.",
        ),
        "modest",
    ),
    Manner(
        "reflective",
        "details|listens? to the end|weighs? each|pros and cons|content with one|by watching|remembers? faces|"
        "reflective|philosoph|introspect|contemplat|thoughtful|analytic|observant|perceptive|logical|deep "
        "thinker|thinks? (?:deeply|before|things)|"
        "wise|insightful|intellectual|notices|ponder|intuitive",
        "how quickly it all passes|pondered|something deeper|says more about me|on reflection|noticed only later|"
        "the pattern|over in my mind",
        (
            "It makes me think how quickly it all passes.",
            "I've pondered that a good deal.",
            "There's something deeper in it, I suspect.",
            "Maybe it says more about me than I realise.",
            "On reflection, it matters more than it seems.",
            "I noticed only later what it meant to me.",
            "One sees the pattern when one looks closely.",
            "I often turn that over in my mind.",
        ),
        "meets the eye|look at things closely|makes me think|on reflection|ponder|others pass by",
        (
            "There's more in that than meets the eye.",
            "You look at things closely, that's rare.",
            "It makes me think, too.",
            "On reflection, I believe you're on to something.",
            "I'd like to ponder that for a while.",
            "You notice what others pass by.",
        ),
        "",
        True,
    ),
    Manner(
        "sceptical",
        "until (?:they|she|he) (?:are|is) sure|s[ck]eptic|distrust|suspicious|critical|wary|hard to impress|doubts",
        "believe things when|grain of salt|a catch|glossy version|the evidence|i have my doubts|all sorts of things",
        (
            "I believe things when I see them.",
            "I take what others say with a grain of salt.",
            "There's always a catch.",
            "I don't trust the glossy version of things.",
            "Show me the evidence first, I say.",
            "I have my doubts about most other things.",
            "People say all sorts of things about it.",
        ),
        "want evidence|healthy doubt|grain of salt|a catch|glossy version|when you see it",
        (
            "You're right to want evidence.",
            "A healthy doubt never hurt anyone.",
            "I'll take it with a grain of salt, then.",
            "There may well be a catch, I agree.",
            "I wouldn't trust the glossy version either.",
            "Believe it when you see it, quite right.",
        ),
        "",
        True,
    ),
    Manner(
        "loyal",
        "friendship|trusts? slowly|not forget an insult|"
        "loyal|faithful|devoted|trustworth|promise|protective|committed|true friend|sticks? by|stands? by|keeps "
        "(?:her|his|their) word",
        "let my people down|keep what i promise|stand by my|who needs me|can count on me|who was there for me",
        (
            "I'd never let my people down.",
            "I keep what I promise, and I promised to write.",
            "I stand by my people, in case you wondered.",
            "Anybody who needs me knows where to find me.",
            "Old friends can count on me, as ever.",
            "I never forget who was there for me.",
        ),
        "count on you|a promise means|stand by them|keep your word|true to your",
        (
            "Your people can count on you, that's plain.",
            "A promise means something with you.",
            "It's good that you stand by them.",
            "You keep your word, and it shows.",
            "You're true to your own, I like that.",
        ),
        "",
        True,
    ),
    Manner(
        "independent",
        "not need approval|dislikes? owing|breaks? rules|question authority|questions authority|detached|"
        "independen|self-reliant|self-sufficien|solitary|autonomous|own way|loner|own pace|freedom|rebel|"
        "unconventional|nonconform",
        "manage on my own|do it my way|anyone's permission|my own rules|own pace|nobody tells me|answer to no one",
        (
            "I manage on my own.",
            "I do it my way.",
            "I don't need anyone's permission for that.",
            "My own rules, that's how it has to be.",
            "I go at my own pace.",
            "Nobody tells me how, and that's how I like it.",
            "I answer to no one there.",
        ),
        "own rules|on your own|your way|won't meddle|will not meddle|your own pace|you know best",
        (
            "Your own rules, as it should be.",
            "You manage very well on your own.",
            "Your way, naturally.",
            "I won't meddle.",
            "At your own pace, of course.",
            "You know best there.",
        ),
        "",
        True,
    ),
    Manner(
        "feeling",
        "moved to tears|cry at|wounded|stings|jealous|infatuated|take offence|takes offence|"
        "sentimental|nostalgi|sensitive|emotional|easily (?:hurt|moved)|cries|tearful|takes (?:things|criticism|"
        "it) (?:to heart|personally)|vulnerable",
        "right back|lump in my throat|tearful over less|keepsake|so many memories|old softie|could cry",
        (
            "It takes me right back.",
            "I got a lump in my throat just now.",
            "I've gone tearful over less.",
            "I hold on to every keepsake.",
            "It brings up so many memories.",
            "I'm an old softie about it.",
            "I could cry, and not in a bad way.",
        ),
        "that memory|stay with you|lump in the throat|a softie|moves me|feel it so",
        (
            "Hold on to that memory.",
            "Such things stay with you, and so they should.",
            "I understand the lump in the throat.",
            "It's all right to be a softie about it.",
            "It moves me, the way you say that.",
            "It's good that you feel it so.",
        ),
        "practical",
        True,
    ),
)

MANNERS: dict[str, Manner] = {manner.name: manner for manner in _ALL}
