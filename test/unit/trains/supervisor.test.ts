import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { locationKey, type LocationCounts } from '../../../apps/trains/domain/location.js'
import type { TimedMessage } from '../../../apps/trains/input/source.js'
import { Log } from '../../../apps/trains/log/log.js'
import type { Message } from '../../../apps/trains/messages/message.js'
import { registry } from '../../../apps/trains/messages/registry.js'
import { compareLocations } from '../../../apps/trains/report/comparison.js'
import { SerialResult } from '../../../apps/trains/serial.js'
import { planKills } from '../../../apps/trains/supervisor/kill-plan.js'
import { Kills } from '../../../apps/trains/supervisor/kills.js'
import { Supervisor, type DeadLetter } from '../../../apps/trains/supervisor/supervisor.js'
import type { StartWorker } from '../../../apps/trains/supervisor/worker-process.js'
import { SharedState } from './fake-store.js'
import { FakeWorkers } from './fake-workers.js'

/** Returns the messages of trains that circle a few locations. Some messages are out of place. */
function traffic(trains: number, moves: number): Message[] {
  const messages: Message[] = []
  const add = (train: number, step: number, message: object) =>
    messages.push({ id: `${train}:${step}`, train: `T${train}`, ...message } as Message)
  for (let train = 0; train < trains; train++) add(train, 0, { type: 'create', location: `L${train % 3}` })
  for (let step = 1; step <= moves; step++) {
    for (let train = 0; train < trains; train++)
      add(train, step, { type: 'move', to: `L${(train + step) % 3}` })
  }
  for (let train = 0; train < trains; train++) {
    add(train, moves + 1, { type: 'create', location: 'nowhere' })
    add(train, moves + 2, { type: 'delete' })
    add(train, moves + 3, { type: 'move', to: 'nowhere' })
  }
  return messages
}

async function* batched(messages: readonly Message[], size = 256): AsyncGenerator<readonly TimedMessage[]> {
  for (let begin = 0; begin < messages.length; begin += size) {
    yield messages.slice(begin, begin + size).map(message => ({ message }))
  }
}

interface Wanted {
  readonly processes?: number
  readonly atOnce?: number
  readonly kills?: number
  readonly state?: SharedState
  readonly workers?: FakeWorkers
  readonly startWorker?: StartWorker
  readonly first?: number
}

function supervise(messages: readonly Message[], wanted: Wanted = {}) {
  const { processes = 3, kills = 0, state = new SharedState(), first = 0 } = wanted
  const workers = wanted.workers ?? new FakeWorkers(state)
  const serial = new SerialResult()
  const order: number[] = []
  const deadLetters: DeadLetter[] = []
  const lines: Record<string, unknown>[] = []
  const events: string[] = []
  const killing = new Kills(planKills(kills, messages.length))
  const limits = { lockWait: 10, lease: 1000, lockTries: 1, attempts: 1 }
  const supervisor = new Supervisor({
    processes,
    atOnce: wanted.atOnce ?? processes,
    startWorker: wanted.startWorker ?? workers.start,
    settingsOf: worker => ({
      worker,
      engine: '',
      run: 'run',
      limits,
      engineWait: 0,
      use: 'together',
      dwell: 0,
      logLevel: 'error',
    }),
    revoke: workers.revoke,
    kills: killing,
    first,
    onDone: (message, sequence, deadLettered) => {
      order.push(sequence)
      if (!deadLettered) serial.apply(message)
    },
    onAcknowledged: acknowledgement => events.push(...acknowledgement.events),
    placeOf: message => registry.placeOf(message),
    keepDeadLetter: letter => deadLetters.push(letter),
    log: new Log({ write: line => lines.push(JSON.parse(line) as Record<string, unknown>) }, 'debug'),
  })
  const locations = () => {
    const found = new Map<string, LocationCounts>()
    for (const id of ['L0', 'L1', 'L2', 'nowhere']) {
      const text = state.values.get(locationKey(id))
      if (text !== undefined) found.set(id, (JSON.parse(text) as { value: LocationCounts }).value)
    }
    return found
  }
  const differences = () => compareLocations(serial.locations, locations())
  return {
    supervisor,
    workers,
    state,
    serial,
    order,
    deadLetters,
    lines,
    events,
    killing,
    locations,
    differences,
  }
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index)

