-- Times are the database's own.  What patchq wrote as bytes stays bytes (reports and choices are
-- JSON in ASCII): a response's name may hold what is no text to PostgreSQL.

-- Every connection that decides or enters something.  It lives as long as the advisory lock on
-- session_key(id) is held, which ends with it however it ends.
create table sessions (
    id      integer generated always as identity primary key,
    name    text not null,
    host    text not null,
    pid     integer not null,
    began   timestamptz not null default clock_timestamp(),
    -- Null: it does not beat, and is never taken for frozen.
    beat    timestamptz
);

-- A target branch that ever had a response.  Who holds the advisory lock on lane_key(name) owns it;
-- the session here is who said so last.
create table lanes (
    name    text primary key,
    session integer,
    since   timestamptz
);

create sequence changes;
create sequence verdicts;

create table responses (
    number       bigint generated always as identity primary key,
    lane         text not null,
    name         bytea not null,
    data         bytea not null,
    size         bigint not null,
    came         timestamptz not null default clock_timestamp(),
    -- ending: held, and its session means to give it its verdict.
    state        text not null default 'waiting'
                 check (state in ('waiting', 'claimed', 'held', 'ending', 'ended')),
    -- Who has it in hand; for an adopted one, who adopted it, also while it is held.
    session      integer,
    adopted      boolean not null default false,
    choice       bytea,
    -- Why there is nothing to read, where its feeder says so.
    problem      bytea,
    answer       bytea,
    id           text unique,
    intended     bytea,
    report       bytea,
    page         bytea,
    -- Of what waits for review: where its mark is, the commit that its branch is put at.
    proposed     text,
    held_since   timestamptz,
    ended        timestamptz,
    verdict      bigint unique,
    -- How often a session ended with it in hand.
    deaths       integer not null default 0,
    -- The feeder that entered it, by the token of its own claim; what it has seen of the changes.
    feeder       text,
    token        text,
    change       bigint not null default 0,
    seen         bigint not null default 0,
    unique (feeder, token)
);
create index responses_waiting on responses (lane, number) where state = 'waiting';
create index responses_open on responses (lane, number) where state in ('claimed', 'held', 'ending');
create index responses_proposed on responses (lane) where proposed is not null;
create index responses_unseen on responses (feeder) where change > seen;

-- Every id that was ever given; behind `forget`, what is left of its batch.
create table ids (
    id      text primary key,
    number  bigint,
    verdict bigint unique,
    state   text,
    at      bigint,
    other   text,
    code    text
);

-- What batches were made from.
create table sources (
    place   bigint generated always as identity primary key,
    sha256  text not null,
    id      text not null,
    unique (sha256, id)
);

-- What people decided, for the lane's owner to carry out: its words, and the answer, as JSON.
create table errands (
    number  bigint generated always as identity primary key,
    lane    text not null,
    words   bytea not null,
    asked   timestamptz not null default clock_timestamp(),
    session integer,
    answer  bytea
);
create index errands_open on errands (lane, number) where answer is null;

create function lane_key(lane text) returns bigint language sql stable as $$
    select hashtextextended('lane ' || current_schema() || '/' || lane, 0)
$$;

create function session_key(session integer) returns bigint language sql stable as $$
    select hashtextextended('session ' || current_schema() || '/' || session, 0)
$$;

-- Other queues in the same database, each in its own schema, are not heard.
create function channel() returns text language sql stable as $$
    select 'patchq ' || md5(current_schema())
$$;

-- Wakes whoever listens.
create function tell(word text, lane text) returns void language sql volatile as $$
    select pg_notify(channel(), word || ' ' || lane)
$$;

create function listen() returns void language plpgsql volatile as $$
begin
    execute format('listen %I', channel());
end
$$;

-- The server process that holds an advisory lock, if one does.
create function holder(key bigint) returns integer language sql volatile as $$
    select pid from pg_locks
    where locktype = 'advisory' and granted and objsubid = 1
      and database = (select oid from pg_database where datname = current_database())
      and classid = ((key >> 32) & 4294967295)::oid and objid = (key & 4294967295)::oid
    limit 1
$$;

create function alive(session integer) returns boolean language sql volatile as $$
    select session is not null and holder(session_key(session)) is not null
$$;

-- Whether it is dead, or did not beat for so long.
create function gone(session integer, seconds double precision) returns boolean
language sql volatile as $$
    select not alive(session) or exists (
        select from sessions s
        where s.id = session and s.beat < clock_timestamp() - make_interval(secs => seconds)
    )
$$;
