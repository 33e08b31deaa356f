import { setImmediate as turn } from 'node:timers/promises'
import { BusyError, ConflictError, IndeterminateError, TimedOutError, UnavailableError } from 'signalbox'
import { describe, expect, test } from 'vitest'
import type { Clock } from '../../../apps/trains/clock.js'
import { Log, type LogLevel } from '../../../apps/trains/log/log.js'
import type { Message } from '../../../apps/trains/messages/message.js'
import { create as creation } from '../../../apps/trains/messages/create.js'
import type { MessageType } from '../../../apps/trains/messages/message-type.js'
import { move, type Move } from '../../../apps/trains/messages/move.js'
import { MessageRegistry, registry, standardTypes } from '../../../apps/trains/messages/registry.js'
import type { FromWorker } from '../../../apps/trains/protocol.js'
import type { RunStore } from '../../../apps/trains/run-store.js'
import type { TrainStore, TransactionOptions } from '../../../apps/trains/store.js'
import {
  MessageProcessor,
  type Limits,
  type Settlement,
} from '../../../apps/trains/worker/message-processor.js'
import { MessageWorker } from '../../../apps/trains/worker/message-worker.js'
import { TrainQueues, type QueueLimits } from '../../../apps/trains/worker/train-queues.js'
import { FakeStore, runStore, SharedState } from './fake-store.js'

const create: Message = { id: 'm1', type: 'create', train: 'T', location: 'A' } as Message
const classic: Limits = { lockWait: 10, lease: 120_000, lockTries: 10, attempts: 3 }

/** Creates a store that throws the given errors, one per transaction, and then works. */
function failing(...errors: Error[]) {
  const works = new FakeStore(new SharedState())
  const tried: TransactionOptions[] = []
  const store: TrainStore = {
    get: key => works.get(key),
    put: (key, value) => works.put(key, value),
    delete: key => works.delete(key),
    transaction: (keys, change, options) => {
      tried.push(options)
      const error = errors.shift()
      return error ? Promise.reject(error) : works.transaction(keys, change, options)
    },
  }
  return { store, tried }
}

/**
 * Creates a store that commits its first transaction but loses the reply. It throws the given errors, one per
 * transaction, and then works.
 */
function committingWithoutReply(...errors: Error[]) {
  const { store, tried } = failing(...errors)
  const works = new FakeStore(new SharedState())
  return {
    store: {
      get: key => works.get(key),
      put: (key, value) => works.put(key, value),
      delete: key => works.delete(key),
      async transaction(keys, change, options) {
        const result = tried.length === 0 ? await works.transaction(keys, change, options) : undefined
        await store.transaction(
          async () => ['any'],
          async () => undefined,
          options,
        )
        return result ?? works.transaction(keys, change, options)
      },
    } satisfies TrainStore as TrainStore,
  }
}

const refusals = (number: number) => Array.from({ length: number }, () => new BusyError('the lock is held'))
/** Returns limits with a number of attempts, and one try each. */
const once = (attempts: number): Limits => ({ ...classic, lockTries: 1, attempts })

/** Applies the message to the store, and returns the log lines. */
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
  const processor = new MessageProcessor(store, registry, limits, log, clock, half)
  const [settlement] = await processor.process([message])
  return { settlement: settlement!, lines, slept, events: lines.map(({ event }) => event) }
}

