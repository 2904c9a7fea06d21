"""What a parser says of a text that it refuses."""

import pytest

from planner.storage import UnreadableFileError


def refusal(parse, *arguments, **options):
    with pytest.raises(UnreadableFileError) as refused:
        parse(*arguments, **options)
    assert refused.value.hint
    return refused.value.reason
