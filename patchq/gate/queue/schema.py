"""The tables of a queue, which SQLite and PostgreSQL take alike.

A response is `waiting` (in a cluster), `claimed`, `held`, `ending` (held, and a session means to
end it), `ended` or `gone` (behind retention).  Its papers are `body`, `report`, `page`, `intended`,
`parcel`, `answer` and `choice`.

`ending` is the number of the event of its verdict, and `change` a number that grows with each
change of its report.  `shown` is 0 as long as its files in done/ or rejected/ may not be durable,
here or at its feeder.  `lane`, `came`, `feeder` and `proposed` serve clusters.
"""

from __future__ import annotations

VERSION = 7
COLUMNS = "number, token, name, size, problem, state, held_since, id, deaths, lane"
NOT_MINE = (
    "(session is null or"
    " session <> :me and session not in (select number from sessions where alive(number)))"
)
EVENT = "event_number((select coalesce(max(number), 0) from events))"
# Rows that this session may give a verdict: its own, and held ones that are not being ended.
MINE_TO_END = """(
    state in ('claimed', 'ending') and session = :me
    or state = 'held' and (session is null or session = :me or not alive(session))
)"""
GIVE_ID = (
    f"update responses set id = :id where token = :token and id is null and {MINE_TO_END}"
    " and not exists (select 1 from responses r where r.id = :id) returning id"
)
_TABLES = """
create table meta (key text primary key, value text not null);
create table sessions (
    number {serial},
    name text not null default '',
    host text not null,
    pid bigint not null,
    began double precision not null,
    beat double precision
);
create table responses (
    number {serial},
    token text not null unique,
    lane text not null default '',
    feeder text,
    came double precision,
    name bytea not null,
    size bigint not null,
    sha256 text,
    problem text,
    state text not null,
    session bigint,
    adopted integer not null default 0,
    deaths integer not null default 0,
    held_since double precision,
    id text unique,
    verdict text,
    ended double precision,
    ending bigint,
    change bigint,
    other text,
    code text,
    proposed text,
    shown integer not null default 1
);
create index responses_state on responses (state, number);
create index responses_sha256 on responses (sha256);
create index responses_ending on responses (ending);
create index responses_shown on responses (number) where shown = 0;
create index responses_proposed on responses (lane) where proposed is not null;
create table papers (
    number bigint not null, kind text not null, data bytea not null, primary key (number, kind)
);
create table events (
    number {number}, batch text not null, kind text not null, facts text not null default '{{}}'
);
create table counts (
    what text, agent text, model text, form text, value text, many double precision not null,
    primary key (what, agent, model, form, value)
);
create table kept (
    kind text not null,
    key text not null,
    at double precision not null,
    value bytea not null,
    primary key (kind, key)
);
create index kept_age on kept (kind, at);
"""


def tables(serial: str, number: str) -> list[str]:
    """Return the statements that make the tables, with a database's words for numbered keys."""
    return _TABLES.format(serial=serial, number=number).strip().removesuffix(";").split(";")
