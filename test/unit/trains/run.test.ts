import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { DeadLetterFile } from '../../../apps/trains/dead-letters.js'
import { Findings } from '../../../apps/trains/input/findings.js'
import { InputError, type MessageSource, type TimedMessage } from '../../../apps/trains/input/source.js'
import { Log } from '../../../apps/trains/log/log.js'
import type { Message } from '../../../apps/trains/messages/message.js'
import { readOptions } from '../../../apps/trains/options.js'
import { loadProgress } from '../../../apps/trains/progress.js'
import { Run } from '../../../apps/trains/run.js'
import { FakeStore, runStore, SharedState } from './fake-store.js'
import { FakeWorkers } from './fake-workers.js'

let folder: string
let state: SharedState
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trains-'))
  state = new SharedState()
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true })
})

/**
 * Returns the messages of trains that shuttle. Each train ends where it began, and one of its messages is out of place.
 */
function shuttles(trains: number): Message[] {
  const messages: object[] = []
  for (let train = 0; train < trains; train++) {
    const about = (step: number) => ({ id: `${train}:${step}`, train: `T${train}` })
    messages.push({ ...about(0), type: 'create', location: 'A' })
    messages.push({ ...about(1), type: 'move', to: 'B' })
    messages.push({ ...about(2), type: 'create', location: 'C' })
    messages.push({ ...about(3), type: 'move', to: 'A' })
    messages.push({ ...about(4), type: 'delete' })
  }
  return messages as Message[]
}

function sourceOf(
  messages: readonly Message[],
  description = 'shuttles',
  onBatch: (read: number) => void = () => undefined,
): MessageSource {
  return {
    name: 'shuttles',
    description,
    total: messages.length,
    days: undefined,
    locationNames: new Map(),
    geography: undefined,
    async *batches(): AsyncGenerator<readonly TimedMessage[]> {
      for (let begin = 0; begin < messages.length; begin += 10) {
        yield messages.slice(begin, begin + 10).map(message => ({ message }))
        onBatch(Math.min(begin + 10, messages.length))
      }
    },
  }
}

const silentOutput = { isTTY: false, write: () => true } as unknown as NodeJS.WriteStream

const log = new Log({ write: () => undefined }, 'error')

/** Returns the stores over the state of this test. A run that is abandoned and never ends keeps using this state. */
const stores = () => {
  const own = state
  return { store: (run: string) => runStore(new FakeStore(own), run) }
}

function prepare(source: MessageSource, ...args: string[]) {
  const workers = new FakeWorkers(state)
  return Run.prepare({
    settings: readOptions(['--processes', '3', ...args]),
    source,
    findings: new Findings(log),
    tracker: {
      session: 'supervisor',
      ...stores(),
      claimRun: async () => true,
      revoke: workers.revoke,
      locks: async () => [],
      close: async () => undefined,
    },
    startWorker: workers.start,
    deadLetters: new DeadLetterFile(join(folder, 'dead.ndjson')),
    log,
    output: silentOutput,
    board: undefined,
  })
}

const whole = {
  messages: 500,
  created: 100,
  moved: 200,
  deleted: 100,
  ignored: 100,
  matchesSerial: true,
  serial: { created: 100, moved: 200, deleted: 100, ignored: 100 },
  locations: {
    A: { created: 100, deleted: 100, arrived: 100, departed: 100 },
    B: { created: 0, deleted: 0, arrived: 100, departed: 100 },
  },
}

describe('a run', () => {
  test('delivers everything and reports it', async () => {
    const run = await prepare(sourceOf(shuttles(100)), '--kill', '4')
    const report = await run.deliver()
    expect(report).toMatchObject({
      ...whole,
      processes: 3,
      days: null,
      interrupted: false,
      resumedAfter: 0,
      deadLettered: 0,
    })
    expect(report?.kills).toHaveLength(4)
    expect(report?.redelivered).toBeGreaterThan(0)
    expect(report?.lockWaitMs.p50).toBeGreaterThan(0)
    expect(await loadProgress(stores())).toMatchObject({
      lowWatermark: 500,
      input: 'shuttles',
      deadLettered: [],
    })
  })

  test('stores and counts dead letters, and deletes those of the run before', async () => {
    const messages = shuttles(100)
    messages.splice(7, 0, { id: 'bad', type: 'unheard of', train: 'T1' })
    const report = await (await prepare(sourceOf(messages))).deliver()
    expect(report).toMatchObject({ ...whole, messages: 501, deadLettered: 1 })
    expect(existsSync(join(folder, 'dead.ndjson'))).toBe(true)
    await prepare(sourceOf(messages))
    expect(existsSync(join(folder, 'dead.ndjson'))).toBe(false)
  })
})

