"""Sleep of cards: released when idle, not opened while they sleep."""

from itertools import pairwise

from cards_kit import pci_card

from planner.monitor.host.sleep import nvidia_sleep_policy


def test_a_card_that_stays_awake_is_released_less_and_less_often(tmp_path):
    pci_card(tmp_path, "active")
    sleep = nvidia_sleep_policy(tmp_path)
    let_go, is_open = [], True
    for now in range(1000):
        if is_open and sleep.should_release(float(now), is_idle=True):
            let_go.append(now)
            is_open = False
        elif not is_open:
            is_open = sleep.may_open(float(now))
    gaps = [later - earlier for earlier, later in pairwise(let_go)]
    assert let_go[0] == 10
    assert gaps == sorted(gaps)
    assert gaps[-1] > 4 * gaps[0]


def test_a_card_that_fell_asleep_is_not_opened_until_it_is_awake(tmp_path):
    pci_card(tmp_path, "active")
    sleep = nvidia_sleep_policy(tmp_path)
    assert not sleep.should_release(0.0, is_idle=False)
    assert not sleep.should_release(1.0, is_idle=True)
    assert sleep.should_release(12.0, is_idle=True)
    # It has the time to fall asleep, and is then opened only once it is awake.
    assert not sleep.may_open(13.0)
    pci_card(tmp_path, "suspended")
    assert not sleep.may_open(60.0)
    assert sleep.asleep() == ("0000:01:00.0",)
    pci_card(tmp_path, "active")
    assert sleep.may_open(61.0)


def test_a_card_that_the_system_does_not_suspend_is_kept(tmp_path):
    pci_card(tmp_path, "active", "on")
    sleep = nvidia_sleep_policy(tmp_path)
    assert [sleep.should_release(float(second), is_idle=True) for second in range(0, 60, 5)] == [False] * 12
