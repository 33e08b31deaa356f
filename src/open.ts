import { Box, BOX_OPTIONS, type BoxOptions } from './box.js'
import { systemClock } from './base/clock.js'
import { milliseconds, type Duration } from './base/duration.js'
import type { Engine } from './engine/contract.js'
import type { Diagnosis } from './engine/diagnosis.js'
import { inTime } from './engine/kit/in-time.js'
import { existingEngine, type ExistingEngine } from './engines/existing-engine.js'
import { registeredFor, type Existing } from './engines/registry.js'
import { MissingPackageError, UnavailableError } from './base/errors.js'
import { failureText } from './base/failure-text.js'
import { checkOptions } from './base/options.js'
import { pause } from './base/pause.js'

/** Options of `open`. */
export interface OpenOptions extends BoxOptions {
  /**
   * How long to retry while the engine can't be reached, such as a server that is starting. Default 0: one attempt.
   * `Infinity`: no limit. No attempt lasts longer than this.
   */
  wait?: Duration | undefined
}

/** Delay before a retry, in milliseconds. */
const RETRY_DELAY = 250

/**
 * Opens a box on the engine that the URL names. Boxes with the same URL share locks, limits and values:
 * - `memory:` is private to this box. All boxes of the thread share `memory:name`;
 * - `file:./dir` is shared by all processes of this machine that open the same folder. `?durable=false` lets commits
 *   return before they are on the disk;
 * - `redis://user:password@host:6379/0` is one Redis server; `rediss:` uses TLS, `redis+unix:` a socket,
 *   `redis+sentinel://host,host/name?db=0` Sentinels, and `redis+cluster://host,host` a Cluster. The query takes
 *   `prefix`, `minReplicas` and `layout`, as {@link ExistingRedis} does. `valkey:` and `valkeys:` mean the same as
 *   `redis:` and `rediss:`;
 * - `redis-quorum://host,host,host` grants locks, and only locks, by a majority of independent Redis servers;
 *   `rediss-quorum:` uses TLS;
 * - `postgres://user:password@host:5432/database?signalbox_schema=signalbox` is a schema of a database, which `open`
 *   creates if it is missing. The URL is one of libpq: commas separate several servers, `?host=/run/postgresql` is the
 *   folder of a socket, and `?sslmode=verify-full` uses TLS;
 * - `zookeeper://user:password@host:2181,host,host/path` is a node of an ensemble, by default `/signalbox`.
 *   `?sessionTimeout=10s` is how long a session lasts without contact. `?acl=creator` admits only the user of the URL.
 *   `zookeeper+tls:` uses TLS;
 * - `hazelcast://user:password@host:5701,host/cluster` is a cluster, by default `dev`. `?map=signalbox` names the map
 *   whose keys are locked.
 *
 * Instead of a URL, `open` accepts existing Redis clients: `open({ redis: client, prefix: 'app:' })` or `open({
 * redisQuorum: [client, client, client] })`; a client of `pg` or `postgres`, or a PGlite: `open({ postgres: client,
 * schema: 'locks' })`; a configuration of the Hazelcast client: `open({ hazelcast: config })`; or your own engine:
 * `open({ engine })`.
 *
 * The code of an engine is loaded when the first box is opened on it.
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
  let failure: unknown
  for (;;) {
    try {
      const engine = await engineFor(source)
      const opening = Box.join(engine, systemClock, ofBox)
      return await (patience === 0 || patience === Infinity
        ? opening
        : inTime(opening, until - systemClock.now(), systemClock, () =>
            tooLate(opening, engine.name, patience, failure),
          ))
    } catch (error) {
      failure = error
      const left = until - systemClock.now()
      // The caller's own engine is joined only once.
      const isOwn = isOwnEngine(source)
      const canPass = error instanceof UnavailableError && !(error instanceof MissingPackageError)
      if (!canPass || left <= 0 || isOwn) throw error
      await pause(Math.min(RETRY_DELAY, left), systemClock)
    }
  }
}

/**
 * Returns the error of an `open` whose wait is over, and closes a box that opens later.
 * @param failure of the last attempt that ended, if one did
 */
function tooLate(opening: Promise<Box>, engine: string, wait: number, failure: unknown): UnavailableError {
  opening.then(
    late => late.close(),
    () => undefined,
  )
  const reason = failure === undefined ? 'no answer' : failureText(failure)
  const message = `timed out after ${wait} ms opening a box on ${engine}: ${reason}`
  return new UnavailableError(message, { engine, cause: failure })
}

async function engineFor(source: Parameters<typeof open>[0]): Promise<Engine> {
  if (isOwnEngine(source)) return existingEngine(source)
  return registeredFor(source).open(source)
}

function isOwnEngine(source: unknown): source is ExistingEngine {
  return typeof source === 'object' && source !== null && 'engine' in source
}

/**
 * Examines the servers or files of a URL of `open` without acquiring a lock: their versions, and settings that weaken a
 * promise. On ZooKeeper and Hazelcast it writes a temporary entry of its own, to read their clocks; on PostgreSQL it
 * sends itself a notification. An engine without settings, such as `memory:`, has neither facts nor findings.
 *
 * ```ts
 * const { findings } = await diagnose('redis://localhost:6379')
 * for (const { how, fix } of findings) console.log(how, fix)
 * ```
 * @throws InvalidArgumentError when the URL is invalid; UnavailableError when the engine can't be reached.
 */
export async function diagnose(url: string): Promise<Diagnosis> {
  return (await registeredFor(url).diagnose?.(url)) ?? { facts: [], findings: [] }
}
