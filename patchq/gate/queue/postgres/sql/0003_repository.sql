-- Of which repository the responses are: the commit with which its default target begins.
create table repository (
    one     boolean primary key default true check (one),
    root    text not null
);
