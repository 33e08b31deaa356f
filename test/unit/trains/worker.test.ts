import { setImmediate as turn } from 'node:timers/promises'
import { BusyError, ClosedError, ConflictError, TimedOutError, UnavailableError } from 'signalbox'
import { describe, expect, test } from 'vitest'
import type { Clock } from '../../../apps/trains/clock.js'
import { Log, type LogLevel } from '../../../apps/trains/log/log.js'
import type { Message } from '../../../apps/trains/messages/message.js'
import { MessageRegistry } from '../../../apps/trains/messages/registry.js'
import type { FromWorker } from '../../../apps/trains/protocol.js'
import { RunStore } from '../../../apps/trains/run-store.js'
import type { TrainStore, TransactionOptions } from '../../../apps/trains/store.js'
import { UnlockedStore } from '../../../apps/trains/unlocked-store.js'
import { MessageProcessor, type Limits } from '../../../apps/trains/worker/message-processor.js'
import { NamedKeys } from '../../../apps/trains/worker/named-keys.js'
import { MessageWorker } from '../../../apps/trains/worker/message-worker.js'
import { TrainChains } from '../../../apps/trains/worker/train-chains.js'
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
  const [settlement] = await processor.process([message])
  return { settlement: settlement!, lines, slept, events: lines.map(({ event }) => event) }
}

