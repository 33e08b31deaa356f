import { setImmediate as turn } from 'node:timers/promises'
import { BusyError, ClosedError, ConflictError, TimedOutError, UnavailableError } from 'signalbox'
import { describe, expect, test } from 'vitest'
import type { Clock } from '../../../apps/trains/clock.js'
import { Log, type LogLevel } from '../../../apps/trains/log/log.js'
import type { Message } from '../../../apps/trains/messages/message.js'
import { create as creation } from '../../../apps/trains/messages/create.js'
import type { MessageType } from '../../../apps/trains/messages/message-type.js'
import { move, type Move } from '../../../apps/trains/messages/move.js'
import { MessageRegistry, standardTypes } from '../../../apps/trains/messages/registry.js'
import type { FromWorker } from '../../../apps/trains/protocol.js'
import { RunStore } from '../../../apps/trains/run-store.js'
import type { TrainStore, TransactionOptions } from '../../../apps/trains/store.js'
import { UnlockedStore } from '../../../apps/trains/unlocked-store.js'
import { KeptValues } from '../../../apps/trains/worker/kept-values.js'
import {
  MessageProcessor,
  type Limits,
  type Settlement,
} from '../../../apps/trains/worker/message-processor.js'
import { NamedKeys } from '../../../apps/trains/worker/named-keys.js'
import { MessageWorker } from '../../../apps/trains/worker/message-worker.js'
import { neighbours } from '../../../apps/trains/worker/neighbours.js'
import { TrainChains, type ChainLimits } from '../../../apps/trains/worker/train-chains.js'
import { FakeStore, SharedState } from './fake-store.js'

const create: Message = { id: 'm1', type: 'create', train: 'T', location: 'A' } as Message
const classic: Limits = { lockWait: 10, lease: 120_000, lockTries: 10, attempts: 3 }

/** A store that throws the given errors first, one a transaction, and then works. */
function failing(...errors: Error[]) {
  const works = new FakeStore(new SharedState())
  const tried: TransactionOptions[] = []
  const store: TrainStore = {
    get: key => works.get(key),
    put: (key, value) => works.put(key, value),
    transaction: (keys, change, options) => {
      tried.push(options)
      const error = errors.shift()
      return error ? Promise.reject(error) : works.transaction(keys, change, options)
    },
  }
  return { store, tried }
}

/** Applies the message to the store, and tells what was logged. */
async function process(store: TrainStore, limits = classic, level: LogLevel = 'debug', message = create) {
  const lines: Record<string, unknown>[] = []
  const slept: number[] = []
  const clock: Clock = {
    now: () => 0,
    async sleep(duration) {
      slept.push(duration)
    },
  }
  const log = new Log({ write: line => lines.push(JSON.parse(line) as Record<string, unknown>) }, level)
  const half = () => 0.5
  const processor = new MessageProcessor(store, new MessageRegistry(), limits, log, clock, half)
  const [settlements] = await processor.process([[message]])
  return { settlement: settlements![0]!, lines, slept, events: lines.map(({ event }) => event) }
}

