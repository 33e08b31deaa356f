create table invoice (id text primary key, paid boolean not null default false, fence bigint not null default 0);
create table report (slot timestamptz primary key, at timestamptz not null default now(), paid integer not null);
create table term (at timestamptz not null default now(), token bigint not null, pid integer not null);