describe('messages are delivered', () => {
  test('with at most a window of unfinished ones, regardless of their number', async () => {
    const messages = traffic(200, 100)
    let read = 0
    let most = 0
    async function* counted(): AsyncGenerator<readonly TimedMessage[]> {
      for await (const batch of batched(messages)) {
        yield batch
        read += batch.length
        most = Math.max(most, read - run.order.length)
      }
    }
    const run = supervise(messages)
    await run.supervisor.start()
    await run.supervisor.deliver(counted())
    expect(most).toBeLessThanOrEqual(16_384)
    expect(most).toBeGreaterThan(16_384 - 512)
    expect(run.workers.mostInFlight).toBeLessThanOrEqual(2048)
    expect(run.differences()).toEqual([])
  })

  test('until it is stopped, even while the input waits', async () => {
    async function* silent(): AsyncGenerator<readonly TimedMessage[]> {
      yield traffic(2, 1).map(message => ({ message }))
      await new Promise(() => undefined)
    }
    const run = supervise([])
    await run.supervisor.start()
    const delivered = run.supervisor.deliver(silent())
    for (let turns = 0; turns < 50; turns++) await turn()
    run.supervisor.stop()
    expect(await delivered).toBe(false)
    expect(run.differences()).toEqual([])
  })

  test('and dead letters are stored before they count as done, and are not part of the serial result', async () => {
    const messages = traffic(4, 3)
    const bad: Message = { id: 'bad', type: 'unheard of', train: 'T1' }
    messages.splice(5, 0, bad)
    const run = supervise(messages)
    await run.supervisor.start()
    await run.supervisor.deliver(batched(messages))
    expect(run.deadLetters).toMatchObject([{ message: bad, reason: expect.stringContaining('unheard of') }])
    expect(run.order).toEqual(upTo(messages.length))
    expect(run.differences()).toEqual([])
  })
})

describe('a worker that dies', () => {
  test('is replaced, and its messages are delivered again when its locks are free', async () => {
    const messages = traffic(20, 30)
    const run = supervise(messages, { kills: 6 })
    await run.supervisor.start()
    await run.supervisor.deliver(batched(messages))
    await run.supervisor.finish()
    expect(run.order).toEqual(upTo(messages.length))
    expect(run.differences()).toEqual([])
    expect(run.killing.done).toHaveLength(6)
    expect(run.workers.revoked).toHaveLength(6)
    expect(run.workers.processes).toHaveLength(9)
    for (const kill of run.killing.done) {
      expect(kill.inFlight).toBeGreaterThan(0)
      expect(kill.redelivered).toBeGreaterThan(0)
      expect(kill.redelivered).toBeLessThanOrEqual(kill.inFlight)
      if (kill.moment === 'at work') continue
      expect(kill.committed).toBeGreaterThan(0)
      expect(kill.alreadyApplied).toBeGreaterThanOrEqual(kill.committed)
    }
    expect(new Set(run.killing.done.map(({ moment }) => moment)).size).toBe(2)
    expect(new Set(run.killing.done.map(({ worker }) => worker)).size).toBe(3)
    const redelivered = run.killing.done.reduce((sum, kill) => sum + kill.redelivered, 0)
    expect(run.supervisor.redelivered).toBe(redelivered)
    expect(new Set(run.state.commits).size).toBe(messages.length)
  })

  test('without a planned kill is also replaced', async () => {
    const messages = traffic(20, 30)
    const run = supervise(messages)
    await run.supervisor.start()
    const delivered = run.supervisor.deliver(batched(messages))
    for (let turns = 0; turns < 10; turns++) await turn()
    run.workers.processes[1]?.kill()
    await delivered
    expect(run.differences()).toEqual([])
    expect(run.supervisor.redelivered).toBeGreaterThan(0)
    expect(run.killing.done).toEqual([])
    expect(run.supervisor.perWorker.map(({ replaced }) => replaced)).toEqual([0, 1, 0])
    await run.supervisor.finish()
    // The values that the fake processes report. The fourth process replaced the second.
    expect(run.supervisor.perWorker.map(({ peakMemory }) => peakMemory)).toEqual([1000, 4000, 3000])
    expect(run.workers.revoked).toEqual(['session 2'])
    expect(run.lines).toContainEqual(expect.objectContaining({ event: 'worker died', worker: 2 }))
  })

  test('repeatedly aborts the run with its last reason', async () => {
    const started: number[] = []
    const startWorker: StartWorker = events => {
      started.push(started.length)
      setImmediate(() => {
        events.message({ kind: 'failed', reason: 'the folder is not writable', abortsRun: false })
        events.gone('exited with status 1')
      })
      return { pid: 1, send: () => undefined, kill: () => undefined }
    }
    const run = supervise([], { processes: 1, startWorker })
    await expect(run.supervisor.start()).rejects.toThrow('died 5 times in a row: the folder is not writable')
    expect(started).toHaveLength(5)
  })

  test('at any time: every message takes effect exactly once', { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          processes: fc.integer({ min: 1, max: 4 }),
          atOnce: fc.integer({ min: 1, max: 4 }),
          kills: fc.integer({ min: 0, max: 12 }),
          trains: fc.integer({ min: 1, max: 12 }),
          moves: fc.integer({ min: 0, max: 12 }),
          seed: fc.integer(),
        }),
        async ({ processes, atOnce, kills, trains, moves, seed }) => {
          const messages = traffic(trains, moves)
          const state = new SharedState()
          let random = seed
          const turns = () => {
            random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0
            return 1 + ((random >>> 16) % 4)
          }
          const workers = new FakeWorkers(state, turns)
          const run = supervise(messages, { processes, atOnce, kills, state, workers })
          await run.supervisor.start()
          await run.supervisor.deliver(batched(messages, 7))
          await run.supervisor.finish()
          expect(run.order).toEqual(upTo(messages.length))
          expect(run.differences()).toEqual([])
          expect(state.commits).toHaveLength(messages.length)
        },
      ),
      { numRuns: 150 },
    )
  })
})