describe('a message is tried', () => {
  test('once when all goes well, with the limits it was given', async () => {
    const { store, tried } = failing()
    const { settlement, lines } = await process(store)
    expect(settlement).toEqual({ event: 'created', lockWait: 0 })
    expect(tried).toEqual([{ parts: [{ id: 'm1', key: 'TRA_T' }], wait: 10, lease: 120_000 }])
    expect(lines).toMatchObject([
      { level: 'debug', event: 'locks acquired', message: 'm1', attempt: 1, lockTry: 1 },
      { level: 'debug', event: 'locks released', message: 'm1' },
      { level: 'info', event: 'created', message: 'm1', train: 'T', at: 'A' },
    ])
  })

  test('again for its locks until its tries are used up, then in another attempt', async () => {
    const { store, tried } = failing(...Array.from({ length: 11 }, () => new TimedOutError('too slow')))
    const { settlement, events, lines, slept } = await process(store)
    expect(settlement).toMatchObject({ event: 'created' })
    expect(tried).toHaveLength(12)
    // Half of the longest pauses, which grow with each try of an attempt.
    expect(slept).toEqual([5, 10, 15, 20, 25, 30, 35, 40, 45, 5])
    expect(events).toEqual([
      ...Array<string>(10).fill('not all locks acquired'),
      'retried',
      'not all locks acquired',
      'locks acquired',
      'locks released',
      'created',
    ])
    expect(lines[12]).toMatchObject({ message: 'm1', attempt: 2, lockTry: 2 })
  })

  test('at most lockTries times attempts for its locks, and is then given up with the reason', async () => {
    const { store, tried } = failing(...Array.from({ length: 100 }, () => new BusyError('the lock is held')))
    const { settlement, lines } = await process(store)
    expect(settlement).toEqual({ event: 'dead-lettered', lockWait: 0, failure: 'the lock is held' })
    expect(tried).toHaveLength(30)
    expect(lines.at(-1)).toMatchObject({
      level: 'error',
      event: 'dead-lettered',
      message: 'm1',
      attempts: 3,
      reason: 'the lock is held',
    })
  })

  test('again at once after a conflict', async () => {
    const { store } = failing(new ConflictError('LOC_A was written'))
    const { settlement, events, slept } = await process(store)
    expect(settlement.event).toBe('created')
    expect(events).toEqual(['conflict', 'retried', 'locks acquired', 'locks released', 'created'])
    expect(slept).toEqual([])
  })

  test('again after a while when the engine failed', async () => {
    const { store } = failing(new UnavailableError('gone'), new UnavailableError('gone'))
    const { settlement, events, slept } = await process(store, classic, 'info')
    expect(settlement.event).toBe('created')
    expect(events).toEqual(['engine failed', 'retried', 'engine failed', 'retried', 'created'])
    expect(slept).toEqual([100, 200])
  })

  test('only once when trying again could not help', async () => {
    const { store, tried } = failing(new TypeError('undefined is not a train'))
    const { settlement } = await process(store)
    expect(settlement).toMatchObject({ event: 'dead-lettered', failure: 'undefined is not a train' })
    expect(tried).toHaveLength(1)
  })

  test('no more when the store is closed: it is neither applied nor given up', async () => {
    const { store } = failing(new ClosedError('closed'))
    await expect(process(store)).rejects.toThrow(ClosedError)
  })

  test('but a message that was committed before is not applied again', async () => {
    const store = new FakeStore(new SharedState())
    await process(store)
    const { settlement, events } = await process(store)
    expect(settlement.event).toBe('already applied')
    expect(events).toEqual(['already applied'])
  })

  test('and an ignored one says why', async () => {
    const { settlement, lines } = await process(new FakeStore(new SharedState()), classic, 'info', {
      id: 'm2',
      type: 'delete',
      train: 'T',
    })
    expect(settlement.event).toBe('ignored')
    expect(lines).toMatchObject([
      { level: 'info', event: 'ignored', message: 'm2', train: 'T', why: 'no such train' },
    ])
  })
})

