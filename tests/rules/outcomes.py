"""What every rule may say of every scenario that concerns it: one table, for the tests and for the accuracy bench.

F fail, W warn, P pass, I inconclusive, N not applicable; several letters where each of them is right. A healthy device
may be passed or left open, never failed; an ill one may be failed or left open, never passed. A small letter is what
is said although it is wrong, a known weakness: tests take it as it is, the bench counts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from soakwatch_rules.rule import Outcome

LETTERS: Final[Mapping[Outcome, str]] = {
    Outcome.FAIL: "F",
    Outcome.WARN: "W",
    Outcome.PASS: "P",
    Outcome.INCONCLUSIVE: "I",
    Outcome.NOT_APPLICABLE: "N",
}

_TABLE = """
growth                           | growth | memory_growth | step_change
constant                         | P      | P             | P
white                            | PI     | P             | P
AR .9                            | PI     | P             | P
AR .99                           | PI     | P             | P
AR .999                          | PI     | P             | P
pink .4                          | PI     | P             | P
pink .45, sd 2                   | PI     | P             | P
heavy tails                      | PI     | P             | P
slow noise 3 h                   | PI     | P             | P
outliers 1 %                     | PI     | P             | P
variance doubles                 | PI     | P             | P
quantised 4 %                    | PI     | P             | P
quantised 4 %, quiet             | PI     | P             | P
quantised 1 %                    | PI     | P             | P
gaps 20 % and 3 h                | PI     | P             | P
over half missing                | I      | I             | I
twelve readings                  | I      | I             | I
level flips 2 h                  | PI     | P             | PW
level flips 30 min               | PI     | P             | P
bump 10 % for 2 h                | PI     | P             | PW
bump back at .9                  | PI     | P             | PW
dip 15 % for 3 h                 | PI     | P             | PW
five bumps                       | PI     | P             | PW
batch job each 6 h               | PI     | P             | PW
batch job each 3 h               | PI     | P             | P
sawtooth 20 min                  | PI     | P             | P
sawtooth 1 h                     | PI     | P             | P
sawtooth 3 h                     | PI     | P             | P
sawtooth 6 h                     | PI     | P             | PW
sawtooth 8 h                     | PI     | Pf            | PW
wave 4 h                         | PI     | P             | PW
wave of a day                    | PI     | Pf            | P
half a wave                      | PIf    | Pf            | P
sawtooth of a day                | PIf    | Pf            | PW
warm-up 30 min                   | PI     | P             | P
warm-up 1 h                      | PI     | P             | P
warm-up 4 h                      | PI     | Pf            | P
warm-up in two stages            | PI     | Pf            | P
warm-up stretched                | PI     | P             | P
warm-up, then a step             | PI     | Pf            | PW
warm-up with bumps               | PI     | Pf            | PW
warm-up at .2, untold            | PI     | Pf            | PW
overshoot, then settled          | PI     | P             | P
cache full at .4                 | PI     | Pf            | P
cache full at .65                | PI     | Pf            | P
cache stairs                     | PIf    | Pf            | PW
plateau by a sigmoid             | PI     | Pf            | PW
step +10 %                       | PI     | Pf            | PW
step +10 % late                  | PI     | Pf            | PW
step +20 %                       | PI     | Pf            | W
step +25 % at .9                 | PI     | Pf            | W
step -10 %                       | PI     | P             | PW
two steps +4 %                   | PI     | Pf            | P
three steps +4 %                 | PIf    | Pf            | P
falls 5 % a day                  | PI     | P             | P
falls, then flat                 | PI     | P             | P
step at an event                 | PI     | Pf            | P
restart, warm-up again           | PI     | Pf            | P
load in steps of 3 %             | PI     | Pf            | PW
load hump 6 %                    | PI     | P             | P
logarithmic 3 %                  | PIF    | PF            | P
cache stairs, slow               | PIF    | F             | PW
leak at tolerance                | PIF    | PF            | P
leak 5, daily wave               | PIF    | PF            | P
leak 6 after a release           | PIF    | PF            | PW
leak 5, sawtooth 8 h             | PIF    | PF            | PW
leak 10                          | F      | F             | P
leak 10, AR .9                   | FI     | F             | P
leak 20, AR .99                  | FI     | F             | P
leak 15, pink .4                 | FI     | F             | P
leak 15, heavy tails             | FI     | F             | P
leak 15, sd 3                    | FI     | F             | P
leak 15, outliers                | FI     | F             | P
leak 15, gaps                    | FI     | F             | P
leak 20, quantised 4 %           | FI     | F             | PW
leak 15, sawtooth 20 min         | FI     | Fp            | P
leak 15, sawtooth 1 h            | FI     | Fp            | P
leak 15, sawtooth 3 h            | FI     | Fp            | P
leak 15 after warm-up            | FI     | F             | P
leak 15 with a step              | FI     | F             | PW
leak 15 with batch jobs          | FI     | F             | PW
leak 20 after a release          | FI     | F             | PW
leak 8 now and then              | FI     | Fp            | P
leak 12 in steps                 | F      | F             | P
leak 10 in big steps             | FI     | F             | P
leak doubling each 8 h           | F      | F             | P
leak accelerating                | FI     | F             | P
leak 20 from .6                  | FI     | Fp            | P
leak 40 from .8                  | FI     | Fp            | P
leak 20 over a restart           | FI     | Fp            | PW
leak 15 under a load hump        | FI     | F             | P

