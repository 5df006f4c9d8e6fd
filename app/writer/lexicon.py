"""The words of English and Chinese that the writer knows by heart. Data only."""

import re

WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
"""Inside a character class: Chinese, Japanese and Korean letters."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ABBREVIATIONS = _words(
    """
    mr mrs ms dr prof st sr jr vs etc e.g i.e cf fig no vol inc ltd co corp dept approx est gen col sgt capt lt
    rev hon jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k a.m p.m ph.d
    """
)
"""Written with a full stop that ends no sentence."""

DETERMINERS = _words(
    """
    a an the this that these those my our your his her its their each every no some any another both one two
    three four five six seven eight nine ten many several few first second third next last
    """
)
PREPOSITIONS = _words(
    """
    of in on at by for with from to into about over under behind between through
    """
)

STOPWORDS = (
    DETERMINERS
    | PREPOSITIONS
    | _words(
        """
    i me we us you he him she it they them who whom whose which what when where why how there here then than am
    is are was were be been being have has had having do does did doing done will would shall should can could
    may might must ought need let lets and or but nor so yet if because as until while although though since
    unless whether not never ever always often sometimes again once only just also too very much more most less
    least quite rather really even still already now today tonight tomorrow yesterday up down out off away back
    all none other others such same own everything something anything nothing everybody somebody anybody nobody
    everyone someone anyone ones thing things way ways lot lots bit kind sort well ok okay yes oh um uh er like
    mean know think say says said see get gets got getting go goes going gone went come comes came coming make
    makes made take takes took put puts want wants wanted use uses used try tries tried look looks looked don't
    doesn't didn't isn't aren't wasn't weren't won't can't couldn't wouldn't shouldn't i'm i've i'll i'd you're
    you've you'll you'd we're we've we'll we'd they're they've they'll he's she's it's that's there's what's
    let's us ourselves yourself themselves itself himself herself around after before during without within
    against along across both either neither upon per via toward towards
    """
    )
)
"""Say nothing about the subject."""

VERBS = _words(
    """
    give gives gave given find finds found keep keeps kept tell tells told begin begins began begun write writes
    wrote written read reads bring brings brought stand stands stood hold holds held become becomes became leave
    leaves left feel feels felt hear hears heard run runs ran show shows showed shown set sets send sends sent
    meet meets met pay pays paid sit sits sat speak speaks spoke lose loses lost fall falls fell rise rises rose
    break breaks broke build builds built buy buys bought draw draws drew drop drops drive drives drove eat eats
    ate grow grows grew hang hangs hung ring rings rang sell sells sold teach teaches taught understand
    understands understood wake wakes woke win wins won work works worked start starts started stop stops
    stopped help helps helped ask asks asked call calls called move moves moved turn turns turned learn learns
    learned happen happens happened arrive arrives arrived serve serves served wait waits waited point points
    pointed carry carries carried open opens opened close closes die dies died seem seems seemed allow allows
    allowed
    """
)
"""End a noun phrase in most of their uses; a heading does without them."""

DEPENDENT = re.compile(
    r"^(?:he|she|it|they|him|her|them|this|these|those|that|then|but|so|and|or|also|which|such|however|therefore|"
    r"for each|instead|otherwise|because|before that|after that|since then|everything else|that way)\b"
    r"|^(?:他|她|它|这|那|但|而|所以|因此|于是|然后|并且|而且|不过|因为|否则)",
    re.IGNORECASE,
)
"""Openings of sentences that lean on the one before."""

COURTESY = re.compile(
    r"\b(?:welcome|thanks?(?: you)? for (?:listening|watching|joining)|good (?:evening|morning|afternoon|night)|"
    r"goodbye|bye|see you|subscribe|hello|hi (?:everyone|all)|stay tuned|that is all|that's all|"
    r"can you hear|thank you)\b"
    r"|欢迎|谢谢(?:大家|收听|观看)|感谢|再见|大家好|晚上好|早上好|下午好|下次见|订阅|点赞|听得(?:到|见)吗",
    re.IGNORECASE,
)
"""Greets or takes leave, and says nothing else."""

WEIGHTY = re.compile(
    r"\b(?:important|importantly|in short|in summary|to sum up|the (?:\w+ ){0,2}(?:point|answer|idea|rule|lesson|"
    r"reason|result|problem|question|goal|key) (?:is|was)|remember|we (?:ask|learned|found|decided|agreed)|"
    r"it turned out|that is why|which means|conclusion|we will talk about|i (?:want to|will) talk about)\b"
    r"|重要|关键|总之|总的来说|结论|因此|问题是|原因是|目的|目标|也就是说|归根结底|记住|讨论的是|今天(?:我们)?(?:要|来)?(?:讲|谈|讨论|介绍|说)",
    re.IGNORECASE,
)
"""Announces that the point is coming."""

TURNING = re.compile(
    r"^(?:(?:and|so|now|next|then|first|finally|okay|ok|well|all right),?\s+)*(?:let us|let's|our (?:next|first|second|"
    r"third|last|final|walk)|(?:the|another|one more) (?:(?:next|first|second|third|fourth|fifth|last|final|other) )?"
    r"(?:topic|part|question|stop|subject|point|lesson|chapter|story|example|item|thing)|tonight (?:we|i)|"
    r"today (?:we|i)|we (?:now )?(?:turn|come|move on) to|moving on|as for|i (?:want|would like) to)\b"
    r"|^(?:next|finally|secondly|thirdly),"
    r"|^(?:第[一二三四五六七八九十]|首先|其次|接下来|下面|下一个|最后|另外|再来看|现在我们|今天我们|我们(?:再)?来(?:看|谈|讲|说))",
    re.IGNORECASE,
)
"""Turns to another subject."""
