import { randomUUID } from 'node:crypto'
import { systemClock } from '../../base/clock.js'
import type { ClockFacts } from '../../engine/kit/clock-findings.js'
import type { SqlClient } from './clients/sql-client.js'
import { queryCatalogs, schemaState, type SchemaState } from './schema-state.js'
import { statementsOf } from './statements.js'

/** Facts that a server reports to any user. */
interface ServerFacts {
  readonly version: string
  readonly database: string
  readonly encoding: string
  readonly isStandby: boolean
  /** The settings of a connection of this user to this database, by name. */
  readonly settings: Readonly<Record<string, string>>
  /** Number of standbys that receive the log. */
  readonly standbys: number
  /** Fraction of the queue of NOTIFY that is in use, from 0 to 1. */
  readonly queueUsage: number
  /** Transactions that have been open for more than a minute and prevent the removal of dead rows, as text. */
  readonly openTransactions: readonly string[]
  /** Number of transactions of other users that could do that, but whose age is hidden. */
  readonly hiddenTransactions: number
  /** Row counts of the table of locks and values; null if the schema is missing. */
  readonly rows: { readonly live: number; readonly dead: number } | null
  /** The PL/pgSQL functions of the schema that do not set their search path. */
  readonly unpinned: readonly string[]
  /** The tables of the schema for which autovacuum is turned off. */
  readonly neverVacuumed: readonly string[]
}

/** Facts about a server, a database and a schema. */
export interface PostgresFacts extends ServerFacts, ClockFacts {
  readonly schema: string
  readonly state: SchemaState
  /** Whether a box receives NOTIFY; undefined on a standby, which can't send it. */
  readonly receivesNotify: boolean | undefined
}

/** Maximum time to wait for the doctor's own message, in milliseconds. */
const MESSAGE_TIMEOUT = 3000

const serverQuery = (schema: string): string => `
  with long as (
    select a.pid, a.usename, a.state, clock_timestamp() - a.xact_start as age, a.xact_start is null as is_hidden
      from pg_stat_activity a
      where a.datname = current_database() and a.pid <> pg_backend_pid()
        -- Vacuum has no user, and prevents nothing. The backend type can be hidden for other users' sessions, too.
        and a.usename is not null and coalesce(a.backend_type, 'client backend') = 'client backend'
        and coalesce(a.backend_xmin, a.backend_xid) is not null
  )
  select json_build_object(
    'version', current_setting('server_version'),
    'database', current_database(),
    'encoding', current_setting('server_encoding'),
    'isStandby', pg_is_in_recovery(),
    'settings', (
      select json_object_agg(name, current_setting(name)) from unnest(array[
        'fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names', 'autovacuum',
        'idle_in_transaction_session_timeout'
      ]) name
    ),
    'standbys', (
      select count(*) from pg_stat_replication r where r.state is distinct from 'backup' and not exists (
        select from pg_replication_slots s where s.active_pid = r.pid and s.slot_type = 'logical'
      )
    ),
    'queueUsage', pg_notification_queue_usage(),
    'openTransactions', (
      select coalesce(json_agg(format(
        'process %s of %s, %s for %s min', l.pid, l.usename, l.state, floor(extract(epoch from l.age) / 60)
      ) order by l.age desc), '[]') from long l where l.age > interval '1 minute'
    ),
    'hiddenTransactions', (select count(*) from long where is_hidden),
    'rows', (
      select json_build_object('live', t.n_live_tup, 'dead', t.n_dead_tup)
        from pg_stat_user_tables t where t.schemaname = '${schema}' and t.relname = 'data'
    ),
    'unpinned', (
      select coalesce(json_agg(p.proname order by p.proname), '[]')
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
        where n.nspname = '${schema}' and l.lanname = 'plpgsql'
          and not exists (select from unnest(p.proconfig) c where starts_with(c, 'search_path=pg_catalog'))
    ),
    'neverVacuumed', (
      select coalesce(json_agg(c.relname order by c.relname), '[]')
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = '${schema}' and exists (
          select from pg_options_to_table(c.reloptions) o
            where o.option_name = 'autovacuum_enabled' and not o.option_value::boolean
        )
    )
  )::text`

/** Collects facts about a server and a schema. Changes nothing. @throws SqlError */
export async function postgresFacts(sql: SqlClient, schema: string): Promise<PostgresFacts> {
  const server = JSON.parse(await queryCatalogs(sql, serverQuery(schema))) as ServerFacts
  return {
    ...server,
    ...(await clockOf(sql, schema)),
    schema,
    state: await schemaState(sql, schema),
    receivesNotify: server.isStandby ? undefined : await receivesOwnMessage(sql),
  }
}

async function clockOf(sql: SqlClient, schema: string): Promise<ClockFacts> {
  const begun = systemClock.now()
  const before = Date.now()
  const time = await sql.query(statementsOf(schema).clock, [])
  const uncertainty = systemClock.now() - begun
  return { ahead: 1000 * Number(time) - (before + uncertainty / 2), uncertainty }
}

/** Whether a message arrives that is sent like those of boxes. */
async function receivesOwnMessage(sql: SqlClient): Promise<boolean> {
  const channel = `signalbox doctor ${randomUUID()}`
  let answer!: (hasArrived: boolean) => void
  const arrived = new Promise<boolean>(resolve => (answer = resolve))
  const listening = await sql.listen(
    channel,
    () => answer(true),
    () => answer(false),
  )
  const timer = systemClock.after(MESSAGE_TIMEOUT, () => answer(false), true)
  try {
    await sql.query("select pg_catalog.pg_notify($1::pg_catalog.text, 'test')::pg_catalog.text", [channel])
    return await arrived
  } finally {
    timer.cancel()
    await listening.stop()
  }
}
