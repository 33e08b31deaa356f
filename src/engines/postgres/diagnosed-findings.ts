import type { Finding } from '../../engine/diagnosis.js'
import { clockFindings } from '../../engine/kit/clock-findings.js'
import type { PostgresFacts } from './diagnosed-facts.js'
import { MIN_SERVER } from './provide-schema.js'
import { SCHEMA_REVISION, SCHEMA_VERSION, useOf } from './schema.js'
import { trustAdvice } from './untrusted.js'

/** Fraction of the queue of NOTIFY in use from which some session evidently does not read it. */
const QUEUE_THRESHOLD = 0.01
/** Values of synchronous_commit with which a commit waits for no standby. */
const ASYNCHRONOUS = ['off', 'local']

/** Returns the problems that the facts show, with the affected promises and a fix for each. */
export function postgresFindings(facts: PostgresFacts): Finding[] {
  const how = (gap: string): string => `the server's clock is ${gap}, and leases jump when it is set right`
  const all = [...usability(facts), ...durability(facts), ...waits(facts)]
  return [...all.filter(each => each !== false), ...clockFindings(facts, ['P2', 'P11'], how)]
}

/** Returns problems that prevent a box from being opened or used safely. */
function usability(facts: PostgresFacts): (Finding | false)[] {
  const { version, schema, state, unpinned, isStandby, encoding } = facts
  const { lacking, untrusted } = state
  const use = useOf(state)
  return [
    Number.parseInt(version, 10) < MIN_SERVER && {
      id: 'version',
      promises: [],
      how: `the server is PostgreSQL ${version}, which Signalbox does not support`,
      fix: `use PostgreSQL ${MIN_SERVER} or later`,
    },
    untrusted !== null && {
      id: 'untrusted-schema',
      promises: [],
      how: `the schema ${schema} is not safe, so \`open\` fails: ${untrusted}`,
      fix: trustAdvice('schema'),
    },
    use === 'refuse' && {
      id: 'newer-schema',
      promises: [],
      how: `the schema ${schema} was made by a newer version of Signalbox, and this version can't use it`,
      fix: 'update Signalbox to that version everywhere',
    },
    use === 'replace' && {
      id: 'no-schema',
      promises: [],
      how:
        state.version === 0
          ? `the schema ${schema} is missing`
          : `the schema ${schema} has version ${state.version}, revision ${state.revision}, and this version of ` +
            `Signalbox needs version ${SCHEMA_VERSION}, revision ${SCHEMA_REVISION}`,
      fix: 'apply what `signalbox schema postgres` prints, or open a box as a user that may create schemas',
    },
    lacking.length > 0 && {
      id: 'missing-rights',
      promises: [],
      how: `the user lacks ${lacking.join(', ')}, so \`open\` fails`,
      fix: 'grant them with the statements that `signalbox schema postgres` prints at its end',
    },
    unpinned.length > 0 && {
      id: 'search-path',
      promises: [],
      how:
        `functions of the schema ${schema} do not set their search path, so a role that may create functions in a ` +
        `schema of that path can run code as the user of a box: ${unpinned.join(', ')}`,
      fix: 'apply what `signalbox schema postgres` prints, as the owner of the schema',
    },
    isStandby && {
      id: 'standby',
      promises: [],
      how: 'the server is a standby, which rejects writes',
      fix: 'name the primary in the URL',
    },
    encoding !== 'UTF8' && {
      id: 'encoding',
      promises: [],
      how: `the database has the encoding ${encoding}, which can't hold all characters of keys and values`,
      fix: "use a database that was created with encoding 'UTF8'",
    },
  ]
}

/** Returns problems that can cause a loss of data. */
function durability({ settings, standbys }: PostgresFacts): (Finding | false)[] {
  const isAwaited =
    settings.synchronous_standby_names !== '' && !ASYNCHRONOUS.includes(settings.synchronous_commit!)
  return [
    settings.fsync === 'off' && {
      id: 'no-fsync',
      promises: ['P1', 'P2', 'P13'],
      how: 'fsync is off, so a power cut can lose values and damage the whole database',
      fix: 'fsync = on, in postgresql.conf or with ALTER SYSTEM',
    },
    settings.full_page_writes === 'off' && {
      id: 'torn-pages',
      promises: ['P1', 'P2', 'P13'],
      how: 'full_page_writes is off, so a power cut can leave pages of the tables half written',
      fix: 'full_page_writes = on, in postgresql.conf or with ALTER SYSTEM',
    },
    settings.synchronous_commit === 'off' && {
      id: 'late-commit',
      promises: ['P13'],
      how: 'synchronous_commit is off, so a server that crashes loses values that were committed just before',
      fix: 'synchronous_commit = on for this user and database; boxes turn it off themselves where only locks are written',
    },
    standbys > 0 &&
      !isAwaited && {
        id: 'asynchronous-standby',
        promises: ['P13'],
        how: `commits wait for none of the ${standbys} standbys, so one that is promoted may lack the newest values`,
        fix: 'set synchronous_standby_names, and synchronous_commit to on or remote_apply for this user and database',
      },
  ]
}

/** Returns problems that make operations slow or waits long. */
function waits(facts: PostgresFacts): (Finding | false)[] {
  const { settings, schema, neverVacuumed, openTransactions, receivesNotify, queueUsage } = facts
  const tables = neverVacuumed.map(table => `${schema}.${table}`)
  const isOff = settings.autovacuum === 'off'
  return [
    (isOff || tables.length > 0) && {
      id: 'no-autovacuum',
      promises: ['P12'],
      how:
        `autovacuum is off${isOff ? '' : ` for ${tables.join(', ')}`}, so dead rows of the same few keys pile up, and ` +
        'each operation gets slower',
      fix: isOff
        ? 'autovacuum = on, in postgresql.conf or with ALTER SYSTEM'
        : tables.map(table => `alter table ${table} reset (autovacuum_enabled)`).join('; '),
    },
    settings.idle_in_transaction_session_timeout === '0' && {
      id: 'endless-transactions',
      promises: ['P9'],
      how:
        'idle_in_transaction_session_timeout is 0, so a process that stops in a transaction with a fence keeps its ' +
        'lock from others until its connection breaks',
      fix: "idle_in_transaction_session_timeout = '30s' for this user and database, or as long as a lock may wait",
    },
    openTransactions.length > 0 && {
      id: 'open-transactions',
      promises: ['P12'],
      how: `transactions keep dead rows from being removed, which slows each operation: ${openTransactions.join('; ')}`,
      fix: 'end them, and keep transactions short on this database',
    },
    receivesNotify === false && {
      id: 'no-notify',
      promises: ['P5'],
      how: 'NOTIFY does not arrive, as through a pooler in transaction mode, so waiters poll ten times a second',
      fix: 'name the server itself in the URL, or a pooler in session mode',
    },
    queueUsage > QUEUE_THRESHOLD && {
      id: 'full-queue',
      promises: ['P5'],
      how:
        `the queue of NOTIFY is ${(queueUsage * 100).toFixed(0)} % full, because a session that listens stays in a ` +
        'transaction; when it is full, waiters get no messages',
      fix: 'end the session that the server names in its log, or that has the oldest transaction in pg_stat_activity',
    },
  ]
}