describe('a message is tried', () => {
  test('once if it succeeds, with the given limits', async () => {
    const { store, tried } = failing()
    const { settlement, lines } = await process(store)
    expect(settlement).toEqual({ event: 'created', lockWait: 0 })
    expect(tried).toEqual([{ id: [{ id: 'm1', key: 'TRA_T' }], wait: 10, lease: 120_000 }])
    expect(lines).toMatchObject([
      { level: 'debug', event: 'locks acquired', message: 'm1', attempt: 1, lockTry: 1 },
      { level: 'debug', event: 'locks released', message: 'm1' },
      { level: 'info', event: 'created', message: 'm1', train: 'T', at: 'A' },
    ])
  })

  test('again for its locks until no tries are left, then in another attempt', async () => {
    const { store, tried } = failing(...Array.from({ length: 11 }, () => new TimedOutError('too slow')))
    const { settlement, events, lines, slept } = await process(store)
    expect(settlement).toMatchObject({ event: 'created' })
    expect(tried).toHaveLength(12)
    // Half of the maximum pauses, which grow with each try of an attempt.
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

  test('at most lockTries times in each attempt, and is then dead-lettered with the reason', async () => {
    const { store, tried } = failing(...Array.from({ length: 30 }, () => new BusyError('the lock is held')))
    const { settlement, lines } = await process(store)
    expect(settlement).toEqual({ event: 'dead-lettered', lockWait: 0, failure: 'the lock is held' })
    // The last transaction checks whether the message is committed.
    expect(tried).toHaveLength(31)
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

  test('again after a pause if the engine failed', async () => {
    const { store } = failing(new UnavailableError('gone'), new UnavailableError('gone'))
    const { settlement, events, slept } = await process(store, classic, 'info')
    expect(settlement.event).toBe('created')
    expect(events).toEqual(['engine failed', 'retried', 'engine failed', 'retried', 'created'])
    expect(slept).toEqual([100, 200])
  })

  test('only once if a retry is useless', async () => {
    const { store, tried } = failing(new TypeError('undefined is not a train'))
    const { settlement } = await process(store)
    expect(settlement).toMatchObject({ event: 'dead-lettered', failure: 'undefined is not a train' })
    expect(tried).toHaveLength(1)
  })

  test('and is not dead-lettered if an attempt without a reply has committed it', async () => {
    const { store } = committingWithoutReply(new IndeterminateError('no reply'), ...refusals(2))
    const { settlement, events } = await process(store, once(3))
    expect(settlement).toEqual({ event: 'already applied', lockWait: 0 })
    expect(events).not.toContain('dead-lettered')
    expect((await store.get('LOC_A'))?.value).toMatchObject({ created: 1 })
  })

  test('and is dead-lettered if an attempt without a reply has not committed it', async () => {
    const { store } = failing(new IndeterminateError('no reply'))
    const { settlement } = await process(store, once(1))
    expect(settlement).toMatchObject({ event: 'dead-lettered', failure: 'no reply' })
    expect(await store.get('LOC_A')).toBeUndefined()
  })

  test('and aborts the run if the store can not be asked whether it is committed', async () => {
    const { store } = failing(new IndeterminateError('no reply'), new UnavailableError('damaged'))
    await expect(process(store, once(1))).rejects.toThrow(
      "can't find out whether message m1 is committed: damaged; continue with --resume",
    )
  })
})

describe('consecutive messages of a train', () => {
  const messages = (train: string, ...places: string[]) =>
    places.map(to => {
      const what = to === 'A' ? { type: 'create', location: to } : { type: 'move', to }
      return { id: `${train} to ${to}`, train, ...what } as object as Message
    })
  const run = messages('T', 'A', 'B', 'C')
  const events = (settlements: readonly Settlement[]) => settlements.map(({ event }) => event)

  function processor(store: Pick<TrainStore, 'transaction'>, types = standardTypes) {
    const log = new Log({ write: () => undefined }, 'error')
    const clock: Clock = { now: () => 0, sleep: async () => undefined }
    return new MessageProcessor(store, new MessageRegistry(types), classic, log, clock)
  }
  const value = async (store: TrainStore, key: string) => (await store.get(key))?.value

  const failsAtB: MessageType<Move> = {
    ...move,
    handle(message, transaction) {
      const outcome = move.handle(message, transaction)
      if (message.train === 'T' && message.to === 'B') throw new Error('not at B')
      return outcome
    },
  }

  test('are one transaction, in which each sees the changes of those before it', async () => {
    const { store, tried } = failing()
    expect(events(await processor(store).process(run))).toEqual(['created', 'moved', 'moved'])
    expect(tried).toEqual([{ id: run.map(({ id }) => ({ id, key: 'TRA_T' })), wait: 10, lease: 120_000 }])
    expect(await value(store, 'LOC_A')).toMatchObject({ created: 1, departed: 1 })
    expect(await value(store, 'LOC_B')).toMatchObject({ arrived: 1, departed: 1 })
    expect(await value(store, 'TRA_T')).toMatchObject({ location: 'C' })
  })

  test('of several trains are applied by train if one fails', async () => {
    const { store, tried } = failing()
    const other = messages('U', 'A', 'C')
    const mixed = [other[0]!, ...run, other[1]!]
    const settlements = await processor(store, [creation, failsAtB]).process(mixed)
    expect(events(settlements)).toEqual(['created', 'created', 'dead-lettered', 'moved', 'moved'])
    expect(tried.map(({ id }) => id.length)).toEqual([5, 2, 3, 1, 1, 1])
    expect(await value(store, 'LOC_A')).toMatchObject({ created: 2, departed: 2 })
  })
})

describe('queues of trains', () => {
  /** Creates queues of items such as `a1`, the first of train `a`. Logs everything that happens. */
  function queuesOf(limits: Partial<QueueLimits>, turns: (item: string) => number = () => 1) {
    const runs: string[] = []
    const log: string[] = []
    const state = { running: 0, most: 0 }
    const queues = new TrainQueues<string>(
      async run => {
        state.most = Math.max(state.most, ++state.running)
        runs.push(run.join(' '))
        for (const item of run) log.push(`${item} begins`)
        for (let left = Math.max(...run.map(turns)); left > 0; left--) await turn()
        for (const item of run) log.push(`${item} ends`)
        state.running--
      },
      { run: 1, atOnce: 10, ...limits },
    )
    const add = (...items: string[]) => {
      for (const item of items) queues.add(item[0]!, item)
    }
    return { queues, add, runs, log, state }
  }

  test('process the items of several trains in one run', async () => {
    const { queues, add, runs } = queuesOf({ run: 4 })
    add('a1', 'b1', 'b2', 'c1', 'c2', 'd1')
    await queues.idle()
    expect(runs).toEqual(['a1 b1 b2 c1', 'd1', 'c2'])
  })

  test('keep the order of each train and let different trains run at the same time', async () => {
    const { queues, add, log, state } = queuesOf({}, item => (item === 'a1' ? 5 : 1))
    add('a1', 'a2', 'b1', 'a3', 'b2')
    await queues.idle()
    const of = (train: string) => log.filter(line => line.startsWith(train)).map(line => line.slice(1))
    expect(of('a')).toEqual(['1 begins', '1 ends', '2 begins', '2 ends', '3 begins', '3 ends'])
    expect(of('b')).toEqual(['1 begins', '1 ends', '2 begins', '2 ends'])
    expect(log.indexOf('b2 ends')).toBeLessThan(log.indexOf('a1 ends'))
    expect(state.most).toBe(2)
    await queues.idle()
  })

  test('begin no more runs than their limit, trains in turn', async () => {
    const { queues, add, runs, state } = queuesOf({ atOnce: 2 })
    add('a1', 'a2', 'a3', 'b1', 'b2', 'c1', 'd1', 'd2')
    await queues.idle()
    expect(state.most).toBe(2)
    expect(runs).toEqual(['a1', 'b1', 'c1', 'd1', 'a2', 'b2', 'd2', 'a3'])
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
      { process: run => Promise.all(run.map(work)) },
      message => sent.push(message),
      error => failures.push(error),
      { run: 2, atOnce: 100 },
    )
    return { it, sent, failures }
  }

  test('that holds acknowledges nothing, and reports committed messages', async () => {
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
})

describe('stores', () => {
  const options = { id: [{ id: '1', key: 'a' }], wait: 0, lease: 1000, retention: 1000 }

  test('a run sees neither values nor IDs of earlier ones', async () => {
    const state = new SharedState()
    const first = runStore(new FakeStore(state), 'first')
    const second = runStore(new FakeStore(state), 'second')
    const write = (store: RunStore, value: number) =>
      store.transaction(
        async read => ((await read('a')) === undefined ? ['a'] : ['a', 'b']),
        async transaction => {
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
})