describe('messages that are applied together', () => {
  const messages = (...texts: string[]) =>
    texts.map(text => {
      const [train, to] = text.split(' ')
      const what = to === 'A' ? { type: 'create', location: to } : { type: 'move', to }
      return { id: `${train!} to ${to!}`, train, ...what } as object as Message
    })
  const run = messages('T A', 'T B', 'T C')
  const other = messages('U A', 'U B')
  const events = (settlements: readonly (readonly Settlement[])[]) =>
    settlements.map(some => some.map(({ event }) => event))

  function processor(store: TrainStore, types = standardTypes, now: () => number = () => 0) {
    const log = new Log({ write: () => undefined }, 'error')
    const clock: Clock = { now, sleep: async () => undefined }
    return new MessageProcessor(store, new MessageRegistry(types), classic, log, clock)
  }

  test('are one transaction, each seeing what those before it did', async () => {
    const { store, tried } = failing()
    const settlements = await processor(store).process([run, other])
    expect(events(settlements)).toEqual([
      ['created', 'moved', 'moved'],
      ['created', 'moved'],
    ])
    const parts = [...run, ...other].map(({ id, train }) => ({ id, key: `TRA_${train}` }))
    expect(tried).toEqual([{ parts, wait: 10, lease: 120_000 }])
    expect(await store.get('LOC_A')).toMatchObject({ created: 2, departed: 2 })
    expect(await store.get('LOC_B')).toMatchObject({ arrived: 2, departed: 1 })
    expect(await store.get('TRA_T')).toMatchObject({ location: 'C' })
  })

  test('say when they need no locks any more', async () => {
    const { store } = failing(new TimedOutError('too slow'))
    let told = 0
    await processor(store).process([run, other], () => told++)
    expect(told).toBe(run.length + other.length)
  })

  test('leave out those that were committed before', async () => {
    const store = new FakeStore(new SharedState())
    await processor(store).process([run.slice(0, 2)])
    expect(events(await processor(store).process([run, other]))).toEqual([
      ['already applied', 'already applied', 'moved'],
      ['created', 'moved'],
    ])
    expect(events(await processor(store).process([run, other]))).toEqual([
      Array(3).fill('already applied'),
      Array(2).fill('already applied'),
    ])
    expect(await store.get('LOC_B')).toMatchObject({ arrived: 2, departed: 1 })
  })

  test('are applied one by one when they get no locks', async () => {
    const { store, tried } = failing(new TimedOutError('too slow'))
    expect(events(await processor(store).process([run, other]))).toEqual([
      ['created', 'moved', 'moved'],
      ['created', 'moved'],
    ])
    expect(tried.map(({ parts }) => parts.length)).toEqual([5, 1, 1, 1, 1, 1])
  })

  test('go through but for one that fails, which changes nothing, and those of its train that follow', async () => {
    const { store, tried } = failing()
    const failsAtB: MessageType<Move> = {
      ...move,
      handle(message, transaction) {
        const outcome = move.handle(message, transaction)
        if (message.train === 'T' && message.to === 'B') throw new Error('not at B')
        return outcome
      },
    }
    const types = [creation, failsAtB]
    const settlements = await processor(store, types).process([run, other])
    expect(events(settlements)).toEqual([
      ['created', 'dead-lettered', 'moved'],
      ['created', 'moved'],
    ])
    expect(settlements[0]![1]).toMatchObject({ failure: 'not at B' })
    expect(tried.map(({ parts }) => parts.map(({ id }) => id))).toEqual([
      [...run, ...other].map(({ id }) => id),
      ['T to B'],
      ['T to C'],
    ])
    expect(await store.get('LOC_B')).toMatchObject({ arrived: 1, departed: 0 })
    expect(await store.get('LOC_A')).toMatchObject({ created: 2, departed: 2 })
  })

  test('are committed after a while, and the rest in a further transaction', async () => {
    const { store, tried } = failing()
    let now = 0
    // The clock is looked at before each message.
    expect(events(await processor(store, standardTypes, () => (now += 6)).process([run, other]))).toEqual([
      ['created', 'moved', 'moved'],
      ['created', 'moved'],
    ])
    const sizes = tried.map(({ parts }) => parts.length)
    expect(sizes[0]).toBe(5)
    expect(sizes.length).toBeGreaterThan(1)
    expect(sizes.slice(1).every((size, index) => size < sizes[index]!)).toBe(true)
    expect(await store.get('LOC_A')).toMatchObject({ created: 2, departed: 2 })
  })

  test('use no key that only another of them named', () => {
    const transaction = { get: () => undefined, put: () => undefined, delete: () => undefined }
    const named = new NamedKeys(transaction, ['TRA_T'])
    expect(named.get('TRA_T')).toBeUndefined()
    expect(() => named.put('LOC_A', 1)).toThrow('touches LOC_A, which it did not name')
    expect(() => named.delete('LOC_A')).toThrow('touches LOC_A')
  })
})

describe('values that are kept', () => {
  test('are read and written once, with what the messages that went through have changed', () => {
    const calls: string[] = []
    const kept = new KeptValues({
      get: key => (calls.push(`get ${key}`), key === 'none' ? undefined : `old ${key}`),
      put: (key, value) => calls.push(`put ${key} ${String(value)}`),
      delete: key => calls.push(`delete ${key}`),
    })
    expect([kept.get('a'), kept.get('a'), kept.get('none'), kept.get('none')]).toEqual([
      'old a',
      'old a',
      undefined,
      undefined,
    ])
    kept.put('a', 'new')
    kept.delete('b')
    expect([kept.get('a'), kept.get('b')]).toEqual(['new', undefined])
    kept.keep()
    kept.put('a', 'failed')
    kept.put('c', 'failed')
    kept.takeBack()
    expect([kept.get('a'), kept.get('c')]).toEqual(['new', 'old c'])
    kept.put('b', 'again')
    kept.keep()
    kept.write()
    expect(calls).toEqual(['get a', 'get none', 'get c', 'put a new', 'put b again'])
  })
})