describe('a run that was interrupted', () => {
  test('matches the serial result of what it has done, and is finished by one that resumes it', async () => {
    const messages = shuttles(100)
    messages.splice(7, 0, { id: 'bad', type: 'unheard of', train: 'T1' })
    const stopped = await prepare(sourceOf(messages, 'shuttles', read => read === 250 && stopped.stop()))
    expect(await stopped.deliver()).toMatchObject({ messages: 250, interrupted: true, matchesSerial: true })

    const report = await (await prepare(sourceOf(messages), '--resume', '--processes', '5')).deliver()
    expect(report).toMatchObject({
      ...whole,
      messages: 501,
      resumedAfter: 250,
      interrupted: false,
      deadLettered: 1,
    })
    expect(state.commits).toHaveLength(500)

    const again = await (await prepare(sourceOf(messages), '--resume')).deliver()
    expect(again).toMatchObject({ ...whole, messages: 501, resumedAfter: 501, deadLettered: 1 })
    expect(state.commits).toHaveLength(500)
  })

  test('with unsaved progress is finished, and messages that are delivered again change nothing', async () => {
    const messages = shuttles(100)
    const killed = await prepare(sourceOf(messages))
    // This run is abandoned, so its end does not matter.
    void killed.deliver()
    while (state.commits.length < 150) await turn()
    killed.abandon()
    for (let turns = 0; turns < 20; turns++) await turn()
    const committed = state.commits.length
    expect(committed).toBeLessThan(500)
    expect(await loadProgress(stores())).toMatchObject({ lowWatermark: 0 })

    const report = await (await prepare(sourceOf(messages), '--resume')).deliver()
    expect(report).toMatchObject({ ...whole, resumedAfter: 0 })
    expect(state.commits).toHaveLength(500)
  })

  test('by a long outage has lost nothing, and is finished by one that resumes it', async () => {
    const messages = shuttles(100)
    const run = await prepare(sourceOf(messages))
    const aborted = expect(run.deliver()).rejects.toThrow(
      /unreachable for 0 ms: the server is down; continue/,
    )
    while (state.commits.length < 150) await turn()
    state.isDown = true
    await aborted
    expect(existsSync(join(folder, 'dead.ndjson'))).toBe(false)

    state.isDown = false
    const report = await (await prepare(sourceOf(messages), '--resume')).deliver()
    expect(report).toMatchObject({ ...whole, deadLettered: 0 })
    expect(state.commits).toHaveLength(500)
  })

  test('is resumed with its own input only', async () => {
    const messages = shuttles(100)
    const stopped = await prepare(sourceOf(messages, 'shuttles', read => read === 250 && stopped.stop()))
    await stopped.deliver()
    await expect(prepare(sourceOf(messages, 'others'), '--resume')).rejects.toThrow(InputError)

    const changed = messages.with(100, { ...messages[100]!, id: 'another' })
    await expect((await prepare(sourceOf(changed), '--resume')).deliver()).rejects.toThrow(
      'the first 250 messages are not those of the interrupted run',
    )
    await expect((await prepare(sourceOf(messages.slice(0, 200)), '--resume')).deliver()).rejects.toThrow(
      'the input ends after 200 messages, but 250 are done',
    )
  })

  test('is not resumed after the store has forgotten which messages are committed', async () => {
    const messages = shuttles(100)
    const stopped = await prepare(sourceOf(messages, 'shuttles', read => read === 250 && stopped.stop()))
    await stopped.deliver()
    const now = Date.now()
    vi.spyOn(Date, 'now').mockReturnValue(now + 24 * 3_600_000)
    await expect(prepare(sourceOf(messages), '--resume')).rejects.toThrow(/more than 23 hours ago.*new run/)
    vi.spyOn(Date, 'now').mockReturnValue(now + 22 * 3_600_000)
    expect(await (await prepare(sourceOf(messages), '--resume')).deliver()).toMatchObject(whole)
  })
})
