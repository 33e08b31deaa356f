import { AbortedError, type Box, type Grant } from 'signalbox'
import { CLAIM_WINDOW } from 'signalbox/engine'
import { assert } from './assert.js'
import { testOn } from './boxes.js'
import { describe } from './checks.js'
import type { EngineFixture } from './fixture.js'
import { rising, Section } from './section.js'
import { assertServed, locks, longestStall, nothingHeld, PASSED, queued, timed, until } from './time.js'

/** Numbers of boxes and callers. */
interface Size {
  /** Boxes with one caller each. */
  readonly boxes: number
  /** Number of times that each of them takes its lock. */
  readonly rounds: number
  /** Callers that wait for one key, each with a request of its own. */
  readonly waiting: number
}

const SMALL: Size = { boxes: 8, rounds: 4, waiting: 60 }
const LARGE: Size = { boxes: 40, rounds: 25, waiting: 1000 }

/** A usual number of requests that wait for one key. */
const FEW = 10
/** Maximum duration of a turn with many waiters, as a multiple of that with few: twice, plus noise. */
const MAX_COST = 3
/** A turn with few waiters counts as at least this long, in milliseconds. */
const CHEAP = 1
/** Number of boxes that the waiting requests belong to. */
const WAITING_BOXES = 10
/** Maximum wait of such a request, in milliseconds. */
const WAIT = 200_000
/** Maximum time until all requests wait, in milliseconds. */
const JOINED = 60_000

/** P4, P5: many boxes and many waiters are all served in order. Small sizes, which take little time. */
export function crowd(fixture: EngineFixture): void {
  describe('P4, P5 a crowd', () => {
    everybodyIsServed(fixture, SMALL)
  })
}

/** P4, P5, P12: the same with the sizes of a large system, and the cost of a turn. */
export function largeCrowd(fixture: EngineFixture): void {
  describe('a large crowd', () => {
    everybodyIsServed(fixture, LARGE)
    const test = testOn(fixture)

    test.alone('of waiters makes a turn cost little more than a few of them do', async boxes => {
      const all = await boxes.several(WAITING_BOXES)
      // The first turns open connections and compile code.
      await turns(all, FEW)
      let few = Infinity
      for (let round = 0; round < 5; round++) few = Math.min(few, await turns(all, FEW))
      const many = await turns(all, LARGE.waiting)
      assert.atMost(many, MAX_COST * Math.max(few, CHEAP))
    })

    test.skipIf(fixture.network === 'none')(
      'of waiters keeps its order when all connections break for a moment',
      async boxes => {
        const holder = await boxes.open()
        const networks = await Promise.all(Array.from({ length: WAITING_BOXES }, () => boxes.overNetwork()))
        const line = await Line.behind(
          holder,
          networks.map(([box]) => box),
          LARGE.waiting,
        )
        for (const [, network] of networks) network.cut()
        for (const [, network] of networks) network.restore()
        await line.serve()
        await nothingHeld(holder)
      },
    )
  })
}

function everybodyIsServed(fixture: EngineFixture, { boxes: count, rounds, waiting }: Size): void {
  const test = testOn(fixture)

  test('of boxes on keys of their own and on one key takes each lock in turn', async boxes => {
    const all = await boxes.several(count)
    const shared = new Section()
    const turns = all.map(() => 0)
    await Promise.all(
      all.map(async (box, index) => {
        const own = new Section()
        for (let round = 0; round < rounds; round++) {
          await box.mutex(`own ${index}`).run(grant => own.visit(grant, 1, 0))
          await box.mutex('shared').run(async grant => {
            await shared.visit(grant, 1, 0)
            turns[index]!++
          })
        }
        assert.equal(rising(own.tokens), true)
      }),
    )
    assert.deepEqual(
      turns,
      all.map(() => rounds),
    )
    assert.equal(shared.most, 1)
    assert.equal(rising(shared.tokens), true)
    await nothingHeld(all[0]!)
  })

  test('of waiters is served in order, without those that gave up together', async boxes => {
    const all = await boxes.several(WAITING_BOXES)
    const line = await Line.behind(all[0]!, all, waiting)
    line.giveUp(index => index % 3 === 1)
    await line.serve()
    await nothingHeld(all[0]!)
  })

  test('of waiters passes a stopped box in its middle', async boxes => {
    const holder = await boxes.open()
    const [stopped, engine] = await boxes.withFaults()
    const living = await boxes.several(3)
    const half = Math.floor(Math.min(waiting, 200) / 2)
    const line = await Line.behind(holder, living, half)
    stopped
      .mutex(KEY)
      .acquire({ label: 'stopped' })
      .catch(() => undefined)
    await queued(holder, KEY, half + 1)
    await line.join(living, half)
    await engine.freeze()
    await line.serve()
    assert.below(line.longestGap, PASSED)
  })
}

