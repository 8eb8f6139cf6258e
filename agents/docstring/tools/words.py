"""Words that docstrings are made of."""


def listed(text):
    """The words of a text."""
    return text.split()


VERBS = listed("""
    add allow apply append assert assign attach build bump calculate call cancel cast change check choose clean
    clear clone close collect combine compare compile compose compute configure construct convert copy count create
    decode decorate define delete derive describe deserialize detect determine disable display divide drop dump emit
    enable encode ensure enter escape evaluate execute exit expand export extend extract fetch fill filter find
    finish fix flatten flush format freeze generate get give group guess handle hash hide import include increment
    index infer initialize insert install invert invoke iterate join keep limit list load lock log look make map
    mark match measure merge move multiply normalize notify open order pack pad parse partition patch pick pop
    prepare prepend print process provide push put quote raise read record reduce refresh register reject release
    reload remove rename render repeat replace report request require reset resolve restore restrict return reverse
    rewrite rotate round run save scan schedule search select send serialize set shift show shuffle skip slice sort
    split start stop store strip subtract suppress swap switch sync take test toggle tokenize trace transform
    translate traverse trim truncate try turn unpack unregister unwrap update upload use validate verify visit wait
    walk warn wrap write yield
    associate cache retrieve
""")
"""Verbs that a docstring may begin with."""
COMMON = listed("""
    about above after all also always amount an and another any are as at available back based be been before being
    between both but by called can case character characters class code combined contain containing contains content
    contents correct corresponding current data default dictionary different does each either element elements else
    empty end every exist existing false first following for form from full function given has have how if in index
    instance instead integer into is it item items iterable iterator its itself key keys last left length less like
    list longer match matching method module more multiple name named names new next no none not number numbers
    object objects of on one only onto optional or original other otherwise out output over part parts passed position
    possible present previous provided rather represented required result results right same second self sequence
    set shorter should single size so some specific specified start still string strings such text than that the
    their them then there these they this those through times to true tuple two type types under unless until up
    upon used using value values version was when where whether which while whole with within without word words
    would
""")
"""Words that need no support in the code."""
SMALL = listed("""
    the a an this that of and or to in is if for with from by as it self not none whether set return raise true
    false attribute
""")
"""Words that say nothing new by themselves."""
