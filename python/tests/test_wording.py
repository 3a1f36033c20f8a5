"""Messages of the library name Python's arguments."""
import millrace
import pytest

from millrace._wording import in_python


@pytest.mark.parametrize("text,want", [
    ("leaves no batch of 1000: lower --batch or use --tail keep", "leaves no batch of 1000: lower batch= or use tail=\"keep\""),
    ("raise --memory, or lower --workers, --prefetch or --batch", "raise memory=, or lower workers=, prefetch= or batch="),
    ("%u; --memory raises it", "%u; memory= raises it"),
    ("at most 3 boxes, found 5: raise the field's most (--fields boxes:most=5)",
     "at most 3 boxes, found 5: raise the field's most (fields=[{\"name\": \"boxes\", \"most\": 5}])"),
    ("in_pixels; --fields NAME:pixels)?", "in_pixels; fields=[{\"name\": \"NAME\", \"in_pixels\": True}])?"),
    ("no picture field; say which fields to deliver: --fields none", "no picture field; say which fields to deliver: fields=[\"none\"]"),
    ("the test part (--split test)", "the test part (split=\"test\")"), ("--image-key NAME", "image_key=NAME"),
    ("--split-key none takes all", "split_key=\"none\" takes all"), ("--split-key is passed over: it goes with tables", "split_key= is passed over: it goes with tables"),
    ("begin anew with force (--force)", "begin anew with force (force=)"), ("as 'convert --shard-size' makes it", "as 'convert shard_bytes=' makes it"),
    ("over the limit of 9 pixels (--max-pixels)", "over the limit of 9 pixels (max_pixels=)"),
    ("more of them (--log-steps)", "more of them (--log-steps)"),  # no argument here
    ("a -- b --- c --x", "a -- b --- c --x"), ("nothing", "nothing")])
def test_options_become_arguments(text, want):
    assert in_python(text) == want


def test_options_of_a_command():
    assert in_python("--hold-out 0.2 and --val none", {"hold_out": 1, "val": 1}) == "hold_out= 0.2 and val=\"none\""
    assert in_python("--hold-out=0.2", {"hold_out": 1}) == "hold_out=\"0.2\""
    assert in_python("--eval-at 5 --other", {"eval_at": 1}) == "eval_at=5 --other"


def test_errors_of_a_loader(shapes):
    with pytest.raises(millrace.ArgumentError, match="lower batch= or use tail=\"keep\"") as e:
        millrace.Loader(shapes, batch=1000, tail="drop")
    assert "--" not in str(e.value)


def test_every_argument_is_known():
    """Of loaders, and of what makes files."""
    import inspect
    for function in (millrace.Loader, millrace.convert):
        for name in inspect.signature(function).parameters:
            if name not in ("self", "path", "settings", "data", "to", "progress"):
                assert in_python("x --%s" % name.replace("_", "-")) == "x %s=" % name
