import { describe, expect, test } from 'vitest'
import { rising } from '../../packages/conformance/src/section.js'
import { nothingHeld, pause, until } from '../../packages/conformance/src/time.js'
import { open, SignalboxError, type Box, type Grant } from '../../src/index.js'
import { startPostgres } from '../support/servers/postgres.js'

const KEYS = ['one', 'other']
const BOXES = 4
const CRASHES = 5
/**
 * Maximum time until a grant is on the disk, in milliseconds: three times `wal_writer_delay`, plus time for a busy
 * machine.
 */
const KEPT_AFTER = 2000

/** A caller's time with a key: it was certain to hold the key between `from` and `to`, in times of this process. */
interface Visit {
  readonly token: bigint
  readonly from: number
  to: number
}

/** Callers that hold keys and change a value repeatedly, and their results. */
class Load {
  readonly visits = new Map<string, Visit[]>(KEYS.map(key => [key, []]))
  readonly codes = new Set<string>()
  committed = 0
  unclear = 0
  /** Number of finished steps of each box. */
  readonly done: number[]
  readonly #callers: Promise<void>[]
  #isOver = false

  constructor(boxes: readonly Box[]) {
    this.done = boxes.map(() => 0)
    this.#callers = boxes.flatMap((box, place) => {
      const mutexes = KEYS.map(key => () => this.#hold(box, [key]))
      const tasks = [...mutexes, () => this.#hold(box, KEYS), () => this.#count(box)]
      return tasks.map(task => this.#again(task, place))
    })
  }

  /** Resolves when every box has completed more steps. */
  async goesOn(): Promise<void> {
    const before = [...this.done]
    await until('every box continues', () => this.done.every((count, place) => count > before[place]! + 25))
  }

  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#callers)
  }

  async #again(task: () => Promise<void>, place: number): Promise<void> {
    while (!this.#isOver) {
      try {
        await task()
        this.done[place]!++
      } catch (error) {
        if (!(error instanceof SignalboxError)) throw error
        this.codes.add(error.code)
        await pause(10)
      }
    }
  }

  #hold(box: Box, keys: readonly string[]): Promise<void> {
    return box.mutex(...keys).run(grant => this.#visit(grant, keys), { lease: 3000 })
  }

  async #visit(grant: Grant, keys: readonly string[]): Promise<void> {
    const visit: Visit = { token: grant.token, from: performance.now(), to: performance.now() }
    for (const key of keys) this.visits.get(key)!.push(visit)
    for (let stay = 0; stay < 3; stay++) {
      grant.assertHeld()
      visit.to = performance.now()
      await pause(1)
    }
  }

  async #count(box: Box): Promise<void> {
    try {
      await box
        .store('s')
        .transaction(['sum'], tx => tx.put('sum', (tx.get<number>('sum') ?? 0) + 1), { lease: 3000 })
      this.committed++
    } catch (error) {
      if ((error as SignalboxError).code === 'INDETERMINATE') this.unclear++
      throw error
    }
  }
}

describe('a server that is killed and started again', () => {
  test(`under load, ${CRASHES} times, loses nothing but the grants of its last moments`, async () => {
    await using server = await startPostgres()
    const boxes = await Promise.all(Array.from({ length: BOXES }, () => open(server.url)))
    const held = await boxes[0]!.mutex('held').acquire({ lease: '60s' })
    // A commit that waits for the disk also flushes the earlier grant.
    await boxes[0]!.store('s').put('after', 1)
    const load = new Load(boxes)
    const crashes: number[] = []
    for (let crash = 0; crash < CRASHES; crash++) {
      await load.goesOn()
      crashes.push(performance.now())
      await server.restart()
    }
    await load.goesOn()
    await load.end()
    const mayBeLost = ({ from }: Visit, later: Visit): boolean =>
      crashes.some(crash => from < crash && crash < later.from && crash - from < KEPT_AFTER)
    for (const [key, visits] of load.visits) {
      expect(rising(visits.map(({ token }) => token)), `tokens of ${key}`).toBe(true)
      const overlaps = visits.slice(1).filter((visit, index) => {
        const before = visits[index]!
        return before.to > visit.from && !mayBeLost(before, visit)
      })
      expect(overlaps, `holders of ${key} at once`).toEqual([])
    }
    expect(['UNAVAILABLE', 'INDETERMINATE', 'LOST']).toEqual(expect.arrayContaining([...load.codes]))
    expect(load.codes.size).toBeGreaterThan(0)
    const { value } = (await boxes[0]!.store('s').get<number>('sum'))!
    expect(value).toBeGreaterThanOrEqual(load.committed)
    expect(value).toBeLessThanOrEqual(load.committed + load.unclear)
    await held.release()
    await nothingHeld(boxes[0]!)
    await Promise.all(boxes.map(box => box.close()))
  })

  test('does not confuse a lost row with one that was inserted since', async () => {
    await using server = await startPostgres()
    await using one = await open(server.url)
    await server.stopWriter()
    // Inserts a row for the key, whose number the box remembers.
    await one.mutex('a').run(() => undefined)
    await server.restart()
    await using other = await open(server.url)
    await other.store('s').put('b', 'of b')
    await until('it is connected', () =>
      one
        .mutex('a')
        .acquire({ lease: '60s' })
        .then(
          () => true,
          () => false,
        ),
    )
    expect((await other.store('s').get('b'))!.value).toBe('of b')
    expect(await other.mutex('a').tryAcquire()).toBeUndefined()
  })
})
