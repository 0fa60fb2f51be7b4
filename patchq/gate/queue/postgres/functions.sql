-- What clusters have beside the tables of every queue (../database.py).

-- A target branch that ever had a response.  Who holds the advisory lock on lane_key(name) owns it;
-- the session here is who said so last.
create table lanes (name text primary key, session bigint, since double precision);

-- What people decided, for the lane's owner to carry out: its words, and the answer, as JSON.
create table errands (
    number  bigint generated always as identity primary key,
    lane    text not null,
    words   bytea not null,
    asked   double precision not null,
    session bigint,
    answer  bytea
);
create index errands_open on errands (lane, number) where answer is null;

create index responses_waiting on responses (lane, number) where state = 'waiting';

create sequence event_numbers;

-- Seconds since 1970 by the server's clock.
create function epoch() returns double precision language sql volatile as $$
    select extract(epoch from clock_timestamp())::double precision
$$;

-- The time in nanoseconds; several writers at once get several numbers.
create function event_number(last bigint) returns bigint language sql volatile as $$
    select (extract(epoch from clock_timestamp()) * 1000000)::bigint * 1000
        + nextval('event_numbers') % 1000
$$;

create function lane_key(lane text) returns bigint language sql stable as $$
    select hashtextextended('lane ' || current_schema() || '/' || lane, 0)
$$;

create function session_key(session bigint) returns bigint language sql stable as $$
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

create function alive(session bigint) returns boolean language sql volatile as $$
    select session is not null and holder(session_key(session)) is not null
$$;

-- True if it is dead, or did not beat for so many seconds.
create function gone(session bigint, seconds double precision) returns boolean
language sql volatile as $$
    select not alive(session) or exists (
        select from sessions s where s.number = session and s.beat < epoch() - seconds
    )
$$;
