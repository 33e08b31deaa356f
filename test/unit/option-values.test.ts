import { describe, expect, test } from 'vitest'
import { open } from '../../src/index.js'
import type { Engine } from '../../src/engine/contract.js'
import { openMemory } from '../../src/engines/memory/memory-engine.js'
import { InvalidArgumentError } from '../../src/base/errors.js'
import { joinLimiter, limiter, sharedLimiter } from '../../src/limits/index.js'
import { limitFastify, limitFetch, limitRequests } from '../../src/limits/http/index.js'
import { instrument } from '../../src/opentelemetry/index.js'
import { Redlock } from '../../src/redlock/index.js'
import { postgresRecords, redisRecords } from '../../src/store/records/index.js'

/** Values that an environment variable, a settings file or a conversion may have. */
const VALUES = ['', ' ', null, '5', 'true', 'false', NaN, '5 ', '5s ', undefined]
const TEXTS = VALUES.filter(value => typeof value === 'string')
const NAMES = TEXTS.filter(text => text !== '')

/** A box, and other functions of the package, as plain JavaScript sees them. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Any = any

interface Asked {
  readonly box: Any
  readonly engine: Engine
}

/** Name of the option in errors, a call with a value for it, and the accepted values. Default: undefined only. */
type Row = readonly [
  option: string,
  call: (value: unknown, asked: Asked) => unknown,
  taken?: readonly unknown[],
]

const OPTIONAL = [undefined]
const NEVER: readonly unknown[] = []
const nothing = (): undefined => undefined
const perSecond = { limit: 5, per: '1s' }

function limits(make: (options: Any, asked: Asked) => unknown): Row[] {
  return [
    ['limit', (limit, asked) => make({ per: '1s', limit }, asked), NEVER],
    ['per', (per, asked) => make({ limit: 5, per }, asked), NEVER],
    ['window', (window, asked) => make({ ...perSecond, window }, asked)],
    ['timeZone', (timeZone, asked) => make({ limit: 5, per: '1d', window: 'calendar', timeZone }, asked)],
    ['timeZone', (timeZone, asked) => make({ ...perSecond, timeZone }, asked)],
    ['jitter', (jitter, asked) => make({ ...perSecond, jitter }, asked)],
    ['queue', (queue, asked) => make({ ...perSecond, queue }, asked)],
    ['limits', (several, asked) => make({ ...perSecond, limits: several }, asked)],
    ['limit', (limit, asked) => make({ limits: [perSecond], limit }, asked)],
    ['limit', (limit, asked) => make({ limits: [{ per: '1s', limit }] }, asked), NEVER],
    ['options', (options, asked) => make(options, asked), NEVER],
  ]
}

let names = 0
const name = (): string => `name ${names++}`

/** The parts of a Redis client that are checked before a command is sent. */
const client = { duplicate: nothing, call: nothing, sendCommand: nothing, options: {} } as Any

/** Replaces undefined, because the default would ask a server. */
const settings = (option: string, value: unknown): Any => ({ [option]: value ?? null })
const stopped = (instrument: Disposable): void => instrument[Symbol.dispose]()
const first = (generator: AsyncGenerator): Promise<unknown> =>
  generator.next().then(() => generator.return(undefined))

function lockOptions(call: (options: object, asked: Asked) => unknown): Row[] {
  return [
    ['wait', (wait, asked) => call({ wait }, asked)],
    ['lease', (lease, asked) => call({ lease }, asked)],
    ['signal', (signal, asked) => call({ signal }, asked)],
    ['label', (label, asked) => call({ label }, asked), [undefined, ...NAMES]],
    ['renew', (renew, asked) => call({ renew }, asked)],
    ['reentrant', (reentrant, asked) => call({ reentrant }, asked)],
    ['ownRequest', (ownRequest, asked) => call({ ownRequest }, asked)],
    ['steal', (steal, asked) => call({ steal }, asked)],
    ['options', (options, asked) => call(options as object, asked)],
  ]
}