const KEY = 'key'

/** Requests that wait behind a holder for one key. */
class Line {
  readonly #holder: Box
  readonly #held: Grant
  readonly #stops: AbortController[] = []
  readonly #gone = new Set<string>()
  readonly #callers: Promise<void>[] = []
  readonly #served: string[] = []
  readonly #tokens: bigint[] = []
  /** The longest time from one turn to the next, in milliseconds. */
  longestGap = 0
  #turnAt = 0

  private constructor(holder: Box, held: Grant) {
    this.#holder = holder
    this.#held = held
  }

  /** Holds the key, adds requests of these boxes, and resolves when they wait. */
  static async behind(holder: Box, boxes: readonly Box[], count: number): Promise<Line> {
    const line = new Line(holder, await holder.mutex(KEY).acquire())
    await line.join(boxes, count)
    return line
  }

  /** Adds requests of these boxes, and resolves when they wait. */
  async join(boxes: readonly Box[], count: number): Promise<void> {
    const before = (await this.#waiters()).length
    for (let index = 0; index < count; index++) {
      const caller = this.#ask(boxes[index % boxes.length]!, String(this.#stops.length))
      caller.catch(() => undefined)
      this.#callers.push(caller)
    }
    await until(`${count} more wait`, async () => (await this.#waiters()).length === before + count, JOINED)
  }

  /** Aborts some of the requests, all in one tick. */
  giveUp(which: (index: number) => boolean): void {
    for (const [index, stop] of this.#stops.entries()) {
      if (!which(index)) continue
      this.#gone.add(String(index))
      stop.abort()
    }
  }

  /** Releases the key, and waits until all have had it, in the order in which they waited. */
  async serve(): Promise<void> {
    const order = (await this.#waiters()).filter(name => name !== 'stopped' && !this.#gone.has(name))
    const stall = longestStall()
    this.#turnAt = performance.now()
    await this.#held.release()
    const outcomes = await Promise.allSettled(this.#callers)
    // A waiter that stands still for the claim window loses its turn.
    assertServed(this.#served, order, stall() < CLAIM_WINDOW / 2)
    assert.hasLength(this.#served, this.#callers.length - this.#gone.size)
    assert.equal(rising(this.#tokens), true, 'tokens rise')
    for (const [index, outcome] of outcomes.entries()) {
      assert.equal(outcome.status, this.#gone.has(String(index)) ? 'rejected' : 'fulfilled')
      if (outcome.status === 'rejected') assert.isA(outcome.reason, AbortedError)
    }
  }

  async #ask(box: Box, label: string): Promise<void> {
    const stop = new AbortController()
    this.#stops.push(stop)
    const options = { wait: WAIT, label, ownRequest: true, signal: stop.signal }
    const grant = await box.mutex(KEY).acquire(options)
    const now = performance.now()
    this.longestGap = Math.max(this.longestGap, now - this.#turnAt)
    this.#turnAt = now
    this.#served.push(label)
    this.#tokens.push(grant.token)
    await grant.release()
  }

  /** Returns the labels of the waiters, in order. */
  async #waiters(): Promise<string[]> {
    const [report] = await locks(this.#holder, KEY, { exact: true })
    return (report?.waiters ?? []).map(({ label }) => label ?? '')
  }
}

/** Returns the mean time of a turn with this many waiters, in milliseconds. */
async function turns(all: readonly Box[], count: number): Promise<number> {
  const line = await Line.behind(all[0]!, all, count)
  return (await timed(() => line.serve())) / count
}