counts                           | growth
descriptors stand                | P
descriptors come and go          | PI
one descriptor more, late        | PI
pool of threads grows to its size | PI
descriptors leak one an hour     | F
descriptors leak ten an hour     | F
table of connections fills       | F
free memory stands               | PI
free memory falls 10 % a day     | FI

cpu                              | cpu_spike | cpu_saturation | level
quiet 30 %                       | P         | P  | P
quiet 30 %, each second          | P         | P  | P
bursts of 2 s                    | P         | P  | PF
60 % bursty                      | PIW       | P  | PF
wave of a day 40 ± 25 %          | P         | P  | P
busy 85 ± 8 %                    | PIW       | PW | F
poll mode 100 %                  | I         | W  | F
poll mode 99 %                   | I         | W  | F
half polling 97 %                | I         | W  | F
core in poll mode                | N         | N  | I
20 s of each minute at the top   | P         | P  | F
climbs to the top                | I         | W  | F
spike 5 s each second            | P         | P  | F
spike 11 s each second           | F         | P  | F
spike 15 s each 5 s              | F         | P  | PF
spike 10 s each 10 s             | PF        | P  | P
spike 20 s each 10 s             | F         | P  | PF
spike 120 s each 60 s            | F         | P  | PF
spike 10 min                     | F         | W  | F
spike 2 h                        | F         | W  | F
spike to 90 %                    | P         | P  | P
peg of 3 readings, 10 s          | F         | P  | F
peg of 3 readings, 60 s          | F         | PW | F
plateau 95 ± 2 %                 | F         | P  | F
spike that was asked for         | P         | P  | PF
20 min at the top                | F         | W  | F
20 min at the top, drops         | F         | F  | F

queue                            | queue_growth | saturation
idle                             | P   | P
utilisation .8                   | P   | P
utilisation .95                  | PI  | P
stands at 30                     | P   | P
slots leak 50 % of the limit a day | F | W
slots leak 20 % of the limit a day | F | PW
utilisation creeps .7 to .97     | PI  | PW
full at the end                  | FIW | F

latency                          | latency
heavy tails                      | P
follows a load that halves and doubles | P
follows the square of the load   | PW
a wave of its own, load unknown  | PWI
cold caches                      | PW
a job doubles it for an hour     | PW
twenty times under stress        | P
ping of 0.3 ms, doubled          | P
doubled to the end               | F
doubled from .3 on               | F
doubled to the end, load wave    | F
doubled for 5 h                  | F
doubled after the baseline       | F
twenty times to the end          | F
twenty times for 15 min          | F
ping twenty times to the end     | F

limits                           | saturation
half full                        | P
bursts of one reading            | P
full under stress                | W
no limit stated                  | N
read-only image                  | N
stands at 97 %                   | W
sessions full for 5 min          | F
connections full for 1 h         | F
queue full to the end            | F
queue at 97 % for 30 min         | F
file system fills                | F
sessions climb to 80 %           | W

recovery                         | recovery
back after a step                | P
back slowly                      | P
back swinging                    | P
back swinging fast               | P
back, relapse, back              | P
back after a step, AR noise      | PI
residue 5 %                      | PIF
residue 10 %                     | WF
residue 20 %                     | F
never back                       | F
seen for 2 min after             | I

runs                             | run_difference
no earlier run                   | N
one earlier run                  | I
five earlier, spread 2 %, same   | PIw
five earlier, spread 2 %, +10 %  | FWI
five earlier, spread 2 %, -10 %  | PWI
five earlier, spread 5 %, same   | PIw
five earlier, spread 5 %, +10 %  | FWPI
five earlier, spread 5 %, +30 %  | FWI
ten earlier, spread 2 %, same    | PIw
ten earlier, spread 2 %, +10 %   | FWI

throughput                       | performance_decline | periodic_pause
steady                           | PI | P
checkpoint waves                 | PI | P
comes up                         | PI | PW
one stop of a minute             | PI | PWFI
offered load halves              | PI | PWI
declines 15 % a day              | FI | P
declines 40 % a day              | F  | P
declines faster and faster       | F  | P
falls by half                    | PIFW | PWIF
declines 40 % a day in waves     | FI | P

pauses                           | periodic_pause
no pause                         | P
no pause, AR noise               | P
random 60 s                      | WF
random 300 s                     | WF
each 60 s, jitter 2 %            | WF
each 60 s, jitter 10 %           | WF
each 60 s, jitter 30 %           | WF
each 300 s, jitter 2 %           | WF
each 300 s, jitter 10 %          | WF
each 300 s, read each 10 s       | WF
each 900 s                       | WF
each 60 s of 50 ms               | P
told by a log, each 300 s        | WF
told by a log, random            | WF

