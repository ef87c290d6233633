import os
import signal
import threading

import pytest

from regard.training.signals import stop_on_signal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_handlers_come_back(number):
    before = signal.getsignal(number)
    with stop_on_signal() as stop:
        assert not stop()
        os.kill(os.getpid(), number)
        assert stop()
    assert signal.getsignal(number) is before


def test_the_second_signal_leaves_at_once(monkeypatch):
    left = []
    monkeypatch.setattr(os, "_exit", left.append)
    with stop_on_signal():
        os.kill(os.getpid(), signal.SIGTERM)
        assert left == []
        os.kill(os.getpid(), signal.SIGINT)
        assert left == [130]


def test_the_handlers_come_back_after_an_error():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyError), stop_on_signal():
        raise KeyError
    assert signal.getsignal(signal.SIGINT) is before


def test_outside_the_main_thread_nothing_is_installed():
    answers = []

    def work():
        with stop_on_signal() as stop:
            answers.append((stop(), signal.getsignal(signal.SIGTERM)))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [(False, before)]
