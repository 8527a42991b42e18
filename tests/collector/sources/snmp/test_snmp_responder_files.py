"""What the shipped responder makes of files that are no recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from soakwatch_testing.snmp_recording import BadRecordingError, load_recording
from soakwatch_testing.snmp_responder import main


@pytest.mark.parametrize("content", ["", "# nothing\n\n", "title: a plan\nphases: []\n", "a,b,c\n1,2,3\n"])
def test_a_file_that_is_no_recording_is_refused_in_one_sentence(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An agent with nothing to report would look like a broken device."""
    file = tmp_path / "plan.yaml"
    file.write_text(content)
    with pytest.raises(BadRecordingError):
        load_recording(file)
    assert main([str(file), "--port", "0"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"snmp_responder: {file}: ")
    assert printed.endswith("no line of the form OID|TAG|VALUE that can be used: that is no recording\n")
    assert printed.count("\n") == 1