drops                            | drops
no drop                          | P
three drops                      | F
a trickle of 1 ppm               | F
drops under stress only          | P
counter of 32 bits wraps         | F
counter begins anew              | P

losses                           | loss
packets: none lost               | P
requests: none lost              | P
connections: none lost           | P
pings: none lost                 | P
packet rates: none lost          | P
answers: none lost               | P
packets: 0.005 % lost            | P
requests: 0.005 % lost           | P
connections: 0.005 % lost        | P
pings: 1 in 2000 lost            | PW
the load comes up                | P
the load has levels              | P
the load ends in the cooldown    | P
answers end in the cooldown      | P
half is lost under stress        | P
packets: 1 % lost                | F
requests: 1 % lost               | F
connections: 1 % lost            | F
pings: 1 % lost                  | F
packet rates: 1 % lost           | F
packets: 99 % lost               | F
requests: 99 % lost              | F
connections: 99 % lost           | F
pings: 99 % lost                 | F
packet rates: 99 % lost          | F
packets: none for 30 s           | F
requests: none for 30 s          | F
connections: none for 30 s       | F
pings: none for 30 s             | F
answers: none for 30 s           | F
0.05 % lost, none before         | F
nothing for 10 min               | F
nothing for 2 s                  | P

overload                         | overload_loss
healthy at 120 %                 | PI
healthy at 200 %                 | PI
excess of 2 %                    | PIF
excess of 5 %                    | F
excess of 20 %                   | F
capacity unknown                 | I

generator                        | generator_health
healthy generator                | P
3 % below what was told          | I
queue full                       | I
CPU at 97 %                      | I
counters fall                    | I
no headroom                      | I
not drained                      | PI

crash                            | process_restart | reboot | core_dump | oom_kill | kernel_fault
calm device                      | P  | P | P | P | P
restart                          | F  | P | P | P | P
restart that no event tells      | F  | P | P | P | P
restart that was announced       | P  | P | P | P | P
process gone                     | F  | P | P | P | P
reboot                           | F  | F | P | P | P
reboot seen by uptime only       | F  | F | P | P | P
reboot that was announced        | P  | P | P | P | P
uptime wraps after 497 days      | P  | P | P | P | P
agent begins anew                | P  | P | P | P | P
clock step                       | P  | P | P | P | P
core file                        | P  | P | F | P | P
killed for want of memory        | F  | P | P | F | P
segfault without a core          | F  | P | P | P | F
segfault of another tenant       | P  | P | P | P | W
lockup that the counter shows    | P  | P | P | P | F

silence                          | hang | gap | coverage
no silence                       | P    | P  | P
hang of 5 min                    | F    | W  | P
pinned CPU, nothing forwarded    | F    | P  | P
management silent, forwarding on | PW   | P  | P
one protocol silent              | P    | PW | P
monitor late                     | P    | P  | P
silent for a fifth of the run    | P    | PW | I
reboot with its silence          | PN   | PW | P

events                           | event_impact
no event                         | N
failover without loss            | P
failover of 300 ms               | P
failover of 3 s                  | P
failover of 10 s                 | F
half of the flows for 6 s        | P
probed failover of 3 s           | PI
probed failover of 10 s          | F
load and probes, 3 s             | P
ten failovers of 1 to 3.2 s      | P
one of ten lasts 8 s             | F
not back by its deadline         | F
nothing tells of traffic         | I

isolation                        | management_isolation
answers as before                | P
three times as late              | P
round trip of 20 ms              | W
round trip of 2 s                | F
20 % of requests lost            | F
2 % of requests lost             | P
starved at 100 % CPU             | F
path cut while data flows        | WP
one source silent                | P
late monitor under stress        | P
reboot under stress              | P
no pressure told                 | N
looks as long as before          | P
looks as long, but wandering     | P
looks four times as long         | P
twice as many surveys            | P
looks 14 times as long, 0.7 s    | W
looks 60 times as long, 3 s      | F
looks of 3 s, twice as long      | W
20 % of looks lost               | F
2 % of looks lost                | P
"""


Entries = dict[tuple[str, str, str], frozenset[str]]


def _parsed(text: str) -> Entries:
    found: Entries = {}
    for block in text.strip().split("\n\n"):
        head, *rows = ([cell.strip() for cell in line.split("|")] for line in block.splitlines())
        for row in rows:
            for rule, cell in zip(head[1:], row[1:], strict=True):
                found[rule, head[0], row[0]] = frozenset(cell)
    return found


_ENTRIES: Final = _parsed(_TABLE)

RIGHT: Final[Entries] = {
    key: frozenset(letter for letter in entry if letter.isupper()) for key, entry in _ENTRIES.items()
}
"""The letters that are right, by (rule, family, scenario)."""

ALLOWED: Final[Entries] = {key: frozenset(map(str.upper, entry)) for key, entry in _ENTRIES.items()}
"""These, and those of known weaknesses."""
