-- Returns what lets another role run code as the current user in the schema $1, as one text; null if nothing does. Reads
-- only catalogs, and runs nothing of the schema. With a table $2, reads only what this table uses: its schema may have
-- objects of other roles, which no statement on the table uses. Its cost grows with what is used, not with the database.
-- What the body of a function uses is recorded only if it is not a text, so the owner of a function answers for the rest.
--
-- A role is trusted if it may act as the current user anyway: that user itself, a superuser, the owner of the database,
-- or a member of these. So is a role of which the current user is a member, if one of those has granted the membership:
-- before PostgreSQL 15, every role may grant itself to others. That a superuser may act as all roles is no trust in them.
with recursive me as (
  select r.oid as role from pg_roles r where r.rolname = current_user
), space as (
  select n.oid, n.nspowner, n.nspacl from pg_namespace n where n.nspname = $1::text
), root(class, oid) as materialized (
  select d.classid, d.objid from space s
    join pg_depend d on d.refclassid = 'pg_namespace'::regclass and d.refobjid = s.oid where $2::text is null
  union
  select 'pg_class'::regclass, c.oid from space s join pg_class c on c.relnamespace = s.oid where c.relname = $2::text
), reached(class, oid) as (
  -- All through which a statement on these objects may reach a function, each once.
  select r.class, r.oid from root r
  union
  select n.class, n.oid from reached r cross join lateral (
    -- What it uses, as the server records it. The owner of its schema, extension or language may drop it, and not change
    -- it. No code of a table runs because a foreign key refers to it.
    select d.refclassid, d.refobjid from pg_depend d
      where d.classid = r.class and d.objid = r.oid and d.deptype not in ('e', 'x')
        and d.refclassid not in ('pg_namespace'::regclass, 'pg_language'::regclass)
        and (d.classid <> 'pg_constraint'::regclass or d.refclassid <> 'pg_class'::regclass)
    union all
    -- What is part of it: triggers, rules, policies, defaults, constraints and indexes of a relation, constraints of a
    -- domain, the members of an operator class. Casts are parts of a type, unless they concern a second one, because
    -- that can be of anybody.
    select d.classid, d.objid from pg_depend d
      where d.refclassid = r.class and d.refobjid = r.oid and (d.deptype in ('a', 'i', 'P', 'S')
        or d.classid = 'pg_cast'::regclass and not exists (
          select from pg_depend o where o.classid = d.classid and o.objid = d.objid
            and o.refclassid = d.refclassid and o.refobjid <> d.refobjid
        ))
    union all
    -- Tables that a statement on a table changes with it: those that inherit from it, and those that refer to it.
    select 'pg_class'::regclass, i.inhrelid from pg_inherits i
      where r.class = 'pg_class'::regclass and i.inhparent = r.oid
    union all
    select 'pg_class'::regclass, k.conrelid
      from pg_depend d join pg_constraint k on d.classid = 'pg_constraint'::regclass and k.oid = d.objid
      where r.class = 'pg_class'::regclass and d.refclassid = r.class and d.refobjid = r.oid
        and k.contype = 'f' and k.confrelid = r.oid
    union all
    -- The planner may put these in the place of an operator.
    select 'pg_operator'::regclass, x.oid
      from pg_operator o cross join lateral (values (o.oprcom), (o.oprnegate)) x(oid)
      where r.class = 'pg_operator'::regclass and o.oid = r.oid and x.oid <> 0
  ) n(class, oid)
), problem(rank, role, text, class, oid) as (
  select 1, s.nspowner, 'the %1$s %2$s belongs to %3$s', 'pg_namespace'::regclass::oid, s.oid
    from space s where $2::text is null
  union all
  -- Owners of other objects can't make these run other code. A row type has the owner of its table, an array that of its
  -- elements.
  select 2, o.role, 'the %1$s %2$s belongs to %3$s', r.class, r.oid
    from reached r cross join lateral (
      select c.relowner from pg_class c
        where r.class = 'pg_class'::regclass and c.oid = r.oid and c.relkind not in ('i', 'I', 't')
      union all
      select p.proowner from pg_proc p where r.class = 'pg_proc'::regclass and p.oid = r.oid
      union all
      select o.oprowner from pg_operator o where r.class = 'pg_operator'::regclass and o.oid = r.oid
      union all
      select t.typowner from pg_type t
        where r.class = 'pg_type'::regclass and t.oid = r.oid and t.typrelid = 0 and t.typelem = 0
    ) o(role)
  union all
  select 3, a.grantee, '%3$s may create objects in the %1$s %2$s', 'pg_namespace'::regclass, s.oid
    from space s, aclexplode(s.nspacl) a where a.privilege_type = 'CREATE' and $2::text is null
  union all
  select 4, a.grantee, case a.privilege_type when 'TRIGGER' then '%3$s may add triggers to the %1$s %2$s'
      else '%3$s may make foreign keys to the %1$s %2$s' end, r.class, r.oid
    from reached r join pg_class c on r.class = 'pg_class'::regclass and c.oid = r.oid
      cross join lateral (
        select c.relacl as acl
        union all
        select t.attacl from pg_attribute t where t.attrelid = c.oid and t.attacl is not null
      ) x cross join lateral aclexplode(x.acl) a
    where a.privilege_type in ('TRIGGER', 'REFERENCES')
  union all
  select 5, c.relowner, 'the %1$s %2$s refers to a table of %3$s', 'pg_constraint'::regclass, k.oid
    from root r join pg_constraint k on r.class = 'pg_class'::regclass and k.conrelid = r.oid and k.contype = 'f'
      join pg_class c on c.oid = k.confrelid
), membership(member, role, grantor) as (
  select m.member, m.roleid, m.grantor from pg_auth_members m join me on me.role = m.member
    -- From PostgreSQL 16 on, a membership may be without effect. A role that creates another has such a one.
    where coalesce((to_jsonb(m) ->> 'inherit_option')::boolean or (to_jsonb(m) ->> 'set_option')::boolean, true)
  union
  select m.member, m.roleid, m.grantor from membership b join pg_auth_members m on m.member = b.role
    where coalesce((to_jsonb(m) ->> 'inherit_option')::boolean or (to_jsonb(m) ->> 'set_option')::boolean, true)
), above(role) as materialized (
  select r.oid from pg_roles r, pg_database d
    where r.oid in (select p.role from problem p union select b.grantor from membership b)
      and d.datname = current_database()
      and (r.rolname = 'pg_database_owner' or pg_has_role(r.oid, d.datdba, 'member')
        or pg_has_role(r.oid, current_user, 'member'))
), trusted(role) as (
  select a.role from above a
  union
  select b.role from membership b join above a on a.role = b.grantor where b.member in (select me.role from me)
  union
  select b.role from trusted t join membership b on b.member = t.role join above a on a.role = b.grantor
), untrusted as materialized (
  select p.*, case p.role when 0 then 'every role' else pg_get_userbyid(p.role)::text end as name
    from problem p where p.role not in (select t.role from trusted t)
), found(rank, place, line) as (
  select distinct u.rank, coalesce(w.place, 0), format(u.text, i.type, i.identity, u.name) || coalesce(', and ' || w.why, '')
    from untrusted u cross join lateral pg_identify_object(u.class, u.oid, 0) i
      left join lateral (
        select 1, format('its foreign key %I refers to %s', k.conname, k.confrelid::regclass)
          from pg_constraint k join reached r on r.class = 'pg_class'::regclass and r.oid = k.confrelid
          where u.class = 'pg_class'::regclass and k.conrelid = u.oid and k.contype = 'f'
        union all
        select 2, format('it inherits from %s', h.inhparent::regclass)
          from pg_inherits h join reached r on r.class = 'pg_class'::regclass and r.oid = h.inhparent
          where u.class = 'pg_class'::regclass and h.inhrelid = u.oid
        union all
        select case d.deptype when 'n' then 3 else 4 end, format('the %s %s uses it', b.type, b.identity)
          from pg_depend d join reached r on r.class = d.classid and r.oid = d.objid
            cross join lateral pg_identify_object(d.classid, d.objid, d.objsubid) b
          where d.refclassid = u.class and d.refobjid = u.oid
        union all
        select 5, null
        order by 1, 2 limit 1
      ) w(place, why) on u.rank = 2 and not exists (select from root r where r.class = u.class and r.oid = u.oid)
    order by 1, 2, 3 limit 5
)
select string_agg(f.line, '; ' order by f.rank, f.place, f.line) from found f
