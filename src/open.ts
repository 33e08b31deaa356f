import { Box, BOX_OPTIONS, type BoxOptions } from './box.js'
import { systemClock } from './clock.js'
import { milliseconds, type Duration } from './duration.js'
import type { Engine } from './engine/contract.js'
import { existingEngine, type ExistingEngine } from './engines/existing-engine.js'
import { registeredFor, type Existing } from './engines/registry.js'
import { MissingPackageError, UnavailableError } from './errors.js'
import { checkOptions } from './options.js'
import { pause } from './pause.js'

/** Options of `open`. */
export interface OpenOptions extends BoxOptions {
  /**
   * For how long to try again while the engine can't be reached, such as a server that starts at the same time; default
   * 0: `open` tries once. `Infinity` tries until it opens. No try lasts longer than this.
   */
  wait?: Duration | undefined
}

/** The pause before a further try, in milliseconds. */
const TRY_AGAIN = 250

/**
 * Opens a box on the engine that the URL names:
 * - `memory:` for this box alone, `memory:name` shared by all boxes of the thread that name it;
 * - `file:./dir` for all processes of this machine that open the same folder. `?durable=false` lets commits return
 *   before they are on the disk;
 * - `redis://user:password@host:6379/0` for all processes on the same Redis server; `rediss:` over TLS, `redis+unix:`
 *   at a socket, `redis+sentinel://host,host/name?db=0` behind Sentinels, `redis+cluster://host,host` on a Cluster. The
 *   query takes `prefix`, `minReplicas` and `layout`, as {@link ExistingRedis} does;
 * - `redis-quorum://host,host,host` for locks, and locks only, that a majority of independent Redis servers gives;
 *   `rediss-quorum:` over TLS;
 * - `postgres://user:password@host:5432/database?signalbox_schema=signalbox` for all processes on the same database
 * that
 *   name the same schema, which is made when it is missing. The URL is one of libpq: several servers have a comma between
 *   them, `?host=/run/postgresql` is the folder of a socket, `?sslmode=verify-full` connects over TLS;
 * - `zookeeper://user:password@host:2181,host,host/path` for all processes on the same ensemble that name the same
 *   node, which is `/signalbox` if none is named. `?sessionTimeout=10s` is how long a session lasts without contact
 *   of, `?acl=creator` keeps out all users but the named one; `zookeeper+tls:` over TLS;
 * - `hazelcast://user:password@host:5701,host/cluster` for all processes on the same cluster, which is `dev` if none is
 *   named, that name the same `?map=signalbox`, whose keys are locked.
 *
 * Instead of a URL, options open a box on existing Redis clients: `open({ redis: client, prefix: 'app:' })` or
 * `open({ redisQuorum: [client, client, client] })`; on PostgreSQL by a client of `pg`, of `postgres` or a PGlite:
 * `open({ postgres: client, schema: 'locks' })`; on Hazelcast by a configuration of its client:
 * `open({ hazelcast: config })`; or on an engine of your own: `open({ engine })`.
 *
 * An engine's code is loaded only when a box is opened on it.
 * @throws InvalidArgumentError when the URL or an option is invalid; UnavailableError when the engine can't be reached
 * within `wait`, or at once when a package that it needs is missing.
 */
export async function open(
  source: string | Existing | ExistingEngine,
  options: OpenOptions = {},
): Promise<Box> {
  checkOptions(options, [...BOX_OPTIONS, 'wait'])
  const { wait = 0, ...ofBox } = options
  const patience = milliseconds('wait', wait, { min: 0, max: Infinity })
  const until = systemClock.now() + patience
  for (;;) {
    try {
      const engine = await engineFor(source)
      const opening = Box.join(engine, systemClock, ofBox)
      return await (patience === 0 || patience === Infinity
        ? opening
        : inTime(opening, until - systemClock.now(), engine.name))
    } catch (error) {
      const left = until - systemClock.now()
      // An engine of the caller's own is joined once.
      const isOwn = isOwnEngine(source)
      const canPass = error instanceof UnavailableError && !(error instanceof MissingPackageError)
      if (!canPass || left <= 0 || isOwn) throw error
      await pause(Math.min(TRY_AGAIN, left), systemClock)
    }
  }
}

/**
 * Returns the box if it opens within this time, in milliseconds; closes one that opens later. @throws UnavailableError
 */
async function inTime(opening: Promise<Box>, left: number, engine: string): Promise<Box> {
  const over = new AbortController()
  const late = pause(left, systemClock, over.signal).then(() => undefined)
  try {
    const box = await Promise.race([opening, late])
    if (box) return box
    opening.then(
      tooLate => tooLate.close(),
      () => undefined,
    )
    throw new UnavailableError(`timed out opening a box on ${engine}: wait is over`, { engine })
  } finally {
    over.abort()
  }
}

async function engineFor(source: Parameters<typeof open>[0]): Promise<Engine> {
  if (isOwnEngine(source)) return existingEngine(source)
  return registeredFor(source).open(source)
}

function isOwnEngine(source: unknown): source is ExistingEngine {
  return typeof source === 'object' && source !== null && 'engine' in source
}
