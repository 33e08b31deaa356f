-- Returns what lets another role run code as the current user in the schema $1, as one text; null if nothing does. Reads
-- only catalogs, and runs nothing of the schema. With a table $2, reads only what belongs to this table: its schema may
-- have objects of other roles, which no statement on the table uses.
--
-- A role is trusted if it may act as the current user anyway: that user itself, a superuser, the owner of the database,
-- or a member of these. So is a role of which the current user is a member, if one of those has granted the membership:
-- before PostgreSQL 15, every role may grant itself to others. That a superuser may act as all roles is no trust in them.
with recursive me as (
  select r.oid as role from pg_roles r where r.rolname = current_user
), space as (
  select n.oid, n.nspname, n.nspowner, n.nspacl from pg_namespace n where n.nspname = $1::text
), object(kind, oid, name, role, acl) as (
  select case c.relkind when 'v' then 'view' when 'S' then 'sequence' when 'c' then 'type' else 'table' end,
      c.oid, c.relname::text, c.relowner, c.relacl
    from pg_class c join space s on s.oid = c.relnamespace
    where c.relkind not in ('i', 'I', 't') and ($2::text is null or c.relname = $2::text)
  union all
  select 'function', p.oid, p.proname::text, p.proowner, null from pg_proc p join space s on s.oid = p.pronamespace
    where $2::text is null
), relation(oid) as (
  select o.oid from object o where o.kind <> 'function'
), used_type(oid) as (
  select a.atttypid from relation r join pg_attribute a on a.attrelid = r.oid where a.attnum > 0 and not a.attisdropped
  union
  -- What a domain or an array is made of.
  select case t.typbasetype when 0 then t.typelem else t.typbasetype end
    from used_type u join pg_type t on t.oid = u.oid where t.typbasetype <> 0 or t.typelem <> 0
), part(class, oid, place) as (
  -- Triggers, rules, policies, defaults, constraints and indexes of relations, and the same of domains.
  select d.classid, d.objid, d.objsubid
    from relation r join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = r.oid
  union
  select d.classid, d.objid, d.objsubid
    from used_type u join pg_depend d on d.refclassid = 'pg_type'::regclass and d.refobjid = u.oid
    where d.classid = 'pg_constraint'::regclass
  union
  select 'pg_type'::regclass, u.oid, 0 from used_type u
), problem(rank, role, before, after) as (
  select 1, s.nspowner, format('the schema %I belongs to ', s.nspname), '' from space s where $2::text is null
  union all
  select 2, o.role, format('the %s %I.%I belongs to ', o.kind, s.nspname, o.name), '' from object o, space s
  union all
  select 3, a.grantee, '', format(' may create objects in the schema %I', s.nspname)
    from space s, aclexplode(s.nspacl) a where a.privilege_type = 'CREATE' and $2::text is null
  union all
  select 4, a.grantee, '', format(' may add triggers to the %s %I.%I', o.kind, s.nspname, o.name)
    from object o, space s, aclexplode(o.acl) a where a.privilege_type = 'TRIGGER'
  union all
  select 5, t.typowner, format('a column has the type %s of ', format_type(t.oid, null)), ''
    from used_type u join pg_type t on t.oid = u.oid
  union all
  select 6, p.proowner, format('the %s %s runs a function of ', i.type, i.identity), ''
    from part x
      join pg_depend f on f.classid = x.class and f.objid = x.oid and f.refclassid = 'pg_proc'::regclass
      join pg_proc p on p.oid = f.refobjid
      cross join lateral pg_identify_object(x.class, x.oid, x.place) i
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
), found(rank, line) as (
  select distinct p.rank, p.before || case p.role when 0 then 'every role' else pg_get_userbyid(p.role)::text end || p.after
    from problem p where p.role not in (select t.role from trusted t) order by 1, 2 limit 5
)
select string_agg(f.line, '; ' order by f.rank, f.line) from found f