const groups: Record<string, Row[]> = {
  open: [
    ['the source to open must be a URL', url => open(url as string), NEVER],
    ['wait', (wait, { engine }) => open({ engine }, { wait } as Any)],
    ['label', (label, { engine }) => open({ engine }, { label } as Any), [undefined, ...NAMES]],
    ['detectDeadlocks', (detectDeadlocks, { engine }) => open({ engine }, { detectDeadlocks } as Any)],
    ['options', (options, { engine }) => open({ engine }, options as Any)],
    ['engine', engine => open({ engine } as Any), NEVER],
    ['redis', redis => open({ redis } as Any), NEVER],
    ['redisQuorum', redisQuorum => open({ redisQuorum } as Any), NEVER],
    ['hazelcast', hazelcast => open({ hazelcast } as Any), NEVER],
    ['postgres', postgres => open({ postgres } as Any), NEVER],
  ],
  'a mutex': [
    ['key', (key, { box }) => box.mutex(key), NAMES],
    ...lockOptions((options, { box }) => box.mutex(name()).run(nothing, options)),
  ],
  'a read-write lock': [
    ['key', (key, { box }) => box.readWriteLock(key), NAMES],
    ...lockOptions((options, { box }) => box.readWriteLock(name()).write.run(nothing, options)),
  ],
  'a semaphore': [
    ['max', (max, { box }) => box.semaphore('key', { max }), NEVER],
    ['options', (options, { box }) => box.semaphore('key', options), NEVER],
    ['permits', (permits, { box }) => box.semaphore(name(), { max: 5 }).run(nothing, { permits })],
    ...lockOptions((options, { box }) => box.semaphore(name(), { max: 5 }).run(nothing, options)),
  ],
  'a claim': [
    ['key', (key, { box }) => box.lock({ key, mode: 'exclusive' }), NAMES],
    ['mode', (mode, { box }) => box.lock({ key: 'key', mode }), NEVER],
    ['permits', (permits, { box }) => box.lock({ key: 'key', mode: 'permits', permits, max: 5 }), NEVER],
    ['max', (max, { box }) => box.lock({ key: 'key', mode: 'permits', permits: 1, max }), NEVER],
    ...lockOptions((options, { box }) => box.lock({ key: name(), mode: 'exclusive' }).run(nothing, options)),
  ],
  'an election': [
    ['name', (key, { box }) => box.election(key), NAMES],
    ['again', (again, { box }) => box.election(name()).lead(nothing, { again })],
    ['signal', (signal, { box }) => first(box.election(name()).observe(signal))],
    ...lockOptions((options, { box }) => box.election(name()).lead(nothing, options)),
  ],
  oncePer: [
    ['key', (key, { box }) => box.oncePer(key, '1d', nothing), NAMES],
    // Any text without spaces around it is a valid name of a slot.
    ['slots', (slots, { box }) => box.oncePer(name(), slots, nothing), ['5']],
    ['every', (every, { box }) => box.oncePer(name(), { every }, nothing), NEVER],
    ['cron', (cron, { box }) => box.oncePer(name(), { cron }, nothing), NEVER],
    ['timeZone', (timeZone, { box }) => box.oncePer(name(), { cron: '0 3 * * *', timeZone }, nothing)],
    ...lockOptions((options, { box }) => box.oncePer(name(), '1d', nothing, options)),
  ],
  schedule: [
    ['key', (key, { box }) => box.schedule(key, { every: '1d' }, nothing).stop(), NAMES],
    ['times', (times, { box }) => box.schedule(name(), times, nothing).stop(), NEVER],
    ['every', (every, { box }) => box.schedule(name(), { every }, nothing).stop(), NEVER],
    ['cron', (cron, { box }) => box.schedule(name(), { cron }, nothing).stop(), NEVER],
    [
      'timeZone',
      (timeZone, { box }) => box.schedule(name(), { cron: '0 3 * * *', timeZone }, nothing).stop(),
    ],
    ...['catchUp', 'onError', 'lease'].map((option): Row => [
      option,
      (value, { box }) => box.schedule(name(), { every: '1d' }, nothing, { [option]: value }).stop(),
    ]),
    [
      'label',
      (label, { box }) => box.schedule(name(), { every: '1d' }, nothing, { label }).stop(),
      [undefined, ...NAMES],
    ],
    ['options', (options, { box }) => box.schedule(name(), { every: '1d' }, nothing, options).stop()],
  ],
  'a store': [
    ['store', (store, { box }) => box.store(store), NAMES],
    ['group', (group, { box }) => box.store('s', { group })],
    ['group.maxSize', (maxSize, { box }) => box.store('s', { group: { maxSize, maxTime: 5 } }), NEVER],
    ['group.maxTime', (maxTime, { box }) => box.store('s', { group: { maxSize: 5, maxTime } }), NEVER],
    ['records', (records, { box }) => box.store('s', { records })],
    ['options', (options, { box }) => box.store('s', options)],
    ['key', (key, { box }) => box.store('s').get(key), NAMES],
    ['version', (version, { box }) => box.store('s').compareAndSet('k', version, 1), NEVER],
    ['version', (version, { box }) => box.store('s').delete('k', version)],
    ['signal', (signal, { box }) => first(box.store('s').watch('k', signal))],
    [
      'table',
      table => postgresRecords({ query: nothing } as Any, { table } as Any),
      [undefined, 'true', 'false'],
    ],
    ['prefix', prefix => redisRecords(client, { prefix } as Any), [undefined, ...TEXTS]],
  ],
  'a transaction': [
    ...lockOptions((options, { box }) => box.store('s').transaction(['k'], nothing, options)).filter(
      ([option]) => !['renew', 'reentrant', 'ownRequest', 'steal'].includes(option),
    ),
    ['id', (id, { box }) => box.store('s').transaction(['k'], nothing, { id }), [undefined, ...NAMES]],
    ['retention', (retention, { box }) => box.store('s').transaction(['k'], nothing, { retention })],
    ['attempts', (attempts, { box }) => box.store('s').transaction(['k'], nothing, { attempts })],
    ['in', (client, { box }) => box.store('s').transaction(['k'], nothing, { in: client })],
  ],
  administration: [
    ['prefix', (prefix, { box }) => first(box.inspect(prefix)), [undefined, ...TEXTS]],
    ['prefix', (prefix, { box }) => first(box.limiters(prefix)), [undefined, ...TEXTS]],
    ['exact', (exact, { box }) => first(box.inspect('a', { exact }))],
    ['key', (key, { box }) => box.forceRelease(key, 5n), NAMES],
    ['token', (token, { box }) => box.forceRelease('key', token), NEVER],
    ['session', (session, { box }) => box.revoke(session), NAMES],
    ['name', (limiter, { box }) => box.resumeLimiter(limiter), NAMES],
    ['key', (key, { box }) => box.resumeLimiter('name', key), [undefined, ...NAMES]],
    ['drain', (drain, { box }) => box.close({ drain })],
  ],
  'a limiter of a process': [
    ...limits(options => limiter(options as Any)),
    ['concurrency', concurrency => limiter({ ...perSecond, concurrency } as Any)],
    ['clock', clock => limiter({ ...perSecond, clock } as Any)],
    ['key', key => limiter(perSecond as Any).key(key as string), NAMES],
    ['n must be', n => limiter(perSecond as Any).acquire(n as number)],
    ['wait', wait => limiter(perSecond as Any).acquire(1, { wait } as Any)],
    ['signal', signal => limiter(perSecond as Any).acquire(1, { signal } as Any)],
    ['priority', priority => limiter(perSecond as Any).acquire(1, { priority } as Any)],
    ['limit', limit => limiter(perSecond as Any).setLimit(limit as number), NEVER],
    ['per', per => limiter(perSecond as Any).setLimit(5, per as Any)],
    ['pauseUntil', time => limiter(perSecond as Any).pauseUntil(time as number), NEVER],
    ['drain', drain => limiter(perSecond as Any).close({ drain } as Any)],
  ],
  'a limiter of a box': [
    ...limits((options, { box }) => box.limiter(name(), options)),
    ['name', (given, { box }) => box.limiter(given, perSecond), NAMES],
    ['concurrency', (concurrency, { box }) => box.limiter(name(), { ...perSecond, concurrency })],
    ['batch', (batch, { box }) => box.limiter(name(), { ...perSecond, batch })],
    ['onUnavailable', (policy, { box }) => box.limiter(name(), { ...perSecond, onUnavailable: policy })],
    [
      'shares',
      (shares, { box }) => box.limiter(name(), { ...perSecond, onUnavailable: 'share', shares }),
      NEVER,
    ],
    ['shares', (shares, { box }) => box.limiter(name(), { ...perSecond, shares })],
    ['key', (key, { box }) => box.limiter(name(), perSecond).key(key), NAMES],
    ['n must be', (n, { box }) => box.limiter(name(), perSecond).acquire(n)],
    ['wait', (wait, { box }) => box.limiter(name(), perSecond).acquire(1, { wait })],
    ['signal', (signal, { box }) => box.limiter(name(), perSecond).acquire(1, { signal })],
    ['priority', (priority, { box }) => box.limiter(name(), perSecond).acquire(1, { priority })],
    ['limit', (limit, { box }) => box.limiter(name(), perSecond).setLimit(limit), NEVER],
    ['per', (per, { box }) => box.limiter(name(), perSecond).setLimit(5, per)],
    ['pauseUntil', (time, { box }) => box.limiter(name(), perSecond).pauseUntil(time), NEVER],
    ['drain', (drain, { box }) => box.limiter(name(), perSecond).close({ drain })],
  ],
  'a limiter of threads': [
    ...limits(options => sharedLimiter(options as Any)),
    ['handle', handle => joinLimiter(handle as Any), NEVER],
  ],
  'http limits': [
    ['retries', retries => limitFetch(fetch, limiter(perSecond as Any), { retries } as Any)],
    ['idempotent', idempotent => limitFetch(fetch, limiter(perSecond as Any), { idempotent } as Any)],
    ['wait', wait => limitFetch(fetch, limiter(perSecond as Any), { wait } as Any)],
    ['maxPause', maxPause => limitFetch(fetch, limiter(perSecond as Any), { maxPause } as Any)],
    ['fetch', send => limitFetch(send as Any, limiter(perSecond as Any)), NEVER],
    ['limiter', given => limitFetch(fetch, given as Any), NEVER],
    ['limiter', given => limitRequests(given as Any), NEVER],
    ['key', key => limitRequests(limiter(perSecond as Any), { key } as Any)],
    [
      'name',
      policy => limitRequests(limiter(perSecond as Any), { name: policy } as Any),
      [undefined, ...NAMES],
    ],
    [
      'name',
      policy => limitFastify(limiter(perSecond as Any), { name: policy } as Any),
      [undefined, ...NAMES],
    ],
  ],
  opentelemetry: [
    ['meterProvider', meterProvider => stopped(instrument({ meterProvider } as Any))],
    ['tracerProvider', tracerProvider => stopped(instrument({ tracerProvider } as Any))],
    ['lockName', lockName => stopped(instrument({ lockName } as Any))],
  ],
  redlock: [
    ['retryCount', retryCount => new Redlock([client], { retryCount } as Any)],
    ['retryDelay', retryDelay => new Redlock([client], { retryDelay } as Any)],
    [
      'retryCount',
      retryCount => new Redlock([client]).acquire(['a'], 100, settings('retryCount', retryCount)),
      NEVER,
    ],
    [
      'retryDelay',
      retryDelay => new Redlock([client]).acquire(['a'], 100, settings('retryDelay', retryDelay)),
      NEVER,
    ],
  ],
}