describe('neighbours', () => {
  const at = (places: string, size = 1) => ({ places: places.split(' ').filter(Boolean), size })
  const none: ReadonlySet<string>[] = []

  test('are the first and those that have the fewest places which that one has not', () => {
    const [first, far, near, same, part] = [at('a b'), at('x y'), at('b c'), at('a b'), at('a')]
    const all = [first, far, near, same, part]
    expect(neighbours(all, 3, none)).toEqual([first, same, part])
    expect(neighbours(all, 4, none)).toEqual([first, same, part, near])
    expect(neighbours(all, 9, none)).toEqual([first, same, part, near, far])
    expect(neighbours([], 9, none)).toEqual([])
  })

  test('are no more items than wanted, unless the first is', () => {
    const all = [at('a', 5), at('a', 4), at('b', 2), at('a', 3)]
    expect(neighbours(all, 8, none)).toEqual([all[0], all[3]])
    expect(neighbours(all, 7, none)).toEqual([all[0], all[2]])
    expect(neighbours(all, 1, none)).toEqual([all[0]])
  })

  test('are at no place that is to be avoided', () => {
    const all = [at('a b'), at('c'), at('c d'), at('')]
    expect(neighbours(all, 9, [new Set(['b']), new Set(['d'])])).toEqual([all[1], all[3]])
    expect(neighbours(all.slice(0, 3), 9, [new Set(['b', 'c'])])).toEqual([])
  })
})

describe('chains', () => {
  /** Chains of items such as `a1`: the first of train `a`; everything that happened is logged. */
  function chainsOf(
    limits: Partial<ChainLimits>,
    placeOf: (item: string) => string | undefined = () => undefined,
    turns: (item: string) => number = () => 1,
  ) {
    const runs: string[] = []
    const log: string[] = []
    const state = { running: 0, most: 0 }
    const go = new Map<string, () => void>()
    const chains = new TrainChains<string>(
      {
        async work(some, goOn) {
          const items = some.flat()
          state.most = Math.max(state.most, ++state.running)
          runs.push(some.map(run => run.join(' ')).join(', '))
          for (const item of items) go.set(item, goOn)
          for (const item of items) log.push(`${item} begins`)
          for (let left = Math.max(...items.map(turns)); left > 0; left--) await turn()
          for (const item of items) log.push(`${item} ends`)
          state.running--
        },
        placeOf,
      },
      { together: 1, run: 1, atOnce: 10, patience: 0, ...limits },
    )
    const add = (...items: string[]) => {
      for (const item of items) chains.add(item[0]!, item)
    }
    return { chains, add, runs, log, state, go }
  }

  test('hand over what follows each other as runs', async () => {
    const { chains, add, runs } = chainsOf({ together: 2, run: 2 })
    add('a1', 'a2', 'a3', 'a4', 'a5', 'b1')
    await chains.idle()
    expect(runs).toEqual(['a1 a2', 'b1', 'a3 a4', 'a5'])
  })

  test('keep the order of each train and let different trains run at the same time', async () => {
    const { chains, add, log, state } = chainsOf({}, undefined, item => (item === 'a1' ? 5 : 1))
    add('a1', 'a2', 'b1', 'a3', 'b2')
    await chains.idle()
    const of = (train: string) => log.filter(line => line.startsWith(train)).map(line => line.slice(1))
    expect(of('a')).toEqual(['1 begins', '1 ends', '2 begins', '2 ends', '3 begins', '3 ends'])
    expect(of('b')).toEqual(['1 begins', '1 ends', '2 begins', '2 ends'])
    expect(log.indexOf('b2 ends')).toBeLessThan(log.indexOf('a1 ends'))
    expect(state.most).toBe(2)
    await chains.idle()
  })

  test('run so many at a time, trains in turn', async () => {
    const { chains, add, runs, state } = chainsOf({ atOnce: 2 })
    add('a1', 'a2', 'a3', 'b1', 'b2', 'c1', 'd1', 'd2')
    await chains.idle()
    expect(state.most).toBe(2)
    expect(runs).toEqual(['a1', 'b1', 'c1', 'd1', 'a2', 'b2', 'd2', 'a3'])
  })

  test('run together what happens at the same places', async () => {
    const { chains, add, runs } = chainsOf({ together: 4, run: 2 }, item => item[1])
    add('a1', 'a2', 'b9', 'b9', 'c1', 'c2', 'd9', 'd9')
    await chains.idle()
    expect(runs).toEqual(['a1 a2, c1 c2', 'b9 b9, d9 d9'])
  })

  test('know where a train was before', async () => {
    const later = ['j2', 'k3']
    const { chains, add, runs } = chainsOf(
      { together: 2, run: 2, atOnce: 1 },
      item => item[1],
      item => {
        if (item === 'b5') add(...later.splice(0))
        return 1
      },
    )
    add('a2', 'a2', 'a3', 'b5', 'b5')
    await chains.idle()
    expect(runs).toEqual(['a2 a2', 'b5 b5', 'a3, j2', 'k3'])
  })

  test('begin nothing at places whose locks others wait for, and nothing else for a while', async () => {
    const never = new Promise<never>(() => undefined)
    const begun: string[] = []
    let goOn: () => void = () => undefined
    const chains = new TrainChains<string>(
      {
        work: ([run], go) => {
          begun.push(run!.join())
          if (begun.length === 1) goOn = go
          return never
        },
        placeOf: item => item[1],
      },
      { together: 1, run: 1, atOnce: 10, patience: 2300 },
    )
    for (const item of ['a1', 'b1', 'c2', 'd3']) chains.add(item[0]!, item)
    await turn()
    expect(begun).toEqual(['a1'])
    const patient = { interval: 1, timeout: 5000 }
    await expect.poll(() => begun, patient).toEqual(['a1', 'c2', 'd3'])
    goOn()
    await expect.poll(() => begun, patient).toEqual(['a1', 'c2', 'd3', 'b1'])
  })
})