describe('a message is tried', () => {
  test('once when all goes well, with the limits it was given', async () => {
    const { store, tried } = failing()
    const { settlement, lines } = await process(store)
    expect(settlement).toEqual({ event: 'created', lockWait: 0 })
    expect(tried).toEqual([{ ids: ['m1'], wait: 10, lease: 120_000 }])
    expect(lines).toMatchObject([
      { level: 'debug', event: 'locks acquired', message: 'm1', attempt: 1, lockTry: 1 },
      { level: 'debug', event: 'locks released', message: 'm1' },
      { level: 'info', event: 'created', message: 'm1', train: 'T', at: 'A' },
    ])
  })

  test('again for its locks until its tries are used up, then in a new attempt', async () => {
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
    const { store, tried } = failing(...Array.from({ length: 100 }, () => new BusyError('somebody has it')))
    const { settlement, lines } = await process(store)
    expect(settlement).toEqual({ event: 'dead-lettered', lockWait: 0, failure: 'somebody has it' })
    expect(tried).toHaveLength(30)
    expect(lines.at(-1)).toMatchObject({
      level: 'error',
      event: 'dead-lettered',
      message: 'm1',
      attempts: 3,
      reason: 'somebody has it',
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

describe('messages of one train that follow each other', () => {
  const run = [
    { id: '1', type: 'create', train: 'T', location: 'A' },
    { id: '2', type: 'move', train: 'T', to: 'B' },
    { id: '3', type: 'move', train: 'T', to: 'C' },
  ] as readonly object[] as Message[]

  function processor(store: TrainStore) {
    const log = new Log({ write: () => undefined }, 'error')
    const clock: Clock = { now: () => 0, sleep: async () => undefined }
    return new MessageProcessor(store, new MessageRegistry(), classic, log, clock)
  }

  test('are applied as one transaction, each seeing what those before it did', async () => {
    const { store, tried } = failing()
    const settlements = await processor(store).process(run)
    expect(settlements.map(({ event }) => event)).toEqual(['created', 'moved', 'moved'])
    expect(tried).toEqual([{ ids: ['1', '2', '3'], wait: 10, lease: 120_000 }])
    expect(await store.get('LOC_B')).toMatchObject({ arrived: 1, departed: 1 })
    expect(await store.get('TRA_T')).toMatchObject({ location: 'C' })
  })

  test('are applied without those that were committed before', async () => {
    const store = new FakeStore(new SharedState())
    await processor(store).process(run.slice(0, 2))
    const settlements = await processor(store).process(run)
    expect(settlements.map(({ event }) => event)).toEqual(['already applied', 'already applied', 'moved'])
    expect(await store.get('LOC_B')).toMatchObject({ arrived: 1, departed: 1 })
  })

  test('are applied one by one when that does not go through at once', async () => {
    const { store, tried } = failing(new TimedOutError('too slow'))
    const settlements = await processor(store).process(run)
    expect(settlements.map(({ event }) => event)).toEqual(['created', 'moved', 'moved'])
    expect(tried.map(({ ids }) => ids)).toEqual([['1', '2', '3'], ['1'], ['2'], ['3']])
  })

  test('use no key that only another of them named', () => {
    const transaction = { get: () => undefined, put: () => undefined, delete: () => undefined }
    const named = new NamedKeys(transaction, ['TRA_T'])
    expect(named.get('TRA_T')).toBeUndefined()
    expect(() => named.put('LOC_A', 1)).toThrow('touches LOC_A, which it did not name')
    expect(() => named.delete('LOC_A')).toThrow('touches LOC_A')
  })
})

describe('chains', () => {
  test('hand over what follows each other as runs', async () => {
    const runs: string[][] = []
    const chains = new TrainChains<string>(
      async items => {
        runs.push([...items])
        await turn()
      },
      { trains: 10, run: 2 },
    )
    for (const item of ['a1', 'a2', 'a3', 'a4', 'b1']) chains.add(item[0]!, item)
    await chains.idle()
    expect(runs).toEqual([['a1'], ['b1'], ['a2', 'a3'], ['a4']])
  })

  test('keep the order of each train and let different trains run at the same time', async () => {
    const log: string[] = []
    let running = 0
    let most = 0
    const chains = new TrainChains<string>(
      async ([item]) => {
        most = Math.max(most, ++running)
        log.push(`${item!} begins`)
        for (let turns = item === 'a1' ? 5 : 1; turns > 0; turns--) await turn()
        log.push(`${item!} ends`)
        running--
      },
      { trains: 10, run: 1 },
    )
    for (const item of ['a1', 'a2', 'b1', 'a3', 'b2']) chains.add(item[0]!, item)
    await chains.idle()
    const of = (train: string) => log.filter(line => line.startsWith(train)).map(line => line.slice(1))
    expect(of('a')).toEqual(['1 begins', '1 ends', '2 begins', '2 ends', '3 begins', '3 ends'])
    expect(of('b')).toEqual(['1 begins', '1 ends', '2 begins', '2 ends'])
    expect(log.indexOf('b2 ends')).toBeLessThan(log.indexOf('a1 ends'))
    expect(most).toBe(2)
    await chains.idle()
  })
})

describe('chains that are bounded', () => {
  test('run so many at a time, trains in turn', async () => {
    const log: string[] = []
    let running = 0
    let most = 0
    const chains = new TrainChains<string>(
      async ([item]) => {
        most = Math.max(most, ++running)
        log.push(item!)
        await turn()
        running--
      },
      { trains: 2, run: 1 },
    )
    for (const item of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1', 'd1', 'd2']) chains.add(item[0]!, item)
    await chains.idle()
    expect(most).toBe(2)
    expect(log).toEqual(['a1', 'b1', 'c1', 'd1', 'a2', 'b2', 'd2', 'a3'])
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
      run => Promise.all(run.map(work)),
      message => sent.push(message),
      error => failures.push(error),
      { trains: 100, run: 2 },
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

  test('that is to hold acknowledges nothing, and says when it has something to lose', async () => {
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

  test('that can not go on says so', async () => {
    const { it, failures } = worker(() => Promise.reject(new ClosedError('closed')))
    it.work([10], messages.slice(0, 1))
    await it.drain()
    expect(failures).toEqual([expect.any(ClosedError)])
  })
})

describe('stores', () => {
  const options = { ids: ['1'], wait: 0, lease: 1000 }

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