/** Returns an engine that records its operations. */
function watched(): { readonly engine: Engine; readonly operations: unknown[] } {
  const operations: unknown[] = []
  const engine = new Proxy<Engine>(openMemory('memory:'), {
    get(target, property) {
      const part: unknown = Reflect.get(target, property, target)
      if (typeof part !== 'function') return part
      return (...args: unknown[]): unknown => {
        operations.push(property)
        return part.apply(target, args)
      }
    },
  })
  return { engine, operations }
}

const inWords = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value) : String(value)

for (const [group, rows] of Object.entries(groups)) {
  describe(`option values that a variable may hold, of ${group}`, () => {
    for (const [option, call, taken = OPTIONAL] of rows) test(option, () => check(option, call, taken))
  })
}

async function check(option: string, call: Row[1], taken: readonly unknown[]): Promise<void> {
  for (const value of VALUES) {
    const { engine, operations } = watched()
    // Calls of `open` join the engine themselves.
    await using box = await open(groups['open']!.some(row => row[1] === call) ? 'memory:' : { engine })
    operations.length = 0
    const calling = Promise.resolve().then(() => call(value, { box, engine }))
    if (taken.includes(value)) {
      await expect(calling.then(nothing), inWords(value)).resolves.toBeUndefined()
      continue
    }
    const error = await calling.then(
      () => expect.fail(`${option} takes ${inWords(value)}`),
      (thrown: unknown) => thrown,
    )
    expect(error, inWords(value)).toBeInstanceOf(InvalidArgumentError)
    expect((error as Error).message, inWords(value)).toContain(option)
    expect(operations, inWords(value)).toEqual([])
  }
}

test.each([
  'memory:place',
  'file:./place',
  'redis://127.0.0.1:1?prefix=app:',
  'redis-quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3?prefix=app:',
  'postgres://127.0.0.1:1/place',
  'zookeeper://127.0.0.1:1/place',
  'hazelcast://127.0.0.1:1/place?map=locks',
])('%s with white space at its end names no other place', async url => {
  const urls = [' ', '\n', '\r\n'].map(end => url + end)
  for (const spoiled of [...urls, url.replace(':', ': ')])
    await expect(open(spoiled)).rejects.toThrow('must have no white space')
})