describe('a worker', () => {
  const messages = ['x', 'y', 'z'].map(train => ({ id: train, type: 'delete', train }))

  function worker(
    work: (message: Message) => Promise<{ event: string; lockWait: number; failure?: string }>,
  ) {
    const sent: FromWorker[] = []
    const failures: unknown[] = []
    const it = new MessageWorker(
      { process: runs => Promise.all(runs.map(run => Promise.all(run.map(work)))), placeOf: () => undefined },
      message => sent.push(message),
      error => failures.push(error),
      { together: 2, run: 2, atOnce: 100, patience: 0 },
    )
    return { it, sent, failures }
  }

  test('acknowledges together what one tick brings', async () => {
    const { it, sent } = worker(async () => ({ event: 'deleted', lockWait: 0 }))
    it.work([10, 11, 12], messages)
    await it.drain()
    expect(sent).toEqual([
      {
        kind: 'settled',
        sequences: [10, 11, 12],
        events: ['deleted', 'deleted', 'deleted'],
        waits: [0, 0, 0],
        givenUp: [],
      },
    ])
  })

  test('tells which messages were given up, and why', async () => {
    const { it, sent } = worker(async ({ id }) =>
      id === 'y'
        ? { event: 'dead-lettered', lockWait: 0, failure: 'no luck' }
        : { event: 'deleted', lockWait: 0 },
    )
    it.work([10, 11, 12], messages)
    await it.drain()
    expect(sent).toMatchObject([{ givenUp: [{ sequence: 11, reason: 'no luck' }] }])
  })

  test('that holds back acknowledges nothing, and reports when it has something to lose', async () => {
    const { it, sent } = worker(async () => ({ event: 'deleted', lockWait: 0 }))
    it.hold(true)
    await turn()
    expect(sent).toEqual([])
    it.work([10, 11], messages.slice(0, 2))
    await it.drain()
    it.work([12], messages.slice(2))
    await it.drain()
    expect(sent).toEqual([{ kind: 'holding', committed: 2 }])
    it.hold(false)
    expect(sent[1]).toMatchObject({ kind: 'settled', sequences: [10, 11, 12] })
  })

  test('that can not go on reports it', async () => {
    const { it, failures } = worker(() => Promise.reject(new ClosedError('closed')))
    it.work([10], messages.slice(0, 1))
    await it.drain()
    expect(failures).toEqual([expect.any(ClosedError)])
  })
})

describe('stores', () => {
  const options = { parts: [{ id: '1', key: 'a' }], wait: 0, lease: 1000 }

  test('a run sees nothing of earlier ones, neither values nor ids', async () => {
    const state = new SharedState()
    const first = new RunStore(new FakeStore(state), 'first')
    const second = new RunStore(new FakeStore(state), 'second')
    const write = (store: TrainStore, value: number) =>
      store.transaction(
        async read => ((await read('a')) === undefined ? ['a'] : ['a', 'b']),
        transaction => {
          const before = transaction.get('a')
          transaction.put('a', value)
          return before
        },
        options,
      )
    expect(await write(first, 1)).toEqual({ applied: true, result: undefined })
    expect(await write(first, 2)).toEqual({ applied: false })
    expect(await write(second, 3)).toEqual({ applied: true, result: undefined })
    expect(await second.get('a')).toBe(3)
    expect(await first.get('a')).toBeUndefined()
  })

  test('without locks an update between reading and writing is lost', async () => {
    const values = new Map<string, unknown>([['a', 0]])
    const store = new UnlockedStore({
      get: async key => values.get(key),
      put: async (key, value) => void values.set(key, value),
      delete: async key => void values.delete(key),
    })
    const add = () =>
      store.transaction(
        () => ['a'],
        transaction => transaction.put('a', (transaction.get('a') as number) + 1),
        options,
      )
    await Promise.all([add(), add()])
    expect(values.get('a')).toBe(1)
  })
})
